// The floor: a collector that asks CUPTI for the same kinds of records as PASTA and throws them
// away. KINDS: letters of k (kernels), m (copies and fills), r (calls of the runtime), s (waits),
// M (memory), d (calls of the driver).
#include <cupti.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

}  // namespace

extern "C" int InitializeInjection() {
  const char* kinds = std::getenv("KINDS");
  if (kinds == nullptr) kinds = "kmrsM";
  cuptiActivityRegisterCallbacks(request, complete);
  const auto enable = [&](char letter, CUpti_ActivityKind kind) {
    if (std::strchr(kinds, letter) != nullptr) cuptiActivityEnable(kind);
  };
  enable('k', CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  enable('m', CUPTI_ACTIVITY_KIND_MEMCPY);
  enable('m', CUPTI_ACTIVITY_KIND_MEMCPY2);
  enable('m', CUPTI_ACTIVITY_KIND_MEMSET);
  enable('r', CUPTI_ACTIVITY_KIND_RUNTIME);
  enable('s', CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  enable('M', CUPTI_ACTIVITY_KIND_MEMORY2);
  enable('M', CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  enable('d', CUPTI_ACTIVITY_KIND_DRIVER);
  std::atexit(at_end);
  return 1;
}
