#include "report/text_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace pasta::report {
namespace {

constexpr std::array<Scale, 4> kTimes{Scale{"ns", 1, 0}, Scale{"us", 1e3, 3}, Scale{"ms", 1e6, 3},
                                      Scale{"s", 1e9, 3}};
constexpr std::array<Scale, 6> kSizes{Scale{"B", 1, 0},        Scale{"KiB", 0x1p10, 2},
                                      Scale{"MiB", 0x1p20, 2}, Scale{"GiB", 0x1p30, 2},
                                      Scale{"TiB", 0x1p40, 2}, Scale{"PiB", 0x1p50, 2}};

// Where the smallest value would vanish, a smaller unit is taken as long as the largest value
// stays below this.
constexpr double kLargestReadable = 100'000;

double last_place(const Scale& scale) { return scale.divisor * std::pow(10.0, -scale.decimals); }

bool shows(const Scale& scale, const Extent& extent) {
  return extent.smallest >= last_place(scale) && extent.largest / scale.divisor < kLargestReadable;
}

// Four digits of the largest value, more where the smallest needs them for two of its own.
Scale readable(Scale scale, const Extent& extent) {
  const int most = scale.decimals;
  const double shown = extent.largest / scale.divisor;
  scale.decimals = std::min(most, shown >= 100 ? 1 : shown >= 10 ? 2 : 3);
  while (scale.decimals < most && extent.smallest < 10 * last_place(scale)) ++scale.decimals;
  return scale;
}

Scale with_decimals(Scale scale, const Extent& extent) {
  if (scale.divisor != 1) return readable(scale, extent);
  scale.decimals = extent.whole ? 0 : 1;
  return scale;
}

// The step of the ladder whose unit the largest value reaches; a lower one, if that shows all.
template <std::size_t kCount>
std::size_t climb(const std::array<Scale, kCount>& ladder, const Extent& extent) {
  std::size_t top = 0;
  while (top + 1 < kCount && ladder[top + 1].divisor <= extent.largest) ++top;
  for (std::size_t step = top + 1; step-- > 0;) {
    if (shows(ladder[step], extent)) return step;
  }
  return top;
}

// "-1234567.8" as "-1,234,567.8".
std::string group_thousands(std::string digits) {
  const std::size_t begin = digits.starts_with('-') ? 1 : 0;
  std::size_t end = std::min(digits.find('.'), digits.size());
  while (end > begin + 3) {
    end -= 3;
    digits.insert(end, 1, ',');
  }
  return digits;
}

}  // namespace

Extent::Extent(std::span<const double> values)
    : smallest(std::numeric_limits<double>::infinity()), largest(0), whole(true) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    whole = whole && value == std::floor(value);
    if (value != 0) smallest = std::min(smallest, std::abs(value));
    largest = std::max(largest, std::abs(value));
  }
}

Scale choose_scale(Unit unit, const Extent& extent, TimeUnit time_unit) {
  switch (unit) {
    case Unit::kNone:
      // Whole ones may be ids: they are shown as they are.
      return extent.whole ? Scale() : readable({"", 1, 3}, extent);
    case Unit::kNanoseconds:
      return choose_time_scales(std::span(&extent, 1), time_unit).front();
    case Unit::kBytes:
      return with_decimals(kSizes[climb(kSizes, extent)], extent);
    case Unit::kCount:
      return with_decimals(Scale(), extent);
    case Unit::kShare:
      return {"%", 0.01, 1};
  }
  return {};
}

std::vector<Scale> choose_time_scales(std::span<const Extent> columns, TimeUnit time_unit) {
  std::vector<std::size_t> steps;
  std::array<std::size_t, kTimes.size()> votes{};
  for (const Extent& extent : columns) {
    steps.push_back(time_unit == TimeUnit::kAuto ? climb(kTimes, extent)
                                                 : static_cast<std::size_t>(time_unit) - 1);
    if (extent.largest > 0) ++votes[steps.back()];
  }
  const auto common =
      static_cast<std::size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
  std::vector<Scale> scales;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool joins = time_unit == TimeUnit::kAuto && shows(kTimes[common], columns[i]);
    scales.push_back(with_decimals(kTimes[joins ? common : steps[i]], columns[i]));
  }
  return scales;
}

std::string format_number(double value, Unit unit, const Scale& scale) {
  if (!std::isfinite(value)) return "-";
  if (unit == Unit::kNone && scale.decimals == 0) return fmt::format("{:.6g}", value);
  if (value == 0) return "0";
  const double place = std::pow(10.0, -scale.decimals);
  const double shown = value / scale.divisor;
  if (std::abs(shown) < place / 2) {
    return fmt::format("{}{:.{}f}", value < 0 ? ">-" : "<", place, scale.decimals);
  }
  if (unit == Unit::kShare && value < 1 && shown >= 100 - place / 2) {
    return fmt::format(">{:.{}f}", 100 - place, scale.decimals);
  }
  return group_thousands(fmt::format("{:.{}f}", shown, scale.decimals));
}

std::string format_number(std::int64_t value, Unit unit, const Scale& scale) {
  if (unit == Unit::kNone && scale.decimals == 0) return std::to_string(value);
  if (scale.divisor == 1 && scale.decimals == 0) return format_count(value);
  return format_number(static_cast<double>(value), unit, scale);
}

std::string format_quantity(double value, Unit unit, TimeUnit time_unit) {
  const Scale scale = choose_scale(unit, Extent(std::span(&value, 1)), time_unit);
  std::string text = format_number(value, unit, scale);
  if (scale.name.empty() || text == "-") return text;
  if (unit != Unit::kShare) text += ' ';
  return text += scale.name;
}

std::string format_count(std::int64_t value) { return group_thousands(std::to_string(value)); }

}  // namespace pasta::report
