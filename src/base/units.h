// Times, sizes, counts and shares: as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pasta::base {

enum class TimeUnit : std::uint8_t {
  kAuto,  // the largest in which the value is at least 1
  kNanosecond,
  kMicrosecond,
  kMillisecond,
  kSecond,
};
// "ns", "us", "ms", "s", "auto". False when it is none of them.
bool parse_time_unit(std::string_view text, TimeUnit& unit);

// "1.235 ms": three decimals, rounded half away from zero; nanoseconds have none.
std::string format_duration(std::int64_t ns, TimeUnit unit = TimeUnit::kAuto);
// "512 B", "1.5 KiB", "2.0 GiB": one decimal, rounded half away from zero.
std::string format_bytes(std::uint64_t bytes);
// Digits only, so that it can be pasted into anything.
std::string format_count(std::int64_t count);
// A share of 0..1 as "12.3 %".
std::string format_share(double share);

// "10ms", "1.5 s", "250us", "42" (nanoseconds); nothing is rounded: what is no whole number of
// nanoseconds is refused. False when it is no duration, or does not fit.
bool parse_duration(std::string_view text, std::int64_t& ns);
// "2GiB", "512MB", "1.5K", "4096" (bytes): with "iB", or a letter alone, powers of 1024; with "B"
// powers of 1000. False when it is no size, no whole number of bytes, or does not fit.
bool parse_bytes(std::string_view text, std::uint64_t& bytes);

}  // namespace pasta::base
