#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/decimal.h"

namespace pasta::base {
namespace {

struct TimeScale {
  TimeUnit unit;
  std::string_view name;
  int digits;  // powers of ten above the nanosecond
};
constexpr std::array<TimeScale, 4> kTimeScales = {{{TimeUnit::kNanosecond, "ns", 0},
                                                   {TimeUnit::kMicrosecond, "us", 3},
                                                   {TimeUnit::kMillisecond, "ms", 6},
                                                   {TimeUnit::kSecond, "s", 9}}};

constexpr std::uint64_t power_of_ten(int exponent) {
  std::uint64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// Splits "1.5 ms" into "1.5" and "ms".
struct Quantity {
  std::string_view number;
  std::string_view unit;
};
Quantity split(std::string_view text) {
  const auto letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::size_t unit = text.size();
  while (unit > 0 && letter(text[unit - 1])) --unit;
  std::size_t number = unit;
  while (number > 0 && text[number - 1] == ' ') --number;
  return {text.substr(0, number), text.substr(unit)};
}

}  // namespace

bool parse_time_unit(std::string_view text, TimeUnit& unit) {
  if (text == "auto") {
    unit = TimeUnit::kAuto;
    return true;
  }
  for (const TimeScale& scale : kTimeScales) {
    if (text != scale.name) continue;
    unit = scale.unit;
    return true;
  }
  return false;
}

std::string format_duration(std::int64_t ns, TimeUnit unit) {
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  const auto thousandths = [&](const TimeScale& scale) {
    const std::uint64_t step = power_of_ten(scale.digits - 3);
    return size / step + (size % step >= step - step / 2 ? 1 : 0);
  };
  const TimeScale* chosen = &kTimeScales.front();
  for (const TimeScale& scale : kTimeScales) {
    // From where the smaller unit would show 1000.000.
    const std::uint64_t from = power_of_ten(scale.digits) - power_of_ten(scale.digits - 6) / 2;
    const bool fits = unit == TimeUnit::kAuto ? size >= from : unit == scale.unit;
    if (fits) chosen = &scale;
  }
  const std::string_view sign = ns < 0 ? "-" : "";
  if (chosen->digits == 0) return fmt::format("{}{} {}", sign, size, chosen->name);
  const std::uint64_t shown = thousandths(*chosen);
  return fmt::format("{}{}.{:03} {}", sign, shown / 1000, shown % 1000, chosen->name);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  for (std::size_t i = 0;; ++i) {
    const std::uint64_t unit = std::uint64_t{1024} << (10 * i);
    const std::uint64_t tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
    if (tenths < 10240 || i + 1 == kNames.size()) {
      return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kNames[i]);
    }
  }
}

std::string format_count(std::int64_t count) { return fmt::format("{}", count); }

std::string format_share(double share) {
  const double percent = std::round(share * 1000) / 10;
  return fmt::format("{:.1f} %", percent == 0 ? 0.0 : percent);
}

bool parse_duration(std::string_view text, std::int64_t& ns) {
  const Quantity quantity = split(text);
  for (const TimeScale& scale : kTimeScales) {
    if (quantity.unit != scale.name && !(quantity.unit.empty() && scale.digits == 0)) continue;
    return parse_decimal(quantity.number, scale.digits, ns) == DecimalStatus::kExact;
  }
  return false;
}

bool parse_bytes(std::string_view text, std::uint64_t& bytes) {
  const Quantity quantity = split(text);
  std::string_view unit = quantity.unit;
  std::uint64_t scale = 1;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view kPrefixes = "KMGTPE";
    const auto power =
        kPrefixes.find(static_cast<char>(unit.front() >= 'a' ? unit.front() - 0x20 : unit.front()));
    unit.remove_prefix(1);
    if (power == std::string_view::npos || !(unit.empty() || unit == "iB" || unit == "B")) {
      return false;
    }
    const std::uint64_t step = unit == "B" ? 1000 : 1024;
    for (std::size_t i = 0; i <= power; ++i) scale *= step;
  }
  // Counted in units of 10^-9, so that "1.5GiB" is whole.
  constexpr std::uint64_t kBillion = 1000000000;
  __extension__ using Wide = unsigned __int128;
  Wide billionths = 0;
  std::int64_t value = 0;
  if (parse_decimal(quantity.number, 9, value) == DecimalStatus::kExact && value >= 0) {
    billionths = static_cast<Wide>(value) * scale;
  } else if (parse_decimal(quantity.number, 0, value) == DecimalStatus::kExact && value >= 0) {
    billionths = static_cast<Wide>(value) * scale;
    if (billionths > std::numeric_limits<std::uint64_t>::max()) return false;
    billionths *= kBillion;
  } else {
    return false;
  }
  const Wide whole = billionths / kBillion;
  if (billionths % kBillion != 0 || whole > std::numeric_limits<std::uint64_t>::max()) return false;
  bytes = static_cast<std::uint64_t>(whole);
  return true;
}

}  // namespace pasta::base
