// The floor: a collector that asks CUPTI for the same kinds of records as PASTA and throws them
// away. KINDS: letters of k (kernels), m (copies and fills), r (calls of the runtime), s (waits),
// M (memory), d (calls of the driver), c (contexts), o (overhead), e (external ids), and q: of the
// calls only those that PASTA records. Its function collect_nothing() turns all that off and on.
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "adapters/cupti/calls.h"

namespace {

constexpr std::size_t kBytes = 4 << 20;
std::atomic<unsigned long> records = 0;

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* most) {
  *size = kBytes;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBytes));
  *most = 0;
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  unsigned long count = 0;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) ++count;
  records += count;
  std::free(buffer);
}

void at_end() {
  cuptiActivityFlushAll(1);
  if (std::getenv("SAY") != nullptr) std::fprintf(stderr, "%lu records\n", records.load());
}

template <std::size_t n, class Set>
void switch_calls(CUpti_CallbackDomain domain, const std::string_view (&beginnings)[n], Set set,
                  uint8_t on) {
  for (uint32_t callback = 1; callback < 2048; ++callback) {
    const char* name = nullptr;
    if (cuptiGetCallbackName(domain, callback, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    for (const std::string_view beginning : beginnings) {
      if (std::string_view(name).substr(0, beginning.size()) == beginning) set(callback, on);
    }
  }
}

}  // namespace

extern "C" void collect_nothing(int on) {
  static const char* const kinds = std::getenv("KINDS") != nullptr ? std::getenv("KINDS") : "kmrsM";
  const auto enable = [&](char letter, CUpti_ActivityKind kind) {
    if (std::strchr(kinds, letter) == nullptr) return;
    on != 0 ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
  };
  enable('c', CUPTI_ACTIVITY_KIND_CONTEXT);
  enable('k', CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  enable('m', CUPTI_ACTIVITY_KIND_MEMCPY);
  enable('m', CUPTI_ACTIVITY_KIND_MEMCPY2);
  enable('m', CUPTI_ACTIVITY_KIND_MEMSET);
  enable('s', CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  enable('M', CUPTI_ACTIVITY_KIND_MEMORY2);
  enable('M', CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  enable('o', CUPTI_ACTIVITY_KIND_OVERHEAD);
  enable('e', CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  enable('r', CUPTI_ACTIVITY_KIND_RUNTIME);
  enable('d', CUPTI_ACTIVITY_KIND_DRIVER);
  if (std::strchr(kinds, 'q') == nullptr) return;
  using namespace pasta::adapters::cupti;
  if (on != 0) {
    switch_calls(CUPTI_CB_DOMAIN_RUNTIME_API, kQueries, cuptiActivityEnableRuntimeApi, 0);
  }
  switch_calls(CUPTI_CB_DOMAIN_DRIVER_API, kDriverLaunches, cuptiActivityEnableDriverApi, on != 0);
}

extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(request, complete);
  collect_nothing(1);
  std::atexit(at_end);
  return 1;
}
