#include "adapters/nvprof_csv/units.h"

#include <cmath>

namespace pasta::adapters::nvprof_csv {

bool time_places(std::string_view unit, int& places) {
  constexpr struct {
    std::string_view unit;
    int places;
  } kUnits[] = {{"s", 9}, {"ms", 6}, {"us", 3}, {"ns", 0}};
  for (const auto& known : kUnits) {
    if (unit == known.unit) {
      places = known.places;
      return true;
    }
  }
  return false;
}

bool unit_bytes(std::string_view unit, std::uint64_t& bytes) {
  constexpr std::string_view kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  unsigned power = 0;
  for (const std::string_view known : kUnits) {
    if (unit == known) {
      bytes = std::uint64_t{1} << power;
      return true;
    }
    power += 10;
  }
  return false;
}

bool parse_size(std::string_view text, std::uint64_t unit_bytes, std::uint64_t& bytes) {
  constexpr int kPlaces = 9;
  constexpr std::uint64_t kScale = 1'000'000'000;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::int64_t scaled = 0;
  const base::DecimalStatus status = base::parse_decimal(text, kPlaces, scaled);
  if (status > base::DecimalStatus::kCut || scaled < 0) return false;
  // In two parts, so that 64 bits suffice.
  const std::uint64_t whole = static_cast<std::uint64_t>(scaled) / kScale;
  const std::uint64_t rest = static_cast<std::uint64_t>(scaled) % kScale;
  std::uint64_t whole_bytes = 0;
  if (__builtin_mul_overflow(whole, unit_bytes, &whole_bytes) || whole_bytes > kMost) return false;
  const double part = static_cast<double>(rest) * static_cast<double>(unit_bytes) / kScale;
  bytes = whole_bytes + static_cast<std::uint64_t>(std::llround(part));
  return true;
}

int decimals(std::string_view text) {
  const std::size_t point = text.find('.');
  return point == text.npos ? 0 : static_cast<int>(text.size() - point - 1);
}

}  // namespace pasta::adapters::nvprof_csv
