// Kernels as NVRTC compiles them, to PTX: nvcc -ptx -arch=compute_90. Sizes are those of
// ptx_steps.cu.

extern "C" __global__ void copy(const float* in, float* out, int items) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < items; i += gridDim.x * blockDim.x) {
    out[i] = in[i] + 1;
  }
}

// Squares of 32 rows and columns, of a group of 32 x 8.
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
  constexpr int kTile = 32, kRows = 8;
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sums[kTile / kRows] = {};
  for (int begin = 0; begin < n; begin += kTile) {
    for (int i = 0; i < kTile; i += kRows) {
      left[threadIdx.y + i][threadIdx.x] = a[(row + i) * n + begin + threadIdx.x];
      right[threadIdx.y + i][threadIdx.x] = b[(begin + threadIdx.y + i) * n + column];
    }
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      for (int i = 0; i < kTile / kRows; ++i) {
        sums[i] += left[threadIdx.y + i * kRows][k] * right[k][threadIdx.x];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kTile / kRows; ++i) c[(row + i * kRows) * n + column] = sums[i];
}

// Counts bytes, each lane four of them.
extern "C" __global__ void histogram(const unsigned* in, unsigned* counts, int items) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < items; i += gridDim.x * blockDim.x) {
    for (unsigned value = in[i], byte = 0; byte < 4; ++byte) {
      atomicAdd(&counts[value >> 8 * byte & 255], 1u);
    }
  }
}
