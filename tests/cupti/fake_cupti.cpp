// A libcupti.so.13 without a GPU: launch() tells of a launch and its kernel as CUPTI would.
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "adapters/cupti/api.h"
#include "adapters/cupti/records.h"

namespace {

using namespace pasta::adapters::cupti;

Api::Request request_buffer = nullptr;
Api::Complete complete_buffer = nullptr;
bool enabled[64] = {};
bool system_threads = false;
std::uint8_t* buffer = nullptr;
std::size_t size = 0, used = 0;
std::uint32_t correlation = 0;

std::uint64_t now() {
  timespec at{};
  clock_gettime(CLOCK_REALTIME, &at);
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(at.tv_nsec);
}

// As large as CUPTI 13's.
std::size_t size_of(RecordKind kind) { return kind == RecordKind::kRuntime ? 40 : 216; }

template <class Fields>
void tell(const Fields& fields) {
  if (!enabled[static_cast<int>(fields.kind)]) return;
  if (buffer == nullptr) {
    std::size_t most = 0;
    request_buffer(&buffer, &size, &most);
    used = 0;
    if (buffer == nullptr) return;
  }
  std::memcpy(buffer + used, &fields, sizeof fields);
  used += size_of(fields.kind);
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
  if (domain != 2 || callback != 211) return 1;
  *name = "cudaLaunchKernel_v7000";
  return 0;
}
EXPORT int cuptiActivityRegisterCallbacks(Api::Request request, Api::Complete complete) {
  request_buffer = request;
  complete_buffer = complete;
  return 0;
}
EXPORT int cuptiActivityEnable(RecordKind kind) {
  if (kind == RecordKind::kOverhead && std::getenv("FAKE_REFUSES") != nullptr) return 27;
  enabled[static_cast<int>(kind)] = true;
  return 0;
}
EXPORT int cuptiActivityDisable(RecordKind kind) {
  enabled[static_cast<int>(kind)] = false;
  return 0;
}
EXPORT int cuptiActivityFlushAll(std::uint32_t) {
  std::uint8_t* full = buffer;
  buffer = nullptr;
  if (full != nullptr) complete_buffer(nullptr, 0, full, size, used);
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

// The call takes 1 us, the kernel 2 us from its end on.
EXPORT void launch(const char* name, std::uint32_t thread) {
  ApiRecord call{};
  call.kind = RecordKind::kRuntime;
  call.callback = 211;
  // One after the other, however soon they come.
  static std::uint64_t last = 0;
  do call.start = now();
  while (call.start <= last);
  last = call.start + 3'000;
  call.end = call.start + 1'000;
  call.thread = system_threads ? thread : 0;
  call.correlation = ++correlation;
  tell(call);
  KernelRecord kernel{};
  kernel.kind = RecordKind::kConcurrentKernel;
  kernel.name = name;
  kernel.start = call.end;
  kernel.end = call.end + 2'000;
  kernel.context = 1;
  kernel.stream = 7;
  kernel.correlation = correlation;
  for (int i = 0; i < 3; ++i) kernel.grid[i] = kernel.block[i] = i + 1;
  tell(kernel);
}
