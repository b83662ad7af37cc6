#include "tools/launches/launches.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tools/common/testing.h"
#include "tools/launches/delays.h"
#include "tools/launches/queue_length.h"

namespace pasta::tools {
namespace {

using launches::Delays;
using launches::QueueLength;
using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;

using Integers = std::vector<std::int64_t>;
using Points = std::vector<std::pair<std::int64_t, double>>;

class Trace : public testing::Trace {
 public:
  Event& call(std::string_view name, std::int64_t start, std::int64_t end,
              std::uint64_t correlation) {
    Lane lane;
    lane.process = tables().process(Process{.native_id = 1});
    lane.native_id = 5;
    Event& event = add(Kind::kApi, tables().lane(lane), name, start, end);
    event.correlation = correlation;
    return event;
  }
  Event& work(LaneId lane, std::int64_t start, std::int64_t end, std::uint64_t correlation,
              Kind kind = Kind::kKernel) {
    Event& event = add(kind, lane, "k", start, end);
    event.correlation = correlation;
    event.flags = kLinked;
    return event;
  }
  Report launches() {
    sort();
    return report(kLaunches).value();
  }
};

TEST(Launches, CallMayEndBeforeOrAfterItsWork) {
  Trace trace;
  const LaneId queue = trace.queue(0);
  trace.call("cudaLaunchKernel", 100, 110, 1);
  trace.work(queue, 150, 400, 1);
  trace.call("cudaLaunchKernel", 200, 500, 2);  // ends after its kernel
  trace.work(queue, 410, 420, 2);
  const Report report = trace.launches();
  const Table calls = table(report, "launches");
  EXPECT_EQ(integers(calls, "calls"), Integers{2});
  EXPECT_EQ(integers(calls, "kernels"), Integers{2});
  EXPECT_EQ(integers(calls, "total"), Integers{310});
  EXPECT_EQ(integers(calls, "mean"), Integers{155});
  EXPECT_EQ(integers(calls, "median"), Integers{10});
  const Table delays = table(report, "delays");
  EXPECT_EQ(integers(delays, "min"), Integers{50});
  EXPECT_EQ(integers(delays, "max"), Integers{210});
  const Table shorter = table(report, "short_kernels");
  EXPECT_EQ(integers(shorter, "compared"), Integers{2});
  EXPECT_EQ(integers(shorter, "shorter"), Integers{1});
  EXPECT_EQ(integers(shorter, "shorter_time"), Integers{10});
  EXPECT_EQ(integers(shorter, "their_launches"), Integers{300});
}

TEST(Launches, GraphIsOneLaunchOfTheWorkThatStartsFirst) {
  Trace trace;
  const LaneId a = trace.queue(0, 7), b = trace.queue(0, 13);
  // Of the graph, the first to end is not the first to start, and two end before the call does.
  trace.work(a, 130, 140, 3);
  trace.work(b, 120, 300, 3, Kind::kCopy);
  trace.work(a, 145, 150, 3);
  trace.call("cudaGraphLaunch", 100, 160, 3);
  const Report report = trace.launches();
  const Table calls = table(report, "launches");
  EXPECT_EQ(integers(calls, "launched"), Integers{1});
  EXPECT_EQ(integers(calls, "kernels"), Integers{2});
  EXPECT_EQ(integers(calls, "copies"), Integers{1});
  EXPECT_EQ(integers(calls, "total"), Integers{60});  // once
  const Table delays = table(report, "delays");
  EXPECT_EQ(integers(delays, "delays"), (Integers{0, 1}));
  EXPECT_EQ(cell(delays, 0, "min"), Cell());
  EXPECT_EQ(cell(delays, 1, "min"), Cell(std::int64_t{20}));
  EXPECT_EQ(integers(delays, "same_launch"), (Integers{2, 0}));
  const Table shorter = table(report, "short_kernels");
  EXPECT_EQ(integers(shorter, "in_graphs"), Integers{2});
  EXPECT_EQ(integers(shorter, "compared"), Integers{0});
  EXPECT_EQ(cell(shorter, 0, "shorter"), Cell());
  EXPECT_EQ(integers(table(report, "queues"), "max"), (Integers{2, 1}));
}

TEST(Launches, WhatHasNoDelaySaysWhy) {
  Trace trace;
  const LaneId queue = trace.queue(0);
  trace.call("cudaLaunchKernel", 100, 110, 1);
  trace.work(queue, 150, 160, 1);
  trace.work(queue, 170, 180, 0).flags = 0;  // names no launch
  trace.work(queue, 190, 200, 9).flags = 0;  // its launch is not in the trace
  trace.work(queue, 210, 220, 10);           // ... nor in the part of it that was read
  trace.call("cudaLaunchKernel", kNoTime, kNoTime, 2).flags = kUntimed;
  trace.work(queue, 230, 240, 2);
  trace.call("cudaLaunchKernel", 120, 130, 4);
  Event& untimed = trace.work(queue, kNoTime, kNoTime, 4);
  untimed.flags |= kUntimed;
  const Report report = trace.launches();
  const Table delays = table(report, "delays");
  EXPECT_EQ(integers(delays, "work"), Integers{6});
  EXPECT_EQ(integers(delays, "delays"), Integers{1});
  EXPECT_EQ(integers(delays, "same_launch"), Integers{0});
  EXPECT_EQ(integers(delays, "unlinked"), Integers{3});
  EXPECT_EQ(integers(delays, "untimed"), Integers{2});
  EXPECT_EQ(integers(table(report, "launches"), "launched"), Integers{3});
  EXPECT_EQ(integers(table(report, "queues"), "launched"), Integers{1});
}

TEST(Launches, SkewedWorkHasANegativeDelayAndNeverWaited) {
  Trace trace;
  trace.call("cuLaunchKernelEx", 100, 103, 1);
  trace.work(trace.queue(0), 98, 120, 1);
  const Report report = trace.launches();
  EXPECT_EQ(cell(table(report, "delays"), 0, "min"), Cell(std::int64_t{-2}));
  EXPECT_EQ(cell(table(report, "delays"), 0, "p95"), Cell(std::int64_t{-2}));
  EXPECT_TRUE(table(report, "queues").rows.empty());
}

TEST(Launches, OfNestedCallsTheOuterIsTheLaunch) {
  Trace trace;
  trace.call("cuLaunchKernel", 110, 120, 1);
  trace.call("cudaLaunchKernel", 100, 130, 1);
  trace.work(trace.queue(0), 150, 160, 1);
  const Table calls = table(trace.launches(), "launches");
  ASSERT_EQ(calls.rows.size(), 1u);
  EXPECT_EQ(cell(calls, 0, "name"), Cell("cudaLaunchKernel"));
}

TEST(Launches, CallsWithoutWorkCountInTheirNameOnly) {
  Trace trace;
  trace.call("cudaLaunchKernel", 10, 20, 7);  // captured into a graph: launches nothing
  trace.call("cudaLaunchKernel", 100, 110, 1);
  trace.call("cudaStreamSynchronize", 110, 190, 2);
  trace.work(trace.queue(0), 150, 160, 1);
  const Table calls = table(trace.launches(), "launches");
  EXPECT_EQ(integers(calls, "calls"), Integers{2});
  EXPECT_EQ(integers(calls, "launched"), Integers{1});
  EXPECT_EQ(integers(calls, "total"), Integers{10});
}

TEST(Launches, SeriesOfTheBusiestQueues) {
  Trace trace;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    trace.call("cudaLaunchKernel", 100, 110, i);
    trace.work(trace.queue(0, i == 3 ? 9 : 8), 200, 210, i);
  }
  trace.sort();
  const std::pair<std::string, std::string> one[] = {{"series", "1"}};
  const Report report = trace.report(kLaunches, one).value();
  std::vector<Series> all;
  for (const Part& part : report.parts) {
    if (const auto* series = std::get_if<Series>(&part)) all.push_back(*series);
  }
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, "queue_length:0:stream 8");
  EXPECT_EQ(all[0].points, (Points{{0, 2}, {100, 0}}));
  EXPECT_EQ(finding(report, "series-left-out").text,
            "series=1 leaves out the length over time of 1 of 2 queues");
  EXPECT_EQ(table(report, "queues").rows.size(), 2u);
}

TEST(Launches, NothingOnADevice) {
  Trace trace;
  trace.call("cudaLaunchKernel", 10, 20, 7);
  const Report report = trace.launches();
  EXPECT_EQ(finding(report, "no-device-work").level, Finding::Level::kInfo);
  EXPECT_TRUE(table(report, "launches").rows.empty());
  EXPECT_TRUE(table(report, "delays").rows.empty());
}

TEST(Launches, AnswersDoNotDependOnBatches) {
  std::mt19937 random(7);
  const auto number = [&](int below) { return static_cast<std::int64_t>(random() % below); };
  constexpr const char* kCalls[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch"};
  for (int round = 0; round < 100; ++round) {
    Trace trace;
    for (std::uint64_t i = 1; i <= 30; ++i) {
      const std::int64_t start = number(1000);
      const std::size_t type = static_cast<std::size_t>(number(3));
      if (number(5) != 0) trace.call(kCalls[type], start, start + number(50), i);
      for (std::int64_t works = type == 0 ? 1 : 1 + number(3); works > 0; --works) {
        const std::int64_t begin = start - 5 + number(200);
        trace.work(trace.queue(0, static_cast<std::uint64_t>(number(3))), begin, begin + number(40),
                   i);
      }
    }
    trace.sort();
    const Report report = trace.report(kLaunches).value();
    ASSERT_EQ(trace.report(kLaunches, {}, 1).value(), report);
    const Table delays = table(report, "delays");
    for (std::size_t row = 0; row < delays.rows.size(); ++row) {
      const auto value = [&](const char* column) {
        return std::get<std::int64_t>(cell(delays, row, column));
      };
      ASSERT_EQ(value("delays") + value("same_launch") + value("unlinked") + value("untimed"),
                value("work"));
      ASSERT_GE(value("same_launch"), 0);
    }
  }
}

TEST(Delays, QuantilesOverBothSigns) {
  std::vector<std::int64_t> values(41);
  std::iota(values.begin(), values.end(), -7);
  for (const double q : {0.01, 0.1, 0.17, 0.18, 0.5, 0.95, 1.0}) {
    Delays delays;
    for (const std::int64_t value : values) delays.add(value);
    const auto rank = static_cast<std::size_t>(std::ceil(q * 41));
    EXPECT_EQ(delays.quantile(q), values[rank - 1]) << q;
    EXPECT_EQ(delays.min(), -7);
    EXPECT_EQ(delays.max(), 33);
    EXPECT_EQ(delays.mean(), 13);
  }
}

TEST(QueueLength, NeverNegativeAndExactWhereItIsSmall) {
  QueueLength queue;
  queue.add(100, 100);  // starts at once
  queue.add(10, 40);
  queue.add(20, 30);
  const QueueLength::Shape shape = queue.shape(100);
  EXPECT_EQ(shape.points, (Points{{10, 1}, {20, 2}, {30, 1}, {40, 0}, {100, 1}, {100, 0}}));
  EXPECT_EQ(shape.max, 2);
  EXPECT_DOUBLE_EQ(shape.mean, 5.0 / 6);
  EXPECT_DOUBLE_EQ(shape.mean_in_time, 40.0 / 90);
  EXPECT_EQ(shape.span_ns, 90);
  EXPECT_EQ(shape.empty_ns, 60);
}

TEST(QueueLength, ManyPointsKeepThePeaks) {
  QueueLength queue;
  for (std::int64_t i = 0; i < 10'000; ++i) queue.add(i * 10, i * 10 + 5);
  queue.add(50'001, 50'003);
  const QueueLength::Shape shape = queue.shape(100);
  EXPECT_LE(shape.points.size(), 100u);
  EXPECT_GE(shape.points.size(), 99u);
  double max = 0;
  for (const auto& [time, value] : shape.points) max = std::max(max, value);
  EXPECT_EQ(max, 2);
  EXPECT_EQ(shape.max, 2);
  EXPECT_TRUE(std::is_sorted(shape.points.begin(), shape.points.end()));
}

TEST(QueueLength, OfNothing) { EXPECT_TRUE(QueueLength().shape(10).points.empty()); }

}  // namespace
}  // namespace pasta::tools
