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

TEST(Iterations, WhatFollowsTheOptimizerBelongsToItsIteration) {
  Trace trace;
  const LaneId queue = trace.queue(0), thread = host_thread(trace);
  std::uint64_t id = 1;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t at = 10000 * i;
    const auto work = [&](std::int64_t call, bool input) {
      launch(trace, thread, queue, id, at + call, at + call + 10, at + call + 20);
      ++id;
      if (!input) return;
      trace.add(Kind::kApi, thread, "copy", at + call + 30, at + call + 31).correlation = id;
      Event& copy = trace.copy(queue, at + call + 40, at + call + 50, 64);
      copy.correlation = id++;
      copy.detail = static_cast<std::uint16_t>(CopyDirection::kHostToDevice);
    };
    for (std::int64_t k = 0; k < 20; ++k) work(2000 + 100 * k, k == 0);
    trace.add(Kind::kScope, thread, "Optimizer.step#SGD.step", at + 3950, at + 4050).detail =
        static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    work(4100, false);  // adds up the loss, before the host waits for the next input
  }
  trace.sort();
  const Iterations iterations = found(trace, MarksUse::kUse);
  const IterationRun& run = iterations.runs().front();
  ASSERT_EQ(run.list.size(), 4u);
  for (const Iteration& one : run.list) EXPECT_EQ(one.device_events, 22u);
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

// Ten iterations of 40 launches on two queues whose work overlaps.
void loop(Trace& trace, LaneId thread, LaneId a, LaneId b, std::string_view alphabet) {
  std::uint64_t id = 1;
  std::int64_t at = 0;
  for (int iteration = 0; iteration < 10; ++iteration, at += 5000) {
    for (std::size_t k = 0; k < 40; ++k, ++id, at += 100) {
      Event& call = trace.add(Kind::kApi, thread, "launch", at, at + 10);
      call.correlation = id;
      // The second queue is slow in every third iteration, so the device's order varies.
      const std::int64_t start = at + 50 + (k % 2 == 1 ? 70 * (iteration % 3) : 0);
      Event& work =
          k == 0 ? trace.copy(a, start, start + 20, 64)
                 : trace.kernel(k % 2 == 0 ? a : b, alphabet.substr(k % 11, 1), start, start + 90);
      work.correlation = id;
      if (k == 0) work.detail = static_cast<std::uint16_t>(CopyDirection::kHostToDevice);
    }
  }
  trace.sort();
}

TEST(Iterations, MinedOnesFollowTheLaunchesAndNoNames) {
  std::vector<std::vector<std::int64_t>> starts;
  for (const std::string_view alphabet : {"abcdefghijk", "zyxwvutsrqp"}) {
    Trace trace;
    loop(trace, host_thread(trace), trace.queue(0, 7), trace.queue(0, 8), alphabet);
    const Iterations iterations = found(trace, MarksUse::kIgnore);
    ASSERT_EQ(iterations.runs().size(), 1u);
    const IterationRun& run = iterations.runs()[0];
    EXPECT_EQ(run.origin, IterationOrigin::kMined);
    ASSERT_EQ(run.list.size(), 10u) << run.abstained;
    for (const Iteration& one : run.list) {
      EXPECT_EQ(one.device_events, 40u);
      EXPECT_EQ(one.kernels, 39u);
      EXPECT_EQ(one.phase, IterationPhase::kSteady);
    }
    for (const Event& event : trace.events()) {
      if (event.kind == Kind::kApi) continue;
      EXPECT_EQ(iterations.member(event),
                (IterationMember{0, static_cast<std::uint32_t>((event.correlation - 1) / 40)}));
    }
    auto& of = starts.emplace_back();
    for (const Iteration& one : run.list) of.push_back(one.start_ns);
  }
  EXPECT_EQ(starts[0], starts[1]);
}

TEST(Iterations, RangesCalledStepAreMarksAndLayersAreNot) {
  for (const bool steps : {true, false}) {
    Trace trace;
    const LaneId thread = host_thread(trace), queue = trace.queue(0);
    for (std::int64_t i = 0; i < 3; ++i) {
      launch(trace, thread, queue, static_cast<std::uint64_t>(i + 1), 100 * i + 10, 100 * i + 20,
             100 * i + 30);
      const std::string_view step[] = {"train step 1", "train step 2", "train step 3"};
      const std::string_view layer[] = {"layer 1", "layer 2", "layer 3"};
      trace.add(Kind::kScope, thread, steps ? step[i] : layer[i], 100 * i, 100 * i + 90).detail =
          static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    }
    trace.sort();
    const Iterations iterations = found(trace, MarksUse::kUse);
    EXPECT_EQ(iterations.runs()[0].list.size(), steps ? 3u : 0u);
    if (!steps) continue;
    EXPECT_EQ(iterations.runs()[0].list[2].number, 3);
  }
}

}  // namespace
}  // namespace pasta::tools
