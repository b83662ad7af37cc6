// Time and memory a symbol of what mine/ does, on texts of 10^4 to 10^7 symbols: whether it stays
// flat. The rival, where it is installed, is libdivsufsort, which sorts suffixes of bytes and does
// no more, so it is compared with the sorting alone, on the same texts in the same run.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "mine/reference.h"
#include "mine/sort_suffixes.h"
#include "pasta/session.h"
#ifdef PASTA_DIVSUFSORT
#include <divsufsort.h>
#endif

namespace {

std::atomic<std::size_t> allocated = 0;
std::atomic<std::size_t> most_allocated = 0;

}  // namespace

namespace {

void* counted(void* memory) {
  if (memory == nullptr) std::abort();
  const std::size_t now = allocated += malloc_usable_size(memory);
  most_allocated = std::max(most_allocated.load(), now);
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto boundary = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(boundary, (size + boundary - 1) / boundary * boundary));
}
void operator delete(void* memory) noexcept {
  allocated -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }

namespace pasta::mine {
namespace {

using reference::String;

enum Kind { kTrace, kNoisy, kRandom, kUnary, kFibonacci, kKinds };
constexpr const char* kNames[] = {"trace", "noisy", "random", "unary", "fibonacci"};

// The names of the device work of a training step with 326 kernels, copies and fills.
class NameTool final : public Tool {
 public:
  explicit NameTool(String& names) : names_(&names) {}
  Status consume(std::span<const Event> events, const Context&) override {
    for (const Event& event : events) names_->push_back(event.name.value);
    return {};
  }
  Result<Report> finish(const Context&) override { return Report{}; }

 private:
  String* names_;
};

String read_trace() {
  auto adapter = open_source(PASTA_SOURCE_DIR
                             "/tests/traces/param/dlrm_8rank/"
                             "worker1_step_12.1694128201556.pt.trace.json.gz");
  String names;
  Session session;
  if (!adapter) std::abort();
  session.add(std::move(*adapter));
  session.add(ToolEntry{"names", "", kDeviceWork, {}, nullptr}, std::make_unique<NameTool>(names));
  if (!session.start()) std::abort();
  while (*session.pump()) {
  }
  if (!session.finish() || names.empty()) std::abort();
  return names;
}

// `noisy`: the trace with one kernel of each step exchanged for another, as autotuning and changing
// shapes do. `random`: 60 different symbols.
String text_of(std::int64_t kind, std::size_t size) {
  std::mt19937 random(1);
  String s;
  s.reserve(size);
  switch (kind) {
    case kTrace:
    case kNoisy: {
      static const String step = read_trace();
      while (s.size() < size) {
        const std::size_t begin = s.size();
        s.insert(s.end(), step.begin(),
                 step.begin() + static_cast<std::ptrdiff_t>(std::min(step.size(), size - begin)));
        if (kind == kNoisy) {
          s[begin + random() % (s.size() - begin)] = step[random() % step.size()];
        }
      }
      return s;
    }
    case kRandom:
      while (s.size() < size) s.push_back(static_cast<std::uint32_t>(random() % 60));
      return s;
    case kUnary:
      s.assign(size, 1);
      return s;
    default:
      return reference::fibonacci(size);
  }
}

class Stopwatch {
 public:
  // Nanoseconds of this thread's CPU time since the last call, added to `sum`.
  void lap(double& sum) {
    const double now = read();
    sum += now - last_;
    last_ = now;
  }

 private:
  static double read() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  }
  double last_ = read();
};

// Everything about exact repeats, as a tool would ask it. Counters: nanoseconds a symbol of each
// part and of all, and the most bytes a symbol beside the text that was given.
void repeats(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(1));
  const String string = text_of(state.range(0), size);
  state.SetLabel(kNames[state.range(0)]);
  double ranks = 0, build = 0, maximal = 0, supermaximal = 0, run = 0;
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::size_t before = allocated;
    most_allocated = before;
    Stopwatch watch;
    Text text = *Text::of(string);
    watch.lap(ranks);
    const SuffixArray index(std::move(text));
    watch.lap(build);
    std::uint64_t sum = 0;
    for_each_maximal_repeat(index, 2, 2, [&](const Repeat& repeat) { sum += repeat.length; });
    watch.lap(maximal);
    for_each_supermaximal_repeat(index, 2, 2, [&](const Repeat& repeat) { sum += repeat.length; });
    watch.lap(supermaximal);
    sum += find_runs(index).size();
    watch.lap(run);
    benchmark::DoNotOptimize(sum);
    bytes = most_allocated - before;
  }
  const double symbols = static_cast<double>(state.iterations()) * static_cast<double>(size);
  state.counters["1 ranks"] = ranks / symbols;
  state.counters["2 index"] = build / symbols;
  state.counters["3 maximal"] = maximal / symbols;
  state.counters["4 super"] = supermaximal / symbols;
  state.counters["5 runs"] = run / symbols;
  state.counters["6 ns/symbol"] = (ranks + build + maximal + supermaximal + run) / symbols;
  state.counters["7 bytes/symbol"] = static_cast<double>(bytes) / static_cast<double>(size);
}

void per_symbol(benchmark::State& state, std::size_t size) {
  state.SetLabel(kNames[state.range(0)]);
  state.counters["ns/symbol"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(size) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void sort(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(1));
  const Text text = *Text::of(text_of(state.range(0), size));
  std::vector<std::uint32_t> sorted(size);
  for (auto _ : state) {
    sort_suffixes(text.ranks(), text.alphabet(), sorted);
    benchmark::DoNotOptimize(sorted.data());
  }
  per_symbol(state, size);
}

#ifdef PASTA_DIVSUFSORT
void sort_divsufsort(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(1));
  const Text text = *Text::of(text_of(state.range(0), size));
  const std::vector<std::uint8_t> bytes(text.ranks().begin(), text.ranks().end());
  std::vector<saidx_t> sorted(size);
  for (auto _ : state) {
    if (divsufsort(bytes.data(), sorted.data(), static_cast<saidx_t>(size)) != 0) std::abort();
    benchmark::DoNotOptimize(sorted.data());
  }
  std::vector<std::uint32_t> own(size);
  sort_suffixes(text.ranks(), text.alphabet(), own);
  if (!std::equal(own.begin(), own.end(), sorted.begin(),
                  [](std::uint32_t a, saidx_t b) { return a == static_cast<std::uint32_t>(b); })) {
    state.SkipWithError("the two do not agree");
  }
  per_symbol(state, size);
}
#endif

void periods(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(1));
  const SuffixArray index(*Text::of(text_of(state.range(0), size)));
  for (auto _ : state) benchmark::DoNotOptimize(candidate_periods(index));
  per_symbol(state, size);
}

void grammar(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(1));
  const Text text = *Text::of(text_of(state.range(0), size));
  std::size_t items = 0;
  for (auto _ : state) items = reduce(text).size();
  per_symbol(state, size);
  state.counters["items"] = static_cast<double>(items);
}

void all_texts(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"text", "symbols"})->Unit(benchmark::kMillisecond);
  for (std::int64_t kind = 0; kind < kKinds; ++kind) {
    for (std::int64_t size = 10'000; size <= 10'000'000; size *= 10) benchmark->Args({kind, size});
  }
}
BENCHMARK(repeats)->Apply(all_texts);
BENCHMARK(sort)->Apply(all_texts);
#ifdef PASTA_DIVSUFSORT
BENCHMARK(sort_divsufsort)->Apply(all_texts);
#endif
BENCHMARK(periods)->Apply(all_texts);
BENCHMARK(grammar)->Apply(all_texts);

}  // namespace
}  // namespace pasta::mine
