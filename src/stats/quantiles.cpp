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

template <class T>
T nth(std::vector<T>& values, std::uint64_t index) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

void Quantiles::add(std::int64_t value) {
  assert(value >= 0);
  min_ = count() == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  if (__builtin_add_overflow(sum_, value, &sum_)) sum_ = std::numeric_limits<std::int64_t>::max();
  if (value <= std::numeric_limits<std::uint32_t>::max()) {
    small_.push_back(static_cast<std::uint32_t>(value));
  } else {
    large_.push_back(value);
  }
}

std::int64_t Quantiles::quantile(double q) {
  if (count() == 0) return 0;
  const std::uint64_t index = nearest_rank(q, count()) - 1;
  if (index < small_.size()) return nth(small_, index);
  return nth(large_, index - small_.size());
}

}  // namespace pasta::stats
