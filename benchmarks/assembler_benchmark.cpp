// What it costs to turn records in file order into the event stream. The records are those of a
// PyTorch trace: host rows sorted by start, then device rows sorted by start; of five events one is
// an operator, two are launches and two are kernels.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "correlate/assembler.h"
#include "trace/sorted_runs.h"

namespace {

using namespace pasta;

class Counter final : public EventSink {
 public:
  explicit Counter(Dictionary& dictionary) : dictionary_(dictionary) {}
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    for (const Event& event : events) linked += (event.flags & kLinked) != 0 ? 1 : 0;
    count += static_cast<std::int64_t>(events.size());
  }
  void push(Event, std::span<const std::byte>) override {}
  void advance(std::int64_t) override {}
  void report(const Problem&) override {}
  std::int64_t count = 0;
  std::int64_t linked = 0;

 private:
  Dictionary& dictionary_;
};

struct Names {
  explicit Names(Dictionary& dictionary)
      : step(dictionary.string("train_step")),
        launch(dictionary.string("cudaLaunchKernel")),
        process(dictionary.process(Process{.native_id = 1})),
        thread(dictionary.lane({.process = process, .native_id = 1})),
        queue(dictionary.lane({.type = LaneType::kQueue, .process = process, .native_id = 7})) {
    for (std::size_t i = 0; i < operators.size(); ++i) {
      operators[i] = dictionary.string("aten::op" + std::to_string(i));
      kernels[i] = dictionary.string("kernel" + std::to_string(i));
    }
  }
  StringId step, launch;
  ProcessId process;
  LaneId thread, queue;
  std::array<StringId, 64> operators{}, kernels{};
};

Event make(Kind kind, StringId name, LaneId lane, std::int64_t start, std::int64_t end,
           std::uint64_t correlation = 0) {
  Event event{};
  event.kind = kind;
  event.name = name;
  event.lane = lane;
  event.start_ns = start;
  event.end_ns = end;
  event.correlation = correlation;
  return event;
}

constexpr std::int64_t kStepOperators = 1000;
constexpr std::int64_t kOperatorNs = 20000;

template <class Add>
void each_record(const Names& names, std::int64_t events, Add&& add) {
  const std::int64_t operators = events / 5;
  for (std::int64_t i = 0; i < operators; ++i) {
    const std::int64_t at = i * kOperatorNs;
    if (i % kStepOperators == 0) {
      add(make(Kind::kScope, names.step, names.thread, at, at + kStepOperators * kOperatorNs));
    }
    add(make(Kind::kScope, names.operators[i % 64], names.thread, at, at + 19000));
    for (std::int64_t k = 0; k < 2; ++k) {
      add(make(Kind::kApi, names.launch, names.thread, at + 1000 + k * 8000, at + 6000 + k * 8000,
               make_correlation(names.process, static_cast<std::uint64_t>(i * 2 + k + 1))));
    }
  }
  for (std::int64_t i = 0; i < operators * 2; ++i) {
    const std::int64_t at = 5000 + i * (kOperatorNs / 2);
    add(make(Kind::kKernel, names.kernels[i % 64], names.queue, at, at + 7000,
             make_correlation(names.process, static_cast<std::uint64_t>(i + 1))));
  }
}

// Arguments: events, memory budget in MiB.
void assemble(benchmark::State& state) {
  std::int64_t count = 0;
  for (auto _ : state) {
    Dictionary dictionary;
    Problems problems;
    const Names names(dictionary);
    Counter sink(dictionary);
    correlate::Assembler assembler(
        dictionary, problems,
        {.memory_budget_bytes = static_cast<std::uint64_t>(state.range(1)) << 20, .scratch = {}});
    bool failed = false;
    assembler.drop_launch_flows();
    each_record(names, state.range(0),
                [&](const Event& event) { failed = !assembler.add(event) || failed; });
    failed = !assembler.finish() || failed;
    for (;;) {
      const Result<bool> more = assembler.emit(sink, 1 << 14);
      failed = failed || !more;
      if (!more || !*more) break;
    }
    if (failed || sink.linked != state.range(0) / 5 * 2) state.SkipWithError("wrong answer");
    count += sink.count;
  }
  state.SetItemsProcessed(count);
  state.counters["ns_per_event"] = benchmark::Counter(
      static_cast<double>(count), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(assemble)
    ->Unit(benchmark::kMillisecond)
    ->Args({123000, 256})    // as many as in a small real trace
    ->Args({1000000, 1024})  // in memory
    ->Args({1000000, 16});   // sorted runs on disk
// For the peak memory; see README.md.
BENCHMARK(assemble)
    ->Name("assemble_large")
    ->Unit(benchmark::kSecond)
    ->Iterations(1)
    ->Args({30000000, 256});

// Arguments: events, memory budget in MiB, 1 = by end (nearly sorted), 0 = by start (sorted).
void sort(benchmark::State& state) {
  Dictionary dictionary;
  const Names names(dictionary);
  std::vector<Event> records;
  each_record(names, state.range(0), [&](const Event& event) { records.push_back(event); });
  std::vector<Event> batch(2048);
  for (auto _ : state) {
    trace::SortedRuns runs(
        state.range(2) != 0 ? trace::SortedRuns::Order::kByEnd : trace::SortedRuns::Order::kByStart,
        {.memory_budget_bytes = static_cast<std::uint64_t>(state.range(1)) << 20, .scratch = {}});
    bool failed = false;
    for (const Event& event : records) failed = !runs.add(event) || failed;
    failed = !runs.finish() || failed;
    std::size_t total = 0;
    for (;;) {
      const Result<std::size_t> n = runs.read(batch);
      failed = failed || !n;
      if (!n || *n == 0) break;
      total += *n;
    }
    if (failed || total != records.size()) state.SkipWithError("wrong answer");
  }
  const auto count = static_cast<double>(records.size()) * static_cast<double>(state.iterations());
  state.counters["ns_per_event"] =
      benchmark::Counter(count, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(sort)
    ->Unit(benchmark::kMillisecond)
    ->Args({1000000, 1024, 0})
    ->Args({1000000, 1024, 1})
    ->Args({1000000, 16, 1});

}  // namespace
