// A libcupti.so.13 without a GPU: launch() tells of a launch and its kernel as CUPTI would.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "adapters/cupti/api.h"
#include "adapters/cupti/records.h"
#include "fake_gpu.h"

namespace {

using namespace pasta::adapters::cupti;

// Of the program, which may have a second one of these. The driver serves the one that subscribed
// first, and no other.
extern "C" __attribute__((weak)) void* fake_driver_serves;

Api::Request request_buffer = nullptr;
Api::Complete complete_buffer = nullptr;
bool enabled[64] = {};
bool enabled_calls[3][512] = {};  // each by itself, by domain
bool by_call[3] = {};             // some were asked for before the first call, by domain
bool system_threads = false;
std::uint8_t* buffer = nullptr;
std::size_t size = 0, used = 0;
std::uint32_t correlation = 0;
Api::Callback subscriber = nullptr;
bool wanted_callbacks[7][512] = {};

bool is_served() {
  return &fake_driver_serves == nullptr || fake_driver_serves == nullptr ||
         fake_driver_serves == &subscriber;
}

std::uint64_t now() {
  timespec at{};
  clock_gettime(CLOCK_REALTIME, &at);
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(at.tv_nsec);
}

// With FAKE_GPUS, each call's work is on the next of them, and what CUPTI makes of a GPU's times is
// a millisecond early; unless it is to leave them as they are.
bool raw_times = false;

std::uint32_t gpus() {
  const char* count = std::getenv("FAKE_GPUS");
  return count == nullptr ? 0 : static_cast<std::uint32_t>(std::atoi(count));
}

std::uint32_t gpu_of(std::uint32_t number) { return gpus() == 0 ? 0 : number % gpus(); }

std::uint64_t on_gpu(std::uint32_t gpu, std::uint64_t at) {
  if (gpus() == 0) return at;
  if (!raw_times) return at - 1'000'000;
  // The two clocks run at different speeds, and whoever reads both may be interrupted.
  std::uint64_t ahead = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = now();
    timespec raw{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
    const std::uint64_t took = now() - before;
    ahead = before + took / 2 - static_cast<std::uint64_t>(raw.tv_sec) * 1'000'000'000 -
            static_cast<std::uint64_t>(raw.tv_nsec);
    if (took < 2'000) break;
  }
  return static_cast<std::uint64_t>(fake_gpu_ns(gpu, static_cast<std::int64_t>(at - ahead)));
}

template <class Fields>
void set_device(Fields& fields, std::uint64_t start) {
  fields.device = gpu_of(fields.correlation);
  fields.start = on_gpu(fields.device, start);
  fields.end = on_gpu(fields.device, start + 2'000);
}

// Of CUDA 12, records are smaller.
std::size_t size_of(RecordKind kind) {
  static const bool is_12 = std::getenv("FAKE_CUDA") != nullptr;
  switch (kind) {
    case RecordKind::kRuntime:
    case RecordKind::kDriver:
      return 40;
    case RecordKind::kExternalCorrelation:
      return 24;
    case RecordKind::kGraphTrace:
      return is_12 ? 48 : 56;
    case RecordKind::kMemcpy:
      return is_12 ? 88 : 96;
    default:
      return is_12 ? 208 : 216;
  }
}

// Of the buffer: the program fills it, and another thread asks for what is there.
pthread_mutex_t filling = PTHREAD_MUTEX_INITIALIZER;

void flush() {
  std::uint8_t* full = buffer;
  buffer = nullptr;
  if (full != nullptr) complete_buffer(nullptr, 0, full, size, used);
}

template <class Fields>
void tell(const Fields& fields, bool also = false) {
  if (!enabled[static_cast<int>(fields.kind)] && !also) return;
  pthread_mutex_lock(&filling);
  if (buffer == nullptr) {
    std::size_t most = 0;
    request_buffer(&buffer, &size, &most);
    used = 0;
  }
  if (buffer != nullptr) {
    std::memcpy(buffer + used, &fields, sizeof fields);
    used += size_of(fields.kind);
    if (size - used < 512) flush();
  }
  pthread_mutex_unlock(&filling);
}

template <class Data>
void call_back(int domain, std::uint32_t id, const Data& data) {
  if (subscriber != nullptr && wanted_callbacks[domain][id]) subscriber(nullptr, domain, id, &data);
}

// What is told to it of nodes: pointers to their numbers.
struct Graph {
  void *graph, *original_graph, *node, *original_node;
};
struct Resource {
  void *context, *resource;
  const void* what;
};
void tell_node(std::uint32_t id, std::uint64_t node, std::uint64_t original) {
  const Graph graph{nullptr, nullptr, &node, &original};
  call_back(3, id, Resource{nullptr, nullptr, &graph});
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return 0;
}
EXPORT int cuptiGetResultString(int, const char** text) {
  *text = "refused";
  return 0;
}
EXPORT int cuptiGetTimestamp(std::uint64_t* at) {
  *at = now();
  return 0;
}
EXPORT int cuptiGetCallbackName(int domain, std::uint32_t callback, const char** name) {
  constexpr struct {
    int domain;
    std::uint32_t callback;
    const char* name;
  } kNames[] = {{1, 17, "cuCtxSynchronize"},
                {1, 126, "cuStreamSynchronize"},
                {1, 307, "cuLaunchKernel"},
                {1, 311, "cuProfilerInitialize"},
                {2, 170, "cudaProfilerInitialize_v4000"},
                {2, 171, "cudaProfilerStart_v4000"},
                {2, 17, "cudaGetDevice_v3020"},
                {2, 41, "cudaMemcpyAsync_v3020"},
                {2, 51, "cudaMemsetAsync_v3020"},
                {2, 131, "cudaStreamSynchronize_v3020"},
                {2, 147, "cudaStreamWaitEvent_v3020"},
                {2, 211, "cudaLaunchKernel_v7000"}};
  for (const auto& row : kNames) {
    if (row.domain != domain || row.callback != callback) continue;
    *name = row.name;
    return 0;
  }
  return 1;
}
EXPORT int cuptiActivityRegisterCallbacks(Api::Request request, Api::Complete complete) {
  if (buffer != nullptr) std::fprintf(stderr, "fake: who registers gets another's buffer\n");
  for (const auto& calls : enabled_calls) {
    for (const bool on : calls) {
      if (on) std::fprintf(stderr, "fake: who registers gets calls that another asked for\n");
    }
  }
  request_buffer = request;
  complete_buffer = complete;
  return 0;
}
EXPORT int cuptiActivityEnable(RecordKind kind) {
  if (!is_served()) return 39;
  if (kind == RecordKind::kOverhead && std::getenv("FAKE_REFUSES") != nullptr) return 27;
  enabled[static_cast<int>(kind)] = true;
  // Others come between.
  if (std::getenv("FAKE_SLOW") != nullptr) sched_yield();
  if (std::getenv("FAKE_TELLS") != nullptr)
    std::fprintf(stderr, "fake: kind %d is on\n", static_cast<int>(kind));
  return 0;
}
// Not by every CUPTI of 12. It is asked for at any time only if some were when CUDA began.
int enable_call(int domain, std::uint32_t id, bool on) {
  if (std::getenv("FAKE_CUDA") != nullptr) return 27;
  by_call[domain] = by_call[domain] || (on && correlation == 0);
  enabled_calls[domain][id] = on && by_call[domain];
  return 0;
}
EXPORT int cuptiActivityEnableRuntimeApi(std::uint32_t id, std::uint8_t on) {
  return enable_call(2, id, on != 0);
}
EXPORT int cuptiActivityEnableDriverApi(std::uint32_t id, std::uint8_t on) {
  return enable_call(1, id, on != 0);
}
// Not in the headers, and not in each CUPTI of 12.
EXPORT int cuptiActivityEnableRawTimestamps(std::uint8_t on) {
  if (std::getenv("FAKE_CUDA") != nullptr) return 27;
  raw_times = on != 0;
  if (std::getenv("FAKE_TELLS") != nullptr) std::fprintf(stderr, "fake: raw times %d\n", on);
  return 0;
}
EXPORT int cuptiGetDeviceId(void* context, std::uint32_t* device) {
  *device = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  return 0;
}
EXPORT int cuptiGetStreamIdEx(void*, const void* stream, std::uint8_t, std::uint32_t* id) {
  *id = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stream));
  return 0;
}
EXPORT void launch(const char* name, std::uint32_t thread);
static void* register_second(void*) {
  void* const found = dlsym(RTLD_DEFAULT, "cuptiActivityRegisterCallbacks");
  reinterpret_cast<int (*)(Api::Request, Api::Complete)>(found)(nullptr, nullptr);
  return nullptr;
}
EXPORT int cuptiActivityDisable(RecordKind kind) {
  // What another thread has begun just before.
  if (kind == RecordKind::kConcurrentKernel && std::getenv("FAKE_BUSY") != nullptr) {
    launch("meanwhile", static_cast<std::uint32_t>(gettid()));
  }
  // A second one wants it, too; given time to get it, which it should not before the first.
  if (kind == RecordKind::kConcurrentKernel && std::getenv("FAKE_SECOND") != nullptr) {
    pthread_t second;
    timespec until;
    pthread_create(&second, nullptr, register_second, nullptr);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100'000'000;
    if (until.tv_nsec >= 1'000'000'000) ++until.tv_sec, until.tv_nsec -= 1'000'000'000;
    if (pthread_timedjoin_np(second, nullptr, &until) != 0) pthread_detach(second);
  }
  enabled[static_cast<int>(kind)] = false;
  return 0;
}
EXPORT int cuptiActivityFlushAll(std::uint32_t) {
  pthread_mutex_lock(&filling);
  flush();
  pthread_mutex_unlock(&filling);
  return 0;
}
EXPORT int cuptiActivityGetNextRecord(std::uint8_t* from, std::size_t valid, Record** record) {
  std::uint8_t* next = *record == nullptr
                           ? from
                           : reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= from + valid) return 12;
  *record = reinterpret_cast<Record*>(next);
  return 0;
}
EXPORT int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  *dropped = 0;
  return 0;
}
EXPORT int cuptiActivitySetAttribute(int, std::size_t*, void*) { return 0; }
EXPORT int cuptiSetThreadIdType(int type) {
  system_threads = type == 1;
  return 0;
}

EXPORT int cuptiSubscribe(void** handle, Api::Callback function, void*) {
  if (subscriber != nullptr || !is_served() || std::getenv("FAKE_TAKEN") != nullptr) return 39;
  subscriber = function;
  if (&fake_driver_serves != nullptr) fake_driver_serves = &subscriber;
  *handle = &subscriber;
  return 0;
}
EXPORT int cuptiUnsubscribe(void*) {
  subscriber = nullptr;
  std::memset(wanted_callbacks, 0, sizeof wanted_callbacks);
  return 0;
}
EXPORT int cuptiEnableCallback(std::uint32_t enable, void*, int domain, std::uint32_t id) {
  wanted_callbacks[domain][id] = enable != 0;
  return 0;
}
EXPORT int cuptiGetGraphNodeId(void* node, std::uint64_t* id) {
  *id = *static_cast<std::uint64_t*>(node);
  return 0;
}

// A node of a graph that is being captured, and its copy in the one that will be launched.
EXPORT void capture(std::uint64_t node) { tell_node(13, node, 0); }
EXPORT void instantiate(std::uint64_t node, std::uint64_t original) {
  tell_node(20, node, original);
}
// As after an error that it cannot go on after: it takes itself out of the process.
EXPORT void fail() {
  call_back(6, 1, StateData{1, nullptr});
  subscriber = nullptr;
  request_buffer = nullptr;
  std::memset(enabled, 0, sizeof enabled);
  std::memset(enabled_calls, 0, sizeof enabled_calls);
}
// The number that the next call has, as after hours.
EXPORT void set_correlation(std::uint32_t next) { correlation = next - 1; }
EXPORT void external_id(std::uint64_t number) {
  ExternalCorrelationRecord external{};
  external.kind = RecordKind::kExternalCorrelation;
  external.external_kind = 3;
  external.external = number;
  external.correlation = correlation + 1;
  tell(external);
}

namespace {

// Of each device, before its first work.
void create_contexts() {
  static std::uint32_t created = 0;
  const std::uint32_t all = gpus() == 0 ? 1 : gpus();
  while (created < all) {
    call_back(3, 1, Resource{reinterpret_cast<void*>(std::uintptr_t{++created}), nullptr, nullptr});
  }
}

// The call takes 1 us and returns no sooner, what it starts 2 us from its end on.
ApiRecord call_of(std::uint32_t id, std::uint32_t thread, bool of_driver = false) {
  create_contexts();
  ApiRecord call{};
  call.kind = of_driver ? RecordKind::kDriver : RecordKind::kRuntime;
  call.callback = id;
  // One after the other, however soon they come.
  static std::uint64_t last = 0;
  do call.start = now();
  while (call.start <= last);
  last = call.start + 3'000;
  call.end = call.start + 1'000;
  call.thread = system_threads ? thread : 0;
  if (++correlation == 0) correlation = 1;  // 0 is no number
  call.correlation = correlation;
  tell(call, enabled_calls[of_driver ? 1 : 2][id]);
  while (now() < call.end) {
  }
  return call;
}

// Of the runtime, with what a subscriber is called for before and after it.
ApiRecord told_call(std::uint32_t id, std::uint32_t thread) {
  std::uint64_t kept = 0;
  CallData data{};
  data.kept = &kept;
  data.correlation = correlation + 1;
  call_back(2, id, data);
  const ApiRecord call = call_of(id, thread);
  data.site = 1;
  call_back(2, id, data);
  return call;
}

}  // namespace

// cudaProfilerStart and cudaProfilerStop. Of a call of which is asked before its end its record is
// told.
EXPORT void profiler(bool start) {
  const std::uint32_t id = start ? 171 : 172;
  call_back(2, id, std::int32_t{0});
  call_back(2, id, std::int32_t{1});
  if (enabled_calls[2][id]) call_of(id, static_cast<std::uint32_t>(gettid()));
}
// A call whose kernel is still under way, and then all that is known is handed out: when it
// returns, that has been taken.
EXPORT void launch_unfinished(std::uint32_t thread) {
  call_of(211, thread);
  pthread_mutex_lock(&filling);
  const volatile std::uint8_t* const bytes = buffer;
  flush();
  pthread_mutex_unlock(&filling);
  while (bytes != nullptr && *bytes != 0) sched_yield();
}
// A call that waits, and what its first two arguments are. `inner`: of the driver, in it.
EXPORT void wait_in(int domain, std::uint32_t id, std::uint32_t inner, std::uintptr_t first,
                    std::uintptr_t second, std::uint32_t thread) {
  const void* const parameters[] = {reinterpret_cast<const void*>(first),
                                    reinterpret_cast<const void*>(second)};
  std::uint64_t kept = 0;
  CallData data{};
  data.kept = &kept;
  data.parameters = parameters;
  data.context_number = 1;
  data.correlation = correlation + (inner != 0 ? 2 : 1);
  call_back(domain, id, data);
  if (inner != 0) wait_in(1, inner, 0, first, second, thread);
  call_of(id, thread, domain == 1);
  data.site = 1;
  call_back(domain, id, data);
}
// cudaGetDevice.
EXPORT void ask(std::uint32_t thread) { call_of(17, thread); }
EXPORT void copy_from_host(std::uint32_t thread) {
  const ApiRecord call = told_call(41, thread);
  MemcpyRecord copy{};
  copy.kind = RecordKind::kMemcpy;
  copy.copy_kind = 1;
  copy.source_kind = 2;
  copy.target_kind = 3;
  copy.bytes = 19'267'584;
  copy.context = 1;
  copy.stream = 7;
  copy.correlation = call.correlation;
  set_device(copy, call.end);
  tell(copy);
}
EXPORT void fill(std::uint32_t thread) {
  const ApiRecord call = call_of(51, thread);
  MemsetRecord fill{};
  fill.kind = RecordKind::kMemset;
  fill.bytes = 1024;
  fill.start = call.end;
  fill.end = call.end + 2'000;
  fill.context = 1;
  fill.stream = 7;
  fill.correlation = call.correlation;
  tell(fill);
}
static void tell_kernel(const char* name, const ApiRecord& call, std::uint64_t node) {
  KernelRecord kernel{};
  kernel.kind = RecordKind::kConcurrentKernel;
  kernel.name = name;
  kernel.context = 1;
  kernel.stream = 7;
  kernel.correlation = correlation;
  set_device(kernel, call.end);
  kernel.graph_node = node;
  for (int i = 0; i < 3; ++i) kernel.grid[i] = kernel.block[i] = i + 1;
  tell(kernel);
}
EXPORT void launch_node(const char* name, std::uint32_t thread, std::uint64_t node) {
  const ApiRecord call = told_call(211, thread);
  if (node != 0 && enabled[static_cast<int>(RecordKind::kGraphTrace)]) {
    GraphTraceRecord graph{};
    graph.kind = RecordKind::kGraphTrace;
    graph.correlation = correlation;
    set_device(graph, call.end);
    graph.graph = 5;
    graph.context = 1;
    graph.stream = 7;
    return tell(graph);
  }
  tell_kernel(name, call, node);
}
// By the driver alone.
EXPORT void launch_by_driver(const char* name, std::uint32_t thread) {
  tell_kernel(name, call_of(307, thread, true), 0);
}
EXPORT void launch(const char* name, std::uint32_t thread) { launch_node(name, thread, 0); }
// On the thread that calls; as a function that a thread can begin with. A kernel's name stays.
EXPORT void* launch_here(void* name) {
  launch(strdup(static_cast<const char*>(name)), static_cast<std::uint32_t>(gettid()));
  return nullptr;
}
// Calls of whose end the subscriber is not told: a launch, a wait for a stream.
EXPORT void begin_launch() {
  std::uint64_t kept = 0;
  CallData data{};
  data.kept = &kept;
  call_back(2, 211, data);
}
EXPORT void begin_wait() {
  const void* const parameters[] = {nullptr};
  std::uint64_t kept = 0;
  CallData data{};
  data.kept = &kept;
  data.parameters = parameters;
  call_back(2, 131, data);
}
