#include "tools/summary/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tools/common/testing.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;
using testing::Trace;

using Integers = std::vector<std::int64_t>;

TEST(Summary, ExclusivePartsOfOverlappingWork) {
  Trace trace;
  const LaneId a = trace.queue(0, 7), b = trace.queue(0, 13), c = trace.queue(0, 20);
  trace.kernel(a, "gemm", 100, 200);
  trace.kernel(a, "gemm", 150, 160);  // inside the first: counted, no time of its own
  trace.kernel(b, "ncclAllReduce", 180, 260);
  trace.copy(c, 190, 270, 4096);
  trace.add(Kind::kFill, c, "Memset", 280, 290);
  trace.kernel(a, "gemm", 300, 300);  // an instant ends the span
  trace.sort();
  const Report report = trace.report(kSummary).value();

  const Table devices = table(report, "devices");
  ASSERT_EQ(devices.rows.size(), 1u);
  const auto value = [&](const char* column) { return integers(devices, column).at(0); };
  EXPECT_EQ(cell(devices, 0, "device"), Cell("0"));
  EXPECT_EQ(value("span"), 200);
  EXPECT_EQ(value("busy"), 180);
  EXPECT_EQ(value("idle"), 20);
  EXPECT_EQ(value("compute"), 100);
  EXPECT_EQ(value("communication"), 80);
  EXPECT_EQ(value("communication_overlapped"), 20);
  EXPECT_EQ(value("memory"), 90);
  EXPECT_EQ(value("memory_overlapped"), 70);
  EXPECT_EQ(value("kernels"), 4);
  EXPECT_EQ(value("kernel_sum"), 190);
  EXPECT_EQ(value("copies"), 1);
  EXPECT_EQ(value("copy_sum"), 80);
  EXPECT_EQ(value("copy_bytes"), 4096);
  EXPECT_EQ(value("fills"), 1);

  const Table breakdown = table(report, "breakdown");
  EXPECT_EQ(integers(breakdown, "time"), (Integers{100, 60, 20, 20}));
  EXPECT_EQ(cell(breakdown, 0, "share"), Cell(0.5));
  EXPECT_EQ(cell(breakdown, 1, "part"), Cell("exposed communication"));
}

TEST(Summary, NothingOnADeviceIsAnEmptyTableAndAFinding) {
  Trace trace;
  trace.queue(0);  // a device that did nothing has no row
  const Report report = trace.report(kSummary).value();
  EXPECT_TRUE(table(report, "devices").rows.empty());
  EXPECT_EQ(table(report, "devices").columns.size(), 15u);
  EXPECT_TRUE(table(report, "breakdown").rows.empty());
  EXPECT_EQ(finding(report, "no-device-work").text, "no device did anything in this trace");
}

TEST(Summary, RangesDrawnOnAQueueAreNotDeviceTime) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.kernel(lane, "gemm", 100, 110);
  trace.add(Kind::kScope, lane, "step", 0, 1000).flags = kAnnotation;
  trace.add(Kind::kSync, lane, "Context Sync", 0, 2000);
  const Report report = trace.report(kSummary).value();
  EXPECT_EQ(integers(table(report, "devices"), "span"), Integers{10});
  EXPECT_FALSE(kSummary.needs.has(Kind::kScope));
}

TEST(Summary, UntimedKernelsCountButTakeNoTime) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.untimed_kernel(lane, "gemm");
  trace.kernel(lane, "gemm", 100, 130);
  const Table devices = table(trace.report(kSummary).value(), "devices");
  EXPECT_EQ(integers(devices, "kernels"), Integers{2});
  EXPECT_EQ(integers(devices, "kernel_sum"), Integers{30});
  EXPECT_EQ(integers(devices, "span"), Integers{30});
}

TEST(Summary, TimesThatNobodyRecordedAreUnknownNotZero) {
  Trace trace;
  trace.untimed_kernel(trace.queue(0), "gemm");
  trace.untimed_kernel(trace.queue(1), "gemm");
  trace.copy(trace.queue(1), 100, 150, 64);
  const Report report = trace.report(kSummary).value();
  const Table devices = table(report, "devices");
  for (const char* column : {"span", "busy", "idle", "compute", "kernel_sum"}) {
    EXPECT_EQ(cell(devices, 0, column), Cell()) << column;
  }
  EXPECT_EQ(cell(devices, 0, "communication"), Cell(std::int64_t{0})) << "there were none";
  EXPECT_EQ(cell(devices, 1, "span"), Cell(std::int64_t{50}));
  EXPECT_EQ(cell(devices, 1, "compute"), Cell());
  EXPECT_EQ(cell(devices, 1, "memory"), Cell(std::int64_t{50}));
  EXPECT_EQ(cell(devices, 1, "memory_overlapped"), Cell());
  EXPECT_TRUE(table(report, "breakdown").rows.empty()) << "parts of an unknown whole";
}

TEST(Summary, BytesOfACopyMayBeUnknown) {
  Trace trace;
  trace.copy(trace.queue(0), 0, 1, kUnknownBytes);
  trace.copy(trace.queue(1), 1, 2, kUnknownBytes);
  trace.copy(trace.queue(1), 2, 3, 5);
  trace.kernel(trace.queue(2), "gemm", 3, 4);
  const Table devices = table(trace.report(kSummary).value(), "devices");
  EXPECT_EQ(cell(devices, 0, "copy_bytes"), Cell());
  EXPECT_EQ(cell(devices, 1, "copy_bytes"), Cell(std::int64_t{5}));
  EXPECT_EQ(cell(devices, 2, "copy_bytes"), Cell(std::int64_t{0}));
}

TEST(Summary, DevicesInTheOrderAPersonCounts) {
  Trace trace;
  for (const std::uint32_t ordinal : {10u, 9u, 2u}) trace.kernel(trace.queue(ordinal), "k", 0, 1);
  const Table devices = table(trace.report(kSummary).value(), "devices");
  EXPECT_EQ(cell(devices, 0, "device"), Cell("2"));
  EXPECT_EQ(cell(devices, 1, "device"), Cell("9"));
  EXPECT_EQ(cell(devices, 2, "device"), Cell("10"));
}

TEST(Summary, WorkOfAnUnknownDeviceIsKept) {
  Trace trace;
  trace.kernel(trace.tables().lane({.type = LaneType::kQueue, .native_id = 1}), "k", 0, 9);
  const Table devices = table(trace.report(kSummary).value(), "devices");
  EXPECT_EQ(cell(devices, 0, "device"), Cell());
  EXPECT_EQ(integers(devices, "span"), Integers{9});
}

TEST(Summary, TheWholeTimeAxisFits) {
  Trace trace;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  trace.kernel(trace.queue(0), "k", -kMax, kMax);
  const Table devices = table(trace.report(kSummary).value(), "devices");
  EXPECT_EQ(integers(devices, "span"), Integers{kMax});
  EXPECT_EQ(integers(devices, "kernel_sum"), Integers{kMax});
}

// Marks every nanosecond of a short trace with what went on in it.
struct Reference {
  std::map<std::int64_t, unsigned> at;  // bits: 1 compute, 2 communication, 4 memory
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();

  void add(const Event& event, unsigned bit) {
    first = std::min(first, event.start_ns);
    last = std::max(last, event.end_ns);
    for (std::int64_t t = event.start_ns; t < event.end_ns; ++t) at[t] |= bit;
  }
  template <class Is>
  std::int64_t count(Is is) const {
    return std::ranges::count_if(at, [&](const auto& entry) { return is(entry.second); });
  }
};

TEST(Summary, AgreesWithCountingEveryNanosecond) {
  std::mt19937 random(20240501);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    Trace trace;
    Reference reference;
    const int events = pick(1, 60);
    const int longest = pick(0, 40);
    for (int i = 0; i < events; ++i) {
      const LaneId lane = trace.queue(0, static_cast<std::uint64_t>(pick(1, 3)));
      const std::int64_t start = pick(-50, 300), end = start + pick(0, longest);
      switch (pick(0, 3)) {
        case 0:
          reference.add(trace.kernel(lane, "gemm", start, end), 1);
          break;
        case 1:
          reference.add(trace.kernel(lane, "ncclSend", start, end), 2);
          break;
        case 2:
          reference.add(trace.copy(lane, start, end, 1), 4);
          break;
        default:
          reference.add(trace.add(Kind::kFill, lane, "Memset", start, end), 4);
      }
    }
    trace.sort();
    const Report report = trace.report(kSummary).value();
    const Table devices = table(report, "devices");
    const auto value = [&](const char* column) { return integers(devices, column).at(0); };
    EXPECT_EQ(value("span"), reference.last - reference.first);
    EXPECT_EQ(value("busy"), reference.count([](unsigned x) { return x != 0; }));
    EXPECT_EQ(value("compute"), reference.count([](unsigned x) { return (x & 1) != 0; }));
    EXPECT_EQ(value("communication_overlapped"),
              reference.count([](unsigned x) { return (x & 3) == 3; }));
    EXPECT_EQ(value("memory_overlapped"),
              reference.count([](unsigned x) { return (x & 4) != 0 && (x & 3) != 0; }));

    const Integers parts = integers(table(report, "breakdown"), "time");
    EXPECT_EQ(parts, (Integers{reference.count([](unsigned x) { return (x & 1) != 0; }),
                               reference.count([](unsigned x) { return (x & 3) == 2; }),
                               reference.count([](unsigned x) { return x == 4; }),
                               value("span") - value("busy")}));
    EXPECT_EQ(parts[0] + parts[1] + parts[2] + parts[3], value("span"));
    EXPECT_EQ(trace.report(kSummary, {}, 1).value(), report) << "batches do not matter";
  }
}

}  // namespace
}  // namespace pasta::tools
