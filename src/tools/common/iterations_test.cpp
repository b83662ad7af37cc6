#include "tools/common/iterations.h"

#include <gtest/gtest.h>

#include "tools/common/testing.h"

namespace pasta::tools {
namespace {

using testing::Trace;

Iterations found(const Trace& trace, MarksUse marks) {
  Iterations iterations(marks);
  iterations.consume(trace.events(), trace);
  iterations.finish(trace);
  return iterations;
}

// Work launched by `call` on the host.
void launch(Trace& trace, LaneId thread, LaneId queue, std::uint64_t id, std::int64_t call,
            std::int64_t start, std::int64_t end) {
  trace.add(Kind::kApi, thread, "launch", call, call + 1).correlation = id;
  trace.kernel(queue, "k", start, end).correlation = id;
}

LaneId host_thread(Trace& trace) {
  return trace.tables().lane({.type = LaneType::kThread,
                              .process = trace.tables().process(Process{.native_id = 1}),
                              .native_id = 1});
}

TEST(Iterations, AMarkHoldsWhatTheHostLaunchedInIt) {
  Trace trace;
  const LaneId queue = trace.queue(0), thread = host_thread(trace);
  launch(trace, thread, queue, 1, 10, 20, 30);
  launch(trace, thread, queue, 2, 90, 150, 210);  // runs when the second mark is open
  launch(trace, thread, queue, 3, 110, 210, 220);
  for (const int step : {0, 1}) {
    Event& mark = trace.add(Kind::kScope, thread, step == 0 ? "ProfilerStep#7" : "ProfilerStep#8",
                            100 * step, 100 * step + 100);
    mark.detail = static_cast<std::uint16_t>(ScopeDomain::kIteration);
  }
  trace.sort();
  const Iterations iterations = found(trace, MarksUse::kUse);
  ASSERT_EQ(iterations.runs().size(), 1u);
  const IterationRun& run = iterations.runs()[0];
  EXPECT_EQ(run.origin, IterationOrigin::kMarks);
  EXPECT_EQ(run.marks, "ProfilerStep#");
  ASSERT_EQ(run.list.size(), 2u);
  EXPECT_EQ(run.list[0].number, 7);
  EXPECT_EQ(run.list[0].start_ns, 0);
  EXPECT_EQ(run.list[0].end_ns, 210);
  EXPECT_EQ(run.list[0].kernels, 2u);
  EXPECT_EQ(run.list[1].start_ns, 210);
  EXPECT_EQ(run.list[1].end_ns, 220);
  for (const Event& event : trace.events()) {
    if (event.kind != Kind::kKernel) continue;
    EXPECT_EQ(iterations.member(event), (IterationMember{0, event.correlation == 3 ? 1u : 0u}));
  }
}

TEST(Iterations, WithoutMarksAndRepetitionThereAreNone) {
  Trace trace;
  const LaneId queue = trace.queue(0);
  for (const int i : {0, 1, 2, 3}) {
    trace.kernel(queue, std::string_view("abcd").substr(static_cast<std::size_t>(i), 1), 10 * i,
                 10 * i + 5);
  }
  for (const MarksUse marks : {MarksUse::kUse, MarksUse::kIgnore, MarksUse::kOnly}) {
    const Iterations iterations = found(trace, marks);
    ASSERT_EQ(iterations.runs().size(), 1u);
    EXPECT_TRUE(iterations.runs()[0].list.empty());
    EXPECT_FALSE(iterations.runs()[0].abstained.empty());
    EXPECT_EQ(iterations.member(trace.events()[0]), std::nullopt);
  }
}

}  // namespace
}  // namespace pasta::tools
