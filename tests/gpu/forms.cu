// Each way in which a kernel can access memory on compute capability 9.0, in a kernel of its own:
// forms. What is to be counted of each is in known_accesses.py, worked out by hand.
#include <cstdint>

#include "known_kernels.cuh"

namespace {

__device__ unsigned item() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ unsigned shared_at(const void* of) {
  return static_cast<unsigned>(__cvta_generic_to_shared(of));
}
// Of another group of the cluster.
__device__ unsigned remote_at(const void* of, unsigned group) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_at(of)), "r"(group));
  return there;
}
__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
// One thread makes it, for so many bytes that come.
__device__ void expect(unsigned long long* barrier, unsigned bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_at(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_at(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ void await(unsigned long long* barrier) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n}\n" ::"r"(shared_at(barrier))
      : "memory");
}

__constant__ float constants[64];

}  // namespace

extern "C" {

__global__ void reduce_vectors(float4* sums) {
  asm volatile(
      "red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(sums + threadIdx.x),
      "f"(1.0f)
      : "memory");
}
__global__ void add_vectors(float2* sums, float2* out) {
  float2 before;
  asm volatile("atom.relaxed.gpu.global.add.v2.f32 {%0, %1}, [%2], {%3, %3};"
               : "=f"(before.x), "=f"(before.y)
               : "l"(sums + threadIdx.x), "f"(1.0f)
               : "memory");
  out[threadIdx.x] = before;
}
__global__ void swap4(unsigned* words, unsigned* out) {
  out[threadIdx.x] = atomicCAS(words + threadIdx.x / 4, 0u, threadIdx.x);
}
__global__ void swap8(unsigned long long* words, unsigned long long* out) {
  out[threadIdx.x] = atomicCAS(words + threadIdx.x, 0ull, 1ull);
}
__global__ void swap16(ulonglong2* words) {
  asm volatile(
      "{\n.reg .b128 was, old, new;\nmov.b128 old, {%1, %1};\nmov.b128 new, {%2, %2};\n"
      "atom.relaxed.gpu.global.cas.b128 was, [%0], old, new;\n}\n" ::"l"(words + threadIdx.x),
      "l"(0ull), "l"(1ull)
      : "memory");
}
// Of shared memory: 4 lanes at each of 8 words.
__global__ void shared_atomics(unsigned* out) {
  __shared__ unsigned words[8];
  unsigned* const own = words + threadIdx.x / 4;
  if (threadIdx.x < 8) words[threadIdx.x] = 0;
  __syncwarp();
  unsigned sum = atomicCAS(own, 0u, threadIdx.x);
  sum += atomicExch(own, threadIdx.x);
  sum += atomicMax(own, threadIdx.x);
  out[threadIdx.x] = sum;
}
// Of these addresses it is only known when it runs that the even lanes' are of shared memory.
__global__ void add_anywhere(unsigned* sums, unsigned* out) {
  __shared__ unsigned shared[32];
  shared[threadIdx.x] = 0;
  unsigned* const where = threadIdx.x % 2 == 0 ? shared + threadIdx.x : sums + threadIdx.x;
  unsigned before;
  asm volatile("atom.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(where) : "memory");
  out[threadIdx.x] = before;
}

__global__ void read_only(const uint4* in, uint4* out) {
  out[threadIdx.x] = __ldg(in + threadIdx.x);
}
// With an order, a policy of caches, and more to be fetched than is asked for.
__global__ void ordered(const unsigned* in, unsigned* out) {
  unsigned a, b;
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(a) : "l"(in + threadIdx.x) : "memory");
  asm volatile("ld.global.L1::no_allocate.L2::cache_hint.L2::256B.u32 %0, [%1], %2;"
               : "=r"(b)
               : "l"(in + threadIdx.x), "l"(policy)
               : "memory");
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(out + threadIdx.x), "r"(a + b)
               : "memory");
}
// Of what is only fetched ahead nothing is asked for.
__global__ void prefetches(const unsigned* in, unsigned* out) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(in + threadIdx.x));
  asm volatile("prefetch.global.L1 [%0];" ::"l"(in + threadIdx.x));
  asm volatile("prefetchu.L1 [%0];" ::"l"(in + threadIdx.x));
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], 512;" ::"l"(in) : "memory");
  out[threadIdx.x] = 1;
}

#define COPY_AHEAD(name, type)                                                                     \
  __global__ void name(const type* in, type* out) {                                                \
    __shared__ type tile[32];                                                                      \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_at(tile + threadIdx.x)), \
                 "l"(in + threadIdx.x), "n"(sizeof(type))                                          \
                 : "memory");                                                                      \
    asm volatile("cp.async.wait_all;" ::: "memory");                                               \
    out[threadIdx.x] = tile[threadIdx.x];                                                          \
  }
COPY_AHEAD(copies4, unsigned)
COPY_AHEAD(copies8, uint2)
// Half of what is written is read: the rest is zeros. Of the last 8 lanes nothing is read.
__global__ void copies_half(const uint4* in, uint4* out) {
  __shared__ uint4 tile[32];
  const unsigned bytes = threadIdx.x < 24 ? 8 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_at(tile + threadIdx.x)),
               "l"(in + threadIdx.x), "r"(bytes)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

// Rows of 16 bytes: 128 bytes apart, 32 of them; beside each other, 8 and 16; and 32 are written.
__global__ void matrices(unsigned* out) {
  __shared__ alignas(128) uint4 tile[32 * 8];
  unsigned a, b, c, d, e, f, g;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(shared_at(tile + 8 * threadIdx.x))
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(e)
               : "r"(shared_at(tile + threadIdx.x))
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(f), "=r"(g)
               : "r"(shared_at(tile + threadIdx.x))
               : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_at(tile + threadIdx.x)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
  out[threadIdx.x] = a + b + c + d + e + f + g;
}

__global__ void __cluster_dims__(2, 1, 1) async_stores(unsigned* out) {
  __shared__ unsigned words[32];
  __shared__ uint4 vectors[32];
  __shared__ alignas(8) unsigned long long barrier;
  if (threadIdx.x == 0) expect(&barrier, 32 * 4 + 32 * 16);
  cluster_barrier();
  const unsigned other = blockIdx.x ^ 1, there = remote_at(&barrier, other);
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
          remote_at(words + threadIdx.x, other)),
      "r"(threadIdx.x), "r"(there)
      : "memory");
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, "
      "[%2];" ::"r"(remote_at(vectors + threadIdx.x, other)),
      "r"(threadIdx.x), "r"(there)
      : "memory");
  await(&barrier);
  out[item()] = *(volatile unsigned*)(words + threadIdx.x);
  cluster_barrier();
}
// 4 lanes at each of 8 words of the other group.
__global__ void __cluster_dims__(2, 1, 1) async_reductions(unsigned* out) {
  __shared__ unsigned words[32];
  __shared__ alignas(8) unsigned long long barrier;
  words[threadIdx.x] = 0;
  if (threadIdx.x == 0) expect(&barrier, 32 * 4);
  cluster_barrier();
  const unsigned other = blockIdx.x ^ 1;
  asm volatile(
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, "
      "[%2];" ::"r"(remote_at(words + threadIdx.x / 4, other)),
      "r"(1u), "r"(remote_at(&barrier, other))
      : "memory");
  await(&barrier);
  out[item()] = *(volatile unsigned*)(words + threadIdx.x);
  cluster_barrier();
}
__global__ void __cluster_dims__(2, 1, 1) remote_atomics(unsigned* out) {
  __shared__ unsigned words[32];
  words[threadIdx.x] = 0;
  cluster_barrier();
  unsigned before;
  asm volatile("atom.relaxed.cluster.shared::cluster.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "r"(remote_at(words + threadIdx.x / 4, blockIdx.x ^ 1))
               : "memory");
  cluster_barrier();
  out[item()] = before;
}

// 512 bytes to the other group, and 512 added to it.
__global__ void __cluster_dims__(2, 1, 1) bulk_to_neighbour(unsigned* out) {
  __shared__ alignas(128) unsigned own[128], from_other[128];
  __shared__ alignas(8) unsigned long long barrier;
  for (unsigned i = threadIdx.x; i < 128; i += 32) own[i] = i;
  if (threadIdx.x == 0) expect(&barrier, 1024);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  cluster_barrier();
  const unsigned other = blockIdx.x ^ 1;
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 512, "
        "[%2];" ::"r"(remote_at(from_other, other)),
        "r"(shared_at(own)), "r"(remote_at(&barrier, other))
        : "memory");
    asm volatile(
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
        "[%0], [%1], 512, [%2];" ::"r"(remote_at(from_other, other)),
        "r"(shared_at(own)), "r"(remote_at(&barrier, other))
        : "memory");
  }
  await(&barrier);
  out[item()] = *(volatile unsigned*)(from_other + threadIdx.x);
  cluster_barrier();
}
__global__ void bulk_reduction(unsigned* out) {
  __shared__ alignas(128) unsigned tile[256];
  for (unsigned i = threadIdx.x; i < 256; i += 32) tile[i] = i;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();
  if (threadIdx.x != 0) return;
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 1024;" ::"l"(out),
      "r"(shared_at(tile))
      : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// One of two groups has 1024 bytes copied to both.
__global__ void __cluster_dims__(2, 1, 1) multicast(const unsigned* in, unsigned* out) {
  __shared__ alignas(128) unsigned tile[256];
  __shared__ alignas(8) unsigned long long barrier;
  if (threadIdx.x == 0) expect(&barrier, 1024);
  cluster_barrier();
  if (item() == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], "
        "[%1], 1024, [%2], %3;" ::"r"(shared_at(tile)),
        "l"(in), "r"(shared_at(&barrier)), "h"(static_cast<short>(3))
        : "memory");
  }
  await(&barrier);
  out[item()] = *(volatile unsigned*)(tile + threadIdx.x);
  cluster_barrier();
}

__device__ __noinline__ float other_function(const float* in) { return in[threadIdx.x]; }
__global__ void calls(const float* in, float* out) { out[threadIdx.x] = other_function(in); }

// 2^13 items read 2^20 times each: 2^33 lanes.
__global__ void endless(const volatile unsigned* in, unsigned* out) {
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned i = 0; i < 1u << 20; i += 16) {
#pragma unroll
    for (unsigned k = 0; k < 16; ++k) sum += in[item()];
  }
  out[item()] = sum;
}

// What no patch sees.
__global__ void textured(cudaTextureObject_t from, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(from, threadIdx.x);
}
__global__ void surfaces(cudaSurfaceObject_t on, unsigned* out) {
  surf2Dwrite(threadIdx.x, on, static_cast<int>(4 * threadIdx.x), 0);
  out[threadIdx.x] = surf2Dread<unsigned>(on, static_cast<int>(4 * threadIdx.x), 0);
}
__global__ void surface_reductions(cudaSurfaceObject_t on) {
  asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::"l"(on), "r"(4 * threadIdx.x),
               "r"(0), "r"(1u)
               : "memory");
}
__global__ void from_constants(const unsigned* in, float* out) {
  out[threadIdx.x] = constants[in[threadIdx.x]];
}
__global__ void products(float* out) {
  __shared__ alignas(128) unsigned char tile[4096];
  for (unsigned i = threadIdx.x; i < 1024; i += 128) reinterpret_cast<unsigned*>(tile)[i] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long a = (shared_at(tile) >> 4 & 0x3fff) | 8ull << 16 | 16ull << 32;
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}

}  // extern "C"

int main() {
  reduce_vectors<<<1, 32>>>(buffer<float4>(512));
  add_vectors<<<1, 32>>>(buffer<float2>(256), buffer<float2>(272));
  swap4<<<1, 32>>>(buffer<unsigned>(32), buffer<unsigned>(144));
  swap8<<<1, 32>>>(buffer<unsigned long long>(256), buffer<unsigned long long>(288));
  swap16<<<1, 32>>>(buffer<ulonglong2>(512));
  shared_atomics<<<1, 32>>>(buffer<unsigned>(128));
  add_anywhere<<<1, 32>>>(buffer<unsigned>(160), buffer<unsigned>(128));
  read_only<<<1, 32>>>(buffer<uint4>(512), buffer<uint4>(528));
  ordered<<<1, 32>>>(buffer<unsigned>(128), buffer<unsigned>(144));
  prefetches<<<1, 32>>>(buffer<unsigned>(512), buffer<unsigned>(128));
  copies4<<<1, 32>>>(buffer<unsigned>(128), buffer<unsigned>(144));
  copies8<<<1, 32>>>(buffer<uint2>(256), buffer<uint2>(272));
  copies_half<<<1, 32>>>(buffer<uint4>(512), buffer<uint4>(528));
  matrices<<<1, 32>>>(buffer<unsigned>(128));
  CHECK(cudaDeviceSynchronize());
  async_stores<<<2, 32>>>(buffer<unsigned>(256));
  async_reductions<<<2, 32>>>(buffer<unsigned>(256));
  remote_atomics<<<2, 32>>>(buffer<unsigned>(256));
  bulk_to_neighbour<<<2, 32>>>(buffer<unsigned>(256));
  bulk_reduction<<<1, 32>>>(buffer<unsigned>(1024));
  multicast<<<2, 32>>>(buffer<unsigned>(1024), buffer<unsigned>(256));
  calls<<<1, 32>>>(buffer<float>(128), buffer<float>(144));
  CHECK(cudaDeviceSynchronize());
  endless<<<32, 256>>>(buffer<unsigned>(32768), buffer<unsigned>(32784));
  CHECK(cudaDeviceSynchronize());

  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = buffer(128);
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 128;
  cudaTextureDesc how{};
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  textured<<<1, 32>>>(texture, buffer<float>(144));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc words = cudaCreateChannelDesc<unsigned>();
  CHECK(cudaMallocArray(&array, &words, 32, 1, cudaArraySurfaceLoadStore));
  resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  surfaces<<<1, 32>>>(surface, buffer<unsigned>(160));
  surface_reductions<<<1, 32>>>(surface);
  from_constants<<<1, 32>>>(buffer<unsigned>(128), buffer<float>(176));
  products<<<1, 128>>>(buffer<float>(512));
  CHECK(cudaDeviceSynchronize());
  std::puts("done");
  return 0;
}
