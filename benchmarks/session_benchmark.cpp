// What it costs to bring one event from a source to its tools: order, quality, batches, kinds.
// Tools only add numbers up, so the figure is the session's own. An eighth of the events is device
// work, as in a PyTorch trace.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "pasta/session.h"

namespace pasta {
namespace {

constexpr AdapterInfo kInfo{"generated", "", KindSet::all(), false};

std::vector<Event> generated(std::size_t count, std::int64_t phase) {
  std::vector<Event> events(count);
  std::uint64_t random = 1;
  for (std::size_t i = 0; i < count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    Event& event = events[i];
    const auto draw = static_cast<unsigned>(random >> 40) % 16;
    event.kind = draw < 2 ? Kind::kKernel : draw < 6 ? Kind::kApi : Kind::kScope;
    event.end_ns = static_cast<std::int64_t>(i) * 1000 + phase + 900;
    event.start_ns = event.end_ns - 900;
    event.lane = {1 + draw % 4};
    event.correlation = i;
    event.flags = kLinked;
  }
  return events;
}

// Pushes the same few events again and again, later each time: what a reader has just decoded lies
// in the cache too.
class Generated final : public Adapter {
 public:
  Generated(std::int64_t events, std::int64_t phase)
      : left_(events), phase_(phase), events_(generated(kPush, phase)) {}
  const AdapterInfo& info() const override { return kInfo; }
  Status start(const Plan&, EventSink& sink) override {
    sink_ = &sink;
    SourceInfo info;
    info.path = std::to_string(phase_);
    info.absolute_clock = true;
    sink.describe(info);
    return {};
  }
  Result<bool> pump() override {
    sink_->push(events_);
    for (Event& event : events_) {
      event.start_ns += kPush * 1000;
      event.end_ns += kPush * 1000;
    }
    left_ -= kPush;
    return left_ > 0;
  }
  Status stop() override { return {}; }

 private:
  static constexpr std::int64_t kPush = 2048;
  std::int64_t left_, phase_;
  std::vector<Event> events_;
  EventSink* sink_ = nullptr;
};

struct Sum {
  std::int64_t ns = 0;
  std::int64_t events = 0;
};

class Adder final : public Tool {
 public:
  explicit Adder(Sum& sum) : sum_(&sum) {}
  Status consume(std::span<const Event> events, const Context&) override {
    for (const Event& event : events) sum_->ns += event.duration_ns();
    sum_->events += static_cast<std::int64_t>(events.size());
    return {};
  }
  Result<Report> finish(const Context&) override { return Report{}; }

 private:
  Sum* sum_;
};

// Arguments: tools, sources, events to a batch (0: the session's own choice).
void dispatch(benchmark::State& state) {
  constexpr std::int64_t kEvents = 1 << 21;
  const auto tools = static_cast<std::size_t>(state.range(0));
  const std::int64_t sources = state.range(1);
  // Three sets of kinds; the last tool shares the second's.
  constexpr KindSet kWanted[] = {KindSet::all(), kDeviceWork, Kind::kApi | Kind::kKernel,
                                 kDeviceWork};
  for (auto _ : state) {
    Session session;
    for (std::int64_t i = 0; i < sources; ++i) {
      session.add(std::make_unique<Generated>(kEvents / sources, i));
    }
    Sum sums[4];
    for (std::size_t i = 0; i < tools; ++i) {
      session.add(ToolEntry{"adder", "", kWanted[i], {}, nullptr},
                  std::make_unique<Adder>(sums[i]));
    }
    if (state.range(2) != 0) session.batch_size(static_cast<std::size_t>(state.range(2)));
    if (!session.start()) std::abort();
    while (*session.pump()) {
    }
    if (!session.finish() ||
        (tools > 0 && (sums[0].events != kEvents || sums[0].ns != kEvents * 900))) {
      state.SkipWithError("the tools saw something else than what was pushed");
    }
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.counters["ns/event"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kEvents) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(dispatch)
    ->ArgNames({"tools", "sources", "batch"})
    ->Args({0, 1, 0})
    ->Args({1, 1, 0})
    ->Args({4, 1, 0})
    ->Args({1, 8, 0})
    ->Args({4, 8, 0})
    ->Args({4, 64, 0})
    ->Args({4, 1, 1})
    ->Args({4, 1, 64})
    ->Args({4, 1, 128})
    ->Args({4, 1, 256})
    ->Args({4, 1, 512})
    ->Args({4, 1, 1024})
    ->Args({4, 1, 4096})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pasta
