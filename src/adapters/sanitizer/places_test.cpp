#include "adapters/sanitizer/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace pasta::adapters::sanitizer {
namespace {

// See places.cu beside it.
std::string program() {
  std::ifstream file(PASTA_SOURCE_DIR "/tests/data/places.cubin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
Places places(const std::string& bytes) { return Places::read(std::as_bytes(std::span(bytes))); }

// As nvdisasm has them, whose tables of lines are the vendor's own.
TEST(SanitizerPlaces, LinesAndInstructions) {
  const Places known = places(program());
  EXPECT_EQ(known.name("_Z4copyPKfPf", 0xb0), "places.cu:8 STG");
  EXPECT_EQ(known.name("_Z4copyPKfPf", 0x90), "places.cu:4 from places.cu:9 LDG") << "inlined";
  EXPECT_EQ(known.name("_Z5scalePfPKff", 0xb0), "places.cu:16 STS");
  EXPECT_EQ(known.name("_Z5scalePfPKff", 0xd0), "places.cu:18 LDG");
  EXPECT_EQ(known.name("_Z5scalePfPKff", 0x130), "places.cu:18 LDS");
  EXPECT_EQ(known.name("_Z5scalePfPKff", 0x170),
            "sm_20_atomic_functions.hpp:84 from places.cu:19 RED");
  EXPECT_EQ(known.name("_Z5scalePfPKff", 0x230), "places.cu:12 LDG") << "a function of its own";
}

TEST(SanitizerPlaces, WhatIsNotKnown) {
  std::string bytes = program();
  EXPECT_EQ(places(bytes).name("other", 0xb0), "+0xb0");
  EXPECT_EQ(places(bytes).name("_Z4copyPKfPf", 0x10000), "+0x10000");
  EXPECT_EQ(places(bytes).name("_Z4copyPKfPf", 0x20), "places.cu:7") << "no access";
  // As without -lineinfo.
  for (const std::string from : {".debug_line", ".rela.debug_line"}) {
    std::string without = bytes;
    without.replace(without.find(from + '\0'), 4, ".not");
    EXPECT_EQ(places(without).name("_Z4copyPKfPf", 0xb0), "+0xb0 STG") << from;
  }
}

TEST(SanitizerPlaces, WhatIsDamagedOrCut) {
  const std::string whole = program();
  for (std::size_t size = 0; size < whole.size(); size += 7) places(whole.substr(0, size));
  std::string wrong = whole;
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      wrong[at] = byte;
      const Places read = places(wrong);
      for (const std::uint64_t offset : {0x0, 0xb0, 0x170}) {
        EXPECT_FALSE(read.name("_Z5scalePfPKff", offset).empty());
      }
    }
    wrong[at] = whole[at];
  }
  EXPECT_EQ(places(wrong).name("_Z4copyPKfPf", 0xb0), "places.cu:8 STG");
}

}  // namespace
}  // namespace pasta::adapters::sanitizer
