// What programs with known kernels share.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}
#define CHECK(call) check(call, #call)

// A buffer of its own, of so many bytes, all of them zero.
template <class T = char>
T* buffer(std::size_t bytes) {
  void* made = nullptr;
  CHECK(cudaMalloc(&made, bytes));
  CHECK(cudaMemset(made, 0, bytes));
  return static_cast<T*>(made);
}

// A function of the driver, as it was in some version.
template <class Function>
Function driver(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  CHECK(cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result));
  if (found == nullptr) std::exit(4);
  return reinterpret_cast<Function>(found);
}
