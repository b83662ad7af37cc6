#include "adapters/opencl/clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace pasta::adapters::opencl {
namespace {

TEST(Clock, ABracketBoundsTheOffset) {
  Clock clock;
  clock.observe(1000, 100, 1010);
  EXPECT_EQ(clock.to_host(100), 1005);
  EXPECT_EQ(clock.worst_ns(), 5);
}

TEST(Clock, StaysWhereItIsWhileTheBoundsAllowIt) {
  Clock clock;
  clock.observe(1000, 100, 1010);
  clock.observe(1020, 118, 1030);  // offset 902 to 912
  EXPECT_EQ(clock.offset_ns(), 905);
  clock.observe(1040, 132, 1046);  // 908 to 914
  EXPECT_EQ(clock.offset_ns(), 908);
  EXPECT_EQ(clock.steps(), 0u);
}

TEST(Clock, AStepIsCountedAndFollowed) {
  Clock clock;
  clock.observe(1000, 100, 1010);
  clock.observe(2000, 5000, 2010);
  EXPECT_EQ(clock.steps(), 1u);
  EXPECT_EQ(clock.to_host(5000), 2005);
}

TEST(Clock, TellsWhatCanBeTheSameClock) {
  Clock clock;
  EXPECT_FALSE(clock.agrees(0, 0, 0));
  clock.observe(1000, 100, 1010);
  EXPECT_TRUE(clock.agrees(2000, 1095, 2001));
  EXPECT_FALSE(clock.agrees(2000, 1101, 2000));
  EXPECT_FALSE(clock.agrees(2000, 1089, 2000));
}

// A device clock that is 80 ppm fast, read from inside of calls of up to 20 us.
TEST(Clock, FollowsDriftWithinWhatItSays) {
  std::mt19937 random(7);
  Clock clock;
  std::int64_t host = 1'000'000'000'000;
  const auto device = [](std::int64_t at) {
    return at - 95'736'200 + (at - 1'000'000'000'000) / 12500;
  };
  for (int i = 0; i < 20000; ++i) {
    host += 1000 + static_cast<std::int64_t>(random() % 2'000'000);
    const std::int64_t inside = host + static_cast<std::int64_t>(random() % 20'000);
    const std::int64_t after = inside + 1 + static_cast<std::int64_t>(random() % 20'000);
    clock.observe(host, device(inside), after);
    const std::int64_t off = std::abs(clock.to_host(device(inside)) - inside);
    ASSERT_LE(off, clock.worst_ns());
    host = after;
  }
  EXPECT_EQ(clock.steps(), 0u);
  EXPECT_LE(clock.worst_ns(), 40'000);
}

}  // namespace
}  // namespace pasta::adapters::opencl
