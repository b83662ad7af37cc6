// The floor: a collector that asks CUPTI for the same kinds of records as PASTA and throws them
// away. KINDS: letters of k (kernels), y (copies), f (fills), m (both), r (calls of the runtime), s
// (waits), M (memory), d (calls of the driver), c (contexts), o (overhead), e (external ids); q: of
// the runtime's calls only those that PASTA records, v: the same, each asked for by itself, w:
// launches, copies and fills alone, D: of the driver's calls only launches; l: launches of kernels
// by callbacks before and after each. PINNED=1 has times of device work written to the host's
// memory, PER_THREAD=0 has all threads write into one buffer; DEVICE_BUFFER is how large the
// buffers on the device are, in bytes, of which PRE_ALLOCATED are made at once; HW_TRACE asks for
// times of kernels by the GPU's events, where it can do that.
//
// Its function collect_nothing() turns all that off and on, collect() asks for other kinds, and
// collect_buffers() for other buffers. Loaded by a program that has run without it, it begins with
// collect_begin(), and collect_end() takes CUPTI out of the process.
#include <cupti.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapters/cupti/calls.h"
#include "adapters/cupti/waits.h"

namespace {

constexpr std::string_view kLaunches[] = {"cudaLaunchKernel", "cudaLaunchCooperativeKernel",
                                          "__cudaLaunchKernel", "cudaGraphLaunch"};
constexpr std::string_view kWork[] = {"cudaLaunchKernel",   "cudaLaunchCooperativeKernel",
                                      "__cudaLaunchKernel", "cudaGraphLaunch",
                                      "cudaMemcpyAsync",    "cudaMemsetAsync"};
// Of buffers that are kept and used again; of each size.
constexpr std::size_t kKeptBytes = std::size_t{32} << 20;

struct Kept {
  std::size_t size;
  unsigned char* memory;
  std::vector<unsigned char*> free;
};
std::mutex buffers_lock;
std::vector<Kept> all_kept;
std::size_t buffer_bytes = 4 << 20;
int keep_buffers = 0;
std::atomic<int> flush_ms = 0;
std::atomic<unsigned long> records = 0, buffers = 0;
CUpti_SubscriberHandle subscriber = nullptr;
std::string now_on;

Kept& kept_of(std::size_t size) {
  for (Kept& kept : all_kept) {
    if (kept.size == size) return kept;
  }
  const int file = memfd_create("buffers", 0);
  if (file < 0 || ftruncate(file, kKeptBytes) != 0) std::abort();
  void* memory =
      mmap(nullptr, kKeptBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  if (memory == MAP_FAILED) std::abort();
  Kept kept{size, static_cast<unsigned char*>(memory), {}};
  for (std::size_t at = 0; at < kKeptBytes; at += size) kept.free.push_back(kept.memory + at);
  return all_kept.emplace_back(std::move(kept));
}

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* most) {
  const std::lock_guard lock(buffers_lock);
  *size = buffer_bytes;
  *most = 0;
  if (keep_buffers != 0) {
    Kept& kept = kept_of(buffer_bytes);
    if (!kept.free.empty()) {
      *buffer = kept.free.back();
      kept.free.pop_back();
      return;
    }
  }
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  if (keep_buffers == 1) std::memset(*buffer, 0, buffer_bytes);
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  unsigned long count = 0;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) ++count;
  records += count;
  ++buffers;
  const std::lock_guard lock(buffers_lock);
  for (Kept& kept : all_kept) {
    if (buffer < kept.memory || buffer >= kept.memory + kKeptBytes) continue;
    if (keep_buffers == 1) std::memset(buffer, 0, valid);
    kept.free.push_back(buffer);
    return;
  }
  std::free(buffer);
}

// What a collector would have to keep of a call.
struct Launch {
  std::uint64_t begin_ns, end_ns, correlation, name;
};
thread_local Launch launches[256];
thread_local unsigned next_launch = 0;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId callback, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite == CUPTI_API_ENTER) {
    launches[next_launch] = {now_ns(), 0, call->correlationId, callback};
  } else {
    launches[next_launch].end_ns = now_ns();
    next_launch = (next_launch + 1) % std::size(launches);
  }
}

bool is_wait(std::string_view name) {
  return pasta::adapters::cupti::wait_call(name).target != pasta::SyncTarget::kUnknown;
}

void at_end() {
  cuptiActivityFlushAll(1);
  if (std::getenv("SAY") != nullptr) std::fprintf(stderr, "%lu records\n", records.load());
}

template <class Wanted, class Set>
void switch_some(CUpti_CallbackDomain domain, Wanted wanted, Set set) {
  for (uint32_t callback = 1; callback < 2048; ++callback) {
    const char* name = nullptr;
    if (cuptiGetCallbackName(domain, callback, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (wanted(std::string_view(name))) set(callback);
  }
}

template <std::size_t n, class Set>
void switch_calls(CUpti_CallbackDomain domain, const std::string_view (&beginnings)[n], Set set) {
  switch_some(
      domain,
      [&](std::string_view name) {
        return pasta::adapters::cupti::begins_with_one(name, beginnings);
      },
      set);
}

}  // namespace

extern "C" void collect(const char* kinds) {
  using namespace pasta::adapters::cupti;
  const auto is_in = [](const std::string& of, char letter) {
    return of.find(letter) != std::string::npos;
  };
  const std::string wanted = kinds;
  const auto changes = [&](char letter) { return is_in(wanted, letter) != is_in(now_on, letter); };
  const auto enable_if = [](bool on, bool was_on, CUpti_ActivityKind kind) {
    if (on != was_on) on ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
  };
  const auto enable = [&](char letter, CUpti_ActivityKind kind) {
    enable_if(is_in(wanted, letter), is_in(now_on, letter), kind);
  };
  const auto either = [&](char one, char other, CUpti_ActivityKind kind) {
    enable_if(is_in(wanted, one) || is_in(wanted, other),
              is_in(now_on, one) || is_in(now_on, other), kind);
  };
  enable('c', CUPTI_ACTIVITY_KIND_CONTEXT);
  enable('k', CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  either('m', 'y', CUPTI_ACTIVITY_KIND_MEMCPY);
  either('m', 'y', CUPTI_ACTIVITY_KIND_MEMCPY2);
  either('m', 'f', CUPTI_ACTIVITY_KIND_MEMSET);
  enable('s', CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  enable('M', CUPTI_ACTIVITY_KIND_MEMORY2);
  enable('M', CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  enable('o', CUPTI_ACTIVITY_KIND_OVERHEAD);
  enable('e', CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  enable('r', CUPTI_ACTIVITY_KIND_RUNTIME);
  enable('d', CUPTI_ACTIVITY_KIND_DRIVER);
  if (is_in(wanted, 'q') && is_in(wanted, 'r')) {
    switch_calls(CUPTI_CB_DOMAIN_RUNTIME_API, kQueries,
                 [](uint32_t call) { cuptiActivityEnableRuntimeApi(call, 0); });
  }
  if (changes('v')) {
    const std::uint8_t on = is_in(wanted, 'v') ? 1 : 0;
    switch_some(
        CUPTI_CB_DOMAIN_RUNTIME_API,
        [](std::string_view name) { return !begins_with_one(name, kQueries); },
        [&](uint32_t call) { cuptiActivityEnableRuntimeApi(call, on); });
  }
  if (changes('S')) {
    const std::uint8_t on = is_in(wanted, 'S') ? 1 : 0;
    if (subscriber == nullptr) cuptiSubscribe(&subscriber, on_call, nullptr);
    for (const auto domain : {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API}) {
      switch_some(domain, is_wait,
                  [&](uint32_t call) { cuptiEnableCallback(on, subscriber, domain, call); });
    }
    switch_some(CUPTI_CB_DOMAIN_DRIVER_API, is_wait,
                [&](uint32_t call) { cuptiActivityEnableDriverApi(call, on); });
  }
  if (changes('D')) {
    const std::uint8_t on = is_in(wanted, 'D') ? 1 : 0;
    switch_calls(CUPTI_CB_DOMAIN_DRIVER_API, kDriverLaunches,
                 [&](uint32_t call) { cuptiActivityEnableDriverApi(call, on); });
  }
  if (changes('w')) {
    const std::uint8_t on = is_in(wanted, 'w') ? 1 : 0;
    switch_calls(CUPTI_CB_DOMAIN_RUNTIME_API, kWork,
                 [&](uint32_t call) { cuptiActivityEnableRuntimeApi(call, on); });
  }
  if (changes('l')) {
    if (subscriber == nullptr) cuptiSubscribe(&subscriber, on_call, nullptr);
    const std::uint32_t on = is_in(wanted, 'l') ? 1 : 0;
    switch_calls(CUPTI_CB_DOMAIN_RUNTIME_API, kLaunches, [&](uint32_t call) {
      cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, call);
    });
    switch_calls(CUPTI_CB_DOMAIN_DRIVER_API, kDriverLaunches, [&](uint32_t call) {
      cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, call);
    });
  }
  now_on = wanted;
}

// `bytes` each, new ones every time, or `kept` in shared memory and used again, made zero by who
// takes them back (1) or by CUPTI (2); emptied every so many milliseconds (0: never), below zero by
// CUPTI's own thread.
extern "C" void collect_buffers(std::size_t bytes, int kept, int flush_every_ms) {
  flush_ms = 0;
  cuptiActivityFlushAll(1);
  const std::lock_guard lock(buffers_lock);
  buffer_bytes = bytes;
  keep_buffers = kept;
  if (kept != 0) kept_of(bytes);
  std::uint8_t zeroed = kept == 1 ? 1 : 0;
  std::size_t size = sizeof zeroed;
  cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
  cuptiActivityFlushPeriod(flush_every_ms < 0 ? static_cast<std::uint32_t>(-flush_every_ms) : 0);
  flush_ms = flush_every_ms > 0 ? flush_every_ms : 0;
}

extern "C" unsigned long collect_count() { return records; }

extern "C" void collect_flush() { cuptiActivityFlushAll(1); }

extern "C" int collect_begin() {
  all_kept.reserve(16);
  const auto set = [](const char* variable, CUpti_ActivityAttribute attribute, auto value) {
    if (std::getenv(variable) == nullptr) return;
    value = static_cast<decltype(value)>(std::atoll(std::getenv(variable)));
    std::size_t size = sizeof value;
    if (cuptiActivitySetAttribute(attribute, &size, &value) != CUPTI_SUCCESS) {
      std::fprintf(stderr, "CUPTI refuses %s\n", variable);
    }
  };
  set("PINNED", CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, std::uint8_t{});
  set("PER_THREAD", CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, std::uint8_t{});
  set("DEVICE_BUFFER", CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, std::size_t{});
  set("PRE_ALLOCATED", CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, std::size_t{});
  if (std::getenv("HW_TRACE") != nullptr && cuptiActivityEnableHWTrace(1) != CUPTI_SUCCESS) {
    std::fprintf(stderr, "CUPTI refuses HW_TRACE\n");
  }
  const int result = cuptiActivityRegisterCallbacks(request, complete);
  if (const char* asked = std::getenv("BUFFERS"); asked != nullptr) {
    std::size_t bytes = 0;
    int kept = 0, every_ms = 0;
    if (std::sscanf(asked, "%zu,%d,%d", &bytes, &kept, &every_ms) == 3) {
      collect_buffers(bytes, kept, every_ms);
    }
  }
  static bool started = false;
  if (!started) {
    started = true;
    std::thread([] {
      for (;;) {
        const int ms = flush_ms;
        timespec time{0, (ms > 0 ? ms : 20) * 1'000'000L};
        nanosleep(&time, nullptr);
        if (ms > 0 && ms == flush_ms) cuptiActivityFlushAll(0);
      }
    }).detach();
  }
  return result;
}

extern "C" int collect_end() {
  collect("");
  collect_buffers(buffer_bytes, 0, 0);
  if (subscriber != nullptr) cuptiUnsubscribe(subscriber);
  subscriber = nullptr;
  return cuptiFinalize();
}

extern "C" void collect_nothing(int on) {
  static const char* const kinds = std::getenv("KINDS") != nullptr ? std::getenv("KINDS") : "kmrsM";
  collect(on != 0 ? kinds : "");
}

extern "C" int InitializeInjection() {
  collect_begin();
  collect_nothing(1);
  std::atexit(at_end);
  return 1;
}
