#include "tools/common/launch_log.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace pasta::tools {
namespace {

Event work(std::uint32_t queue, std::uint64_t correlation, std::int64_t start, std::int64_t end) {
  Event event{};
  event.kind = Kind::kKernel;
  event.lane = {queue};
  event.correlation = correlation;
  event.start_ns = start;
  event.end_ns = end;
  return event;
}

std::vector<LaunchRecord> read(LaunchLog& log) {
  log.close();
  std::vector<LaunchRecord> records;
  LaunchRecord record;
  for (LaunchLog::Reader reader(log); reader.next(record);) records.push_back(record);
  return records;
}

TEST(LaunchLog, OrdersByLaunchAcrossQueuesAndKeepsEverything) {
  // Two queues run interleaved, one late; more than fit into the window.
  constexpr std::uint64_t kCount = 200000;
  LaunchLog log;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const std::uint64_t id = (i ^ 1) + 1;  // pairs end in the other order
    const auto start = static_cast<std::int64_t>(id) * 100;
    Event call{};
    call.kind = Kind::kApi;
    call.correlation = id;
    call.start_ns = start - 50;
    log.add_call(call);
    log.add(work(1 + static_cast<std::uint32_t>(id % 2), id, start, start + 7),
            static_cast<std::uint32_t>(id % 1000));
  }
  const auto records = read(log);
  ASSERT_EQ(records.size(), kCount);
  EXPECT_EQ(log.size(), kCount);
  EXPECT_TRUE(log.by_correlation());
  EXPECT_EQ(log.late(), 0u);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(records[i].key, i + 1);
    ASSERT_EQ(records[i].start_ns, static_cast<std::int64_t>(i + 1) * 100);
    ASSERT_EQ(records[i].end_ns, records[i].start_ns + 7);
    ASSERT_EQ(records[i].launch_ns, records[i].start_ns - 50);
    ASSERT_EQ(records[i].symbol, (i + 1) % 1000);
  }
}

TEST(LaunchLog, WithoutCorrelationsTheDeviceGivesTheOrder) {
  LaunchLog log;
  log.add(work(1, 0, 50, 60), 1);
  log.add(work(2, 9, 10, 70), 2);
  log.add(work(1, 0, -5, 80), 3);
  const auto records = read(log);
  EXPECT_FALSE(log.by_correlation());
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].symbol, 3u);
  EXPECT_EQ(records[1].symbol, 2u);
  EXPECT_EQ(records[2].symbol, 1u);
  EXPECT_EQ(records[0].launch_ns, kNoTime);
  EXPECT_EQ(records[1].key, log.key_of(work(2, 9, 10, 70)));
}

TEST(LaunchLog, CorrelationsThatDescendOnAQueueAreNoOrder) {
  LaunchLog log;
  for (std::int64_t i = 0; i < 100; ++i) {
    log.add(work(1, static_cast<std::uint64_t>(200 - i), 10 * i, 10 * i + 5), 0);
  }
  EXPECT_EQ(read(log).front().start_ns, 0);
  EXPECT_FALSE(log.by_correlation());
}

TEST(LaunchLog, AnyTimesSurvive) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min() + 1;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  LaunchLog log;
  log.add(work(1, 0, kMin, kMax - 1), 7);
  log.add(work(1, 0, kMax - 1, kMax), 8);
  const auto records = read(log);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].start_ns, kMin);
  EXPECT_EQ(records[0].end_ns, kMax - 1);
  EXPECT_EQ(records[1].start_ns, kMax - 1);
  EXPECT_EQ(records[1].end_ns, kMax);
}

TEST(LaunchLog, ACallThatEndsAfterItsWorkIsStillItsLaunch) {
  LaunchLog log;
  log.add(work(1, 3, 50, 60), 0);
  Event call{};
  call.correlation = 3;
  call.start_ns = 40;
  log.add_call(call);
  call.start_ns = 42;  // the driver's, inside of the runtime's
  log.add_call(call);
  EXPECT_EQ(read(log).front().launch_ns, 40);
}

TEST(LaunchLog, AWaitLiesBeforeTheLaunchThatFollowsIt) {
  LaunchLog log;
  const auto call = [](std::uint64_t id, std::int64_t start) {
    Event event{};
    event.kind = Kind::kApi;
    event.correlation = id;
    event.start_ns = start;
    event.end_ns = start + 5;
    return event;
  };
  // More than the window holds; the host waits before every 1000th, another thread all the time.
  constexpr std::uint64_t kCount = 100000;
  for (std::uint64_t id = 1; id <= kCount; ++id) {
    const auto start = static_cast<std::int64_t>(id) * 100;
    if (id % 1000 == 0) {
      for (const int later : {20, 40}) log.add_wait(call(0, start - 100 + later));
    }
    log.add_call(call(id, start));
    log.add_wait(call(0, start - 250));
    log.add(work(1, id, start + 10, start + 60), 5);
  }
  std::uint64_t id = 0;
  for (const LaunchRecord& record : read(log)) {
    ++id;
    EXPECT_EQ(record.waited, id % 1000 == 0) << id;
    EXPECT_EQ(record.symbol, 5u);
  }
  EXPECT_EQ(id, kCount);
}

TEST(LaunchLog, HoldsLittleOfMillions) {
  constexpr std::uint64_t kCount = 1'000'000;
  LaunchLog log;
  for (std::uint64_t id = 1; id <= kCount; ++id) {
    const auto start = static_cast<std::int64_t>(id * 10'000);
    log.add(work(1, id, start, start + 1 + static_cast<std::int64_t>(id * 7919 % 9000)),
            static_cast<std::uint32_t>(id % 1000));
  }
  const auto records = read(log);
  EXPECT_LT(log.held_bytes(), std::size_t{2} << 20);
  ASSERT_EQ(records.size(), kCount);
  for (std::uint64_t id = 1; id <= kCount; ++id) {
    const LaunchRecord& record = records[id - 1];
    ASSERT_EQ(record.key, id);
    ASSERT_EQ(record.symbol, id % 1000);
    ASSERT_EQ(record.start_ns, static_cast<std::int64_t>(id * 10'000));
    ASSERT_EQ(record.end_ns - record.start_ns, 1 + static_cast<std::int64_t>(id * 7919 % 9000));
  }
}

}  // namespace
}  // namespace pasta::tools
