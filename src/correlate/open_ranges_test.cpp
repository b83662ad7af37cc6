#include "correlate/open_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace pasta::correlate {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

std::uint32_t place(OpenRanges& open, std::int64_t start, std::int64_t end) {
  open.close(start);
  const std::uint32_t outer = open.held_by(end);
  open.open({.start_ns = start,
             .end_ns = end,
             .sequence = 0,
             .name = {},
             .path = {},
             .outer = outer,
             .domain = 0,
             .node = true});
  return outer;
}

// What a thread pool drawn on one row gives: each range overlaps the next, for ever.
TEST(OpenRanges, AChainOfOverlapsStaysSmall) {
  OpenRanges open;
  for (std::int64_t i = 0; i < 100000; ++i) {
    EXPECT_EQ(place(open, i * 10, i * 10 + 15), OpenRanges::kNone);
    ASSERT_LT(open.newest(), 64u);
  }
}

// Every range overlaps all before it: a search through all of them would not end in our time.
TEST(OpenRanges, OverlapsOfAllWithAllTakeLinearTime) {
  constexpr std::int64_t kMany = 200000;
  OpenRanges open;
  for (std::int64_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(place(open, i, kMany + i), OpenRanges::kNone);
  }
}

// Against a search through everything.
TEST(OpenRanges, FindsTheLatestThatHoldsIt) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> all;
    for (int i = 0; i < 150; ++i) {
      const std::int64_t start = random() % 300;
      all.emplace_back(start, start + random() % 60);
    }
    std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    OpenRanges open;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [start, end] = all[i];
      const Interval* expected = nullptr;
      for (std::size_t j = i; j-- > 0 && expected == nullptr;) {
        if (all[j].second > start && all[j].second >= end) expected = &all[j];
      }
      const std::uint32_t outer = place(open, start, end);
      ASSERT_EQ(outer == OpenRanges::kNone, expected == nullptr);
      // The index may have changed while the stack was tidied.
      const std::uint32_t now = open[open.newest()].outer;
      if (expected != nullptr) {
        ASSERT_EQ(Interval(open[now].start_ns, open[now].end_ns), *expected);
      }
    }
  }
}

}  // namespace
}  // namespace pasta::correlate
