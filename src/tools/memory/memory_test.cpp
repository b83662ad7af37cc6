#include "tools/memory/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tools/common/testing.h"
#include "tools/memory/curve.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;
using testing::Trace;

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class MemoryTrace : public Trace {
 public:
  MemoryTrace() {
    Device row;
    row.process = tables().process(Process{.native_id = 1});
    thread = tables().lane(Lane{.type = LaneType::kThread, .process = row.process, .native_id = 1});
    device = tables().device(row);
  }
  Event& alloc(std::int64_t time, std::uint64_t bytes, std::uint64_t address, FrameId scope = {}) {
    return memory(Kind::kAlloc, time, bytes, address, scope);
  }
  Event& free(std::int64_t time, std::uint64_t bytes, std::uint64_t address) {
    return memory(Kind::kFree, time, bytes, address, {});
  }
  void total(std::int64_t time, std::string_view name, double value) {
    add(Kind::kCounter, thread, name, time, time).counter = {
        .value = value, .unit = {}, .device = device, .reserved = 0};
  }
  FrameId op(std::string_view name, FrameId parent = {}) {
    return frame(parent, name, ScopeDomain::kOperator);
  }
  [[nodiscard]] Report result(const char* by = "operator", std::size_t batch = 1024) const {
    const std::pair<std::string, std::string> options[] = {{"by", by}};
    return report(kMemory, options, batch).value();
  }

  LaneId thread;
  DeviceId device;

 private:
  Event& memory(Kind kind, std::int64_t time, std::uint64_t bytes, std::uint64_t address,
                FrameId scope) {
    Event& event = add(kind, thread, "", time, time);
    event.scope = scope;
    event.memory = {.bytes = bytes, .address = address, .device = device, .pool = {}};
    return event;
  }
};

// (operator, bytes, allocations) of a table, an unknown number as -1.
std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> live(const Table& rows) {
  std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> result;
  const Integers bytes = integers(rows, "bytes"), allocations = integers(rows, "allocations");
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    result.emplace_back(std::get<std::string>(cell(rows, i, "operator")), bytes[i], allocations[i]);
  }
  return result;
}
using Live = std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>;

const Series* series(const Report& report, std::string_view id) {
  for (const Part& part : report.parts) {
    const auto* found = std::get_if<Series>(&part);
    if (found != nullptr && found->id == id) return found;
  }
  return nullptr;
}

TEST(Memory, WhatWasLiveAtThePeakAndAtTheEnd) {
  MemoryTrace trace;
  const FrameId mm = trace.op("mm"), add = trace.op("add", mm);
  trace.alloc(10, 100, 0x100, mm);
  trace.alloc(20, 50, 0x200, add);
  trace.free(30, 100, 0x100);
  trace.alloc(40, 30, 0x300, mm);
  trace.alloc(50, 200, 0x400, mm);  // the peak: 280
  trace.free(60, 200, 0x400);
  trace.alloc(70, 200, 0x400);  // as high, later
  trace.free(90, 200, 0x400);
  const Report report = trace.result();

  const Table devices = table(report, "devices");
  const auto value = [&](const char* column) { return integers(devices, column).at(0); };
  EXPECT_EQ(cell(devices, 0, "device"), Cell("0"));
  EXPECT_EQ(value("allocs"), 5);
  EXPECT_EQ(value("frees"), 3);
  EXPECT_EQ(value("allocated_bytes"), 580);
  EXPECT_EQ(value("freed_bytes"), 500);
  EXPECT_EQ(value("net"), 80);
  EXPECT_EQ(value("peak_seen"), 280);
  EXPECT_EQ(value("peak_time"), 40) << "since the trace's start";
  EXPECT_EQ(cell(devices, 0, "peak_total_allocated"), Cell()) << "nobody counted";
  EXPECT_EQ(cell(devices, 0, "address_known"), Cell(1.0));

  EXPECT_EQ(live(table(report, "peak")), (Live{{"mm", 230, 2}, {"add", 50, 1}}));
  EXPECT_EQ(cell(table(report, "peak"), 1, "share"), Cell(50.0 / 280));
  EXPECT_EQ(live(table(report, "never_freed")), (Live{{"add", 50, 1}, {"mm", 30, 1}}));
  EXPECT_EQ(integers(table(report, "never_freed"), "longest_lived"), (Integers{70, 50}));
  EXPECT_EQ(live(table(trace.result("path"), "peak")), (Live{{"mm", 230, 2}, {"mm > add", 50, 1}}));
}

// Against whole copies at each new peak, over many random traces, in batches of any size.
TEST(Memory, PeakIsExactWithoutCopies) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    MemoryTrace trace;
    std::vector<FrameId> ops;
    for (const char* name : {"a", "b", "c", "d"}) ops.push_back(trace.op(name));
    std::map<std::uint64_t, std::pair<std::string, std::int64_t>> now, at_peak;
    std::int64_t running = 0, peak = 0;
    for (std::int64_t time = 0; time < 60; ++time) {
      const std::uint64_t address = 1 + random() % 12;
      if (const auto known = now.find(address); known != now.end()) {
        running -= known->second.second;
        trace.free(time, static_cast<std::uint64_t>(known->second.second), address);
        now.erase(known);
      } else {
        const auto bytes = static_cast<std::int64_t>(1 + random() % 100);
        const unsigned op = random() % 4;
        trace.alloc(time, static_cast<std::uint64_t>(bytes), address, ops[op]);
        now[address] = {std::string(1, static_cast<char>('a' + op)), bytes};
        running += bytes;
      }
      if (running > peak) {
        peak = running;
        at_peak = now;
      }
    }
    const auto sums = [](const auto& allocations) {
      std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_operator;
      for (const auto& [address, one] : allocations) {
        by_operator[one.first].first += one.second;
        ++by_operator[one.first].second;
      }
      Live rows;
      for (const auto& [name, pair] : by_operator) rows.emplace_back(name, pair.first, pair.second);
      std::ranges::stable_sort(
          rows, [](const auto& x, const auto& y) { return std::get<1>(x) > std::get<1>(y); });
      return rows;
    };
    const Report report = trace.result();
    ASSERT_EQ(live(table(report, "peak")), sums(at_peak)) << round;
    ASSERT_EQ(live(table(report, "never_freed")), sums(now)) << round;
    ASSERT_EQ(report, trace.result("operator", 1));
  }
}

TEST(Memory, WhatTheAllocatorCountsBeyondTheTrace) {
  MemoryTrace trace;
  trace.total(10, "Total Allocated", 1000);
  trace.total(10, "Total Reserved", 3000);
  trace.alloc(20, 50, 0x100, trace.op("mm"));
  trace.total(20, "Total Allocated", 1050);
  trace.total(20, "Total Reserved", 4000);
  trace.free(30, 50, 0x100);
  trace.total(30, "Total Allocated", 1000);
  trace.total(30, "Total Reserved", 9000);  // later than the highest count
  trace.total(40, "Total Anything", 99999);
  const Report report = trace.result();
  const Table devices = table(report, "devices");
  EXPECT_EQ(integers(devices, "peak_total_allocated"), Integers{1050});
  EXPECT_EQ(integers(devices, "peak_total_reserved"), Integers{9000});
  EXPECT_EQ(integers(devices, "reserved_unused"), Integers{2950});
  EXPECT_EQ(live(table(report, "peak")), (Live{{"(not seen allocated)", 1000, -1}, {"mm", 50, 1}}));
  EXPECT_EQ(cell(table(report, "peak"), 0, "share"), Cell(1000.0 / 1050));
  const Series* allocated = series(report, "allocated.0");
  ASSERT_NE(allocated, nullptr);
  EXPECT_EQ(allocated->points,
            (std::vector<std::pair<std::int64_t, double>>{{0, 1000}, {10, 1050}, {20, 1000}}));
  EXPECT_NE(series(report, "reserved.0"), nullptr);
}

TEST(Memory, ACountThatIsNotOfThePeakIsNotTakenForIt) {
  MemoryTrace trace;
  trace.total(10, "Total Allocated", 70);
  trace.alloc(20, 50, 0x100);
  trace.free(20, 50, 0x100);
  trace.total(20, "Total Allocated", 70);  // after the free, at the time of the peak
  EXPECT_EQ(live(table(trace.result(), "peak")), (Live{{"(outside operators)", 50, 1}}));
}

TEST(Memory, MuchReservedAndUnusedIsAWarning) {
  const auto report = [](std::int64_t allocated, std::int64_t reserved) {
    MemoryTrace trace;
    trace.total(10, "Total Allocated", static_cast<double>(allocated));
    trace.total(10, "Total Reserved", static_cast<double>(reserved));
    return finding(trace.result(), "reserved-unused");
  };
  const Finding found = report(4 * kGiB, 6 * kGiB);
  EXPECT_EQ(found.level, Finding::Level::kWarning);
  EXPECT_DOUBLE_EQ(found.share, 1.0 / 3);
  EXPECT_TRUE(report(8 * kGiB, 10 * kGiB).id.empty()) << "only a quarter";
  EXPECT_TRUE(report(kGiB, 2 * kGiB).id.empty()) << "only one GiB";
  EXPECT_TRUE(report(4 * kGiB, 0).id.empty()) << "a source that does not count it";
}

TEST(Memory, WithoutAddressesNobodyKnowsWhatWasLive) {
  MemoryTrace trace;
  trace.alloc(10, 100, 0x100);
  trace.alloc(20, 50, 0);
  trace.free(30, 50, 0);
  trace.free(40, 0, 0);  // of nothing
  const Report report = trace.result();
  const Table devices = table(report, "devices");
  EXPECT_EQ(integers(devices, "peak_seen"), Integers{150});
  EXPECT_EQ(cell(devices, 0, "address_known"), Cell(0.5));
  EXPECT_EQ(cell(devices, 0, "frees_unmatched"), Cell());
  EXPECT_TRUE(table(report, "peak").rows.empty());
  EXPECT_TRUE(table(report, "never_freed").rows.empty());
  EXPECT_NE(finding(report, "live-unknown").text.find("address"), std::string::npos);
}

TEST(Memory, AddressesUsedAgainAndFreesOfOlderAllocations) {
  MemoryTrace trace;
  trace.alloc(10, 100, 0x100, trace.op("a"));
  trace.alloc(20, 60, 0x100, trace.op("b"));  // the free between was not recorded
  trace.free(30, 5, 0x900);
  const Report report = trace.result();
  EXPECT_EQ(integers(table(report, "devices"), "address_reused"), Integers{1});
  EXPECT_EQ(integers(table(report, "devices"), "frees_unmatched"), Integers{1});
  EXPECT_EQ(live(table(report, "never_freed")), (Live{{"b", 60, 1}}));
}

TEST(Memory, OneAddressInTwoProcessesIsTwo) {
  MemoryTrace trace;
  const LaneId other =
      trace.tables().lane(Lane{.type = LaneType::kThread,
                               .process = trace.tables().process(Process{.native_id = 2}),
                               .native_id = 1});
  trace.alloc(10, 100, 0x100, trace.op("a"));
  trace.alloc(20, 60, 0x100, trace.op("b")).lane = other;
  trace.free(30, 100, 0x100);
  EXPECT_EQ(live(table(trace.result(), "never_freed")), (Live{{"b", 60, 1}}));
}

TEST(Memory, TheHostsOfTwoProcessesAreTwoRows) {
  MemoryTrace trace;
  const LaneId other =
      trace.tables().lane(Lane{.type = LaneType::kThread,
                               .process = trace.tables().process(Process{.native_id = 2}),
                               .native_id = 1});
  trace.alloc(10, 100, 0x100).memory.device = {};
  EXPECT_EQ(cell(table(trace.result(), "devices"), 0, "device"), Cell("host"));
  Event& event = trace.alloc(20, 60, 0x100);
  event.memory.device = {};
  event.lane = other;
  trace.alloc(30, 1, 0x100);
  const Table devices = table(trace.result(), "devices");
  ASSERT_EQ(devices.rows.size(), 3u);
  EXPECT_EQ(cell(devices, 0, "device"), Cell("0"));
  EXPECT_EQ(cell(devices, 1, "device"), Cell("process 1 host"));
  EXPECT_EQ(cell(devices, 2, "device"), Cell("process 2 host"));
}

TEST(Memory, WithoutTimesOrSizesSumsStayAndPeaksAreUnknown) {
  MemoryTrace untimed;
  Event& event = untimed.alloc(kNoTime, 100, 0x100);
  event.flags = pasta::kUntimed;
  untimed.alloc(10, 50, 0x200);
  const Table devices = table(untimed.result(), "devices");
  EXPECT_EQ(integers(devices, "net"), Integers{150});
  EXPECT_EQ(cell(devices, 0, "peak_seen"), Cell());
  EXPECT_EQ(cell(devices, 0, "peak_time"), Cell());
  EXPECT_TRUE(table(untimed.result(), "never_freed").rows.empty());
  EXPECT_FALSE(finding(untimed.result(), "live-unknown").id.empty());
  EXPECT_TRUE(finding(untimed.result(), "memory-peak").id.empty());

  MemoryTrace absurd;
  absurd.alloc(10, 50, 0x200);
  absurd.alloc(20, kUnknownBytes, 0x100);
  absurd.free(30, 50, 0x200);
  const Table sums = table(absurd.result(), "devices");
  EXPECT_EQ(cell(sums, 0, "allocated_bytes"), Cell());
  EXPECT_EQ(integers(sums, "freed_bytes"), Integers{50});
  EXPECT_EQ(cell(sums, 0, "net"), Cell());
  EXPECT_EQ(cell(sums, 0, "peak_seen"), Cell());
}

TEST(Memory, CountersThatAreNoSizesAreNotUsed) {
  MemoryTrace trace;
  for (const double value :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    trace.total(10, "Total Allocated", value);
  }
  EXPECT_TRUE(table(trace.result(), "devices").rows.empty());
}

TEST(Memory, OnlyCountersGiveNoPeakOfASum) {
  MemoryTrace trace;
  trace.total(10, "Total Allocated", 5);
  const Table devices = table(trace.result(), "devices");
  EXPECT_EQ(integers(devices, "allocs"), Integers{0});
  EXPECT_EQ(cell(devices, 0, "peak_seen"), Cell());
  EXPECT_EQ(cell(devices, 0, "address_known"), Cell());
  EXPECT_EQ(integers(devices, "peak_total_allocated"), Integers{5});
}

TEST(Memory, NothingIsAFinding) {
  MemoryTrace trace;
  const Report report = trace.result();
  EXPECT_FALSE(finding(report, "no-memory-events").id.empty());
  EXPECT_TRUE(table(report, "devices").rows.empty());
}

TEST(Curve, FewChangesAreKeptAsTheyAre) {
  memory::Curve curve;
  curve.add(5, 1);
  curve.add(5, 3);
  curve.add(9, 2);
  EXPECT_EQ(curve.points(5),
            (std::vector<std::pair<std::int64_t, double>>{{0, 1}, {0, 3}, {4, 2}}));
}

TEST(Curve, ManyChangesKeepEveryHighAndTheLastLevel) {
  memory::Curve curve;
  std::mt19937 random(3);
  std::vector<std::int64_t> values;
  for (std::int64_t time = 0; time < 100'000; ++time) {
    values.push_back(static_cast<std::int64_t>(random() % 1'000'000));
    curve.add(time, values.back());
    if (time % 9973 != 0) continue;
    const auto points = curve.points(0);
    ASSERT_LE(points.size(), memory::Curve::kMaxPoints);
    ASSERT_GE(points.size(), std::min(values.size(), memory::Curve::kMaxPoints / 4));
    std::int64_t highest = -1, before = -1;
    for (const auto& [when, value] : points) {
      ASSERT_EQ(static_cast<double>(values[static_cast<std::size_t>(when)]), value);
      ASSERT_GE(when, before);
      before = when;
      highest = std::max(highest, static_cast<std::int64_t>(value));
    }
    ASSERT_EQ(highest, *std::ranges::max_element(values));
    ASSERT_EQ(points.back().first, time);
  }
}

}  // namespace
}  // namespace pasta::tools
