#include "correlate/assembler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pasta::correlate {
namespace {

using Lines = std::vector<std::string>;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// Writes what it is given as lines: "kernel k 30..40 [step > aten::mm] linked".
class Lister : public EventSink {
 public:
  explicit Lister(Dictionary& dictionary) : dictionary_(dictionary) {}
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    for (const Event& event : events) lines.push_back(line(event));
  }
  void push(Event, std::span<const std::byte>) override {}
  void advance(std::int64_t end_ns) override { watermark = end_ns; }
  void report(const Problem&) override {}

  Lines lines;
  std::int64_t watermark = kNoTime;

 private:
  std::string path(FrameId id) const {
    const Frame frame = dictionary_.frame(id);
    const std::string name(dictionary_.text(frame.name));
    return frame.parent ? path(frame.parent) + " > " + name : name;
  }
  std::string line(const Event& event) const {
    std::string text = fmt::format(
        "{} {} {} [{}]", kind_name(event.kind), dictionary_.text(event.name),
        event.untimed() ? "untimed" : fmt::format("{}..{}", event.start_ns, event.end_ns),
        path(event.scope));
    if (event.correlation != 0 && !kDeviceWork.has(event.kind)) {
      text += fmt::format(" #{}", event.correlation & kMaxVendorCorrelation);
    }
    if ((event.flags & kLinked) != 0) text += " linked";
    if ((event.flags & kSkewed) != 0) text += " skewed";
    EXPECT_EQ(event.untimed(), event.start_ns == kNoTime);
    EXPECT_EQ(event.untimed(), event.end_ns == kNoTime);
    return text;
  }
  Dictionary& dictionary_;
};

// A trace in the making: what a reader would add, and what comes out.
class AssemblerTest : public testing::Test {
 protected:
  Dictionary dictionary;
  ProcessId process = dictionary.process(Process{.native_id = 1});
  LaneId main = thread(1);
  LaneId other = thread(2);
  LaneId queue = dictionary.lane({.type = LaneType::kQueue,
                                  .process = process,
                                  .device = dictionary.device({}),
                                  .native_id = 7});

  LaneId thread(std::uint64_t id) {
    return dictionary.lane({.type = LaneType::kThread, .process = process, .native_id = id});
  }
  Event& add(Kind kind, std::string_view name, LaneId lane, std::int64_t start, std::int64_t end,
             std::uint64_t correlation = 0) {
    Event event{};
    event.kind = kind;
    event.name = dictionary.string(name);
    event.lane = lane;
    event.start_ns = start;
    event.end_ns = end;
    event.correlation = make_correlation(process, correlation);
    records.emplace_back(event);
    return std::get<Event>(records.back());
  }
  Event& scope(std::string_view name, LaneId lane, std::int64_t start, std::int64_t end,
               ScopeDomain domain = ScopeDomain::kOperator) {
    Event& event = add(Kind::kScope, name, lane, start, end);
    event.detail = static_cast<std::uint16_t>(domain);
    return event;
  }
  // `thread` as autograd numbers it: that of the forward operator for a backward one, else 0.
  Event& autograd(std::string_view name, LaneId lane, std::int64_t start, std::int64_t end,
                  std::uint64_t sequence, std::uint32_t forward_thread) {
    Event& event = scope(name, lane, start, end);
    event.range.sequence = sequence + 1;
    event.range.forward_thread = forward_thread;
    return event;
  }
  void api(std::string_view name, LaneId lane, std::int64_t start, std::int64_t end,
           std::uint64_t correlation) {
    add(Kind::kApi, name, lane, start, end, correlation);
  }
  void kernel(std::string_view name, std::int64_t start, std::int64_t end,
              std::uint64_t correlation) {
    add(Kind::kKernel, name, queue, start, end, correlation);
  }
  void arrow(FlowEnd::Type type, bool source, LaneId lane, std::int64_t at, std::uint64_t id) {
    records.emplace_back(FlowEnd{type, source, lane, at, id});
  }
  void launch_arrow(LaneId from, std::int64_t from_ns, LaneId to, std::int64_t to_ns,
                    std::uint64_t id) {
    arrow(FlowEnd::Type::kLaunch, true, from, from_ns, make_correlation(process, id));
    arrow(FlowEnd::Type::kLaunch, false, to, to_ns, make_correlation(process, id));
  }
  void backward_arrow(LaneId from, std::int64_t from_ns, LaneId to, std::int64_t to_ns,
                      std::uint64_t id) {
    arrow(FlowEnd::Type::kForwardBackward, true, from, from_ns, id);
    arrow(FlowEnd::Type::kForwardBackward, false, to, to_ns, id);
  }

  Lines run(std::uint64_t budget, std::int64_t shift = 0, std::size_t max_events = 3) {
    problems = {};
    Assembler assembler(dictionary, problems, {.memory_budget_bytes = budget, .scratch = {}});
    for (const auto& record : records) {
      EXPECT_TRUE(std::visit([&](const auto& r) { return assembler.add(r); }, record));
    }
    if (drop_launch_flows) assembler.drop_launch_flows();
    EXPECT_TRUE(assembler.finish(shift));
    first_ns = assembler.first_ns();
    Lister lister(dictionary);
    for (;;) {
      const std::size_t before = lister.lines.size();
      const Result<bool> more = assembler.emit(lister, max_events);
      EXPECT_TRUE(more.has_value());
      EXPECT_LE(lister.lines.size() - before, max_events);
      if (!more || !*more) break;
    }
    watermark = lister.watermark;
    return lister.lines;
  }
  // The result, which neither the budget nor the order of the file may change.
  void expect(const Lines& lines, const Lines& expected_problems = {}, std::int64_t shift = 0) {
    EXPECT_EQ(run(std::uint64_t{1} << 24, shift), lines);
    EXPECT_EQ(problem_lines(), expected_problems);
    EXPECT_EQ(run(0, shift), lines) << "sorted on disk";
    EXPECT_EQ(problem_lines(), expected_problems);
    std::mt19937 random(3);
    for (int i = 0; i < 5; ++i) {
      std::shuffle(records.begin(), records.end(), random);
      EXPECT_EQ(run(0, shift), lines) << "shuffled";
      EXPECT_EQ(problem_lines(), expected_problems);
    }
  }
  Lines problem_lines() const {
    Lines lines;
    for (const Problem& problem : problems.list()) {
      lines.push_back(
          fmt::format("{} {}: {}", problem.count, reason_info(problem.reason).id, problem.first));
    }
    return lines;
  }

  Problems problems;
  std::vector<std::variant<Event, FlowEnd>> records;
  bool drop_launch_flows = false;
  std::int64_t first_ns = 0;
  std::int64_t watermark = 0;
};

TEST_F(AssemblerTest, WhatASourceSaysOfWorkHangsBelowItsLaunch) {
  const FrameId module =
      dictionary.frame({.name = dictionary.string("jit_f"), .domain = ScopeDomain::kModule});
  const FrameId own = dictionary.frame(
      {.parent = module, .name = dictionary.string("dot"), .domain = ScopeDomain::kOperator});
  scope("train", main, 0, 100);
  api("launch", main, 10, 20, 1);
  add(Kind::kKernel, "known", queue, 30, 40, 1).scope = own;
  add(Kind::kKernel, "unseen", queue, 50, 60, 2).scope = own;
  add(Kind::kCopy, "alone", queue, 70, 80, 0).scope = module;
  add(Kind::kKernel, "plain", queue, 90, 95, 1);
  const FrameId train =
      dictionary.frame({.name = dictionary.string("train"), .domain = ScopeDomain::kOperator});
  add(Kind::kKernel, "again", queue, 96, 97, 1).scope = train;
  expect({"api launch 10..20 [train] #1", "kernel known 30..40 [train > jit_f > dot] linked",
          "kernel unseen 50..60 [jit_f > dot]", "copy alone 70..80 [jit_f]",
          "kernel plain 90..95 [train] linked", "kernel again 96..97 [train] linked",
          "scope train 0..100 []"},
         {"1 launch_not_seen: kernel \"unseen\" at 50 ns",
          "1 no_correlation: copy \"alone\" at 70 ns"});
}

TEST_F(AssemblerTest, NothingInNothingOut) {
  expect({});
  EXPECT_EQ(first_ns, kNoTime);
  EXPECT_EQ(watermark, kNoTime);
}

TEST_F(AssemblerTest, PathsGoThroughScopesButNotThroughCallsMarksAndNumberedNames) {
  scope("train", main, 0, 100, ScopeDomain::kAnnotation);
  scope("ProfilerStep#3", main, 1, 99, ScopeDomain::kAnnotation);
  scope("step", main, 2, 98, ScopeDomain::kIteration);
  scope("Optimizer.step#SGD.step", main, 3, 50);
  api("cudaLaunchKernel", main, 4, 10, 0);
  scope("inside the call", main, 5, 9);
  add(Kind::kAlloc, "alloc", main, 6, 6);
  scope("next", main, 60, 70);
  api("elsewhere", other, 61, 62, 0);
  scope("C#", main, 71, 80);
  scope("under it", main, 72, 73);
  expect({
      "alloc alloc 6..6 [train > Optimizer.step#SGD.step > inside the call]",
      "scope inside the call 5..9 [train > Optimizer.step#SGD.step]",
      "api cudaLaunchKernel 4..10 [train > Optimizer.step#SGD.step]",
      "scope Optimizer.step#SGD.step 3..50 [train]",
      "api elsewhere 61..62 []",
      "scope next 60..70 [train]",
      "scope under it 72..73 [train > C#]",
      "scope C# 71..80 [train]",
      "scope step 2..98 [train]",
      "scope ProfilerStep#3 1..99 [train]",
      "scope train 0..100 []",
  });
  EXPECT_EQ(first_ns, 0);
  EXPECT_EQ(watermark, 100);
}

TEST_F(AssemblerTest, ARangeHoldsItsStartButNotItsEnd) {
  scope("a", main, 10, 20);
  add(Kind::kCounter, "at start", main, 10, 10);
  add(Kind::kCounter, "at end", main, 20, 20);
  scope("empty", main, 15, 15);
  add(Kind::kCounter, "at empty", main, 15, 15).flags = kInstant;
  scope("b", main, 20, 30);
  scope("instant", main, 25, 25).flags = kInstant;
  // Equal times come out in the order of arrival, so this one is not shuffled.
  const Lines expected = {"counter at start 10..10 [a]",
                          "scope empty 15..15 [a]",
                          "counter at empty 15..15 [a]",
                          "counter at end 20..20 [b]",
                          "scope a 10..20 []",
                          "scope instant 25..25 [b]",
                          "scope b 20..30 []"};
  EXPECT_EQ(run(1 << 20), expected);
  EXPECT_EQ(run(0), expected);
}

TEST_F(AssemblerTest, OfTwoEqualRangesTheFirstInTheFileIsTheOuter) {
  scope("outer", main, 0, 10);
  scope("inner", main, 0, 10);
  add(Kind::kAlloc, "x", main, 5, 5);
  const Lines expected = {"alloc x 5..5 [outer > inner]", "scope outer 0..10 []",
                          "scope inner 0..10 [outer]"};
  EXPECT_EQ(run(1 << 20), expected);
  EXPECT_EQ(run(0), expected);
}

TEST_F(AssemblerTest, OverlappingRangesDoNotNest) {
  scope("all", main, 0, 3000000);
  scope("aten::item", main, 1000087, 1900587);
  scope("ProfilerStep", main, 1052485, 1914719);
  add(Kind::kAlloc, "in both", main, 1100000, 1100000);
  api("ends with the first", main, 1200000, 1900587, 0);
  api("leaves the first", main, 1900000, 1910000, 0);
  add(Kind::kAlloc, "after the first", main, 1911000, 1911000);
  add(Kind::kAlloc, "after both", main, 1915000, 1915000);
  expect(
      {
          "alloc in both 1100000..1100000 [all > ProfilerStep]",
          "api ends with the first 1200000..1900587 [all > ProfilerStep]",
          "scope aten::item 1000087..1900587 [all]",
          "api leaves the first 1900000..1910000 [all > ProfilerStep]",
          "alloc after the first 1911000..1911000 [all > ProfilerStep]",
          "scope ProfilerStep 1052485..1914719 [all]",
          "alloc after both 1915000..1915000 [all]",
          "scope all 0..3000000 []",
      },
      // The call that leaves the first overlaps the call before it, too.
      {"2 partial_overlap: \"aten::item\" at 1000087 ns and \"ProfilerStep\" at 1052485 ns"});
}

TEST_F(AssemblerTest, DeviceWorkTakesThePathOfItsLaunchWhereverThatStands) {
  kernel("before its launch returns", 12, 14, 5);  // first in the file, and first to end
  scope("train", main, 0, 100);
  scope("aten::mm", main, 10, 20);
  api("cudaLaunchKernel", main, 11, 15, 5);
  api("cuLaunchKernel", main, 12, 14, 5);  // the driver's call inside bears the same number
  add(Kind::kCopy, "copy", queue, 200, 210, 6);
  add(Kind::kFill, "fill", queue, 211, 212, 6);
  api("cudaMemcpyAsync", other, 90, 95, 6);
  add(Kind::kSync, "wait", queue, 213, 214, 6);
  add(Kind::kSync, "waits for nothing", queue, 215, 216);
  add(Kind::kScope, "drawn on the queue", queue, 0, 300).flags = kAnnotation;
  const Lines expected = {
      "kernel before its launch returns 12..14 [train > aten::mm] linked",
      "api cuLaunchKernel 12..14 [train > aten::mm] #5",
      "api cudaLaunchKernel 11..15 [train > aten::mm] #5",
      "scope aten::mm 10..20 [train]",
      "api cudaMemcpyAsync 90..95 [] #6",
      "scope train 0..100 []",
      "copy copy 200..210 [] linked",
      "fill fill 211..212 [] linked",
      "sync wait 213..214 [] #6 linked",
      "sync waits for nothing 215..216 []",
      "scope drawn on the queue 0..300 []",
  };
  EXPECT_EQ(run(1 << 20), expected);
  EXPECT_EQ(run(0), expected);
  EXPECT_EQ(problem_lines(), Lines{});
}

TEST_F(AssemblerTest, TheCallThatKnowsTheLongerPathIsTheLaunch) {
  api("outer call", main, 0, 50, 9);
  scope("wrapper", main, 1, 49);
  api("inner call", main, 2, 40, 9);
  kernel("k", 60, 70, 9);
  expect({"api inner call 2..40 [wrapper] #9", "scope wrapper 1..49 []",
          "api outer call 0..50 [] #9", "kernel k 60..70 [wrapper] linked"});
}

TEST_F(AssemblerTest, AllKernelsOfAGraphLinkToItsOneLaunch) {
  scope("replay", main, 0, 50);
  api("cudaGraphLaunch", main, 10, 20, 4);
  Lines expected = {"api cudaGraphLaunch 10..20 [replay] #4", "scope replay 0..50 []"};
  for (int i = 0; i < 300; ++i) {
    kernel("node", 100 + i, 101 + i, 4);
    expected.push_back(fmt::format("kernel node {}..{} [replay] linked", 100 + i, 101 + i));
  }
  expect(expected);
}

TEST_F(AssemblerTest, WhatCannotBeLinkedIsCounted) {
  api("cudaLaunchKernel", main, 100, 110, 1);
  kernel("early", 98, 120, 1);
  kernel("launched before the trace", 5, 6, 77);
  kernel("the same", 7, 8, 78);
  add(Kind::kCopy, "names no launch", queue, 9, 10);
  add(Kind::kSync, "wait of unknown launch", queue, 11, 12, 79);
  expect(
      {
          "kernel launched before the trace 5..6 []",
          "kernel the same 7..8 []",
          "copy names no launch 9..10 []",
          "sync wait of unknown launch 11..12 [] #79",
          "api cudaLaunchKernel 100..110 [] #1",
          "kernel early 98..120 [] linked skewed",
      },
      {"2 launch_not_seen: kernel \"launched before the trace\" at 5 ns",
       "1 no_correlation: copy \"names no launch\" at 9 ns",
       "1 starts_before_launch: kernel \"early\" at 98 ns, launch delay -2 ns"});
}

TEST_F(AssemblerTest, CorrelationsOfDifferentProcessesDoNotMix) {
  const ProcessId second = dictionary.process(Process{.native_id = 2});
  const LaneId thread_of_second =
      dictionary.lane({.type = LaneType::kThread, .process = second, .native_id = 1});
  scope("first", main, 0, 10);
  api("launch", main, 1, 2, 5);
  scope("second", thread_of_second, 0, 11);
  add(Kind::kApi, "launch", thread_of_second, 1, 3).correlation = make_correlation(second, 5);
  kernel("of first", 20, 30, 5);
  add(Kind::kKernel, "of second", queue, 20, 31).correlation = make_correlation(second, 5);
  expect({"api launch 1..2 [first] #5", "api launch 1..3 [second] #5", "scope first 0..10 []",
          "scope second 0..11 []", "kernel of first 20..30 [first] linked",
          "kernel of second 20..31 [second] linked"});
}

TEST_F(AssemblerTest, UntimedEventsComeFirstAndStillLink) {
  scope("train", main, -5, 100);
  api("launch", main, 10, 20, 1);
  add(Kind::kKernel, "no times", queue, 0, 0, 1).flags = kUntimed;
  add(Kind::kApi, "launch without times", main, 0, 0, 2).flags = kUntimed;
  kernel("of that", 1, 2, 2);
  // Untimed events keep the order of the file, so they are not shuffled.
  const Lines expected = {"kernel no times untimed [train] linked",
                          "api launch without times untimed [] #2", "kernel of that 1..2 [] linked",
                          "api launch 10..20 [train] #1", "scope train -5..100 []"};
  EXPECT_EQ(run(1 << 20, 0), expected);
  EXPECT_EQ(run(0, 0), expected);
  EXPECT_EQ(problem_lines(), Lines{});
  EXPECT_EQ(first_ns, -5);
}

TEST_F(AssemblerTest, LaunchArrowsServeSourcesWithoutCorrelations) {
  scope("train", main, 0, 100);
  scope("aten::mm", main, 10, 20);
  api("launch", main, 12, 15, 0);
  launch_arrow(main, 12, queue, 40, 1);
  add(Kind::kKernel, "by a call", queue, 40, 50);
  scope("aten::add", main, 30, 35);
  launch_arrow(main, 30, queue, 60, 2);
  add(Kind::kKernel, "by an operator", queue, 60, 70);
  launch_arrow(main, 37, queue, 71, 3);  // inside `train` only
  add(Kind::kCopy, "from within", queue, 71, 72);
  arrow(FlowEnd::Type::kLaunch, false, queue, 80, make_correlation(process, 4));
  add(Kind::kKernel, "arrow from nowhere", queue, 80, 81);
  launch_arrow(main, 38, queue, 85, 5);  // to nothing
  add(Kind::kKernel, "without an arrow", queue, 90, 91);
  expect(
      {
          "api launch 12..15 [train > aten::mm] #1",
          "scope aten::mm 10..20 [train]",
          "scope aten::add 30..35 [train] #2",
          "kernel by a call 40..50 [train > aten::mm] linked",
          "kernel by an operator 60..70 [train > aten::add] linked",
          "copy from within 71..72 [train] linked",
          "kernel arrow from nowhere 80..81 []",
          "kernel without an arrow 90..91 []",
          "scope train 0..100 []",
      },
      {"1 flow_without_end: arrow 5 at 85 ns",
       "1 launch_not_seen: kernel \"arrow from nowhere\" at 80 ns",
       "1 no_correlation: kernel \"without an arrow\" at 90 ns"});
}

TEST_F(AssemblerTest, SeveralArrowsToWorkThatStartsTogether) {
  scope("one", main, 0, 10);
  launch_arrow(main, 0, queue, 50, 1);
  launch_arrow(main, 0, queue, 50, 1);
  add(Kind::kKernel, "long", queue, 50, 60);
  add(Kind::kKernel, "short", queue, 50, 55);
  expect({"scope one 0..10 [] #1", "kernel short 50..55 [one] linked",
          "kernel long 50..60 [one] linked"});
}

TEST_F(AssemblerTest, DroppedLaunchArrowsLeaveNoTrace) {
  drop_launch_flows = true;
  scope("one", main, 0, 10);
  launch_arrow(main, 0, queue, 50, 1);
  launch_arrow(main, 0, queue, 99, 2);
  add(Kind::kKernel, "names no launch", queue, 50, 60);
  expect({"scope one 0..10 []", "kernel names no launch 50..60 []"},
         {"1 no_correlation: kernel \"names no launch\" at 50 ns"});
}

TEST_F(AssemblerTest, BackwardOperatorsHangBelowTheirForwardOperators) {
  scope("train_step", main, 0, 1000, ScopeDomain::kAnnotation);
  scope("layer1", main, 10, 100, ScopeDomain::kModule);
  scope("aten::conv2d", main, 20, 90);
  backward_arrow(main, 20, other, 220, 0);  // 0 is an id like any other
  scope("evaluate_function: ConvolutionBackward0", other, 200, 300);
  scope("ConvolutionBackward0", other, 220, 290);
  scope("aten::convolution_backward", other, 230, 280);
  api("cudaLaunchKernel", other, 240, 250, 1);
  kernel("dgrad", 400, 500, 1);
  expect({
      "scope aten::conv2d 20..90 [train_step > layer1]",
      "scope layer1 10..100 [train_step]",
      "api cudaLaunchKernel 240..250 [train_step > layer1 > aten::conv2d > ConvolutionBackward0 > "
      "aten::convolution_backward] #1",
      "scope aten::convolution_backward 230..280 [train_step > layer1 > aten::conv2d > "
      "ConvolutionBackward0]",
      "scope ConvolutionBackward0 220..290 [train_step > layer1 > aten::conv2d]",
      "scope evaluate_function: ConvolutionBackward0 200..300 []",
      "kernel dgrad 400..500 [train_step > layer1 > aten::conv2d > ConvolutionBackward0 > "
      "aten::convolution_backward] linked",
      "scope train_step 0..1000 []",
  });
}

TEST_F(AssemblerTest, BackwardArrowsBindToWhatStartsThenElseToWhatIsOpen) {
  scope("outer", main, 20, 50);
  scope("forward", main, 20, 40);  // the inner one of the two is meant
  backward_arrow(main, 20, other, 100, 1);
  // Whole microseconds: all three start together, and autograd's number tells which is meant.
  scope("thread", other, 100, 200);
  autograd("evaluate", other, 100, 190, 7, 1);
  autograd("Backward", other, 100, 180, 7, 1);
  scope("child", other, 100, 170);
  // Into the middle of a range: what opens later is below.
  backward_arrow(main, 20, other, 320, 2);
  scope("Late", other, 300, 400);
  scope("earlier child", other, 310, 315);
  scope("later child", other, 330, 340);
  scope("sibling", other, 410, 420);
  // Nothing there, and nothing sent.
  backward_arrow(main, 20, other, 500, 3);
  arrow(FlowEnd::Type::kForwardBackward, false, other, 410, 4);
  expect(
      {
          "scope forward 20..40 [outer]",
          "scope outer 20..50 []",
          "scope child 100..170 [outer > forward > Backward]",
          "scope Backward 100..180 [outer > forward]",
          "scope evaluate 100..190 [thread]",
          "scope thread 100..200 []",
          "scope earlier child 310..315 [Late]",
          "scope later child 330..340 [outer > forward > Late]",
          "scope Late 300..400 []",
          "scope sibling 410..420 []",
      },
      {"2 flow_without_end: arrow 4 at 410 ns"});
}

TEST_F(AssemblerTest, WithoutArrowsSequenceNumbersJoinForwardAndBackward) {
  scope("step", main, 0, 90);
  autograd("aten::linear", main, 10, 50, 5, 0);
  autograd("aten::addmm", main, 20, 40, 5, 0);  // the last to start made the node
  autograd("aten::relu", main, 60, 70, 6, 0);
  autograd("evaluate: AddmmBackward0", other, 100, 200, 5, 1);
  autograd("AddmmBackward0", other, 110, 190, 5, 1);
  autograd("aten::mm", other, 120, 130, 5, 0);  // work of the backward, no forward operator
  autograd("evaluate: AddmmBackward0", other, 300, 400, 5, 1);
  autograd("ViewBackward0", other, 500, 510, 99, 1);  // its forward was before the trace
  expect({
      "scope aten::addmm 20..40 [step > aten::linear]",
      "scope aten::linear 10..50 [step]",
      "scope aten::relu 60..70 [step]",
      "scope step 0..90 []",
      "scope aten::mm 120..130 [step > aten::linear > aten::addmm > evaluate: AddmmBackward0 > "
      "AddmmBackward0]",
      "scope AddmmBackward0 110..190 [step > aten::linear > aten::addmm > evaluate: "
      "AddmmBackward0]",
      "scope evaluate: AddmmBackward0 100..200 [step > aten::linear > aten::addmm]",
      "scope evaluate: AddmmBackward0 300..400 [step > aten::linear > aten::addmm]",
      "scope ViewBackward0 500..510 []",
  });
}

// Sequence numbers count per thread: a number that two threads have given says nothing until the
// thread is known.
TEST_F(AssemblerTest, SequenceNumbersOfTwoThreadsAreNotMixed) {
  const LaneId third = thread(3);
  autograd("of main", main, 0, 10, 5, 0);
  autograd("of third", third, 1, 11, 5, 0);
  autograd("only main", main, 20, 30, 6, 0);
  autograd("unknown", other, 100, 110, 5, 1);
  autograd("learns", other, 120, 130, 6, 1);
  autograd("knows", other, 140, 150, 5, 1);
  expect({
      "scope of main 0..10 []",
      "scope of third 1..11 []",
      "scope only main 20..30 []",
      "scope unknown 100..110 []",
      "scope learns 120..130 [only main]",
      "scope knows 140..150 [of main]",
  });
}

TEST_F(AssemblerTest, ArrowsArePreferredToSequenceNumbers) {
  autograd("by arrow", main, 0, 10, 1, 0);
  autograd("by number", main, 20, 30, 5, 0);
  backward_arrow(main, 0, other, 100, 1);
  autograd("Backward", other, 100, 110, 5, 1);
  autograd("no arrow", other, 120, 130, 5, 1);
  expect({"scope by arrow 0..10 []", "scope by number 20..30 []",
          "scope Backward 100..110 [by arrow]", "scope no arrow 120..130 []"});
}

TEST_F(AssemblerTest, ShiftMovesTimesAndTheTextOfProblems) {
  scope("a", main, -50, 10);
  scope("b", main, 0, 20);
  kernel("k", 30, 40, 1);
  expect({"scope a 950..1010 []", "scope b 1000..1020 []", "kernel k 1030..1040 []"},
         {"1 partial_overlap: \"a\" at 950 ns and \"b\" at 1000 ns",
          "1 launch_not_seen: kernel \"k\" at 1030 ns"},
         1000);
  EXPECT_EQ(first_ns, 950);
  EXPECT_EQ(watermark, 1040);
}

TEST_F(AssemblerTest, TimesThatTheShiftPushesOutOfRangeAreForgotten) {
  scope("fits", main, 5, kMax - 100);
  api("launch", main, 10, 20, 1);
  kernel("k", kMax - 20, kMax - 10, 1);
  expect({"kernel k untimed [fits] linked", "api launch 110..120 [fits] #1",
          fmt::format("scope fits 105..{} []", kMax)},
         {fmt::format("1 time_out_of_range: kernel \"k\" at {} ns", kMax - 20)}, 100);
  EXPECT_EQ(first_ns, 105);

  records.clear();
  kernel("k", kNoTime + 10, kNoTime + 20, 0);
  expect({"kernel k untimed []"},
         {fmt::format("1 no_correlation: kernel \"k\" at {} ns", kNoTime + 10),
          fmt::format("1 time_out_of_range: kernel \"k\" at {} ns", kNoTime + 10)},
         -10);
  EXPECT_EQ(first_ns, kNoTime);
}

TEST_F(AssemblerTest, FoldedPathsAreCounted) {
  dictionary.limit_frames(2);
  scope("a", main, 0, 10);
  scope("b", main, 1, 9);
  scope("c", main, 2, 8);
  add(Kind::kAlloc, "x", main, 3, 3);
  EXPECT_EQ(run(1 << 20).front(), "alloc x 3..3 [a > b]");
  EXPECT_EQ(problem_lines(), Lines{"1 frames_folded: "});
}

// More than the host pass takes at once.
TEST_F(AssemblerTest, ManyRangesThatStartTogether) {
  constexpr int kMany = 20000;
  scope("all", main, 0, kMany + 1);
  for (int i = 0; i < kMany; ++i) api("call", main, 0, kMany - i, 0);
  const Lines lines = run(std::uint64_t{1} << 24, 0, 1000);
  ASSERT_EQ(lines.size(), kMany + 1u);
  EXPECT_EQ(lines.front(), "api call 0..1 [all]");
  EXPECT_EQ(lines[kMany - 1], fmt::format("api call 0..{} [all]", kMany));
  EXPECT_EQ(problem_lines(), Lines{});
}

// Three threads of random nested ranges with launches, in a file order that has nothing to do with
// time, through dozens of runs.
TEST_F(AssemblerTest, ManyEventsComeOutTheSameFromDisk) {
  std::mt19937 random(5);
  std::uint64_t correlation = 0;
  std::int64_t now = 0;
  const std::function<void(LaneId, int)> nest = [&](LaneId lane, int depth) {
    const std::int64_t begin = ++now;
    while (depth < 6 && random() % 3 != 0) nest(lane, depth + 1);
    ++now;
    if (random() % 2 == 0) {
      api("launch", lane, begin, now, ++correlation);
      const auto start = static_cast<std::int64_t>(correlation * 7919 % 1000003 * 10 + 5);
      kernel("k", now + start, now + start + 1, correlation);
      std::get<Event>(records.back()).end_ns = 1000000 + start;  // unique
    } else {
      scope(fmt::format("op{}", random() % 4), lane, begin, now);
    }
  };
  for (int i = 0; i < 60; ++i) nest(thread(10 + i % 3), 0);
  const Lines lines = run(std::uint64_t{1} << 24);
  const Lines expected_problems = problem_lines();
  EXPECT_GT(lines.size(), 2000u);
  std::shuffle(records.begin(), records.end(), random);
  EXPECT_EQ(run(20000), lines);
  EXPECT_EQ(problem_lines(), expected_problems);
}

}  // namespace
}  // namespace pasta::correlate
