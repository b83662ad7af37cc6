// Where the GPU's own times of a kernel, as CUPTI has them before it makes them the host's, lie
// beside the first and the last reading of %globaltimer in it, ns: raw_times COUNT. 77: this CUPTI
// does not give them.
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "timed_spin.cuh"

namespace {

constexpr int kBlocks = 132;
constexpr std::size_t kBytes = 1 << 20;

std::vector<std::pair<long long, long long>> kernels;

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* most) {
  *size = kBytes;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBytes));
  *most = 0;
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    kernels.push_back(
        std::make_pair(static_cast<long long>(kernel->start), static_cast<long long>(kernel->end)));
  }
  std::free(buffer);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 50;
  // Not in CUPTI's headers.
  const auto enable = reinterpret_cast<CUptiResult (*)(uint8_t)>(
      dlsym(RTLD_DEFAULT, "cuptiActivityEnableRawTimestamps"));
  if (enable == nullptr || enable(1) != CUPTI_SUCCESS) return 77;
  if (cuptiActivityRegisterCallbacks(request, complete) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
    return 3;
  }
  unsigned long long* readings = nullptr;
  if (cudaMalloc(&readings, 2 * kBlocks * sizeof *readings) != cudaSuccess) return 3;
  timed_spin<<<kBlocks, 32>>>(1000, readings);
  cudaDeviceSynchronize();
  cuptiActivityFlushAll(1);
  kernels.clear();
  std::vector<std::pair<long long, long long>> seen;
  for (int i = 0; i < count; ++i) {
    timed_spin<<<kBlocks, 32>>>(200'000ull * static_cast<unsigned>(i % 10 + 1), readings);
    unsigned long long read[2 * kBlocks];
    if (cudaMemcpy(read, readings, sizeof read, cudaMemcpyDeviceToHost) != cudaSuccess) return 3;
    unsigned long long first = read[0], last = read[1];
    for (int k = 0; k < 2 * kBlocks; k += 2) {
      first = std::min(first, read[k]);
      last = std::max(last, read[k + 1]);
    }
    seen.push_back(std::make_pair(static_cast<long long>(first), static_cast<long long>(last)));
  }
  cuptiActivityFlushAll(1);
  std::sort(kernels.begin(), kernels.end());
  if (kernels.size() != seen.size()) return 4;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    std::printf("%lld %lld\n", kernels[i].first - seen[i].first,
                kernels[i].second - seen[i].second);
  }
  return 0;
}
