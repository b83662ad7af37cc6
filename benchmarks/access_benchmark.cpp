// What it costs to analyse an access of a warp: by the patch `access` on the host, as a simulator
// runs it; and as records that go to threads of the host, the rival of patches on a GPU.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <random>
#include <vector>

#include "device/access.h"
#include "device/layout.h"
#include "device/result.h"
#include "rival/record_analyser.h"

namespace pasta::benchmarks {
namespace {

constexpr std::size_t kRecords = std::size_t{1} << 20;
constexpr std::size_t kBuffer = std::size_t{1} << 18;  // records: 4 MiB
constexpr std::uint64_t kObjectBytes = 65536;

// 1000 objects. Most warps read a row of one, as kernels do; some a tile, whose rows may have gaps
// or lie across, a column or one word, some from all over an object, which is a record for each
// lane.
struct Workload {
  std::vector<device::MemoryObject> objects;
  std::vector<WarpRecord> records;

  Workload() {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      objects.push_back({(std::uint64_t{1} << 30) + i * 2 * kObjectBytes, kObjectBytes, i + 1});
    }
    std::mt19937_64 random(8);
    while (records.size() + device::kWarpLanes <= kRecords) {
      // A kernel reads from a few objects many times.
      const std::uint64_t base = objects[random() % objects.size()].address;
      for (int i = 0; i < 256 && records.size() + device::kWarpLanes <= kRecords; ++i) {
        const std::uint64_t kind = random() % 100;
        const std::uint64_t at = base + random() % (kObjectBytes / 8192) * 4096;
        if (kind < 3) {
          // Eight rows of four lanes that are 16 bytes apart.
          records.push_back(WarpRecord::tile(at, 4, 0, 16, 256, 2));
        } else if (kind < 4) {
          // Rows across, and one as far back.
          records.push_back(WarpRecord::tile(at, 4, 0, 1024, 4, 3));
        } else if (kind < 5) {
          records.push_back(WarpRecord::tile(at + 2048, 8, 1, -8, -72, 3));
        } else if (kind < 6) {
          // Each row one word.
          records.push_back(WarpRecord::tile(at, 4, 0, 0, 40, 3));
        } else if (kind < 7) {
          // Rows that overlap, so that lanes are looked at one by one.
          records.push_back(WarpRecord::tile(at, 4, 0, 16, 24, 2));
        } else if (kind < 10) {
          // Four rows of a tile.
          records.push_back(WarpRecord::of(base + random() % 4 * 4096, 16, 0, ~0u, 1024, 3));
        } else if (kind < 80) {
          records.push_back(WarpRecord::of(at, 4, kind < 60 ? 0 : 1, ~0u, 4));
        } else if (kind < 90) {
          records.push_back(WarpRecord::of(at, 4, 0, ~0u, 128));
        } else if (kind < 99) {
          records.push_back(WarpRecord::of(at, 4, 0, ~0u, 0));
        } else {
          for (unsigned lane = 0; lane < device::kWarpLanes; ++lane) {
            records.push_back(WarpRecord::of(base + random() % (kObjectBytes / 4) * 4, 4, 2, 1, 0));
          }
        }
      }
    }
  }
};

const Workload& workload() {
  static const Workload made;
  return made;
}

device::AccessPatch::State& patched(device::HostState<device::AccessPatch>& host,
                                    const device::Launch& launch) {
  device::Warp warp;
  for (const WarpRecord& record : workload().records) {
    warp.width = static_cast<std::uint32_t>(record.width());
    warp.access = static_cast<device::Access>(record.access());
    warp.active = record.lanes();
    if (warp.active == 0) continue;
    warp.site = record.access();
    for (std::uint32_t rest = record.lanes(); rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      warp.address[lane] = record.lane_address(lane);
    }
    device::AccessPatch::on_access(host.state(), launch, warp);
  }
  return host.state();
}

device::Launch launch_of(const std::vector<device::MemoryObject>& objects) {
  return {.objects = objects.data(), .object_count = static_cast<std::uint32_t>(objects.size())};
}

void set_counters(benchmark::State& state) {
  const auto accesses = static_cast<double>(workload().records.size());
  state.counters["access"] = benchmark::Counter(
      accesses, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void patch_on_host(benchmark::State& state) {
  const device::Launch launch = launch_of(workload().objects);
  for ([[maybe_unused]] auto _ : state) {
    device::HostState<device::AccessPatch> host(launch);
    benchmark::DoNotOptimize(patched(host, launch).objects);
  }
  set_counters(state);
}
BENCHMARK(patch_on_host)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

// One buffer is filled while the other is analysed; filling is a copy, as from a device.
void drain(RecordAnalyser& analyser, std::array<std::vector<WarpRecord>, 2>& buffers) {
  const std::span<const WarpRecord> all = workload().records;
  std::size_t turn = 0;
  bool any = false;
  for (std::size_t at = 0; at < all.size(); at += kBuffer) {
    const auto part = all.subspan(at, std::min(kBuffer, all.size() - at));
    std::vector<WarpRecord>& buffer = buffers[turn++ % 2];
    buffer.assign(part.begin(), part.end());
    if (any) analyser.wait();
    analyser.give(buffer);
    any = true;
  }
  analyser.wait();
}

bool tells_alike(const RecordAnalyser& analyser, const device::Launch& launch,
                 const device::AccessPatch::State& patched) {
  std::vector<device::AccessCounts> expected(launch.object_count);
  for (const device::ResultTable& table : device::AccessPatch::result(launch, patched, {}).tables) {
    if (table.id != device::TableId::kAccesses) continue;
    for (const auto& row : device::rows_of<device::AccessRow>(table)) {
      if (row.object > launch.object_count) return false;
      expected[row.object - 1] = row.counts;  // they are numbered from 1
    }
  }
  for (std::uint32_t i = 0; i < launch.object_count; ++i) {
    if (analyser.total(i) != expected[i]) return false;
  }
  return true;
}

void records_to_threads(benchmark::State& state) {
  const auto& objects = workload().objects;
  const auto threads = static_cast<unsigned>(state.range(0));
  std::array<std::vector<WarpRecord>, 2> buffers;
  RecordAnalyser analyser(objects, threads);
  drain(analyser, buffers);
  // The same answer, or the figure is worth nothing.
  const device::Launch launch = launch_of(objects);
  device::HostState<device::AccessPatch> host(launch);
  if (!tells_alike(analyser, launch, patched(host, launch))) {
    state.SkipWithError("the rival counts something else than the patch");
    return;
  }
  for ([[maybe_unused]] auto _ : state) drain(analyser, buffers);
  set_counters(state);
  state.SetBytesProcessed(
      static_cast<std::int64_t>(workload().records.size() * sizeof(WarpRecord)) *
      state.iterations());
}
BENCHMARK(records_to_threads)
    ->RangeMultiplier(2)
    ->Range(1, 16)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace pasta::benchmarks
