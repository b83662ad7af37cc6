// What collecting costs the watched program: time for each event pushed, from 1, 2 and 8 threads;
// the memory of the collector; a thread that begins, pushes once, and ends. The run's folder lies
// in the folder of $TMPDIR (a disk's) or /dev/shm; all that is pushed is kept until the end, half a
// GiB for each repetition. Without room for it there is nothing to measure, and that is said.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <thread>

#include "trace/spool.h"
#include "trace/spool_reader.h"
#include "trace/spool_writer.h"

namespace pasta::trace {
namespace {

constexpr int kEach = 1 << 18;

// KiB of `field` in /proc/self/smaps_rollup or status.
double memory_kib(const char* file, const char* field) {
  std::FILE* lines = std::fopen(file, "r");
  char line[256];
  double kib = 0;
  while (lines != nullptr && std::fgets(line, sizeof line, lines) != nullptr) {
    if (std::strncmp(line, field, std::strlen(field)) == 0) {
      kib = std::atof(line + std::strlen(field));
    }
  }
  if (lines != nullptr) std::fclose(lines);
  return kib;
}

// Two readings of it are in a range, one in the other pushes.
void clock_alone(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(spool_now_ns());
}

bool has_room(const SpoolPush& push, benchmark::State& state) {
  if (!push) state.SkipWithError("no room: see $TMPDIR");
  return static_cast<bool>(push);
}

// As a layer over a vendor's library pushes a call: its name known by number.
void push_event(benchmark::State& state) {
  Event event{};
  event.kind = Kind::kApi;
  for (auto _ : state) {
    SpoolPush push;
    if (!has_room(push, state)) break;
    event.name = push.string("clEnqueueNDRangeKernel");
    event.lane = push.lane();
    event.scope = push.scope();
    event.end_ns = push.now();
    push.add(event);
  }
}

// pasta_begin() and pasta_end(): one event.
void range(benchmark::State& state) {
  for (auto _ : state) {
    std::uint64_t token = 0;
    {
      SpoolPush push;
      if (!has_room(push, state)) break;
      token = push.open({"forward"});
    }
    SpoolPush push;
    if (!has_room(push, state)) break;
    push.close(token);
  }
}

void moment(benchmark::State& state) {
  for (auto _ : state) {
    SpoolPush push;
    if (!has_room(push, state)) break;
    push.mark({"moment"});
  }
}

// Of 100 threads: what each adds to the memory of the process.
void thread_that_pushes(benchmark::State& state) {
  for (auto _ : state) {
    std::thread([&] {
      if (state.range(0) == 0) return;
      SpoolPush push;
      if (push) push.mark({"moment"});
    }).join();
  }
}

void memory_of_8_threads(benchmark::State& state) {
  const double before = memory_kib("/proc/self/status", "VmRSS:");
  for (auto _ : state) {
    std::thread threads[8];
    for (std::thread& thread : threads) {
      thread = std::thread([] {
        for (int i = 0; i < kEach; ++i) {
          SpoolPush push;
          if (push) push.mark({"moment"});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  state.counters["rss_kib"] = memory_kib("/proc/self/status", "VmRSS:") - before;
}

BENCHMARK(clock_alone);
BENCHMARK(push_event)->Iterations(kEach)->Threads(1)->Threads(2)->Threads(8);
BENCHMARK(range)->Iterations(kEach)->Threads(1)->Threads(2)->Threads(8);
BENCHMARK(moment)->Iterations(kEach)->Threads(1)->Threads(2)->Threads(8);
BENCHMARK(thread_that_pushes)->Arg(0)->Arg(1)->Iterations(2000)->MeasureProcessCPUTime();
BENCHMARK(memory_of_8_threads)->Iterations(1);

// As `pastaprof run` makes it.
std::string make_run() {
  const char* place = std::getenv("TMPDIR");
  std::string name = (place != nullptr ? std::string(place) : "/dev/shm") + "/collect-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  std::FILE* file = std::fopen((name + '/' + spool::kRunFile).c_str(), "w+");
  if (file == nullptr || ftruncate(fileno(file), 4096) != 0) std::abort();
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  std::fclose(file);
  if (page == MAP_FAILED) std::abort();
  auto* run = new (page) spool::RunPage{};
  run->version = spool::kVersion;
  allow_what_is_quick(*run);
  run->limit_bytes = std::uint64_t{16} << 30;
  run->magic = spool::kRunMagic;
  return name;
}

}  // namespace
}  // namespace pasta::trace

int main(int argc, char** argv) {
  using namespace pasta::trace;
  const std::string folder = make_run();
  const double before = memory_kib("/proc/self/status", "VmRSS:");
  if (!join_run(folder.c_str(), {})) return 1;
  std::printf("joining a run adds %.0f KiB\n", memory_kib("/proc/self/status", "VmRSS:") - before);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(folder);
  return 0;
}
