// A kernel that launches kernels: nested COUNT of them, each with two of its own. Linked with the
// device's runtime, which known.cu is not.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

extern "C" {
__global__ void child(int* threads) { atomicAdd(threads, 1); }
__global__ void parent(int* threads) {
  child<<<2, 32>>>(threads);
  child<<<3, 32>>>(threads);
}
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 10;
  int* threads = nullptr;
  int seen = 0;
  if (cudaMalloc(&threads, sizeof *threads) != cudaSuccess) return 3;
  cudaMemset(threads, 0, sizeof *threads);
  for (int i = 0; i < count; ++i) parent<<<1, 1>>>(threads);
  const cudaError_t error = cudaMemcpy(&seen, threads, sizeof seen, cudaMemcpyDeviceToHost);
  std::printf("%d threads of children, %s\n", seen, cudaGetErrorString(error));
  return seen == count * 5 * 32 ? 0 : 4;
}
