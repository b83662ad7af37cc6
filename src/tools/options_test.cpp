#include <gtest/gtest.h>

#include "pasta/tool.h"

namespace pasta {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kColours[] = {"red", "blue"};
constexpr OptionInfo kRows[] = {{"colour", "", "red", kColours}, {"top", "", "0", {}}};

TEST(Options, GivenValueElseFallback) {
  const auto options = Options::parse("t", kRows, Given{{"top", "3"}, {"top", "-7"}});
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->text("colour"), "red");
  EXPECT_EQ(options->text("top"), "-7") << "the last one given counts";
  EXPECT_EQ(options->text("size"), "");
  EXPECT_EQ(options->integer("top").value(), -7);
}

TEST(Options, RefusalsNameOptionAndRemedy) {
  const auto unknown = Options::parse("t", kRows, Given{{"size", "3"}});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_EQ(unknown.error().message, "tool t has no option size; its options are colour, top");

  const auto no_choice = Options::parse("t", kRows, Given{{"colour", "Red"}});
  ASSERT_FALSE(no_choice.has_value());
  EXPECT_EQ(no_choice.error().message, "option t.colour cannot be \"Red\"; it is one of red, blue");

  const auto none = Options::parse("t", {}, Given{{"size", "3"}});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().message, "tool t has no options; it was given size");
}

TEST(Options, IntegersAreWholeNumbersOf64Bits) {
  for (const char* text : {"", "x", "3x", "1.5", " 3", "9223372036854775808"}) {
    const auto options = Options::parse("t", kRows, Given{{"top", text}});
    ASSERT_TRUE(options.has_value());
    const auto number = options->integer("top");
    ASSERT_FALSE(number.has_value()) << text;
    EXPECT_EQ(number.error().code, ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace pasta
