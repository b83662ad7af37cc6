#include "tools/idle/idle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "stats/interval_set.h"
#include "tools/common/longest.h"
#include "tools/common/testing.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;

constexpr std::int64_t kMs = 1'000'000;

class Trace : public testing::Trace {
 public:
  LaneId thread(std::uint64_t id, std::uint64_t process = 1) {
    return tables().lane(
        Lane{.process = tables().process(Process{.native_id = process}), .native_id = id});
  }
  Event& api(LaneId lane, std::string_view name, std::int64_t start, std::int64_t end,
             std::uint64_t correlation = 0) {
    Event& event = add(Kind::kApi, lane, name, start, end);
    event.correlation = correlation;
    return event;
  }
  Event& range(LaneId lane, std::string_view name, std::int64_t start, std::int64_t end,
               ScopeDomain domain = ScopeDomain::kOperator) {
    Event& event = add(Kind::kScope, lane, name, start, end);
    event.detail = static_cast<std::uint16_t>(domain);
    return event;
  }
  // Time by cause of the only device.
  std::map<std::string, std::int64_t> causes() {
    sort();
    const Table found = table(report(kIdle).value(), "causes");
    std::map<std::string, std::int64_t> times;
    for (std::size_t row = 0; row < found.rows.size(); ++row) {
      times[std::get<std::string>(cell(found, row, "cause"))] =
          std::get<std::int64_t>(cell(found, row, "time"));
    }
    return times;
  }
};

using Causes = std::map<std::string, std::int64_t>;

// Kernels [0, 100) and [10100, 10200): a gap of 10000.
struct OneGap : Trace {
  OneGap() {
    kernel(queue(0), "a", 0, 100);
    kernel(queue(0), "b", 10'100, 10'200);
  }
};

TEST(Idle, NothingOfTheHostInTheTrace) {
  OneGap trace;
  trace.thread(7);  // a thread of which nothing was recorded
  EXPECT_EQ(trace.causes(), (Causes{{"no_host_thread", 10'000}}));
}

TEST(Idle, HostOfAnotherProcessExplainsNothing) {
  OneGap trace;
  trace.api(trace.thread(7, 2), "cudaDeviceSynchronize", 0, 20'000);
  EXPECT_EQ(trace.causes(), (Causes{{"no_host_thread", 10'000}}));
}

TEST(Idle, MarksAndTheProfilersWorkAreNoHost) {
  OneGap trace;
  trace.range(trace.thread(7), "ProfilerStep#1", 0, 20'000, ScopeDomain::kIteration);
  trace.range(trace.thread(7), "PyTorch Profiler (0)", 0, 20'000, ScopeDomain::kRuntime);
  EXPECT_EQ(trace.causes(), (Causes{{"no_host_thread", 10'000}}));
}

TEST(Idle, FirstRuleThatHoldsDecides) {
  OneGap trace;
  const LaneId thread = trace.thread(7);
  trace.api(thread, "cudaDeviceSynchronize", 50, 1'100);
  trace.range(thread, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1'000, 3'100);
  trace.range(thread, "aten::mm", 3'000, 6'100);
  trace.api(thread, "cudaLaunchKernel", 5'000, 5'500);
  EXPECT_EQ(trace.causes(), (Causes{{"sync_bound", 1'000},
                                    {"input_bound", 2'000},
                                    {"launch_bound", 3'000},
                                    {"unknown", 4'000}}));
}

TEST(Idle, ShortPausesBetweenOperatorsBelongToIssuing) {
  OneGap trace;
  const LaneId thread = trace.thread(7);
  trace.range(thread, "aten::mm", 50, 100);
  trace.api(thread, "cudaLaunchKernel", 60, 70);
  trace.range(thread, "aten::mm", 9'000, 20'000);
  trace.api(thread, "cudaLaunchKernel", 9'500, 9'600);
  EXPECT_EQ(trace.causes(), (Causes{{"launch_bound", 10'000}}));
}

TEST(Idle, LongRangeWithoutALaunchIsNotIssuing) {
  Trace trace;
  trace.kernel(trace.queue(0), "a", 0, 10);
  trace.kernel(trace.queue(0), "b", 20 * kMs, 20 * kMs + 10);
  const LaneId thread = trace.thread(7);
  trace.range(thread, "train.py(1): main", 0, 30 * kMs, ScopeDomain::kPython);
  trace.range(thread, "sleep", 4 * kMs, 9 * kMs, ScopeDomain::kPython);
  trace.range(thread, "getattr", 10 * kMs, 10 * kMs + 50, ScopeDomain::kPython);  // short
  trace.api(thread, "cudaLaunchKernel", 19 * kMs, 19 * kMs + 5);
  EXPECT_EQ(trace.causes(), (Causes{{"launch_bound", 15 * kMs - 10}, {"host_busy", 5 * kMs}}));
}

TEST(Idle, AnnotationAroundLaunchesSaysNothing) {
  Trace trace;
  trace.kernel(trace.queue(0), "a", 0, 10);
  trace.kernel(trace.queue(0), "b", 20 * kMs, 20 * kMs + 10);
  const LaneId thread = trace.thread(7);
  trace.range(thread, "step", 0, 30 * kMs, ScopeDomain::kAnnotation);
  trace.range(thread, "augment", 2 * kMs, 6 * kMs, ScopeDomain::kAnnotation);
  trace.api(thread, "cudaLaunchKernel", 19 * kMs, 20 * kMs);
  EXPECT_EQ(trace.causes(),
            (Causes{{"launch_bound", kMs}, {"host_busy", 4 * kMs}, {"unknown", 15 * kMs - 10}}));
}

TEST(Idle, LaunchingThreadGoesBeforeWaitingOfOthers) {
  OneGap trace;
  const LaneId launches = trace.thread(7), waits = trace.thread(8);
  trace.range(launches, "aten::mm", 0, 5'100);
  trace.api(launches, "cudaLaunchKernel", 100, 200);
  trace.api(waits, "cudaEventSynchronize", 0, 8'100);
  trace.range(waits, "threading.py(1): run", 0, 20'000, ScopeDomain::kPython);
  trace.range(waits, "aten::copy_", 8'000, 9'100);
  EXPECT_EQ(trace.causes(), (Causes{{"launch_bound", 5'000},
                                    {"sync_bound", 3'000},
                                    {"host_busy", 1'000},
                                    {"unknown", 1'000}}));
}

TEST(Idle, WithoutAnyLaunchNobodyIsLaunchBound) {
  OneGap trace;
  trace.range(trace.thread(7), "aten::mm", 0, 20'000);
  EXPECT_EQ(trace.causes(), (Causes{{"host_busy", 10'000}}));
}

TEST(Idle, LongAsynchronousCopyWaitsAndAQuestionSaysNothing) {
  Trace trace;
  trace.kernel(trace.queue(0), "a", 0, 10);
  trace.kernel(trace.queue(0), "b", 4 * kMs, 4 * kMs + 10);
  trace.api(trace.thread(7), "cudaMemcpyAsync", 5, 3 * kMs);
  trace.api(trace.thread(7), "cudaEventQuery", 3 * kMs, 4 * kMs);
  EXPECT_EQ(trace.causes(), (Causes{{"sync_bound", 3 * kMs - 10}, {"unknown", kMs}}));
}

// The launch of the second kernel returns at `returned`; the gap is [100, 10100).
Causes causes_with_launch(std::int64_t returned) {
  Trace trace;
  trace.kernel(trace.queue(0), "a", 0, 100);
  Event& late = trace.kernel(trace.queue(0), "b", 10'100, 10'200);
  late.correlation = 1;
  late.flags = kLinked;
  const LaneId thread = trace.thread(7);
  trace.range(thread, "aten::mm", 0, 20'000);
  trace.api(thread, "cudaLaunchKernel", returned - 10, returned, 1);
  return trace.causes();
}

TEST(Idle, WorkLaunchedBeforeTheGapIsNotTheHostsFault) {
  EXPECT_EQ(causes_with_launch(100), (Causes{{"work_queued", 10'000}}));
  EXPECT_EQ(causes_with_launch(101), (Causes{{"launch_bound", 10'000}}));
  EXPECT_EQ(causes_with_launch(10'100), (Causes{{"launch_bound", 10'000}}));
}

TEST(Idle, WaitingWorkIsSeenAlthoughQueuesEndOutOfOrder) {
  // "long" starts before "short" and ends after it; both were launched before the gap [10, 50).
  Trace trace;
  trace.kernel(trace.queue(0, 1), "first", 0, 10);
  const LaneId thread = trace.thread(7);
  trace.api(thread, "cudaLaunchKernel", 1, 2, 1);
  trace.api(thread, "cudaLaunchKernel", 55, 56, 2);
  Event& short_one = trace.kernel(trace.queue(0, 1), "short", 60, 70);
  short_one.correlation = 2;
  Event& long_one = trace.kernel(trace.queue(0, 2), "long", 50, 100);
  long_one.correlation = 1;
  EXPECT_EQ(trace.causes(), (Causes{{"work_queued", 40}}));
}

TEST(Idle, HostEventsWithoutTimesLeaveTheCauseUnknown) {
  OneGap trace;
  trace.api(trace.thread(7), "cudaLaunchKernel", kNoTime, kNoTime).flags = kUntimed;
  EXPECT_EQ(trace.causes(), (Causes{{"unknown", 10'000}}));
}

TEST(Idle, QueuesOfAFileBelongToAllProcessesOfThatFileOnly) {
  Trace trace;
  const auto source = [&](const char* path) { return trace.tables().string(path); };
  const auto device_queue = [&](const char* path) {
    Lane lane;
    lane.type = LaneType::kQueue;
    lane.process = trace.tables().process(Process{.source = source(path)});
    lane.device = trace.tables().device(Device{.process = lane.process, .ordinal = 0});
    lane.native_id = 7;
    return trace.tables().lane(lane);
  };
  const auto thread = [&](const char* path, std::uint64_t pid) {
    return trace.tables().lane(
        Lane{.process = trace.tables().process(Process{.native_id = pid, .source = source(path)}),
             .native_id = 1});
  };
  trace.kernel(device_queue("a"), "k", 0, 10);
  trace.kernel(device_queue("a"), "k", 110, 120);
  trace.api(thread("a", 5), "cudaDeviceSynchronize", 0, 200);
  trace.api(thread("b", 5), "cudaLaunchKernel", 0, 200);
  EXPECT_EQ(trace.causes(), (Causes{{"sync_bound", 100}}));
}

TEST(Idle, GapsAreTheLongestWithWhatEndedThem) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.kernel(lane, "a", 1'000, 1'010);
  trace.kernel(lane, "b", 1'030, 1'040);  // gap of 20
  trace.kernel(lane, "c", 1'050, 1'060);  // gap of 10
  // Begins inside the gap before "e", and swallows "d" and the gap before it.
  trace.kernel(lane, "d", 1'100, 1'110);
  trace.kernel(trace.queue(0, 8), "e", 1'095, 1'150);
  const LaneId thread = trace.thread(7);
  trace.range(thread, "outer", 1'000, 1'200);
  trace.range(thread, "inner", 1'060, 1'090);
  trace.api(thread, "cudaLaunchKernel", 1'085, 1'090);
  trace.sort();
  const std::pair<std::string, std::string> two[] = {{"top", "2"}};
  const Table gaps = table(trace.report(kIdle, two).value(), "gaps");
  EXPECT_EQ(integers(gaps, "start"), (std::vector<std::int64_t>{60, 10}));
  EXPECT_EQ(integers(gaps, "duration"), (std::vector<std::int64_t>{35, 20}));
  EXPECT_EQ(cell(gaps, 0, "next"), Cell("e"));
  EXPECT_EQ(cell(gaps, 0, "host_in"), Cell("inner"));
  EXPECT_EQ(cell(gaps, 1, "next"), Cell("b"));
  EXPECT_EQ(cell(gaps, 1, "host_in"), Cell("outer"));

  const std::pair<std::string, std::string> none[] = {{"top", "0"}};
  EXPECT_TRUE(table(trace.report(kIdle, none).value(), "gaps").rows.empty());
  const std::pair<std::string, std::string> wrong[] = {{"top", "-1"}};
  EXPECT_FALSE(trace.report(kIdle, wrong).has_value());
}

TEST(Idle, StreamWaitsLeaveOutWhatTheDeviceIsIdle) {
  Trace trace;
  trace.kernel(trace.queue(0, 7), "a", 0, 100);
  trace.kernel(trace.queue(0, 7), "a", 200, 300);
  trace.copy(trace.queue(0, 8), 20, 30, 1);
  trace.copy(trace.queue(0, 8), 250, 350, 1);
  trace.sort();
  const Table waits = table(trace.report(kIdle).value(), "stream_waits");
  EXPECT_EQ(cell(waits, 0, "stream"), Cell("stream 7"));
  EXPECT_EQ(integers(waits, "span"), (std::vector<std::int64_t>{300, 330}));
  EXPECT_EQ(integers(waits, "busy"), (std::vector<std::int64_t>{200, 110}));
  EXPECT_EQ(integers(waits, "waiting"), (std::vector<std::int64_t>{0, 120}));
  EXPECT_EQ(integers(waits, "device_idle"), (std::vector<std::int64_t>{100, 100}));
}

TEST(Idle, FindingNeedsEnoughWorkAndEnoughIdleTime) {
  const auto found = [](int kernels, std::int64_t length) {
    Trace trace;
    for (int i = 0; i < kernels; ++i) {
      trace.kernel(trace.queue(0), "k", i * 100, i * 100 + length);
    }
    return finding(trace.report(kIdle).value(), "device-idle");
  };
  EXPECT_TRUE(found(9, 10).text.empty());
  EXPECT_TRUE(found(20, 90).text.empty());
  EXPECT_EQ(found(20, 70).level, Finding::Level::kWarning);
  const Finding bad = found(20, 10);
  EXPECT_EQ(bad.level, Finding::Level::kProblem);
  EXPECT_NEAR(bad.share, 0.895, 0.001);
}

TEST(Idle, DevicesThatIdleForTheSameReasonAreOneFinding) {
  Trace trace;
  for (int device = 0; device < 3; ++device) {
    for (int i = 0; i < 20; ++i) {
      trace.kernel(trace.queue(device), "k", i * 100, i * 100 + 10 + device * 20);
    }
  }
  const Report report = trace.report(kIdle).value();
  const auto findings = std::ranges::count_if(
      report.parts, [](const Part& part) { return std::holds_alternative<Finding>(part); });
  EXPECT_EQ(findings, 1);
  const Finding found = finding(report, "device-idle");
  EXPECT_NEAR(found.share, 0.895, 0.001);
  EXPECT_NE(found.text.find("2 other devices, for 48.7 % to 68.9 % of their spans"),
            std::string::npos)
      << found.text;
}

// Whatever the trace: causes and stream waits add up to what summary says.
TEST(Idle, PartsAddUpOnRandomTraces) {
  std::mt19937 random(5);
  const auto number = [&](int below) { return static_cast<std::int64_t>(random() % below); };
  constexpr const char* kCalls[] = {"cudaLaunchKernel", "cudaDeviceSynchronize", "cudaMemcpy",
                                    "cudaMalloc", "cudaEventQuery"};
  const ToolEntry& summary =
      *std::ranges::find(builtin_tools(), std::string_view("summary"), &ToolEntry::name);
  for (int round = 0; round < 200; ++round) {
    Trace trace;
    const std::int64_t scale = round % 2 == 0 ? 1 : 100'000;  // also ranges that are long
    for (std::int64_t i = 0; i < 30; ++i) {
      const std::int64_t start = number(500) * scale;
      Event& event = trace.kernel(trace.queue(0, 7 + static_cast<std::uint64_t>(number(3))), "k",
                                  start, start + number(20) * scale);
      event.correlation = static_cast<std::uint64_t>(number(20));
    }
    for (std::int64_t i = 0; i < 40; ++i) {
      const LaneId thread = trace.thread(1 + static_cast<std::uint64_t>(number(3)));
      const std::int64_t start = number(500) * scale, end = start + number(60) * scale;
      if (number(2) == 0) {
        trace.api(thread, kCalls[number(5)], start, end, static_cast<std::uint64_t>(number(20)));
      } else {
        trace.range(thread, "r", start, end, static_cast<ScopeDomain>(number(7)));
      }
    }
    trace.sort();
    const Report idle = trace.report(kIdle).value();
    const Table devices = table(trace.report(summary).value(), "devices");
    const auto sum = [](const std::vector<std::int64_t>& values) {
      std::int64_t total = 0;
      for (const std::int64_t value : values) total += value;
      return total;
    };
    ASSERT_EQ(sum(integers(table(idle, "causes"), "time")), integers(devices, "idle").at(0));
    const std::pair<std::string, std::string> all[] = {{"top", "1000"}};
    const Table gaps = table(trace.report(kIdle, all, 1).value(), "gaps");
    ASSERT_EQ(sum(integers(gaps, "duration")), integers(devices, "idle").at(0));
    const Table waits = table(idle, "stream_waits");
    for (std::size_t row = 0; row < waits.rows.size(); ++row) {
      const auto value = [&](const char* column) {
        return std::get<std::int64_t>(cell(waits, row, column));
      };
      ASSERT_EQ(value("busy") + value("waiting") + value("device_idle"), value("span"));
      ASSERT_GE(value("waiting"), 0);
      ASSERT_GE(value("device_idle"), 0);
    }
    // Which batches events come in changes nothing.
    ASSERT_EQ(trace.report(kIdle, {}, 1).value(), idle);
  }
}

TEST(Longest, KeepsTheLongestAndTheEarlierOfEqualOnes) {
  struct Range {
    std::int64_t start_ns, end_ns;
  };
  Longest<Range> longest(2);
  for (const Range range : {Range{0, 5}, Range{10, 13}, Range{20, 25}, Range{30, 31}}) {
    longest.add(range);
  }
  ASSERT_EQ(longest.ranges().size(), 2u);
  EXPECT_EQ(longest.ranges()[0].start_ns, 0);
  EXPECT_EQ(longest.ranges()[1].start_ns, 20);
  longest.add({40, 45});  // no longer than what is kept
  EXPECT_EQ(longest.ranges().size(), 2u);
  longest.add({50, 56});
  longest.add({60, 69});
  ASSERT_EQ(longest.ranges().size(), 2u);
  EXPECT_EQ(longest.ranges()[0].start_ns, 50);
  EXPECT_EQ(longest.ranges()[1].start_ns, 60);
}

}  // namespace
}  // namespace pasta::tools
