#include "base/json_writer.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace pasta::base {
namespace {

std::string written(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(AppendJsonString, AppendsAndQuotes) {
  std::string out = "x: ";
  append_json_string(out, "aten::add");
  append_json_string(out, "");
  EXPECT_EQ(out, "x: \"aten::add\"\"\"");
}

TEST(AppendJsonString, Escapes) {
  EXPECT_EQ(written("\"\\\b\f\n\r\t/"), R"("\"\\\b\f\n\r\t/")");
  EXPECT_EQ(written(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
}

TEST(AppendJsonString, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(written("\u00e9\u20ac\U0001f600"), "\"\u00e9\u20ac\U0001f600\"");
  EXPECT_EQ(written("a\xff"
                    "b"),
            "\"a\ufffdb\"");
  EXPECT_EQ(written("\xe2\x82"), "\"\ufffd\ufffd\"");
  EXPECT_EQ(written("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");
}

TEST(Utf8, EncodesWhatItAccepts) {
  for (std::uint32_t code = 0; code < 0x110000; code += code < 0x900 ? 1 : 0x7f) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    char bytes[4];
    const std::size_t length = utf8_encode(code, bytes);
    EXPECT_EQ(utf8_length({bytes, length}), length) << code;
    if (length > 1) {
      EXPECT_EQ(utf8_length({bytes, length - 1}), 0u) << code;
    }
  }
  EXPECT_EQ(utf8_valid_prefix("ab\xf4\x90\x80\x80"), 2u);
}

}  // namespace
}  // namespace pasta::base
