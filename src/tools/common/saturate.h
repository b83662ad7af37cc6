// Sums and differences of times that stay what they are at the end of the axis. Input can hold any
// two 64-bit times; a wrapped sum would be a wrong number that looks like a right one.
#pragma once

#include <cstdint>
#include <limits>

namespace pasta::tools {

// a + b for a, b >= 0.
inline std::int64_t add_saturated(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

// to - from for from <= to.
inline std::int64_t distance_saturated(std::int64_t from, std::int64_t to) {
  std::int64_t length = 0;
  return __builtin_sub_overflow(to, from, &length) ? std::numeric_limits<std::int64_t>::max()
                                                   : length;
}

}  // namespace pasta::tools
