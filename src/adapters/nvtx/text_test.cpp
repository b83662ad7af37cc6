#include "adapters/nvtx/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace pasta::adapters::nvtx {
namespace {

TEST(NvtxText, WideCharactersBecomeUtf8) {
  char to[64];
  const auto text = [&](const wchar_t* wide, std::size_t room) {
    return std::string(to, to_utf8(wide, to, room));
  };
  EXPECT_EQ(text(L"", 64), "");
  EXPECT_EQ(text(L"a\u00e9\u4e16\U0001f35d", 64), "a\u00e9\u4e16\U0001f35d");
  EXPECT_EQ(text(L"a\u00e9\u4e16\U0001f35d", 9), "a\u00e9\u4e16") << "no half of a character";
  const wchar_t none[] = {static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x110000), L'b', 0};
  EXPECT_EQ(text(none, 64), "\ufffd\ufffdb");
}

TEST(NvtxText, MembersMakeAnObject) {
  char memory[512];
  JsonMembers all(memory, sizeof memory);
  all.add("sizes", "[[2, 3], []]");
  all.add_text("text", "a\"\\\n\x1f\xc3\xa9");
  all.add_number("most", std::numeric_limits<std::uint64_t>::max());
  all.add_number("least", std::numeric_limits<std::int64_t>::min());
  all.add_number("tenth", 0.1);
  all.add_number("third", 1.0 / 3);
  all.add_number("float", 0.1f);
  all.add_number("large", 1e300);
  all.add_number("whole", -100000.0);
  all.add_number("nan", std::nan(""));
  all.add_number("inf", -std::numeric_limits<float>::infinity());
  EXPECT_EQ(all.object(),
            R"({"sizes":[[2,3],[]],"text":"a\"\\\u000a\u001f)"
            "\xc3\xa9"
            R"(","most":18446744073709551615,"least":-9223372036854775808,"tenth":0.1,)"
            R"("third":0.3333333333333333,"float":0.1,"large":1e+300,"whole":-100000,)"
            R"("nan":"nan","inf":"-inf"})");
}

TEST(NvtxText, WhatHasNoRoomIsLeftOutWhole) {
  char memory[16];
  for (std::size_t room = 1; room <= sizeof memory; ++room) {
    JsonMembers some(memory, room);
    some.add_text("a", "bcd");  // {"a":"bcd"}
    some.add_number("e", std::uint64_t{5});
    some.add_text("long", "0123456789abcdef");
    const std::string is(some.object());
    EXPECT_LE(is.size(), room);
    EXPECT_TRUE(is.empty() || is == R"({"e":5})" || is == R"({"a":"bcd"})") << room << ' ' << is;
  }
  JsonMembers none(memory, sizeof memory);
  EXPECT_EQ(none.object(), "");
}

}  // namespace
}  // namespace pasta::adapters::nvtx
