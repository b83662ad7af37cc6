// Iterations of a few kernels on two streams; and one that is launched as often as time allows, as
// of who measures which kernel is the fastest: several_runs ITERATIONS.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "pasta/pasta.h"

template <class T>
__device__ __forceinline__ T load(const T* p, size_t i) {
  return p[i];
}
__global__ void add(const float* a, const float* b, float* c, size_t n) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    c[i] = load(a, i) + load(b, i);
  }
}
__global__ void strided(const float* a, float* c, size_t n) {
  const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) c[i] = load(a, i * 32);
}
__global__ void tried(float* a) { a[threadIdx.x] += 1.0f; }

int main(int count, char** words) {
  const int iterations = count > 1 ? std::atoi(words[1]) : 5;
  constexpr size_t kCount = 1 << 22, kBytes = kCount * sizeof(float);
  float *a = nullptr, *b = nullptr, *c = nullptr;
  cudaMalloc(&a, kBytes);
  cudaMalloc(&b, kBytes);
  cudaMalloc(&c, kBytes);
  cudaMemset(a, 0, kBytes);
  cudaMemset(b, 0, kBytes);
  pasta_tag(a, kBytes, "first");
  cudaStream_t one = nullptr, two = nullptr;
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  for (int i = 0; i < iterations; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    int times = 0;
    while (i == 1 && times < 200 &&
           std::chrono::steady_clock::now() - begin < std::chrono::microseconds(300)) {
      tried<<<1, 32, 0, one>>>(c);
      cudaStreamSynchronize(one);
      ++times;
    }
    if (i == 1) std::fprintf(stderr, "tried %d\n", times);
    add<<<1024, 256, 0, one>>>(a, b, c, kCount);
    strided<<<kCount / 32 / 256, 256, 0, two>>>(a, b, kCount / 32);
    cudaStreamSynchronize(two);
    pasta_step();
  }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
