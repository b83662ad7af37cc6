// Exact quantiles of many integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pasta::stats {

// Keeps which values came, and how often, and answers exactly. What it takes grows with the number
// of different values, which for times of one kernel is small: 1 to 3 bytes for each, and 4 to 8
// for each of those that came last.
class Quantiles {
 public:
  void add(std::int64_t value);  // value >= 0
  [[nodiscard]] std::uint64_t count() const { return small_count_ + large_.size(); }
  [[nodiscard]] std::int64_t sum() const { return sum_; }  // at most the largest int64
  [[nodiscard]] std::int64_t min() const { return min_; }  // of no values: 0
  [[nodiscard]] std::int64_t max() const { return max_; }  // of no values: 0
  // Nearest rank: the smallest value such that at least the share `q` (0 < q <= 1) of all values
  // is not above it. Reorders its own storage, hence not const. Of no values: 0.
  std::int64_t quantile(double q);
  [[nodiscard]] std::size_t held_bytes() const {
    return newest_.capacity() * sizeof newest_[0] + folded_.capacity() +
           large_.capacity() * sizeof large_[0];
  }

 private:
  void fold();

  // Below 2^32: the newest as they came, and the others in ascending order, each as the difference
  // from the one before it and how often it came.
  std::vector<std::uint32_t> newest_;
  std::vector<std::uint8_t> folded_;
  std::size_t different_ = 0;  // in `folded_`
  std::uint64_t small_count_ = 0;
  std::vector<std::int64_t> large_;
  std::int64_t sum_ = 0;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace pasta::stats
