#include "base/decimal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace pasta::base {
namespace {

constexpr std::int64_t kUntouched = -4242;

struct Case {
  std::string_view text;
  int shift;
  DecimalStatus status;
  std::int64_t value = kUntouched;
};

TEST(ParseDecimal, Values) {
  constexpr auto kExact = DecimalStatus::kExact;
  constexpr auto kCut = DecimalStatus::kCut;
  constexpr auto kOut = DecimalStatus::kOutOfRange;
  constexpr auto kInvalid = DecimalStatus::kInvalid;
  const Case cases[] = {
      {"12.5", 3, kExact, 12500},
      {"1712195495406752.750", 3, kExact, 1712195495406752750},
      {"1712195495406752.7504", 3, kCut, 1712195495406752750},
      {"0", 3, kExact, 0},
      {"-0", 3, kExact, 0},
      {"-12.3456", 3, kCut, -12345},
      {"-0.0009", 3, kCut, 0},
      {"0.0000", 3, kExact, 0},
      {"1.250000000000000000000", 3, kExact, 1250},
      {"  7\n", 0, kExact, 7},
      {"+5", 0, kExact, 5},
      {".5", 1, kExact, 5},
      {"5.", 1, kExact, 50},
      {"0012", 0, kExact, 12},
      {"00000000000000000000000000000012", 0, kExact, 12},
      {"1e3", 0, kExact, 1000},
      {"1.5E+3", 3, kExact, 1500000},
      {"1500e-3", 0, kCut, 1},
      {"1500e-2", 0, kExact, 15},
      {"1e-400", 3, kCut, 0},
      {"0e999999999999999999999", 3, kExact, 0},
      {"1e999999999999999999999", 3, kOut},
      {"1e-999999999999999999999", 3, kCut, 0},
      {"9223372036854775807", 0, kExact, std::numeric_limits<std::int64_t>::max()},
      {"9223372036854775808", 0, kOut},
      {"-9223372036854775808", 0, kExact, std::numeric_limits<std::int64_t>::min()},
      {"-9223372036854775809", 0, kOut},
      {"9223372036854775.807", 3, kExact, std::numeric_limits<std::int64_t>::max()},
      {"9223372036854775.808", 3, kOut},
      {"9223372036854775.8079", 3, kCut, std::numeric_limits<std::int64_t>::max()},
      {"18446744073709551616", 0, kOut},
      {"10159970886766084423", 0, kOut},
      {"12345", -2, kCut, 123},
      {"12300", -2, kExact, 123},
      {"", 0, kInvalid},
      {" ", 0, kInvalid},
      {".", 0, kInvalid},
      {"-", 0, kInvalid},
      {"+-5", 0, kInvalid},
      {"1e", 0, kInvalid},
      {"1e+", 0, kInvalid},
      {"e5", 0, kInvalid},
      {"1.2.3", 0, kInvalid},
      {"0x10", 0, kInvalid},
      {"1 2", 0, kInvalid},
      {"inf", 0, kInvalid},
      {"nan", 0, kInvalid},
      {"12a", 0, kInvalid},
      {std::string_view("1\0", 2), 0, kInvalid},
  };
  for (const Case& c : cases) {
    std::int64_t value = kUntouched;
    EXPECT_EQ(parse_decimal(c.text, c.shift, value), c.status) << c.text;
    EXPECT_EQ(value, c.value) << c.text;
  }
}

TEST(ParseDecimal, GivesBackWhatWasWritten) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    // Of every length.
    const auto ns = static_cast<std::int64_t>(random() >> (random() % 64));
    const std::uint64_t size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : ns;
    const std::string text = fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
    std::int64_t value = kUntouched;
    ASSERT_EQ(parse_decimal(text, 3, value), DecimalStatus::kExact) << text;
    ASSERT_EQ(value, ns) << text;
  }
}

TEST(ParseUnsigned, Values) {
  std::uint64_t value = 0;
  EXPECT_TRUE(parse_unsigned("18446744073709551615", value));
  EXPECT_EQ(value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(parse_unsigned(" 0x7fFF ", value));
  EXPECT_EQ(value, 0x7fffu);
  EXPECT_TRUE(parse_unsigned("007", value));
  EXPECT_EQ(value, 7u);
  for (const std::string_view text :
       {"", "-1", "+1", "1.0", "18446744073709551616", "0x", "0xg", "0x10000000000000000", "1 2"}) {
    EXPECT_FALSE(parse_unsigned(text, value)) << text;
  }
  EXPECT_EQ(value, 7u);
}

TEST(ParseDouble, Values) {
  double value = 0;
  EXPECT_TRUE(parse_double("-12.5e1", value));
  EXPECT_EQ(value, -125.0);
  EXPECT_TRUE(parse_double(" +0.1", value));
  EXPECT_EQ(value, 0.1);
  EXPECT_TRUE(parse_double("5.", value));
  EXPECT_EQ(value, 5.0);
  EXPECT_TRUE(parse_double("1e-400", value));
  EXPECT_EQ(value, 0.0);
  EXPECT_TRUE(parse_double("0." + std::string(400, '0') + "1", value));
  EXPECT_EQ(value, 0.0);
  EXPECT_TRUE(parse_double("0e999", value));
  EXPECT_EQ(value, 0.0);
  const std::string huge = std::string(400, '9') + "e-20";
  for (const std::string_view text :
       {std::string_view("1e400"), std::string_view(huge), std::string_view("inf"),
        std::string_view("nan"), std::string_view("-infinity"), std::string_view("0x1p3"),
        std::string_view(""), std::string_view("+-1"), std::string_view("1,5")}) {
    EXPECT_FALSE(parse_double(text, value)) << text;
  }
}

}  // namespace
}  // namespace pasta::base
