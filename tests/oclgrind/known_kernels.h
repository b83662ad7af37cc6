// The kernels of tests/gpu/accesses.cu that OpenCL has words for. For tests only.
#pragma once

inline constexpr const char* kKnownKernels = R"(
#define COPY(name, type)                                     \
  kernel void name(global const type* in, global type* out) { \
    const uint i = get_global_id(0);                          \
    out[i] = in[i];                                           \
  }
COPY(copy1, uchar)
COPY(copy2, ushort)
COPY(copy4, uint)
COPY(copy8, uint2)
COPY(copy16, uint4)
kernel void stride(global const float* in, global float* out, int step) {
  out[get_local_id(0)] = in[get_local_id(0) * step];
}
kernel void gather_sectors(global const float* in, global float* out) {
  out[get_local_id(0)] = in[(get_local_id(0) ^ 1) * 8];
}
kernel void gather_backwards(global const float* in, global float* out) {
  out[get_local_id(0)] = in[31 - get_local_id(0)];
}
kernel void gather_halves(global const float* in, global float* out) {
  out[get_local_id(0)] = in[get_local_id(0) % 2 * 512 + get_local_id(0) / 2];
}
kernel void transpose_plain(global const float* in, global float* out) {
  const int x = get_group_id(0) * 32 + get_local_id(0);
  for (int j = 0; j < 32; j += 8) {
    const int y = get_group_id(1) * 32 + get_local_id(1) + j;
    out[x * 64 + y] = in[y * 64 + x];
  }
}
#define TRANSPOSE(name, pitch)                                                                  \
  kernel void name(global const float* in, global float* out) {                                 \
    local float tile[32 * pitch];                                                               \
    const int i = get_local_id(0), k = get_local_id(1);                                         \
    const int x = get_group_id(0) * 32 + i, y = get_group_id(1) * 32 + k;                       \
    for (int j = 0; j < 32; j += 8) tile[(k + j) * pitch + i] = in[(y + j) * 64 + x];           \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    const int to_x = get_group_id(1) * 32 + i, to_y = get_group_id(0) * 32 + k;                 \
    for (int j = 0; j < 32; j += 8) out[(to_y + j) * 64 + to_x] = tile[i * pitch + k + j];      \
  }
TRANSPOSE(transpose_tile, 32)
TRANSPOSE(transpose_padded, 33)
kernel void reduction(global const float* in, global float* out) {
  local float sums[256];
  const uint i = get_local_id(0);
  sums[i] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_count = 128; half_count > 0; half_count /= 2) {
    if (i < half_count) sums[i] = sums[i] + sums[i + half_count];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i == 0) out[0] = sums[0];
}
kernel void histogram(global const uint* in, global uint* bins) {
  atomic_add(bins + in[get_global_id(0)], 1u);
}
kernel void histogram_shared(global const uint* in, global uint* bins) {
  local uint own[256];
  const uint i = get_local_id(0);
  own[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(own + in[i], 1u);
  barrier(CLK_LOCAL_MEM_FENCE);
  bins[i] = own[i];
}
kernel void odd_lanes(global const float* in, global float* out) {
  if (get_local_id(0) % 2 == 1) out[get_local_id(0)] = in[get_local_id(0)];
}
kernel void tail(global const float* in, global float* out, int count) {
  const int i = get_global_id(0);
  if (i < count) out[i] = in[i];
}
kernel void shifted(global const float* in, global float* out) {
  out[get_local_id(0)] = in[get_local_id(0) + 1];
}
kernel void same_words(global const float* in, global float* out) {
  local float words[64];
  const uint i = get_local_id(0);
  words[2 * i] = in[i];
  words[2 * i + 1] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = words[i % 16 * 4];
}
kernel void behind(global const uint* in, global uint* out) { out[0] = in[250]; }
)";
