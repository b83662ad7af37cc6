#include "correlate/frame_map.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace pasta::correlate {
namespace {

TEST(FrameMap, KeepsTheFirstAndGivesItToChange) {
  FrameMap map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(5), nullptr);
  EXPECT_TRUE(map.insert(5, {1}, 10).fresh);
  const auto [entry, fresh] = map.insert(5, {2}, 20);
  EXPECT_FALSE(fresh);
  EXPECT_EQ(entry->frame.value + 0u, 1u);
  *entry = {5, 20, {2}};
  EXPECT_EQ(map.find(5)->frame.value + 0u, 2u);
  EXPECT_FALSE(map.empty());
}

// Keys as they are: small numbers below several processes. Enough of them for tables to grow in
// both ways.
TEST(FrameMap, ManyKeysOfSeveralProcesses) {
  constexpr std::uint32_t kPerProcess = 400000;
  FrameMap map;
  for (std::uint32_t process = 1; process <= 3; ++process) {
    for (std::uint32_t i = 1; i <= kPerProcess; ++i) {
      ASSERT_TRUE(map.insert(make_correlation({process}, i), {process}, i).fresh);
    }
  }
  for (std::uint32_t process = 1; process <= 3; ++process) {
    for (std::uint32_t i = 1; i <= kPerProcess; ++i) {
      const FrameMap::Entry* entry = map.find(make_correlation({process}, i));
      ASSERT_NE(entry, nullptr);
      ASSERT_EQ(entry->frame.value + 0u, process);
      ASSERT_EQ(entry->at_ns + 0, i);
    }
    ASSERT_EQ(map.find(make_correlation({process}, kPerProcess + 1)), nullptr);
  }
}

}  // namespace
}  // namespace pasta::correlate
