#include "stats/quantiles.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace pasta::stats {
namespace {

// The smallest rank (from 1) of `count` whose share reaches `q`. The product alone is not enough:
// 0.07 * 100 is above 7, although 7 of 100 are a share of 0.07.
std::uint64_t nearest_rank(double q, std::uint64_t count) {
  const auto reaches = [&](std::uint64_t rank) {
    return static_cast<double>(rank) / static_cast<double>(count) >= q;
  };
  const double product = std::ceil(q * static_cast<double>(count));
  auto rank = static_cast<std::uint64_t>(std::clamp(product, 1.0, static_cast<double>(count)));
  while (rank > 1 && reaches(rank - 1)) --rank;
  while (rank < count && !reaches(rank)) ++rank;
  return rank;
}

// Few enough that groups of few values stay small, and enough that folding is rare.
constexpr std::size_t kNewest = 1024;

void put(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t get(const std::vector<std::uint8_t>& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes[at++];
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

struct Often {
  std::uint64_t value;
  std::uint64_t count;
};

// Appended in ascending order. Most values of a wide range came once, which the difference says.
class Writer {
 public:
  void add(const Often& often) {
    put(bytes, (often.value - last_) << 1 | (often.count > 1 ? 1 : 0));
    if (often.count > 1) put(bytes, often.count);
    last_ = often.value;
    ++different;
  }
  std::vector<std::uint8_t> bytes;
  std::size_t different = 0;

 private:
  std::uint64_t last_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::uint8_t>& bytes) : bytes_(&bytes) {}
  bool next(Often& often) {
    if (at_ == bytes_->size()) return false;
    const std::uint64_t step = get(*bytes_, at_);
    often.value = last_ += step >> 1;
    often.count = (step & 1) != 0 ? get(*bytes_, at_) : 1;
    return true;
  }

 private:
  const std::vector<std::uint8_t>* bytes_;
  std::size_t at_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace

void Quantiles::add(std::int64_t value) {
  assert(value >= 0);
  min_ = count() == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  if (__builtin_add_overflow(sum_, value, &sum_)) sum_ = std::numeric_limits<std::int64_t>::max();
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    large_.push_back(value);
    return;
  }
  ++small_count_;
  newest_.push_back(static_cast<std::uint32_t>(value));
  // So that each value is folded again a few times only, however many are different.
  if (newest_.size() >= std::max(kNewest, different_)) fold();
}

void Quantiles::fold() {
  std::sort(newest_.begin(), newest_.end());
  Writer merged;
  merged.bytes.reserve(folded_.size() + newest_.size());
  Reader old(folded_);
  Often known{};
  bool more = old.next(known);
  for (auto next = newest_.begin(); next != newest_.end();) {
    const auto end = std::find_if(next, newest_.end(), [&](auto other) { return other != *next; });
    Often often{*next, static_cast<std::uint64_t>(end - next)};
    for (; more && known.value < often.value; more = old.next(known)) merged.add(known);
    if (more && known.value == often.value) {
      often.count += known.count;
      more = old.next(known);
    }
    merged.add(often);
    next = end;
  }
  for (; more; more = old.next(known)) merged.add(known);
  merged.bytes.shrink_to_fit();
  folded_ = std::move(merged.bytes);
  different_ = merged.different;
  newest_.clear();
}

std::int64_t Quantiles::quantile(double q) {
  if (count() == 0) return 0;
  std::uint64_t index = nearest_rank(q, count()) - 1;
  if (index >= small_count_) {
    const auto place = large_.begin() + static_cast<std::ptrdiff_t>(index - small_count_);
    std::nth_element(large_.begin(), place, large_.end());
    return *place;
  }
  if (!newest_.empty()) fold();
  Reader reader(folded_);
  Often often{};
  while (reader.next(often) && index >= often.count) index -= often.count;
  return static_cast<std::int64_t>(often.value);
}

}  // namespace pasta::stats
