// Exact quantiles of many integers.
#pragma once

#include <cstdint>
#include <vector>

namespace pasta::stats {

// Keeps every value (4 bytes for one below 2^32, else 8) and answers exactly.
class Quantiles {
 public:
  void add(std::int64_t value);  // value >= 0
  [[nodiscard]] std::uint64_t count() const { return small_.size() + large_.size(); }
  [[nodiscard]] std::int64_t sum() const { return sum_; }  // at most the largest int64
  [[nodiscard]] std::int64_t min() const { return min_; }  // of no values: 0
  [[nodiscard]] std::int64_t max() const { return max_; }  // of no values: 0
  // Nearest rank: the smallest value such that at least the share `q` (0 < q <= 1) of all values
  // is not above it. Reorders its own storage, hence not const. Of no values: 0.
  std::int64_t quantile(double q);

 private:
  std::vector<std::uint32_t> small_;
  std::vector<std::int64_t> large_;
  std::int64_t sum_ = 0;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace pasta::stats
