#include "session/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/result.h"
#include "pasta/dictionary.h"

namespace pasta::session {
namespace {

// A trace that is what a function pushes.
class Written final : public Adapter {
 public:
  using Write = std::function<void(EventSink&)>;
  explicit Written(Write write) : write_(std::move(write)) {}
  const AdapterInfo& info() const override {
    static constexpr AdapterInfo kInfo{"written", "", KindSet::all(), false};
    return kInfo;
  }
  Status start(const Plan&, EventSink& sink) override {
    sink_ = &sink;
    return {};
  }
  Result<bool> pump() override {
    sink_->describe({});
    write_(*sink_);
    return false;
  }
  Status stop() override { return {}; }

 private:
  Write write_;
  EventSink* sink_ = nullptr;
};
OpenTrace trace(Written::Write write) {
  return [write = std::move(write)]() -> Result<std::unique_ptr<Adapter>> {
    return std::make_unique<Written>(write);
  };
}

// Launch n, from 1: kernel "a" on one of some streams.
LaneId lane(Dictionary& dictionary, std::uint32_t stream) {
  const ProcessId process = dictionary.process({.native_id = 7});
  return dictionary.lane({.process = process, .native_id = stream});
}
void push_kernels(EventSink& sink, const std::vector<std::uint32_t>& streams) {
  std::int64_t number = 0;
  for (const std::uint32_t stream : streams) {
    Event event{};
    event.kind = Kind::kKernel;
    event.start_ns = 100 * ++number;
    event.end_ns = event.start_ns + 10;
    event.name = sink.dictionary().string("a");
    event.lane = lane(sink.dictionary(), stream);
    event.correlation = static_cast<std::uint64_t>(number);
    event.kernel.grid[0] = 4;
    sink.push({&event, 1});
  }
}
// `rows`: on which stream each launch was, and which of that. Filled with the launch's number.
void push_results(EventSink& sink, const std::vector<device::StreamRow>& rows,
                  std::size_t bytes = 0) {
  std::uint64_t number = 0;
  for (const device::StreamRow& row : rows) {
    device::PatchResult result{.grid = {4, 0, 0}};
    device::say_stream(result, row);
    device::ResultTable filling{.id = device::TableId::kRuns, .columns = 1};
    filling.numbers.resize(bytes / sizeof(std::uint64_t), ++number);
    if (bytes > 0) result.tables.push_back(std::move(filling));
    Event event{};
    event.kind = Kind::kDevice;
    event.name = sink.dictionary().string("a");
    event.lane = lane(sink.dictionary(), 1);
    event.device.format = sink.dictionary().string("some/1");
    event.device.launch = number;
    for (const std::string& part : device::write_result(result, std::size_t{32} << 10)) {
      sink.push(event, std::as_bytes(std::span(part)));
    }
  }
}

struct Kept final : EventSink {
  Dictionary tables;
  std::vector<std::pair<std::uint64_t, std::int64_t>> joined;  // launches, with their times
  std::vector<std::uint64_t> not_joined;
  std::size_t numbers = 0, wrong = 0;  // of what the results were filled with
  std::vector<Problem> problems;

  Dictionary& dictionary() override { return tables; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event>) override {}
  void push(Event event, std::span<const std::byte> blob) override {
    const auto result = device::read_result(blob);
    for (const device::ResultTable& table : result->tables) {
      if (table.id != device::TableId::kRuns) continue;
      numbers += table.numbers.size();
      wrong += static_cast<std::size_t>(std::ranges::count_if(
          table.numbers, [&](std::uint64_t number) { return number != event.device.launch; }));
    }
    if (event.detail == static_cast<std::uint16_t>(DeviceTimes::kOtherRun)) {
      joined.emplace_back(event.device.launch, event.start_ns);
    } else {
      not_joined.push_back(event.device.launch);
    }
  }
  void advance(std::int64_t) override {}
  void report(const Problem& problem) override { problems.push_back(problem); }
};

std::unique_ptr<Kept> join(Written::Write timed, Written::Write patched,
                           std::uint64_t memory_bytes = kJoinBytes) {
  auto kept = std::make_unique<Kept>();
  auto adapter =
      join_passes(trace(std::move(timed)), {trace(std::move(patched))}, "", memory_bytes);
  EXPECT_TRUE(adapter);
  EXPECT_TRUE((*adapter)->start({}, *kept));
  while (*(*adapter)->pump()) {
  }
  return kept;
}

using Joined = std::vector<std::pair<std::uint64_t, std::int64_t>>;

TEST(Passes, LaunchesAreLookedForOnTheirStream) {
  // Of two threads each launches on a stream of its own; in the other run they take other turns.
  const auto kept = join(
      [](EventSink& sink) {
        push_kernels(sink, {5, 5, 9, 9});
      },
      [](EventSink& sink) {
        push_results(sink, {{1, 1}, {2, 1}, {2, 2}, {1, 2}});
      });
  EXPECT_EQ(kept->joined, (Joined{{1, 100}, {4, 200}, {2, 300}, {3, 400}}));
}

TEST(Passes, WhatFindsNoRoomIsCounted) {
  const auto timed = [](EventSink& sink) {
    push_kernels(sink, std::vector<std::uint32_t>(100, 1));
  };
  const auto patched = [](EventSink& sink) {
    std::vector<device::StreamRow> rows;
    for (std::uint64_t i = 1; i <= 100; ++i) rows.push_back({1, i});
    push_results(sink, rows);
  };
  EXPECT_EQ(join(timed, patched)->joined.size(), 100u);
  EXPECT_TRUE(join(timed, patched)->problems.empty());

  // For not even all kernels.
  auto kept = join(timed, patched, 4096);
  EXPECT_TRUE(kept->joined.empty());
  ASSERT_EQ(kept->problems.size(), 2u);
  EXPECT_EQ(kept->problems[0].reason, Reason::kDroppedByCollector);
  EXPECT_EQ(kept->problems[0].count, 100u);
  EXPECT_EQ(kept->problems[1].reason, Reason::kCollectorWarning);
  EXPECT_LT(kept->problems[1].count, 100u);

  // For all kernels, but not all results: the first are joined.
  kept = join(timed, patched, 20000);
  ASSERT_FALSE(kept->joined.empty());
  EXPECT_EQ(kept->joined.front(), (std::pair<std::uint64_t, std::int64_t>{1, 100}));
  ASSERT_EQ(kept->problems.size(), 1u);
  EXPECT_EQ(kept->problems[0].count + kept->joined.size(), 100u);
}

TEST(Passes, ManyResultsWaitOnDisk) {
  // More than stay in memory.
  constexpr std::size_t kLaunches = 70, kBytes = std::size_t{1} << 20;
  const auto kept =
      join([](EventSink& sink) { push_kernels(sink, std::vector<std::uint32_t>(kLaunches, 1)); },
           [](EventSink& sink) {
             std::vector<device::StreamRow> rows;
             for (std::uint64_t i = 1; i <= kLaunches; ++i) rows.push_back({1, i});
             push_results(sink, rows, kBytes);
           });
  EXPECT_EQ(kept->numbers, kLaunches * kBytes / sizeof(std::uint64_t));
  EXPECT_EQ(kept->wrong, 0u);
  EXPECT_TRUE(kept->not_joined.empty());
  EXPECT_TRUE(kept->problems.empty());
}

}  // namespace
}  // namespace pasta::session
