#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace pasta::base {
namespace {

TEST(Units, FormatsDurations) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(1000), "1.000 us");
  EXPECT_EQ(format_duration(999999), "999.999 us");
  EXPECT_EQ(format_duration(1000000), "1.000 ms");
  EXPECT_EQ(format_duration(-1234567), "-1.235 ms");
  EXPECT_EQ(format_duration(999999499), "999.999 ms");
  EXPECT_EQ(format_duration(999999500), "1.000 s");
  EXPECT_EQ(format_duration(1234567, TimeUnit::kNanosecond), "1234567 ns");
  EXPECT_EQ(format_duration(1234567, TimeUnit::kSecond), "0.001 s");
  EXPECT_EQ(format_duration(500, TimeUnit::kMillisecond), "0.001 ms");
  EXPECT_EQ(format_duration(499, TimeUnit::kMillisecond), "0.000 ms");
  EXPECT_EQ(format_duration(std::numeric_limits<std::int64_t>::min()), "-9223372036.855 s");
}

TEST(Units, FormatsBytesCountsAndShares) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::uint64_t{2} << 30), "2.0 GiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
  EXPECT_EQ(format_count(-1234567), "-1234567");
  EXPECT_EQ(format_share(0.1234), "12.3 %");
  EXPECT_EQ(format_share(1), "100.0 %");
  EXPECT_EQ(format_share(-0.00001), "0.0 %");
}

TEST(Units, ParsesDurations) {
  std::int64_t ns = 0;
  const auto parsed = [&](std::string_view text) { return parse_duration(text, ns) ? ns : -1; };
  EXPECT_EQ(parsed("42"), 42);
  EXPECT_EQ(parsed("42ns"), 42);
  EXPECT_EQ(parsed("250us"), 250000);
  EXPECT_EQ(parsed("10ms"), 10000000);
  EXPECT_EQ(parsed("1.5 s"), 1500000000);
  EXPECT_EQ(parsed("1.000000001s"), 1000000001);
  for (const std::string_view text :
       {"", "s", "1.5", "1.0000000001s", "1m", "1 MS", "10 ms x", "99999999999s", "1.5.2ms"}) {
    EXPECT_FALSE(parse_duration(text, ns)) << text;
  }
}

TEST(Units, ParsesBytes) {
  std::uint64_t bytes = 0;
  const auto parsed = [&](std::string_view text) { return parse_bytes(text, bytes) ? bytes : 1; };
  EXPECT_EQ(parsed("4096"), 4096u);
  EXPECT_EQ(parsed("7B"), 7u);
  EXPECT_EQ(parsed("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parsed("512MB"), 512000000u);
  EXPECT_EQ(parsed("1.5K"), 1536u);
  EXPECT_EQ(parsed("1.5 TiB"), std::uint64_t{3} << 39);
  EXPECT_EQ(parsed("64k"), 65536u);
  EXPECT_EQ(parsed("10000000000"), 10000000000u);
  EXPECT_EQ(parsed("15EiB"), std::uint64_t{15} << 60);
  for (const std::string_view text : {"", "B", "-1", "1.5", "0.3K", "16EiB", "1XB", "1GiBs"}) {
    EXPECT_FALSE(parse_bytes(text, bytes)) << text;
  }
}

TEST(Units, ParsesTimeUnits) {
  TimeUnit unit = TimeUnit::kAuto;
  EXPECT_TRUE(parse_time_unit("us", unit));
  EXPECT_EQ(unit, TimeUnit::kMicrosecond);
  EXPECT_TRUE(parse_time_unit("auto", unit));
  EXPECT_EQ(unit, TimeUnit::kAuto);
  EXPECT_FALSE(parse_time_unit("m", unit));
}

}  // namespace
}  // namespace pasta::base
