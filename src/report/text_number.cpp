#include "report/text_number.h"

#include <fmt/format.h>

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

// Four digits of the largest value, more where the smallest needs them for two of its own.
void choose_decimals(Scale& scale, double smallest, double largest) {
  const int most = scale.decimals;
  const double shown = largest / scale.divisor;
  scale.decimals = std::min(most, shown >= 100 ? 1 : shown >= 10 ? 2 : 3);
  while (scale.decimals < most && smallest < 10 * last_place(scale)) ++scale.decimals;
}

template <std::size_t kCount>
Scale climb(const std::array<Scale, kCount>& ladder, double smallest, double largest) {
  std::size_t step = 0;
  while (step + 1 < kCount && ladder[step + 1].divisor <= largest) ++step;
  for (std::size_t lower = step; largest / ladder[lower].divisor < kLargestReadable; --lower) {
    if (smallest >= last_place(ladder[lower])) {
      step = lower;
      break;
    }
    if (lower == 0) break;
  }
  Scale scale = ladder[step];
  choose_decimals(scale, smallest, largest);
  return scale;
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

Scale choose_scale(Unit unit, std::span<const double> values, TimeUnit time_unit) {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  bool whole = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    whole = whole && value == std::floor(value);
    if (value != 0) smallest = std::min(smallest, std::abs(value));
    largest = std::max(largest, std::abs(value));
  }
  Scale scale;
  switch (unit) {
    case Unit::kNone:
      return scale;
    case Unit::kNanoseconds:
      if (time_unit == TimeUnit::kAuto) {
        scale = climb(kTimes, smallest, largest);
      } else {
        scale = kTimes[static_cast<std::size_t>(time_unit) - 1];
      }
      break;
    case Unit::kBytes:
      scale = climb(kSizes, smallest, largest);
      break;
    case Unit::kCount:
      break;
    case Unit::kShare:
      return {"%", 0.01, 1};
  }
  if (scale.divisor == 1) scale.decimals = whole ? 0 : 1;
  return scale;
}

std::string format_number(double value, Unit unit, const Scale& scale) {
  if (!std::isfinite(value)) return "-";
  if (unit == Unit::kNone) return fmt::format("{:.6g}", value);
  const double place = std::pow(10.0, -scale.decimals);
  const double shown = value / scale.divisor;
  if (value != 0 && std::abs(shown) < place / 2) {
    return fmt::format("{}{:.{}f}", value < 0 ? ">-" : "<", place, scale.decimals);
  }
  if (unit == Unit::kShare && value < 1 && shown >= 100 - place / 2) {
    return fmt::format(">{:.{}f}", 100 - place, scale.decimals);
  }
  return group_thousands(fmt::format("{:.{}f}", shown, scale.decimals));
}

std::string format_number(std::int64_t value, Unit unit, const Scale& scale) {
  if (unit == Unit::kNone) return std::to_string(value);
  if (scale.divisor == 1 && scale.decimals == 0) return format_count(value);
  return format_number(static_cast<double>(value), unit, scale);
}

std::string format_quantity(double value, Unit unit, TimeUnit time_unit) {
  const Scale scale = choose_scale(unit, std::span(&value, 1), time_unit);
  std::string text = format_number(value, unit, scale);
  if (scale.name.empty() || text == "-") return text;
  if (unit != Unit::kShare) text += ' ';
  return text += scale.name;
}

std::string format_count(std::int64_t value) { return group_thousands(std::to_string(value)); }

}  // namespace pasta::report
