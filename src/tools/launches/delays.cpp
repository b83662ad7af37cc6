#include "tools/launches/delays.h"

#include <algorithm>
#include <cmath>

namespace pasta::tools::launches {

void Delays::add(std::int64_t delay_ns) {
  sum_ += static_cast<double>(delay_ns);
  if (delay_ns < 0) {
    negative_.push_back(delay_ns);
  } else {
    rest_.add(delay_ns);
  }
}

std::int64_t Delays::count() const {
  return static_cast<std::int64_t>(negative_.size() + rest_.count());
}

std::int64_t Delays::min() const {
  return negative_.empty() ? rest_.min() : *std::min_element(negative_.begin(), negative_.end());
}

std::int64_t Delays::max() const {
  return rest_.count() > 0 ? rest_.max() : *std::max_element(negative_.begin(), negative_.end());
}

std::int64_t Delays::mean() const { return std::llround(sum_ / static_cast<double>(count())); }

std::int64_t Delays::quantile(double q) {
  if (negative_.empty()) return rest_.quantile(q);
  // Quantiles finds the rank for a share of all values; what it is asked for is a rank among the
  // rest, as the share in the middle between that rank and the one before.
  const auto all = static_cast<double>(count());
  auto rank = static_cast<std::size_t>(std::ceil(q * all - 1e-9));
  rank = std::clamp<std::size_t>(rank, 1, static_cast<std::size_t>(count()));
  if (rank <= negative_.size()) {
    const auto place = negative_.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(negative_.begin(), place, negative_.end());
    return *place;
  }
  const auto among_rest = static_cast<double>(rank - negative_.size());
  return rest_.quantile((among_rest - 0.5) / static_cast<double>(rest_.count()));
}

}  // namespace pasta::tools::launches
