#include "correlate/frame_map.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "pasta/event.h"

namespace pasta::correlate {
namespace {

TEST(FrameMap, KeepsTheFirstAndGivesItToChange) {
  FrameMap map;
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(5), nullptr);
  EXPECT_TRUE(map.insert({5, 10, {1}}).fresh);
  const auto [entry, fresh] = map.insert({5, 20, {2}});
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
      ASSERT_TRUE(map.insert({make_correlation({process}, i), i, {process}}).fresh);
    }
  }
  for (std::uint32_t process = 1; process <= 3; ++process) {
    for (std::uint32_t i = 1; i <= kPerProcess; ++i) {
      const FrameEntry* entry = map.find(make_correlation({process}, i));
      ASSERT_NE(entry, nullptr);
      ASSERT_EQ(entry->frame.value + 0u, process);
      ASSERT_EQ(entry->at_ns + 0, i);
    }
    ASSERT_EQ(map.find(make_correlation({process}, kPerProcess + 1)), nullptr);
  }
}

TEST(FrameMap, WhatIsKeptIsFoundAndTheRestIsForgotten) {
  constexpr std::int64_t kCount = 300000;
  FrameMap map;
  const auto key = [](std::int64_t i) { return make_correlation({1}, std::uint64_t(i)); };
  for (std::int64_t i = 1; i <= kCount; ++i) map.insert({key(i), i, {2}});
  map.keep_if([](const FrameEntry& entry) { return entry.at_ns % 7 == 0; });
  EXPECT_EQ(map.size(), std::size_t(kCount / 7));
  for (std::int64_t i = 1; i <= kCount; ++i) {
    const FrameEntry* entry = map.find(key(i));
    ASSERT_EQ(entry != nullptr, i % 7 == 0) << i;
    if (entry == nullptr) continue;
    ASSERT_EQ(entry->at_ns + 0, i);
  }
  EXPECT_TRUE(map.insert({key(1), 1, {3}}).fresh);
  map.keep_if([](const FrameEntry&) { return false; });
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(map.find(key(7)), nullptr);
}

}  // namespace
}  // namespace pasta::correlate
