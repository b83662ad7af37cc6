// Numbers for a person: one unit for a column, and no more digits than are read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/report.h"
#include "report/render.h"

namespace pasta::report {

// How the numbers of one column are shown.
struct Scale {
  std::string_view name;  // "ms", "%", "" for none
  double divisor = 1;
  int decimals = 0;
};

// What decides how a column of numbers is shown.
struct Extent {
  double smallest;  // of what is not 0; infinity when there is nothing
  double largest;
  bool whole;  // no value has a fraction
  explicit Extent(std::span<const double> values);
};

// The unit in which the largest value is readable and the smallest is not lost.
Scale choose_scale(Unit unit, const Extent& extent, TimeUnit time_unit);
// The same for columns of time that stand side by side: in one unit, wherever it does for a column
// what its own would.
std::vector<Scale> choose_time_scales(std::span<const Extent> columns, TimeUnit time_unit);

// `value` in the scale's unit, without its name. "-" when it is not finite. A value that is not 0
// and would be shown as 0 becomes "<0.001", and 0 is just "0"; a share below the whole never
// becomes 100.
std::string format_number(double value, Unit unit, const Scale& scale);
std::string format_number(std::int64_t value, Unit unit, const Scale& scale);
// One number with its unit: "1.733 s", "15.2%".
std::string format_quantity(double value, Unit unit, TimeUnit time_unit);
// 1,234,567
std::string format_count(std::int64_t value);

}  // namespace pasta::report
