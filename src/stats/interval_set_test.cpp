#include "stats/interval_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace pasta::stats {
namespace {

std::vector<Interval> pieces_of(const IntervalSet& set) {
  std::vector<Interval> pieces;
  IntervalSet::Reader reader(set);
  for (Interval piece; reader.next(piece);) pieces.push_back(piece);
  return pieces;
}

// The union by sorting: slow, and not by the same way.
std::vector<Interval> union_of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> pieces;
  for (const Interval& interval : intervals) {
    if (interval.begin >= interval.end) continue;
    if (!pieces.empty() && pieces.back().end >= interval.begin) {
      pieces.back().end = std::max(pieces.back().end, interval.end);
    } else {
      pieces.push_back(interval);
    }
  }
  return pieces;
}

std::int64_t sum_of(const std::vector<Interval>& pieces) {
  std::int64_t sum = 0;
  for (const Interval& piece : pieces) sum += piece.end - piece.begin;
  return sum;
}

IntervalSet set_of(std::vector<Interval> intervals) {
  std::stable_sort(intervals.begin(), intervals.end(),
                   [](const Interval& a, const Interval& b) { return a.end < b.end; });
  IntervalSet set;
  std::int64_t grown = 0;
  for (const Interval& interval : intervals) grown += set.add(interval.begin, interval.end);
  EXPECT_EQ(grown, set.length()) << "what add() returns adds up to the union";
  return set;
}

// Mostly short intervals; now and then one that reaches far back over frozen pieces.
std::vector<Interval> random_stream(std::mt19937_64& random, std::size_t count, int long_one_in) {
  std::uniform_int_distribution<std::int64_t> step(0, 40), length(0, 30);
  std::uniform_int_distribution<std::int64_t> reach(0, 500'000);
  std::uniform_int_distribution<int> dice(1, long_one_in);
  std::vector<Interval> intervals;
  std::int64_t end = -100'000;
  for (std::size_t i = 0; i < count; ++i) {
    end += step(random);
    intervals.push_back({end - (dice(random) == 1 ? reach(random) : length(random)), end});
  }
  return intervals;
}

TEST(IntervalSet, EmptyIntervalsChangeNothing) {
  IntervalSet set;
  set.add(5, 5);
  set.add(9, 7);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.length(), 0);
  set.add(1, 10);
  set.add(20, 20);
  EXPECT_EQ(pieces_of(set), (std::vector<Interval>{{1, 10}}));
}

TEST(IntervalSet, TouchingIntervalsJoinAndOneNanosecondKeepsThemApart) {
  IntervalSet set;
  set.add(-10, -5);
  set.add(-5, 0);
  set.add(1, 2);
  EXPECT_EQ(pieces_of(set), (std::vector<Interval>{{-10, 0}, {1, 2}}));
  EXPECT_EQ(set.length(), 11);
}

TEST(IntervalSet, EqualsTheSortedUnionOfAnyStream) {
  std::mt19937_64 random(1);
  for (const int long_one_in : {3, 100, 3'000, 20'000}) {
    const auto stream = random_stream(random, 60'000, long_one_in);
    IntervalSet set;
    for (const Interval& interval : stream) set.add(interval.begin, interval.end);
    const auto expected = union_of(stream);
    EXPECT_EQ(pieces_of(set), expected) << "one in " << long_one_in;
    EXPECT_EQ(set.length(), sum_of(expected));
    EXPECT_EQ(set.pieces(), expected.size());
  }
}

TEST(IntervalSet, ALateIntervalSwallowsFrozenPiecesExactly) {
  constexpr std::int64_t kPieces = 50'000;
  // The late interval begins inside a piece, on its edges, in a gap, and before everything.
  for (const std::int64_t begin : {-1, 0, 3, 10, 15, 123'450, 123'455, 123'458, 499'999}) {
    std::vector<Interval> stream;
    for (std::int64_t i = 0; i < kPieces; ++i) stream.push_back({i * 10, i * 10 + 5});
    stream.push_back({begin, kPieces * 10});
    stream.push_back({kPieces * 10 + 7, kPieces * 10 + 9});
    const auto expected = union_of(stream);
    const IntervalSet set = set_of(stream);
    EXPECT_EQ(pieces_of(set), expected) << "begin " << begin;
    EXPECT_EQ(set.length(), sum_of(expected));
    EXPECT_EQ(set.pieces(), expected.size());
  }
}

TEST(IntervalSet, ManyLateIntervalsAtABlockBorderStayLinear) {
  // Each round adds a piece and swallows the two before it, over and over at the size where pieces
  // are frozen: quadratic time would not end.
  IntervalSet set;
  std::vector<Interval> stream;
  std::int64_t at = 0;
  for (int i = 0; i < 8'191; ++i, at += 10) stream.push_back({at, at + 5});
  for (int i = 0; i < 300'000; ++i, at += 10) {
    stream.push_back({at, at + 5});
    stream.push_back({at - 25, at + 6});
  }
  for (const Interval& interval : stream) set.add(interval.begin, interval.end);
  EXPECT_EQ(pieces_of(set), union_of(stream));
}

TEST(IntervalSet, KeepsTheWholeRangeOfTimes) {
  constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  IntervalSet set;
  set.add(kMin, -1);
  EXPECT_EQ(set.length(), kMax);
  set.add(1, kMax);
  EXPECT_EQ(set.length(), kMax);  // nearly 2^64
  EXPECT_EQ(intersection_length(set, set), kMax);
  // Also through frozen blocks.
  IntervalSet far;
  far.add(kMin, kMin + 1);
  std::vector<Interval> expected{{kMin, kMin + 1}};
  for (std::int64_t i = 0; i < 20'000; ++i) {
    far.add(kMax - 100'000 + 4 * i, kMax - 100'000 + 4 * i + 1);
    expected.push_back({kMax - 100'000 + 4 * i, kMax - 100'000 + 4 * i + 1});
  }
  EXPECT_EQ(pieces_of(far), expected);
}

TEST(IntervalSet, IntersectionAndUnionEqualThoseOfTheirParts) {
  std::mt19937_64 random(2);
  for (const int long_one_in : {5, 500, 50'000}) {
    auto a = random_stream(random, 30'000, long_one_in);
    auto b = random_stream(random, 20'000, long_one_in * 3);
    const IntervalSet set_a = set_of(a), set_b = set_of(b);
    auto all = a;
    all.insert(all.end(), b.begin(), b.end());
    const auto both = union_of(all);
    EXPECT_EQ(pieces_of(unite(set_a, set_b)), both);
    // |A and B| = |A| + |B| - |A or B|
    const std::int64_t shared = set_a.length() + set_b.length() - sum_of(both);
    EXPECT_EQ(intersection_length(set_a, set_b), shared);
    EXPECT_EQ(intersection_length(set_b, set_a), shared);
  }
  EXPECT_EQ(intersection_length(IntervalSet(), set_of({{0, 9}})), 0);
  EXPECT_EQ(pieces_of(unite(IntervalSet(), set_of({{0, 9}}))), (std::vector<Interval>{{0, 9}}));
}

// Of a device that works for hours, the pieces lie on disk, and are found there.
TEST(IntervalSet, WhatIsHeldDoesNotGrowWithTheNumberOfPieces) {
  constexpr std::int64_t kPieces = 1'000'000, kStep = 20'000;
  const auto length = [](std::int64_t i) { return 1 + i * 7919 % (kStep - 1); };
  IntervalSet set;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < kPieces; ++i) {
    set.add(i * kStep, i * kStep + length(i));
    sum += length(i);
  }
  EXPECT_LT(set.held_bytes(), std::size_t{2} << 20);
  EXPECT_EQ(set.length(), sum);
  const IntervalSet copy = set;
  const auto expect_pieces = [&](const IntervalSet& of) {
    IntervalSet::Reader reader(of);
    Interval piece;
    for (std::int64_t i = 0; i < kPieces; ++i) {
      ASSERT_TRUE(reader.next(piece));
      ASSERT_EQ(piece, (Interval{i * kStep, i * kStep + length(i)}));
    }
    EXPECT_FALSE(reader.next(piece));
  };
  expect_pieces(set);
  // One that reaches back over nearly all of it leaves those that others share.
  constexpr std::int64_t kFirst = 1'000;
  EXPECT_GT(set.add(kFirst * kStep, kPieces * kStep), 0);
  EXPECT_EQ(set.pieces(), kFirst + 1);
  expect_pieces(copy);
}

}  // namespace
}  // namespace pasta::stats
