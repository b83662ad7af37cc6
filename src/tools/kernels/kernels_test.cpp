#include "tools/kernels/kernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tools/common/testing.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;
using testing::Trace;

using Given = std::vector<std::pair<std::string, std::string>>;
using Integers = std::vector<std::int64_t>;

std::vector<std::string> names(const Table& table) {
  std::vector<std::string> result;
  for (const auto& row : table.rows) result.push_back(std::get<std::string>(row.at(0)));
  return result;
}
using Names = std::vector<std::string>;

Table kernels(const Trace& trace, const Given& given = {}) {
  return table(trace.report(kKernels, given).value(), "kernels");
}

TEST(Kernels, StatisticsOfOneName) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  std::int64_t at = 0;
  for (const std::int64_t duration : {10, 20, 31, 41}) {
    trace.kernel(lane, "sgemm", at, at + duration);
    at += duration;
  }
  const Table result = kernels(trace);
  ASSERT_EQ(result.rows.size(), 1u);
  const std::vector<Cell> expected = {"sgemm",
                                      std::int64_t{4},
                                      std::int64_t{102},
                                      1.0,
                                      std::int64_t{26},  // 25.5 rounded up
                                      std::int64_t{20},
                                      std::int64_t{41},
                                      std::int64_t{10},
                                      std::int64_t{41},
                                      "gemm"};
  EXPECT_EQ(result.rows[0], expected);
}

TEST(Kernels, MeanIsRoundedHalfUp) {
  for (const auto& [last, mean] : {std::pair{1, 0}, {2, 1}, {3, 1}, {4, 1}, {5, 2}}) {
    Trace trace;
    for (int i = 0; i < 2; ++i) trace.kernel(trace.queue(0), "k", 5, 5);
    trace.kernel(trace.queue(0), "k", 5, 5 + last);  // the mean of 0, 0 and this
    EXPECT_EQ(integers(kernels(trace), "mean"), Integers{mean}) << last;
  }
  Trace half;
  half.kernel(half.queue(0), "k", 0, 0);
  half.kernel(half.queue(0), "k", 0, 1);
  EXPECT_EQ(integers(kernels(half), "mean"), Integers{1});
}

TEST(Kernels, SortedByTimeThenByName) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.kernel(lane, "b", 0, 10);
  trace.kernel(lane, "c", 10, 60);
  trace.kernel(lane, "a", 60, 70);
  trace.untimed_kernel(lane, "u");
  EXPECT_EQ(names(kernels(trace)), (Names{"c", "a", "b", "u"}));
}

TEST(Kernels, UntimedCallsHaveNoTimes) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.untimed_kernel(lane, "mixed");
  trace.untimed_kernel(lane, "never");
  trace.kernel(lane, "mixed", 0, 30);
  const Table result = kernels(trace);
  EXPECT_EQ(integers(result, "calls"), (Integers{2, 1}));
  EXPECT_EQ(integers(result, "mean"), (Integers{30, -1}));
  for (const char* column : {"total", "share", "mean", "median", "p95", "min", "max"}) {
    EXPECT_EQ(cell(result, 1, column), Cell()) << column;
  }
}

TEST(Kernels, NoKernelIsAnEmptyTableAndAFinding) {
  const Report report = Trace().report(kKernels).value();
  EXPECT_TRUE(table(report, "kernels").rows.empty());
  EXPECT_EQ(finding(report, "no-kernels").text, "no kernel ran in this trace");
}

TEST(Kernels, InstantsHaveNoShareOfNothing) {
  Trace trace;
  trace.kernel(trace.queue(0), "k", 5, 5);
  const Table result = kernels(trace);
  EXPECT_EQ(cell(result, 0, "share"), Cell());
  EXPECT_EQ(integers(result, "total"), Integers{0});
}

TEST(Kernels, NamesThatLookAlikeStayApart) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.kernel(lane, "_Z3addPf", 0, 1);
  trace.kernel(lane, "add(float*)", 1, 2);
  trace.kernel(lane, "add(int*)", 2, 3);
  EXPECT_EQ(names(kernels(trace)), (Names{"add(float*)", "add(float*)", "add(int*)"}));
  EXPECT_EQ(names(kernels(trace, {{"group", "short"}})), Names{"add"});
}

TEST(Kernels, ByClass) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  trace.kernel(lane, "sgemm_1", 0, 10);
  trace.kernel(lane, "sgemm_2", 10, 30);
  trace.kernel(lane, "ncclSend", 30, 35);
  trace.kernel(lane, "mystery", 35, 36);
  const Table result = kernels(trace, {{"group", "class"}});
  EXPECT_EQ(names(result), (Names{"gemm", "communication", "other"}));
  EXPECT_EQ(integers(result, "calls"), (Integers{2, 1, 1}));
  EXPECT_EQ(integers(result, "total"), (Integers{30, 5, 1}));
  EXPECT_EQ(cell(result, 2, "class"), Cell("other"));
}

TEST(Kernels, ByInnermostOperator) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  const FrameId step = trace.frame({}, "step", ScopeDomain::kAnnotation);
  const FrameId linear = trace.frame(step, "aten::linear", ScopeDomain::kOperator);
  const FrameId mm = trace.frame(linear, "aten::mm", ScopeDomain::kOperator);
  const FrameId python = trace.frame(mm, "f.py(1)", ScopeDomain::kPython);
  const FrameId other_mm = trace.frame({}, "aten::mm", ScopeDomain::kOperator);
  trace.kernel(lane, "sgemm", 0, 10).scope = python;
  trace.kernel(lane, "splitKreduce_kernel", 10, 14).scope = other_mm;
  trace.kernel(lane, "copy_bias", 14, 17).scope = linear;
  trace.kernel(lane, "sgemm", 17, 19).scope = linear;
  trace.kernel(lane, "sgemm", 19, 20).scope = step;
  trace.kernel(lane, "sgemm", 20, 22);
  const Table result = kernels(trace, {{"group", "operator"}});
  EXPECT_EQ(names(result), (Names{"aten::mm", "aten::linear", "(outside operators)"}));
  EXPECT_EQ(integers(result, "calls"), (Integers{2, 2, 2}));
  EXPECT_EQ(integers(result, "total"), (Integers{14, 5, 3}));
  EXPECT_EQ(cell(result, 0, "class"), Cell("gemm"));
  EXPECT_EQ(cell(result, 1, "class"), Cell("mixed"));
}

TEST(Kernels, TopSaysWhatItLeavesOut) {
  Trace trace;
  const LaneId lane = trace.queue(0);
  for (const auto& [name, time] : {std::pair{"a", 50}, {"b", 30}, {"c", 15}, {"d", 5}}) {
    trace.kernel(lane, name, 0, time);
  }
  const Report report = trace.report(kKernels, Given{{"top", "2"}}).value();
  EXPECT_EQ(names(table(report, "kernels")), (Names{"a", "b"}));
  EXPECT_EQ(cell(table(report, "kernels"), 1, "share"), Cell(0.3)) << "of all kernels";
  EXPECT_EQ(finding(report, "rows-left-out").text, "top=2 leaves out 2 of 4 rows");
  EXPECT_DOUBLE_EQ(finding(report, "rows-left-out").share, 0.2);
  EXPECT_EQ(finding(report, "rows-left-out").of, "kernel time");

  const Report all = trace.report(kKernels, Given{{"top", "4"}}).value();
  EXPECT_EQ(table(all, "kernels").rows.size(), 4u);
  EXPECT_EQ(finding(all, "rows-left-out"), Finding{});
}

TEST(Kernels, RefusesWhatIsNoCount) {
  for (const char* top : {"-1", "all", ""}) {
    const auto report = Trace().report(kKernels, Given{{"top", top}});
    ASSERT_FALSE(report.has_value()) << top;
    EXPECT_EQ(report.error().code, ErrorCode::kUsage);
    EXPECT_NE(report.error().message.find("top"), std::string::npos);
  }
}

TEST(Kernels, EveryGroupingAddsUpInAnyBatches) {
  std::mt19937 random(7);
  const auto pick = [&](int high) { return std::uniform_int_distribution<int>(0, high)(random); };
  Trace trace;
  FrameId frames[] = {{}, trace.frame({}, "op", ScopeDomain::kOperator), {}};
  frames[2] = trace.frame(frames[1], "inner", ScopeDomain::kOperator);
  const char* some[] = {"sgemm", "void f<int>(int)", "void f<float>(int)", "ncclSend", "x"};
  std::int64_t sum = 0;
  for (int i = 0; i < 3000; ++i) {
    const LaneId lane = trace.queue(static_cast<std::uint32_t>(pick(1)));
    if (pick(9) == 0) {
      trace.untimed_kernel(lane, some[pick(4)]).scope = frames[pick(2)];
      continue;
    }
    const std::int64_t start = pick(1000000), duration = pick(5000);
    trace.kernel(lane, some[pick(4)], start, start + duration).scope = frames[pick(2)];
    sum += duration;
  }
  trace.sort();
  for (const char* group : {"name", "short", "class", "operator"}) {
    const Given given = {{"group", group}};
    const Report report = trace.report(kKernels, given).value();
    const Integers totals = integers(table(report, "kernels"), "total");
    const Integers calls = integers(table(report, "kernels"), "calls");
    EXPECT_EQ(std::accumulate(totals.begin(), totals.end(), std::int64_t{0}), sum) << group;
    EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), std::int64_t{0}), 3000) << group;
    EXPECT_EQ(trace.report(kKernels, given, 1).value(), report) << group;
  }
}

}  // namespace
}  // namespace pasta::tools
