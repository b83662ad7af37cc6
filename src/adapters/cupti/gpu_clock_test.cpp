#include "adapters/cupti/gpu_clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace pasta::adapters::cupti {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000 * kMs;
// Far from the host's, as a GPU's time is.
constexpr std::int64_t kGpuAhead = 1'700'000'000 * kSecond;

// What the host's time is when the GPU's is `gpu_ns`: the clocks part by some microseconds a
// second, and not always by as many.
std::int64_t truth(std::int64_t gpu_ns) {
  const double since = static_cast<double>(gpu_ns - kGpuAhead) * 1e-9;
  return gpu_ns - kGpuAhead + std::llround(3000 * since + 20'000 * std::sin(since / 30));
}

// Which took `took_ns`, and is `off_ns` off.
ClockReading reading(std::int64_t gpu_ns, std::int64_t took_ns = 13'000, std::int64_t off_ns = 0) {
  return {gpu_ns, truth(gpu_ns) + off_ns, took_ns};
}

std::int64_t error(const GpuClock& clock, std::int64_t gpu_ns) {
  return std::llabs(clock.host_ns(gpu_ns) - truth(gpu_ns));
}

TEST(GpuClock, OneReadingIsAnOffset) {
  GpuClock clock;
  clock.learn(reading(kGpuAhead));
  EXPECT_EQ(clock.host_ns(kGpuAhead), truth(kGpuAhead));
  EXPECT_EQ(clock.host_ns(kGpuAhead + kSecond) - clock.host_ns(kGpuAhead - kSecond), 2 * kSecond);
}

TEST(GpuClock, BetweenReadingsAndBesideThem) {
  GpuClock clock;
  for (int i = 10; i <= 40; ++i) clock.learn(reading(kGpuAhead + i * 100 * kMs));
  for (std::int64_t ms = 1000; ms <= 4000; ms += 7) {
    EXPECT_LE(error(clock, kGpuAhead + ms * kMs), 1) << ms;
  }
  // Work that began before the first reading, and what ended after the last.
  EXPECT_LE(error(clock, kGpuAhead + 800 * kMs), 20);
  EXPECT_LE(error(clock, kGpuAhead + 4200 * kMs), 20);
}

TEST(GpuClock, TimesKeepTheirOrder) {
  GpuClock clock;
  for (int i = 0; i < 20; ++i) {
    clock.learn(reading(kGpuAhead + i * 50 * kMs, 13'000, i % 2 == 0 ? 400 : -400));
  }
  std::int64_t last = clock.host_ns(kGpuAhead - kSecond);
  for (std::int64_t at = -kSecond + 32; at < kSecond; at += 12'345) {
    const std::int64_t now = clock.host_ns(kGpuAhead + at);
    EXPECT_LT(last, now) << at;
    last = now;
  }
}

// As when work ends just after the first context was made: how the clocks part is not known by
// that.
TEST(GpuClock, ReadingsNearToEachOtherTellNoSpeed) {
  GpuClock clock;
  clock.learn(reading(kGpuAhead));
  clock.learn(reading(kGpuAhead + kMs, 13'000, 300));
  EXPECT_LE(error(clock, kGpuAhead - 20 * kMs), 100);
  EXPECT_LE(error(clock, kGpuAhead + kMs / 2), 151);
  EXPECT_LE(error(clock, kGpuAhead + 20 * kMs), 400);
}

// An hour: errors stay those of the readings near by, and an old time is still told well.
TEST(GpuClock, ALongRun) {
  GpuClock clock;
  std::int64_t worst = 0;
  for (std::int64_t i = 0; i < 36'000; ++i) {
    const std::int64_t now = kGpuAhead + i * 100 * kMs;
    clock.learn(reading(now, 13'000, i % 3 * 50 - 50));
    if (i == 0) continue;
    for (std::int64_t back = 0; back < 100; back += 9) {
      worst = std::max(worst, error(clock, now - back * kMs));
    }
  }
  EXPECT_LE(worst, 60);
  EXPECT_LE(error(clock, kGpuAhead + 3590 * kSecond), 60);
  EXPECT_LE(error(clock, kGpuAhead), 60);
  EXPECT_LE(error(clock, kGpuAhead + 3000 * kSecond), 20'000);
}

TEST(GpuClock, WhatTookLongerToReadIsNotBelieved) {
  GpuClock clock;
  clock.learn(reading(kGpuAhead, 40'000, 19'000));  // the first is the best there is, until
  for (int i = 1; i <= 10; ++i) clock.learn(reading(kGpuAhead + i * 100 * kMs));
  EXPECT_LE(error(clock, kGpuAhead + 10 * kMs), 200);
  clock.learn(reading(kGpuAhead + 1050 * kMs, 15'000, 2'400));
  clock.learn(reading(kGpuAhead + 1100 * kMs));
  EXPECT_LE(error(clock, kGpuAhead + 1050 * kMs), 2);
}

// All that follow the first take longer: how the clocks part is known all the same.
TEST(GpuClock, AFirstReadingThatWasShorterThanAllOthers) {
  GpuClock clock;
  clock.learn(reading(kGpuAhead, 10'000));
  for (int i = 1; i <= 40; ++i) {
    const std::int64_t now = kGpuAhead + i * 50 * kMs;
    clock.learn(reading(now));
    EXPECT_LE(error(clock, now), 100) << i;
  }
}

TEST(GpuClock, WhatIsReadBadlyForLongIsBetterThanNothing) {
  GpuClock clock;
  clock.learn(reading(kGpuAhead));
  for (int i = 1; i <= 30; ++i) clock.learn(reading(kGpuAhead + i * 100 * kMs, 50'000, 1'000));
  EXPECT_GT(error(clock, kGpuAhead + 3 * kSecond), 500);
  EXPECT_LE(error(clock, kGpuAhead + 3 * kSecond), 1'050);
}

TEST(GpuClock, AClockThatWasSetBeginsAnew) {
  for (const std::int64_t by : {-5 * kSecond, 5 * kSecond}) {
    GpuClock clock;
    for (int i = 0; i < 10; ++i) clock.learn(reading(kGpuAhead + i * 100 * kMs));
    for (int i = 0; i < 10; ++i) {
      ClockReading after = reading(kGpuAhead + (10 + i) * 100 * kMs);
      after.gpu_ns += by;
      clock.learn(after);
    }
    const std::int64_t at = kGpuAhead + 1500 * kMs;
    EXPECT_NEAR(static_cast<double>(clock.host_ns(at + by) - truth(at)), 0, 2) << by;
  }
}

}  // namespace
}  // namespace pasta::adapters::cupti
