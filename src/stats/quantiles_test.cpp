#include "stats/quantiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

namespace pasta::stats {
namespace {

TEST(Quantiles, OfNothingIsZero) {
  Quantiles q;
  EXPECT_EQ(q.quantile(0.5), 0);
  EXPECT_EQ(q.min(), 0);
  EXPECT_EQ(q.max(), 0);
  EXPECT_EQ(q.sum(), 0);
}

TEST(Quantiles, TakesTheNearestRankNotANeighbour) {
  Quantiles q;
  for (const std::int64_t value : {40, 10, 30, 20}) q.add(value);
  EXPECT_EQ(q.quantile(0.5), 20);
  EXPECT_EQ(q.quantile(0.51), 30);
  EXPECT_EQ(q.quantile(0.25), 10);
  EXPECT_EQ(q.quantile(1e-9), 10);
  EXPECT_EQ(q.quantile(1.0), 40);
}

// Every percentage of counts for which the product of a double and a count misses the integer.
TEST(Quantiles, RankIsExactForEveryPercentage) {
  for (const int count : {1, 7, 20, 100, 200, 1000}) {
    Quantiles q;
    for (int i = count; i >= 1; --i) q.add(i);
    for (int percent = 1; percent <= 100; ++percent) {
      const int rank = (percent * count + 99) / 100;
      EXPECT_EQ(q.quantile(percent / 100.0), rank) << percent << " % of " << count;
    }
  }
}

TEST(Quantiles, EqualsASortAcrossTheSizesOfStorage) {
  std::mt19937_64 random(3);
  std::vector<std::int64_t> values{0xffffffff, 0x100000000, 0x100000001,
                                   std::numeric_limits<std::int64_t>::max() / 4};
  std::uniform_int_distribution<int> bits(1, 45);
  for (int i = 0; i < 5'000; ++i) {
    values.push_back(static_cast<std::int64_t>(random() >> (64 - bits(random))));
  }
  Quantiles q;
  std::int64_t sum = 0;
  for (const std::int64_t value : values) {
    q.add(value);
    sum += value;
  }
  std::sort(values.begin(), values.end());
  for (std::size_t rank = 1; rank <= values.size(); ++rank) {
    const double share = static_cast<double>(rank) / static_cast<double>(values.size());
    ASSERT_EQ(q.quantile(share), values[rank - 1]);
  }
  EXPECT_EQ(q.count(), values.size());
  EXPECT_EQ(q.min(), values.front());
  EXPECT_EQ(q.max(), values.back());
  EXPECT_EQ(q.sum(), sum);
}

// Of a kernel that runs for hours, what is held is what is different and not how often it came.
TEST(Quantiles, WhatIsHeldDoesNotGrowWithTheNumberOfValues) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> times(20'000, 300);
  std::map<std::int64_t, std::uint64_t> counts;
  Quantiles q;
  std::size_t early = 0;
  constexpr std::uint64_t kCount = 500'000;
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    const auto value = std::max<std::int64_t>(0, std::llround(times(random) / 32) * 32);
    ++counts[value];
    q.add(value);
    if (i == kCount / 10) early = q.held_bytes();
  }
  EXPECT_LT(early, 10'000u);
  EXPECT_LT(q.held_bytes(), 10'000u);
  std::uint64_t below = 0;
  for (const auto& [value, count] : counts) {
    below += count;
    ASSERT_EQ(q.quantile(static_cast<double>(below) / static_cast<double>(kCount)), value);
  }
  EXPECT_EQ(q.count(), kCount);
  // And more can come after it was asked.
  for (std::uint64_t i = 0; i < 2 * kCount; ++i) q.add(1);
  EXPECT_EQ(q.quantile(0.5), 1);
  EXPECT_EQ(q.quantile(1), counts.rbegin()->first);
}

TEST(Quantiles, ManyDifferentValuesTakeNoMoreThanTheyAre) {
  std::mt19937_64 random(7);
  Quantiles q;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 200'000; ++i) values.push_back(static_cast<std::int64_t>(random() >> 32));
  for (const std::int64_t value : values) q.add(value);
  EXPECT_LT(q.held_bytes(), values.size() * 11);
  std::ranges::sort(values);
  for (const double share : {0.01, 0.5, 0.95, 1.0}) {
    EXPECT_EQ(q.quantile(share), values[static_cast<std::size_t>(share * 200'000) - 1]);
  }
}

TEST(Quantiles, ASumBeyond64BitsIsTheLargestNotANegative) {
  Quantiles q;
  q.add(std::numeric_limits<std::int64_t>::max());
  q.add(1);
  EXPECT_EQ(q.sum(), std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace pasta::stats
