#include "trace/tick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace pasta::trace {
namespace {

// A clock of 2.1 ticks a nanosecond that can be made to do what clocks do.
class TickClockTest : public testing::Test {
 protected:
  void pass(std::int64_t ns) {
    ticks_ += static_cast<std::uint64_t>(ns) * rate_10_ / 10;
    ns_ += ns;
  }
  // As whoever wants to know the time does; how often the clock was asked is counted.
  std::int64_t now() {
    std::int64_t ns = 0;
    if (!clock_.at(ticks_, ns)) {
      ++asked_;
      ns = clock_.learn({ticks_, ns_, ticks_ + took_});
    }
    EXPECT_GE(ns, last_);
    last_ = ns;
    return ns;
  }
  std::int64_t worst_of(int readings, std::int64_t between_ns) {
    std::int64_t worst = 0;
    for (int i = 0; i < readings; ++i) {
      pass(between_ns);
      worst = std::max(worst, std::abs(now() - ns_));
    }
    return worst;
  }
  TickClock clock_;
  std::uint64_t ticks_ = 1'000'000'000, rate_10_ = 21, took_ = 100;
  std::int64_t ns_ = 5'000'000'000, last_ = 0;
  int asked_ = 0;
};

TEST_F(TickClockTest, IsTheClockAndAsksItOnceAMillisecond) {
  EXPECT_LE(worst_of(1000, 1000), 100);
  asked_ = 0;
  EXPECT_LE(worst_of(100'000, 1000), 100);
  EXPECT_LE(asked_, 110);
  EXPECT_GE(asked_, 90);
}

TEST_F(TickClockTest, FollowsAClockThatIsSet) {
  worst_of(50'000, 1000);
  ns_ += 50'000'000;  // at once
  worst_of(2000, 1000);
  EXPECT_LE(worst_of(1000, 1000), 100);
  ns_ += 5'000;  // by and by
  worst_of(3000, 1000);
  EXPECT_LE(worst_of(1000, 1000), 100);
  ns_ -= 5'000;  // without ever going back
  worst_of(3000, 1000);
  EXPECT_LE(worst_of(1000, 1000), 100);
}

TEST_F(TickClockTest, SurvivesAPauseAndAMoveToAnotherMachine) {
  worst_of(50'000, 1000);
  pass(90'000'000'000);
  EXPECT_LE(worst_of(20'000, 1000), 100);
  ticks_ = 77;
  rate_10_ = 30;
  worst_of(50'000, 1000);
  EXPECT_LE(worst_of(20'000, 1000), 100);
}

TEST_F(TickClockTest, LearnsNothingFromAReadingThatWasInterrupted) {
  worst_of(50'000, 1000);
  took_ = 1'000'000;
  const std::int64_t worst = worst_of(10, 2'000'000);
  EXPECT_EQ(worst, 0);  // each time by the clock itself
  took_ = 100;
  EXPECT_LE(worst_of(20'000, 1000), 100);
}

}  // namespace
}  // namespace pasta::trace
