#include "tools/patterns/patterns.h"

#include <gtest/gtest.h>

#include "tools/common/testing.h"
#include "tools/patterns/grammar_tree.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;
using testing::Trace;

std::vector<patterns::Pattern> levels(std::vector<std::uint32_t> symbols, std::int64_t least = 0) {
  const std::vector<std::int64_t> times(symbols.size(), 10);
  const mine::Grammar grammar = mine::reduce(mine::Text::of(mine::Symbols(symbols)).value());
  return patterns::patterns_of(grammar, {symbols, times}, least);
}

TEST(Patterns, LevelsHoldEachOther) {
  std::vector<std::uint32_t> symbols;
  for (int iteration = 0; iteration < 4; ++iteration) {
    symbols.push_back(100);
    for (int layer = 0; layer < 3; ++layer) symbols.insert(symbols.end(), {1, 2, 3, 4});
    symbols.insert(symbols.end(), {101, 102});
  }
  const auto found = levels(symbols);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].level, 0u);
  EXPECT_EQ(found[0].length, 15u);
  EXPECT_EQ(found[0].count, 4u);
  EXPECT_EQ(found[0].time_ns, 600);
  EXPECT_EQ(found[0].inner, std::vector<std::size_t>{1});
  EXPECT_EQ(found[1].level, 1u);
  EXPECT_EQ(found[1].length, 4u);
  EXPECT_EQ(found[1].count, 12u);
  EXPECT_EQ(found[1].time_ns, 480);
  EXPECT_EQ(found[1].first, 1u);
  EXPECT_EQ(levels(symbols, 500).size(), 1u);  // the layers take less
}

TEST(Patterns, WhatDoesNotRepeatIsNone) {
  EXPECT_TRUE(levels({1, 2, 3, 4, 5}).empty());
  EXPECT_TRUE(levels({}).empty());
}

TEST(Patterns, ACopyFromTheHostBreaksAGraph) {
  Trace trace;
  const LaneId queue = trace.queue(0);
  constexpr std::string_view kNames = "abcdefghijklmnopqrst";
  std::int64_t at = 0;
  for (int iteration = 0; iteration < 5; ++iteration) {
    for (std::size_t k = 0; k < kNames.size(); ++k, at += 10) {
      if (k == 10) {
        trace.copy(queue, at, at + 1, 64).detail =
            static_cast<std::uint16_t>(CopyDirection::kHostToDevice);
      }
      trace.kernel(queue, kNames.substr(k, 1), at + 1, at + 5);
    }
  }
  const Report report = trace.report(kPatterns).value();
  const Table graphs = table(report, "graphs");
  EXPECT_EQ(integers(graphs, "length"), (std::vector<std::int64_t>{10, 10}));
  EXPECT_EQ(cell(graphs, 0, "launch_saved"), Cell());  // no call was recorded
  EXPECT_EQ(integers(table(report, "patterns"), "length"), (std::vector<std::int64_t>{21}));
  EXPECT_EQ(integers(table(report, "grammar"), "launches"), (std::vector<std::int64_t>{105}));
}

TEST(Patterns, OtherShapesAreOtherLaunches) {
  Trace trace;
  const LaneId queue = trace.queue(0);
  for (std::uint32_t i = 0; i < 40; ++i) {
    trace.kernel(queue, "k", 10 * i, 10 * i + 5).kernel.grid[0] = i;
  }
  EXPECT_FALSE(finding(trace.report(kPatterns).value(), "no-patterns").id.empty());
}

}  // namespace
}  // namespace pasta::tools
