#include "tools/overlap/overlap.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "tools/common/testing.h"
#include "tools/overlap/element_size.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;
using testing::Trace;

using Integers = std::vector<std::int64_t>;

void collective(Trace& trace, LaneId lane, std::int64_t start, std::int64_t end,
                const Collective& what) {
  trace.kernel(lane, "ncclDevKernel_Generic", start, end).kernel.attributes =
      trace.tables().attributes({.collective = trace.tables().collective(what)});
}

TEST(Overlap, CommunicationUnderComputeIsHidden) {
  Trace trace;
  const LaneId a = trace.queue(0, 7), b = trace.queue(0, 13), c = trace.queue(0, 20);
  trace.kernel(a, "gemm", 100, 200);
  trace.kernel(b, "ncclAllReduce", 180, 260);
  trace.copy(c, 190, 270, 4096);
  trace.sort();
  const Report report = trace.report(kOverlap).value();
  const Table devices = table(report, "overlap");
  ASSERT_EQ(devices.rows.size(), 1u);
  const auto value = [&](const char* column) { return integers(devices, column).at(0); };
  EXPECT_EQ(value("span"), 170);
  EXPECT_EQ(value("compute"), 100);
  EXPECT_EQ(value("communication"), 80);
  EXPECT_EQ(value("overlapped"), 20);
  EXPECT_EQ(value("exposed_communication"), 60);
  EXPECT_EQ(cell(devices, 0, "share_overlapped"), Cell(0.25));
  EXPECT_EQ(value("memory"), 80);
  EXPECT_EQ(value("memory_overlapped"), 70) << "under a kernel of either sort";
  EXPECT_EQ(value("exposed_memory"), 10);
  const Finding exposed = finding(report, "exposed-communication");
  EXPECT_DOUBLE_EQ(exposed.share, 60.0 / 170);
  EXPECT_EQ(exposed.level, Finding::Level::kProblem);
}

TEST(Overlap, CallsThatRunTogetherShareNothingTwice) {
  Trace trace;
  const LaneId a = trace.queue(0, 7), b = trace.queue(0, 13), c = trace.queue(0, 20);
  trace.kernel(a, "gemm", 140, 150);
  trace.kernel(b, "nccl_first", 100, 160);
  trace.kernel(c, "nccl_second", 130, 200);
  trace.kernel(b, "nccl_inside", 170, 180);
  trace.sort();
  const Table rows = table(trace.report(kOverlap).value(), "collectives");
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(cell(rows, 0, "collective"), Cell("nccl_first"));
  EXPECT_EQ(integers(rows, "total"), (Integers{60, 70, 10}));
  EXPECT_EQ(integers(rows, "exposed"), (Integers{50, 40, 0}));
  EXPECT_EQ(integers(rows, "overlapped"), (Integers{10, 0, 0}));
}

TEST(Overlap, ACollectiveIsToldByWhatItExchanges) {
  Trace trace;
  const LaneId lane = trace.queue(0, 7);
  Dictionary& tables = trace.tables();
  Collective sum{.name = tables.string("allreduce"),
                 .element_type = tables.string("BFloat16"),
                 .in_elements = 1000,
                 .out_elements = 1000,
                 .group = tables.string("dp"),
                 .ranks = tables.string("[0, 1]"),
                 .group_size = 2};
  collective(trace, lane, 0, 10, sum);
  collective(trace, lane, 10, 25, sum);
  sum.in_elements = 2000;
  sum.element_type = tables.string("Mystery");
  collective(trace, lane, 25, 26, sum);
  trace.untimed_kernel(lane, "ncclOld");
  trace.sort();
  const Table rows = table(trace.report(kOverlap).value(), "collectives");
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(cell(rows, 0, "collective"), Cell("allreduce"));
  EXPECT_EQ(cell(rows, 0, "group"), Cell("dp"));
  EXPECT_EQ(integers(rows, "calls"), (Integers{2, 1, 1}));
  EXPECT_EQ(integers(rows, "in_bytes"), (Integers{2000, -1, -1})) << "size of an unknown type";
  EXPECT_EQ(integers(rows, "mean"), (Integers{13, 1, -1}));
  EXPECT_EQ(integers(rows, "max"), (Integers{15, 1, -1}));
  EXPECT_EQ(integers(rows, "exposed"), (Integers{25, 1, -1})) << "times nobody recorded";
}

TEST(Overlap, ComputeWithoutTimesHidesAnUnknownPart) {
  Trace trace;
  const LaneId lane = trace.queue(0, 7);
  trace.untimed_kernel(lane, "gemm");
  trace.kernel(lane, "nccl", 0, 10);
  const Report report = trace.report(kOverlap).value();
  EXPECT_EQ(integers(table(report, "overlap"), "communication"), Integers{10});
  EXPECT_EQ(integers(table(report, "overlap"), "overlapped"), Integers{-1});
  EXPECT_EQ(integers(table(report, "collectives"), "exposed"), Integers{-1});
  EXPECT_EQ(finding(report, "exposed-communication").id, "");
}

TEST(Overlap, WithoutCommunicationItSaysSo) {
  Trace trace;
  trace.kernel(trace.queue(0), "gemm", 0, 10);
  const Report report = trace.report(kOverlap).value();
  EXPECT_EQ(finding(report, "no-communication").id, "no-communication");
  EXPECT_EQ(cell(table(report, "overlap"), 0, "share_overlapped"), Cell());
  EXPECT_TRUE(table(Trace().report(kOverlap).value(), "overlap").rows.empty());
}

void add_random(Trace& trace, std::uint32_t device, unsigned seed) {
  std::mt19937 random(seed);
  const auto dice = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int i = 0; i < 200; ++i) {
    const LaneId lane = trace.queue(device, static_cast<std::uint64_t>(dice(4)));
    const std::int64_t start = dice(3000);
    const std::int64_t end = start + dice(60);
    switch (dice(4)) {
      case 0:
        trace.kernel(lane, "gemm", start, end);
        break;
      case 1:
        trace.kernel(lane, "nccl_a", start, end);
        break;
      case 2:
        trace.kernel(lane, "nccl_b", start, end);
        break;
      default:
        trace.copy(lane, start, end, 8);
    }
  }
}

TEST(Overlap, WhatCollectivesHaveAddsUpToTheirDevice) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Trace trace;
    add_random(trace, 0, seed);
    trace.sort();
    const Report report = trace.report(kOverlap).value();
    const auto sum = [&](const char* column) {
      const Integers values = integers(table(report, "collectives"), column);
      return std::accumulate(values.begin(), values.end(), std::int64_t{0});
    };
    const Table devices = table(report, "overlap");
    EXPECT_EQ(sum("exposed"), integers(devices, "exposed_communication").at(0)) << seed;
    EXPECT_EQ(sum("overlapped"), integers(devices, "overlapped").at(0)) << seed;
    EXPECT_EQ(trace.report(kOverlap, {}, 1).value(), report);
  }
}

TEST(Overlap, ReportsOfRanksJoinToThatOfOneSession) {
  Trace job;
  std::vector<RankReport> ranks;
  for (const std::uint32_t rank : {10u, 9u}) {
    Trace trace;
    add_random(trace, rank, rank);
    add_random(job, rank, rank);
    trace.sort();
    ranks.push_back({"rank " + std::to_string(rank), 0, trace.report(kOverlap).value()});
  }
  job.sort();
  EXPECT_EQ(kOverlap.join(ranks).value(), job.report(kOverlap).value());
}

TEST(ElementSize, AsPyTorchAndNcclWriteTypes) {
  EXPECT_EQ(overlap::element_bytes("BFloat16"), 2u);
  EXPECT_EQ(overlap::element_bytes("Float"), 4u);
  EXPECT_EQ(overlap::element_bytes("ncclInt8"), 1u);
  EXPECT_EQ(overlap::element_bytes("Long"), 8u);
  EXPECT_EQ(overlap::element_bytes("QInt8"), std::nullopt);
  EXPECT_EQ(overlap::element_bytes(""), std::nullopt);
}

}  // namespace
}  // namespace pasta::tools
