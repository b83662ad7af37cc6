// The rival of patches that analyse on the GPU, as a library that CUDA's driver loads
// (CUDA_INJECTION64_PATH): the same accesses as records through rings to the host, where threads do
// what the patches do. For figures, not for users.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/sanitizer/api.h"
#include "adapters/sanitizer/objects.h"
#include "device/gpu_patch.h"
#include "rival/record_tables.h"
#include "rival/ring_patch.h"

namespace pasta::benchmarks {
namespace {

using namespace adapters::sanitizer;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kRings = 144;  // an H200 has 132 multiprocessors
constexpr std::uint32_t kCapacity = 1u << 16;
constexpr std::size_t kBatch = 1024;  // records that stay in a core's first cache
constexpr auto kMostWait = std::chrono::seconds(20);

// What the adapter `sanitizer` patches for tools of global memory.
constexpr std::pair<Instruction, const char*> kPoints[] = {
    {Instruction::kGlobal, "pasta_ring_global"},
    {Instruction::kCopyAsync, "pasta_ring_copy"},
    {Instruction::kBulkGlobalToShared, "pasta_ring_bulk_to_shared"},
    {Instruction::kBulkSharedToGlobal, "pasta_ring_bulk_to_global"},
    {Instruction::kBulkReductionToGlobal, "pasta_ring_bulk_reduce_global"},
};

struct Ring {
  std::uint64_t read = 0;
  RecordTables::Carry carry;
};

struct State {
  Api api{};
  Handle subscriber = nullptr;
  std::mutex mutex;
  Objects objects;
  std::set<Handle> modules, contexts;
  std::string code;  // file of the patches
  Handle context = nullptr, stream = nullptr;
  std::atomic<bool> analysing{false};

  // On the GPU: header, ends of rings, the count of what was lost. On the host: rings, released.
  std::byte* device = nullptr;
  WarpRecord* records = nullptr;
  std::uint64_t* released = nullptr;
  std::vector<Ring> rings;
  std::unique_ptr<RecordTables> tables;
  std::vector<std::thread> threads;
  std::vector<std::int64_t> busy_ns;  // of each thread
  std::atomic<std::uint64_t> all_read{0};
  std::atomic<bool> over{false};
};
State& state() {
  static State* const made = new State;
  return *made;
}
thread_local bool t_ours = false;

using Header = device::GpuLaunch<RingPatch>;
constexpr std::size_t kEndsAt = 1024;
constexpr std::size_t kLostAt = kEndsAt + kRings * sizeof(RingEnds);
constexpr std::size_t kDeviceBytes = kLostAt + sizeof(std::uint64_t);
static_assert(sizeof(Header) <= kEndsAt);

bool good(Api::Error error, const char* what) {
  if (error == 0) return true;
  const char* text = nullptr;
  state().api.error_text(error, &text);
  std::fprintf(stderr, "rival: %s: %s\n", what, text == nullptr ? "unknown error" : text);
  return false;
}

void on_callback(void*, Domain domain, std::uint32_t callback, const void* data) {
  State& s = state();
  if (t_ours) return;
  if (domain == Domain::kLaunch && callback == static_cast<std::uint32_t>(LaunchCallback::kBegin)) {
    const auto& launch = *static_cast<const LaunchData*>(data);
    good(s.api.set_launch_data(launch.launch, launch.function, launch.stream_handle,
                               s.analysing ? s.device : nullptr),
         "the data of a launch");
    s.context = launch.context;
    s.stream = launch.stream_handle;
    return;
  }
  if (domain != Domain::kResource) return;
  switch (static_cast<ResourceCallback>(callback)) {
    case ResourceCallback::kModuleLoaded: {
      const auto& module = *static_cast<const ModuleData*>(data);
      const std::lock_guard lock(s.mutex);
      if (s.contexts.insert(module.context).second) {
        good(s.api.add_patches(s.code.c_str(), module.context), "the patches");
      }
      s.modules.insert(module.module);
      break;
    }
    case ResourceCallback::kModuleUnloadStarting: {
      const std::lock_guard lock(s.mutex);
      s.modules.erase(static_cast<const ModuleData*>(data)->module);
      break;
    }
    case ResourceCallback::kMemoryAllocated:
    case ResourceCallback::kAllocatedAsync: {
      const auto& memory = *static_cast<const MemoryData*>(data);
      const std::lock_guard lock(s.mutex);
      s.objects.allocated(memory.address, memory.bytes, kind_of_flags(memory.flags));
      break;
    }
    case ResourceCallback::kHostAllocated: {
      const auto& memory = *static_cast<const MemoryData*>(data);
      const std::lock_guard lock(s.mutex);
      s.objects.allocated(memory.address, memory.bytes, MemoryKind::kHost);
      break;
    }
    case ResourceCallback::kMemoryFreed:
    case ResourceCallback::kHostFreed:
    case ResourceCallback::kFreedAsync: {
      const std::lock_guard lock(s.mutex);
      s.objects.freed(static_cast<const MemoryData*>(data)->address);
      break;
    }
    default:
      break;
  }
}

// Reads what is there of one ring; how many records.
std::size_t read(State& s, std::uint32_t number, unsigned thread) {
  Ring& ring = s.rings[number];
  const WarpRecord* const base = s.records + std::size_t{number} * kCapacity;
  const std::size_t at = ring.read & (kCapacity - 1);
  const std::uint64_t lap = (ring.read & kCapacity) == 0 ? WarpRecord::kLap : 0;
  const std::size_t most = std::min<std::size_t>(kBatch, kCapacity - at);
  std::size_t count = 0;
  while (count < most &&
         (__atomic_load_n(&base[at + count].packed, __ATOMIC_ACQUIRE) & WarpRecord::kLap) == lap) {
    ++count;
  }
  if (count == 0) return 0;
  s.tables->count({base + at, count}, thread, ring.carry);
  ring.read += count;
  __atomic_store_n(s.released + std::size_t{number} * RingPatch::kLine, ring.read,
                   __ATOMIC_RELEASE);
  return count;
}

void work(unsigned thread, unsigned threads) {
  State& s = state();
  t_ours = true;
  while (!s.over.load(std::memory_order_relaxed)) {
    std::size_t all = 0;
    const auto begin = Clock::now();
    for (std::uint32_t ring = thread; ring < kRings; ring += threads) all += read(s, ring, thread);
    if (all == 0) {
      std::this_thread::yield();
      continue;
    }
    s.busy_ns[thread] += std::chrono::nanoseconds(Clock::now() - begin).count();
    s.all_read.fetch_add(all, std::memory_order_relaxed);
  }
}

bool make_memory(State& s) {
  if (s.device != nullptr) return true;
  void *device = nullptr, *records = nullptr, *released = nullptr;
  const std::size_t ring_bytes = std::size_t{kRings} * kCapacity * sizeof(WarpRecord);
  const std::size_t released_bytes = std::size_t{kRings} * RingPatch::kLine * sizeof(std::uint64_t);
  if (!good(s.api.allocate(s.context, &device, kDeviceBytes), "memory on the device") ||
      !good(s.api.allocate_host(s.context, &records, ring_bytes), "memory on the host") ||
      !good(s.api.allocate_host(s.context, &released, released_bytes), "memory on the host")) {
    return false;
  }
  s.device = static_cast<std::byte*>(device);
  s.records = static_cast<WarpRecord*>(records);
  s.released = static_cast<std::uint64_t*>(released);
  std::memset(records, 0, ring_bytes);
  std::memset(released, 0, released_bytes);
  Header header{};
  header.launch.global_only = 1;
  header.state = {
      .rings = reinterpret_cast<RingEnds*>(s.device + kEndsAt),
      .records = s.records,
      .released = s.released,
      .lost = reinterpret_cast<std::uint64_t*>(s.device + kLostAt),
      .ring_count = kRings,
      .capacity = kCapacity,
  };
  s.rings.resize(kRings);
  return good(s.api.fill(device, 0, kDeviceBytes, s.stream), "zeroing it") &&
         good(s.api.copy_to_device(device, &header, sizeof header, s.stream), "the header") &&
         good(s.api.synchronize(s.stream), "the header");
}

}  // namespace
}  // namespace pasta::benchmarks

extern "C" {

// Patches all modules and begins to analyse; 0 when it did. The device has nothing to do.
__attribute__((visibility("default"))) int rival_begin(unsigned threads, std::uint64_t granule) {
  using namespace pasta::benchmarks;
  State& s = state();
  t_ours = true;
  bool ok = make_memory(s);
  std::shared_ptr<const Snapshot> objects;
  std::set<Handle> modules;
  {
    const std::lock_guard lock(s.mutex);
    objects = s.objects.snapshot();
    modules = s.modules;
  }
  s.tables = std::make_unique<RecordTables>(objects->objects, threads, granule);
  s.busy_ns.assign(threads, 0);
  s.all_read = 0;
  s.over = false;
  for (unsigned i = 0; i < threads; ++i) s.threads.emplace_back(work, i, threads);
  for (const Handle module : modules) {
    for (const auto& [instruction, function] : kPoints) {
      ok = good(s.api.patch_instructions(instruction, module, function), function) && ok;
    }
    ok = good(s.api.patch_module(module), "patching a module") && ok;
  }
  s.analysing = true;
  t_ours = false;
  return ok ? 0 : 1;
}

// Once the device has nothing to do: until all has been analysed. Records so far; 0: some are lost.
__attribute__((visibility("default"))) std::uint64_t rival_wait() {
  using namespace pasta::benchmarks;
  State& s = state();
  t_ours = true;
  std::vector<std::byte> ends(kDeviceBytes - kEndsAt);
  bool ok =
      good(s.api.copy_to_host(ends.data(), s.device + kEndsAt, ends.size(), s.stream), "ends");
  t_ours = false;
  std::uint64_t lost = 0;
  std::memcpy(&lost, ends.data() + (kLostAt - kEndsAt), sizeof lost);
  ok = ok && lost == 0;
  const auto deadline = Clock::now() + kMostWait;
  for (std::uint32_t ring = 0; ok && ring < kRings; ++ring) {
    RingEnds end{};
    std::memcpy(&end, ends.data() + ring * sizeof end, sizeof end);
    while (__atomic_load_n(s.released + std::size_t{ring} * RingPatch::kLine, __ATOMIC_ACQUIRE) <
           end.head) {
      ok = ok && Clock::now() < deadline;
      if (!ok) break;
    }
  }
  return ok ? s.all_read.load() : 0;
}

// Takes the patches out and writes what was counted, as JSON.
__attribute__((visibility("default"))) int rival_end(const char* path) {
  using namespace pasta::benchmarks;
  State& s = state();
  t_ours = true;
  s.analysing = false;
  s.over = true;
  for (std::thread& thread : s.threads) thread.join();
  s.threads.clear();
  std::set<Handle> modules;
  {
    const std::lock_guard lock(s.mutex);
    modules = s.modules;
  }
  for (const Handle module : modules) {
    good(s.api.unpatch_module(module), "taking a patch out");
  }
  t_ours = false;
  std::FILE* const file = std::fopen(path, "we");
  if (file == nullptr) return 1;
  std::int64_t busy_ns = 0;
  for (const std::int64_t ns : s.busy_ns) busy_ns += ns;
  std::fputs(
      fmt::format("{{\"records\": {}, \"busy_ns\": {}, \"objects\": [", s.all_read.load(), busy_ns)
          .c_str(),
      file);
  const auto objects = s.tables->objects();
  const char* between = "";
  for (std::size_t i = 0; i <= objects.size(); ++i) {
    const auto total = s.tables->total(i);
    if (total.warps == 0) continue;
    std::fputs(
        fmt::format("{}{{\"size\": {}, \"reads\": {}, \"writes\": {}, \"atomics\": {}, \"warps\": "
                    "{}, \"asked\": {}, \"sectors\": {}, \"touched\": {}}}",
                    between, i < objects.size() ? fmt::to_string(objects[i].bytes) : "null",
                    total.reads, total.writes, total.atomics, total.warps, total.asked_bytes,
                    total.sectors, total.touched)
            .c_str(),
        file);
    between = ", ";
  }
  std::fputs("]}\n", file);
  return std::fclose(file);
}

__attribute__((visibility("default"))) int InitializeInjection() {
  using namespace pasta::benchmarks;
  State& s = state();
  if (s.subscriber != nullptr) return 1;
  auto loaded = load_api();
  const char* const code = std::getenv("RIVAL_CODE");
  if (!loaded || code == nullptr) {
    std::fprintf(stderr, "rival: %s\n",
                 loaded ? "RIVAL_CODE names no file" : loaded.error().message.c_str());
    return 1;
  }
  s.api = loaded->api;
  s.code = code;
  t_ours = true;
  if (good(s.api.subscribe(&s.subscriber, on_callback, nullptr), "Compute Sanitizer")) {
    good(s.api.enable_domain(1, s.subscriber, Domain::kResource), "callbacks");
    good(s.api.enable_domain(1, s.subscriber, Domain::kLaunch), "callbacks");
  }
  t_ours = false;
  return 1;
}

}  // extern "C"
