#include "mine/runs.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "mine/by_position.h"
#include "mine/common_prefix.h"

namespace pasta::mine {
namespace {

// So many symbols are compared one by one before the index is asked.
constexpr std::uint32_t kCompared = 64;

// The last run of some period.
struct Stretch {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

class Finder {
 public:
  explicit Finder(const SuffixArray& index)
      : index_(index), text_(index.text().ranks()), order_(text_.size()), seen_(text_.size()) {
    const auto positions = index.positions();
    ByPosition rows(size());
    for (std::uint32_t row = 0; row < size(); ++row) rows.put(positions[row], row);
    rows.for_each_block([&](std::uint32_t first, std::span<std::uint32_t> block) {
      std::ranges::copy(block, order_.begin() + first);
    });
  }

  std::vector<Run> find() {
    for (std::uint32_t at = size(); at-- > 0;) {
      const Suffix here{at, order_[at]};
      while (!smaller_.empty() && smaller_.back().row > here.row) smaller_.pop();
      if (!smaller_.empty()) consider(at, smaller_.back().position);
      smaller_.push(here);
      while (!greater_.empty() && greater_.back().row < here.row) greater_.pop();
      if (!greater_.empty()) consider(at, greater_.back().position);
      greater_.push(here);
    }
    return sorted();
  }

 private:
  struct Suffix {
    std::uint32_t position;
    std::uint32_t row;
  };
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }

  // By counting the runs that begin at each position; few begin at the same one.
  std::vector<Run> sorted() {
    auto& place = order_;  // not needed any more
    std::ranges::fill(place, 0);
    runs_.for_each([&](const Run& run) { ++place[run.begin]; });
    std::uint32_t sum = 0;
    for (std::uint32_t& begin : place) sum += std::exchange(begin, sum);
    std::vector<Run> result;
    result.reserve(runs_.size());
    ask_for_huge_pages(result.data(), runs_.size() * sizeof(Run));
    result.resize(runs_.size());
    runs_.for_each([&](const Run& run) { result[place[run.begin]++] = run; });
    for (auto first = result.begin(); first != result.end();) {
      auto last = first + 1;
      while (last != result.end() && last->begin == first->begin) ++last;
      if (last - first > 1) {
        std::sort(first, last, [](const Run& a, const Run& b) { return a.period < b.period; });
      }
      first = last;
    }
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  void consider(std::uint32_t at, std::uint32_t next) {
    // The period must hold at the block's first symbol, or just before it.
    if (text_[at] != text_[next] && (at == 0 || text_[at - 1] != text_[next - 1])) return;
    const std::uint32_t period = next - at;
    Stretch& seen = seen_[period];
    if (seen.begin <= at && next <= seen.end) return;
    const std::uint32_t after = agree_after(at, next);
    const std::uint32_t before = agree_before(at, next, after);
    if (before + after < period) return;
    const std::uint32_t begin = at - before;
    const std::uint32_t end = next + after;
    seen = {begin, end};
    runs_.push({begin, end, period});
  }

  // How many symbols from a and b > a on agree.
  std::uint32_t agree_after(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t most = size() - b;
    std::uint32_t length = 0;
    for (; length < std::min(most, kCompared); ++length) {
      if (text_[a + length] != text_[b + length]) return length;
    }
    return length == most ? length : shared(a, b);
  }

  // How many symbols before a and b agree, given that `after` from there on do. Less than what
  // would make a run of it may be answered by 0.
  std::uint32_t agree_before(std::uint32_t a, std::uint32_t b, std::uint32_t after) {
    std::uint32_t length = 0;
    for (; length < std::min(a, kCompared); ++length) {
      if (text_[a - 1 - length] != text_[b - 1 - length]) return length;
    }
    if (length == a) return length;
    // Do the next `further` symbols to the left agree too? That is asked from their left end.
    const auto reaches = [&](std::uint32_t further) {
      return further <= a && shared(a - further, b - further) >= further;
    };
    if (const std::uint32_t period = b - a; length + after < period) {
      length = period - after;
      if (!reaches(length)) return 0;
    }
    std::uint32_t step = 1;
    for (; reaches(length + step); step *= 2) length += step;
    for (; step > 0; step /= 2) {
      if (reaches(length + step)) length += step;
    }
    return length;
  }

  // The same as agree_after, in constant time but far from the cache.
  std::uint32_t shared(std::uint32_t a, std::uint32_t b) {
    if (!minimum_) minimum_.emplace(index_.lcp());
    const auto [first, last] = std::minmax(order_[a], order_[b]);
    return (*minimum_)(first + 1, last);
  }

  const SuffixArray& index_;
  Symbols text_;
  std::optional<RangeMinimum> minimum_;  // few texts need it
  LargeVector<std::uint32_t> order_;     // row of each suffix
  Pile<Suffix> smaller_;                 // those after a position to which none between is smaller
  Pile<Suffix> greater_;
  ZeroTable<Stretch> seen_;  // by period, the last run that was found
  Pile<Run> runs_;
};

}  // namespace

std::vector<Run> find_runs(const SuffixArray& index) { return Finder(index).find(); }

}  // namespace pasta::mine
