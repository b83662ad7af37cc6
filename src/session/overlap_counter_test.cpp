#include "session/overlap_counter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace pasta::session {
namespace {

using Slices = std::vector<std::pair<std::int64_t, std::int64_t>>;

// In order of end; those with equal ends as they stand in `slices`.
std::uint64_t counted(Slices slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  OverlapCounter counter;
  std::uint64_t sum = 0;
  for (const auto& [start, end] : slices) sum += counter.add(start, end);
  return sum;
}

// The definition, as it is written. At equal starts an empty slice comes first.
std::uint64_t defined(Slices slices) {
  std::sort(slices.begin(), slices.end());
  std::uint64_t sum = 0;
  std::int64_t running = std::numeric_limits<std::int64_t>::min();
  for (const auto& [start, end] : slices) {
    sum += start < running;
    running = std::max(running, end);
  }
  return sum;
}

TEST(OverlapCounter, TouchingAndEmptySlicesDoNotOverlap) {
  EXPECT_EQ(counted({{0, 10}, {10, 20}}), 0u);
  EXPECT_EQ(counted({{0, 10}, {10, 10}, {10, 20}}), 0u);
  EXPECT_EQ(counted({{10, 10}, {10, 10}, {0, 10}, {10, 20}}), 0u);
  EXPECT_EQ(counted({{10, 10}, {0, 10}, {10, 10}, {5, 10}, {5, 20}}), 4u);
  EXPECT_EQ(counted({{5, 5}, {5, 5}}), 0u);
  EXPECT_EQ(counted({{0, 10}, {5, 5}}), 1u);
  EXPECT_EQ(counted({{0, 10}, {9, 20}}), 1u);
}

TEST(OverlapCounter, ALateSliceReachesBackOverAll) {
  EXPECT_EQ(counted({{0, 1}, {10, 11}, {20, 21}, {-5, 100}}), 3u);
  EXPECT_EQ(counted({{0, 1}, {10, 11}, {20, 21}, {10, 100}}), 2u);
}

TEST(OverlapCounter, EqualsTheDefinitionOnAnySlices) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    // From crowded to sparse, around 0, and with distances of all lengths.
    const std::int64_t range = std::int64_t{1} << (2 + random() % 60);
    Slices slices;
    for (std::size_t i = 0, n = random() % 30; i < n; ++i) {
      const auto start =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(range)) - range / 2;
      const auto length = random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random() % 20);
      slices.emplace_back(start, start + length);
    }
    ASSERT_EQ(counted(slices), defined(slices)) << "round " << round;
  }
}

TEST(OverlapCounter, ReachesBackOverMillionsThatItDoesNotHold) {
  OverlapCounter counter;
  constexpr std::int64_t kSlices = 2'000'000;
  for (std::int64_t i = 1; i <= kSlices; ++i) {
    ASSERT_EQ(counter.add(i * 1000, i * 1000 + i % 900), 0u);
  }
  EXPECT_LT(counter.held_bytes(), std::size_t{2} << 20);
  // In it are all but ten.
  EXPECT_EQ(counter.add(10'999, kSlices * 1000 + 1000), kSlices - 10);
}

}  // namespace
}  // namespace pasta::session
