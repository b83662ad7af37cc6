#include "tools/operators/operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "stats/interval_set.h"
#include "tools/common/testing.h"

namespace pasta::tools {
namespace {

using testing::cell;
using testing::finding;
using testing::integers;
using testing::table;

using Integers = std::vector<std::int64_t>;
using Given = std::vector<std::pair<std::string, std::string>>;

// A trace with host threads, whose ranges open nodes of the call tree.
class HostTrace : public testing::Trace {
 public:
  LaneId thread(std::uint64_t id) {
    return tables().lane({.type = LaneType::kThread,
                          .process = tables().process(Process{.native_id = 1}),
                          .native_id = id});
  }
  // Returns the node that the range opens.
  FrameId range(LaneId lane, std::string_view name, std::int64_t start, std::int64_t end,
                FrameId scope = {}, ScopeDomain domain = ScopeDomain::kOperator,
                std::string_view arguments = "") {
    Event& event = add(Kind::kScope, lane, name, start, end);
    event.scope = scope;
    event.detail = static_cast<std::uint16_t>(domain);
    if (!arguments.empty()) event.range.arguments = tables().string(arguments);
    return frame(scope, name, domain);
  }
  void launched_kernel(LaneId queue, std::int64_t start, std::int64_t end, FrameId scope,
                       std::uint64_t correlation = 0) {
    Event& event = kernel(queue, "k", start, end);
    event.scope = scope;
    event.correlation = correlation;
    if (correlation != 0) event.flags = kLinked;
  }
  void launch(LaneId lane, std::int64_t start, std::int64_t end, FrameId scope,
              std::uint64_t correlation) {
    Event& event = add(Kind::kApi, lane, "cudaLaunchKernel", start, end);
    event.scope = scope;
    event.correlation = correlation;
  }
};

// The number in the row with that name, -1 when unknown.
std::int64_t value(const Table& table, std::string_view name, std::string_view column,
                   const Cell& shape = {}) {
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (cell(table, row, "name") != Cell(std::string(name))) continue;
    const Cell own = cell(table, row, "shape");
    if (own != Cell("no such column") && own != shape) continue;
    const Cell found = cell(table, row, column);
    const auto* number = std::get_if<std::int64_t>(&found);
    return number != nullptr ? *number : -1;
  }
  ADD_FAILURE() << "no row " << name;
  return -2;
}

Tree tree(const Report& report) {
  for (const Part& part : report.parts) {
    if (const auto* found = std::get_if<Tree>(&part)) return *found;
  }
  return {};
}

TEST(Operators, TimesOfNestedCallsAndOfTheWorkTheyLaunch) {
  HostTrace trace;
  const LaneId host = trace.thread(1), queue = trace.queue(0);
  const FrameId linear = trace.range(host, "linear", 0, 100);
  const FrameId mm = trace.range(host, "mm", 10, 40, linear);
  trace.range(host, "view", 50, 60, linear);
  trace.launched_kernel(queue, 200, 230, mm, 1);
  trace.launched_kernel(queue, 230, 234, linear, 2);
  trace.launched_kernel(queue, 240, 245, {});
  trace.copy(queue, 250, 252, 64).scope = linear;
  trace.sort();
  const Table rows = table(trace.report(kOperators).value(), "operators");

  ASSERT_EQ(rows.rows.size(), 4u);
  EXPECT_EQ(cell(rows, 0, "name"), Cell("mm")) << "the most device time of its own first";
  EXPECT_EQ(value(rows, "linear", "host_total"), 100);
  EXPECT_EQ(value(rows, "linear", "host_self"), 60);
  EXPECT_EQ(value(rows, "linear", "device_total"), 36);
  EXPECT_EQ(value(rows, "linear", "device_self"), 6);
  EXPECT_EQ(value(rows, "linear", "kernels"), 1) << "a copy is no kernel";
  EXPECT_EQ(value(rows, "linear", "launches"), 1) << "the copy names no launch";
  EXPECT_EQ(value(rows, "mm", "host_self"), 30);
  EXPECT_EQ(value(rows, "mm", "device_total"), 30);
  EXPECT_EQ(value(rows, "view", "device_total"), 0);
  EXPECT_EQ(value(rows, "(outside operators)", "device_self"), 5);
  EXPECT_EQ(value(rows, "(outside operators)", "calls"), -1);
}

TEST(Operators, WhatEndsTogetherComesInAnyOrder) {
  for (const bool parent_first : {true, false}) {
    HostTrace trace;
    const LaneId host = trace.thread(1);
    const FrameId outer = trace.frame({}, "outer", ScopeDomain::kOperator);
    const auto add_outer = [&] { trace.range(host, "outer", 0, 100); };
    if (parent_first) add_outer();
    trace.range(host, "twin", 20, 100, trace.frame(outer, "inner", ScopeDomain::kOperator));
    trace.range(host, "inner", 20, 100, outer);
    if (!parent_first) add_outer();
    const Table rows = table(trace.report(kOperators, {}, 1).value(), "operators");
    EXPECT_EQ(value(rows, "outer", "host_self"), 20);
    EXPECT_EQ(value(rows, "inner", "host_self"), 0) << "of equal ranges the inner one has the time";
    EXPECT_EQ(value(rows, "twin", "host_self"), 80);
  }
}

TEST(Operators, AnOperatorInItselfCountsOnce) {
  HostTrace trace;
  const LaneId host = trace.thread(1), queue = trace.queue(0);
  const FrameId outer = trace.range(host, "to", 0, 100);
  const FrameId middle = trace.range(host, "copy", 10, 90, outer);
  const FrameId inner = trace.range(host, "to", 20, 50, middle);
  trace.launched_kernel(queue, 200, 210, inner, 1);
  trace.sort();
  const Table rows = table(trace.report(kOperators).value(), "operators");
  EXPECT_EQ(value(rows, "to", "calls"), 2);
  EXPECT_EQ(value(rows, "to", "host_total"), 100);
  EXPECT_EQ(value(rows, "to", "host_self"), 50);
  EXPECT_EQ(value(rows, "to", "device_total"), 10);
  EXPECT_EQ(value(rows, "to", "device_self"), 10);
}

TEST(Operators, BackwardWorkIsNotInsideItsForwardOperator) {
  HostTrace trace;
  const LaneId host = trace.thread(1), autograd = trace.thread(2), queue = trace.queue(0);
  for (const std::int64_t step : {0, 1000}) {
    const FrameId forward = trace.range(host, "mm", step, step + 50);
    trace.launched_kernel(queue, step + 60, step + 70, forward);
    const FrameId backward = trace.range(autograd, "MmBackward", step + 100, step + 200, forward);
    const FrameId inner = trace.range(autograd, "mm", step + 110, step + 150, backward);
    trace.range(autograd, "t", step + 160, step + 170, backward);
    trace.launched_kernel(queue, step + 210, step + 230, inner);
    trace.launched_kernel(queue, step + 230, step + 231, backward);
  }
  trace.sort();
  const Report report = trace.report(kOperators).value();
  const Table rows = table(report, "operators");
  EXPECT_EQ(value(rows, "mm", "host_total"), 2 * (50 + 40)) << "none lies in the other in time";
  EXPECT_EQ(value(rows, "mm", "device_total"), 2 * (10 + 20));
  EXPECT_EQ(value(rows, "mm", "device_backward"), 2) << "what no mm launched itself";
  EXPECT_EQ(value(rows, "MmBackward", "device_total"), 42);
  EXPECT_EQ(value(rows, "MmBackward", "device_backward"), 0);
  ASSERT_EQ(tree(report).root.children.size(), 1u);
  EXPECT_EQ(tree(report).root.children[0].value, 62) << "the tree shows what the layer costs";
}

TEST(Operators, AGraphIsOneLaunch) {
  HostTrace trace;
  const LaneId queue = trace.queue(0);
  const FrameId replay = trace.range(trace.thread(1), "replay", 0, 5);
  for (int i = 0; i < 3; ++i) trace.launched_kernel(queue, 10 + i, 11 + i, replay, 77);
  trace.launched_kernel(queue, 20, 21, replay, 78);
  trace.sort();
  const Table rows = table(trace.report(kOperators).value(), "operators");
  EXPECT_EQ(value(rows, "replay", "kernels"), 4);
  EXPECT_EQ(value(rows, "replay", "launches"), 2);
}

TEST(Operators, ScopesChooseTheRanges) {
  HostTrace trace;
  const LaneId host = trace.thread(1), queue = trace.queue(0);
  const FrameId step = trace.range(host, "step", 0, 100, {}, ScopeDomain::kAnnotation);
  const FrameId layer = trace.range(host, "layer", 0, 90, step, ScopeDomain::kModule);
  const FrameId mm = trace.range(host, "mm", 10, 20, layer);
  trace.range(host, "ProfilerStep#3", 0, 100, {}, ScopeDomain::kIteration);
  trace.launched_kernel(queue, 200, 210, mm);
  trace.range(queue, "step", 200, 210, {}, ScopeDomain::kAnnotation);
  trace.sort();
  const auto names = [&](const char* scopes) {
    std::string all;
    const Table rows =
        table(trace.report(kOperators, Given{{"scopes", scopes}}).value(), "operators");
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      all += std::get<std::string>(cell(rows, i, "name")) + " ";
    }
    return all;
  };
  EXPECT_EQ(names("operator"), "mm ");
  EXPECT_EQ(names("module"), "layer ");
  EXPECT_EQ(names("annotation"), "step ");
  EXPECT_EQ(names("python"), "(outside Python functions) ");
  EXPECT_EQ(names("all"), "mm layer step ");
}

TEST(Operators, ShapesAreToldByTheCallsAroundTheLaunch) {
  HostTrace trace;
  const LaneId host = trace.thread(1), queue = trace.queue(0);
  const auto call = [&](std::int64_t at, std::string_view dims, std::uint64_t correlation) {
    const FrameId linear = trace.range(host, "linear", at, at + 100, {}, ScopeDomain::kOperator,
                                       R"({"Input Dims":[[7]],"Input type":["float"]})");
    const FrameId mm =
        trace.range(host, "mm", at + 10, at + 90, linear, ScopeDomain::kOperator, dims);
    trace.launch(host, at + 20, at + 30, mm, correlation);
    trace.launched_kernel(queue, at + 40, at + 40 + static_cast<std::int64_t>(correlation), mm,
                          correlation);
  };
  call(0, R"({"Input type":["a,]\""],"Input Dims":[[2,3],[3,"x]"]]})", 5);
  call(1000, R"({"Input Dims":[[2,3],[3,"x]"]]})", 6);
  call(2000, R"({"Input Dims":[[4,4],[]]})", 7);
  call(3000, "", 8);
  // The launch is not in the trace: the path is all that is known.
  trace.launched_kernel(
      queue, 5000, 5009,
      trace.frame(trace.frame({}, "linear", ScopeDomain::kOperator), "mm", ScopeDomain::kOperator));
  trace.sort();
  const Table rows =
      table(trace.report(kOperators, Given{{"group", "shape"}}).value(), "operators");
  EXPECT_EQ(value(rows, "mm", "device_self", R"([[2,3],[3,"x]"]])"), 11);
  EXPECT_EQ(value(rows, "mm", "calls", R"([[2,3],[3,"x]"]])"), 2);
  EXPECT_EQ(value(rows, "mm", "launches", "[[4,4],[]]"), 1);
  EXPECT_EQ(value(rows, "mm", "device_self"), 8 + 9) << "shape not known";
  EXPECT_EQ(value(rows, "linear", "device_total", "[[7]]"), 5 + 6 + 7 + 8);
  EXPECT_EQ(value(rows, "linear", "device_self", "[[7]]"), 0);
  EXPECT_EQ(value(rows, "linear", "host_self", "[[7]]"), 4 * 20);
}

TEST(Operators, WhatIsNotKnownIsNotZero) {
  HostTrace trace;
  const LaneId host = trace.thread(1), queue = trace.queue(0);
  Event& untimed = trace.add(Kind::kScope, host, "lost", kNoTime, kNoTime);
  untimed.flags = kUntimed;
  untimed.detail = static_cast<std::uint16_t>(ScopeDomain::kOperator);
  const FrameId mm = trace.range(host, "mm", 0, 10);
  trace.untimed_kernel(queue, "k").scope = mm;
  trace.sort();
  const Report report = trace.report(kOperators).value();
  const Table rows = table(report, "operators");
  EXPECT_EQ(value(rows, "lost", "calls"), 1);
  EXPECT_EQ(value(rows, "lost", "host_total"), -1);
  EXPECT_EQ(value(rows, "lost", "device_total"), -1) << "it opens no node that could hold work";
  EXPECT_EQ(value(rows, "mm", "device_self"), -1);
  EXPECT_EQ(value(rows, "mm", "kernels"), 1);
  EXPECT_EQ(finding(report, "no-device-time").id, "no-device-time");
}

TEST(Operators, WithoutItsCallsNobodyKnowsWhatIsBackward) {
  HostTrace trace;
  const FrameId forward = trace.frame({}, "mm", ScopeDomain::kOperator);
  const FrameId inner = trace.frame(forward, "MmBackward", ScopeDomain::kOperator);
  trace.launched_kernel(trace.queue(0), 0, 10, inner);
  trace.range(trace.thread(1), "mm", 0, 5);
  const Table rows = table(trace.report(kOperators).value(), "operators");
  EXPECT_EQ(value(rows, "MmBackward", "device_total"), 10);
  EXPECT_EQ(value(rows, "MmBackward", "calls"), 0);
  EXPECT_EQ(value(rows, "mm", "device_total"), -1);
  EXPECT_EQ(value(rows, "mm", "device_backward"), -1);
  EXPECT_EQ(value(rows, "mm", "device_self"), 0);

  HostTrace other;
  other.launched_kernel(other.queue(0), 0, 7, other.range(other.thread(1), "mm", 0, 5));
  const std::vector<RankReport> ranks = {{"rank 0", 0, trace.report(kOperators).value()},
                                         {"rank 1", 0, other.report(kOperators).value()}};
  const Table joined = table(kOperators.join(ranks).value(), "operators");
  EXPECT_EQ(value(joined, "mm", "device_total"), -1) << "7 would leave out what rank 0 may have";
  EXPECT_EQ(value(joined, "mm", "device_self"), 7);
}

TEST(Operators, NothingIsSaidOfNothing) {
  const Report report = HostTrace().report(kOperators).value();
  EXPECT_EQ(finding(report, "no-ranges").text, "the trace has no operator of the host");
  EXPECT_TRUE(table(report, "operators").rows.empty());
  EXPECT_EQ(report.parts.size(), 2u);
}

TEST(Operators, OptionsAreRefusedByName) {
  HostTrace trace;
  for (const auto& [name, text] : Given{
           {"min_share", "much"}, {"min_share", "101%"}, {"depth", "-1"}, {"scopes", "kernels"}}) {
    const auto report = trace.report(kOperators, Given{{name, text}});
    ASSERT_FALSE(report.has_value()) << name << "=" << text;
    EXPECT_EQ(report.error().code, ErrorCode::kUsage);
    EXPECT_NE(report.error().message.find(name), std::string::npos) << report.error().message;
  }
}

// Ranges that nest, overlap and repeat at random on two threads, and work at random places.
void add_random(HostTrace& trace, std::uint32_t device, unsigned seed) {
  std::mt19937 random(seed);
  const auto dice = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const LaneId queue = trace.queue(device);
  const char* const names[] = {"a", "b", "c", "d"};
  std::vector<FrameId> frames = {{}};
  for (int i = 0; i < 300; ++i) {
    const std::int64_t start = dice(2000);
    const FrameId scope = frames[static_cast<std::size_t>(dice(static_cast<int>(frames.size())))];
    frames.push_back(trace.range(trace.thread(device * 10 + static_cast<unsigned>(dice(2))),
                                 names[dice(4)], start, start + dice(100), scope,
                                 dice(5) == 0 ? ScopeDomain::kAnnotation : ScopeDomain::kOperator));
  }
  for (int i = 0; i < 300; ++i) {
    const std::int64_t start = 3000 + dice(2000);
    trace.launched_kernel(queue, start, start + dice(50),
                          frames[static_cast<std::size_t>(dice(static_cast<int>(frames.size())))],
                          static_cast<std::uint64_t>(dice(200)));
  }
}

double own(const TreeNode& node) {
  double rest = node.value;
  for (const TreeNode& child : node.children) rest -= child.value;
  return rest;
}

void expect_no_negative(const TreeNode& node) {
  EXPECT_GE(own(node), 0) << node.name;
  for (const TreeNode& child : node.children) expect_no_negative(child);
}

TEST(Operators, PartsAddUpToTheWhole) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    HostTrace trace;
    add_random(trace, 0, seed);
    trace.sort();
    for (const Given& given : {Given{}, Given{{"scopes", "all"}}, Given{{"group", "shape"}},
                               Given{{"min_share", "2%"}}}) {
      const Report report = trace.report(kOperators, given).value();
      const Table rows = table(report, "operators");
      std::int64_t device = 0;
      std::map<std::uint32_t, stats::IntervalSet> host;
      for (const Event& event : trace.events()) {
        if (event.kind == Kind::kKernel) device += event.duration_ns();
        if (event.kind != Kind::kScope) continue;
        if (given == Given{{"scopes", "all"}} ||
            event.detail == static_cast<std::uint16_t>(ScopeDomain::kOperator)) {
          host[event.lane.value].add(event.start_ns, event.end_ns);
        }
      }
      std::int64_t busy = 0;
      for (const auto& [lane, set] : host) busy += set.length();
      const Integers device_self = integers(rows, "device_self");
      EXPECT_EQ(std::accumulate(device_self.begin(), device_self.end(), std::int64_t{0}), device);
      std::int64_t host_self = 0;
      for (const std::int64_t time : integers(rows, "host_self")) {
        if (time > 0) host_self += time;
      }
      EXPECT_EQ(host_self, busy) << "each moment of a thread belongs to one range";
      const Tree paths = tree(report);
      EXPECT_EQ(paths.root.value, static_cast<double>(device));
      EXPECT_EQ(own(paths.root), 0);
      expect_no_negative(paths.root);
      EXPECT_EQ(trace.report(kOperators, given, 1).value(), report) << "batch of 1";
    }
  }
}

// What one rank of a job does: operators that nest, the backward pass of some of them on a thread
// of its own, and work that both launch.
class Rank {
 public:
  Rank(HostTrace& trace, std::uint32_t number)
      : trace_(trace),
        random_(number),
        correlation_(1000 * number),
        forward_(trace.thread(10 * number)),
        backward_(trace.thread(10 * number + 1)),
        queue_(trace.queue(number)) {
    for (int i = 0; i < 20; ++i) call(forward_, {}, i * 1000, i * 1000 + 900);
  }

 private:
  void call(LaneId lane, FrameId scope, std::int64_t start, std::int64_t end) {
    constexpr const char* kNames[] = {"a", "b", "c", "d"};
    constexpr const char* kShapes[] = {R"({"Input Dims":[[1]]})", R"({"Input Dims":[[2]]})", ""};
    const char* name = kNames[random_() % 4];
    const FrameId frame =
        trace_.range(lane, name, start, end, scope, ScopeDomain::kOperator, kShapes[random_() % 3]);
    const auto first = start + static_cast<std::int64_t>(random_() % 50);
    if (end - first < 100) {
      work(lane, frame, start);
      return;
    }
    call(lane, frame, first, first + (end - first) / 2);
    call(lane, frame, first + (end - first) / 2, end);
    if (lane != forward_ || random_() % 3 != 0) return;
    const FrameId pass = trace_.range(backward_, std::string(name) + "Backward", start + 30000,
                                      start + 30020, frame);
    work(backward_, pass, start + 30000);
  }

  void work(LaneId lane, FrameId scope, std::int64_t at) {
    trace_.launch(lane, at + 1, at + 2, scope, ++correlation_);
    const auto time = static_cast<std::int64_t>(random_() % 40);
    trace_.launched_kernel(queue_, at + 50000, at + 50000 + time, scope, correlation_);
  }

  HostTrace& trace_;
  std::mt19937 random_;
  std::uint64_t correlation_;
  LaneId forward_, backward_, queue_;
};

TEST(Operators, ReportsOfRanksJoinToThatOfOneSession) {
  for (const Given& given :
       {Given{{"min_share", "0"}}, Given{{"group", "shape"}, {"min_share", "0"}}}) {
    HostTrace job;
    std::vector<RankReport> ranks;
    for (const std::uint32_t rank : {0u, 1u, 2u}) {
      HostTrace trace;
      Rank(trace, rank);
      Rank(job, rank);
      trace.sort();
      ranks.push_back({"rank " + std::to_string(rank), 0, trace.report(kOperators, given).value()});
    }
    job.sort();
    EXPECT_EQ(kOperators.join(ranks).value(), job.report(kOperators, given).value());
    const RankReport two{"ranks 0, 1", 0, kOperators.join(std::span(ranks).first(2)).value()};
    EXPECT_EQ(kOperators.join(std::vector{two, ranks[2]}).value(), kOperators.join(ranks).value())
        << "joined reports join again";
  }
}

TEST(Operators, ReportsMadeDifferentlyDoNotJoin) {
  HostTrace trace;
  trace.range(trace.thread(1), "mm", 0, 10);
  const RankReport a{"rank 0", 0, trace.report(kOperators).value()};
  const RankReport b{"rank 1", 0, trace.report(kOperators, Given{{"group", "shape"}}).value()};
  const RankReport c{"rank 2", 0, trace.report(kOperators, Given{{"scopes", "all"}}).value()};
  const RankReport d{"rank 3", 0, Report{.tool = "operators", .title = {}, .parts = {}}};
  for (const RankReport& other : {b, c, d}) {
    const auto joined = kOperators.join(std::vector{a, other});
    ASSERT_FALSE(joined.has_value());
    EXPECT_NE(joined.error().message.find(other.label), std::string::npos);
  }
}

}  // namespace
}  // namespace pasta::tools
