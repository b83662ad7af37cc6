// clang-format off
template <class T>
__device__ __forceinline__ T load(const T* p, int i) {
  return p[i];
}
__global__ void copy(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] =
      load(in, i);
}
__device__ __noinline__ float helper(const float* p, int i) {
  return p[i * 7] + p[i * 3];
}
__global__ void scale(float* p, const float* q, float by) {
  __shared__ float t[32];
  t[threadIdx.x] = helper(q, threadIdx.x);
  __syncthreads();
  p[threadIdx.x] *= by * t[31 - threadIdx.x];
  atomicAdd(p, 1.0f);
}
// places.cubin: nvcc -lineinfo -arch=sm_90 -cubin (CUDA 13.0); then its folders were renamed.
