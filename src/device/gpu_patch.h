// What Compute Sanitizer calls on a GPU, for each access of a lane: makes a warp of it and hands it
// to a patch. PASTA_GPU_PATCH(name, Patch) writes the functions pasta_NAME_global and so on.
#pragma once

#include <cstdint>

#include "device/launch.h"
#include "device/warp.h"
#ifdef PASTA_FOR_GPU
#include "device/gpu_warp.h"
#endif

namespace pasta::device {

#ifdef PASTA_FOR_GPU

inline constexpr std::uint32_t kBulkBytes = 16;  // what bulk copies count in

// Of a launch that is not analysed nothing is given. And an access by a generic address is handed
// to the patches of global, shared, local and other groups' shared memory in turn, each time under
// a predicate that the patch before did not keep. So a lane that was called may be called again,
// with its registers as it left them: where `given` would begin there is the 0 that it returned.
// Such a call is no access. No launch is given an address that begins so, see begin_launch().
__device__ inline bool is_given(const void* given) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(given)) != 0;
}

enum VendorFlag : std::uint32_t { kReads = 1, kWrites = 2, kPrefetches = 8 };

template <class Patch, bool kWide = false>
__device__ void on_access(void* given, std::uint64_t pc, Space space, Access access,
                          std::uint64_t address, std::uint32_t width, std::uint32_t lanes) {
  auto& launch = *static_cast<GpuLaunch<Patch>*>(given);
  // Where only global memory is looked into, nothing else calls what looks into other memory.
  if (kWide && space != Space::kGlobal && launch.launch.global_only != 0) return;
  const GpuWarp<kWide> warp(space, access, pc, launch.code, address, width, lanes);
  Patch::on_access(launch.state, launch.launch, warp);
}

template <class Patch>
__device__ void on_flagged(void* given, std::uint64_t pc, Space space, std::uint64_t address,
                           std::uint32_t width, std::uint32_t flags) {
  if (!is_given(given) || (flags & kPrefetches) != 0) return;
  // Neither or both is an atomic.
  static_assert(kReads == static_cast<unsigned>(Access::kRead) + 1 &&
                kWrites == static_cast<unsigned>(Access::kWrite) + 1 &&
                (kReads | kWrites) == static_cast<unsigned>(Access::kAtomic) + 1);
  const std::uint32_t both = flags & (kReads | kWrites);
  const Access access = both != 0 ? static_cast<Access>(both - 1) : Access::kAtomic;
  on_access<Patch>(given, pc, space, access, address, width, __activemask());
}

// From one space to another; each lane its own bytes. What is read of global memory:
template <class Patch>
__device__ void on_copy_read(void* given, std::uint64_t pc, std::uint64_t from,
                             std::uint32_t bytes) {
  // Lanes that only fill with zeros read nothing.
  if (!is_given(given) || from == 0) return;
  on_access<Patch>(given, pc, Space::kGlobal, Access::kRead, from, bytes, __activemask());
}
// One access of the whole length, which one lane stands for. Called, as it is seldom: what is part
// of five functions takes its stack five times, see path_of() of the adapter.
template <class Patch>
__device__ __noinline__ void on_bulk(void* given, std::uint64_t pc, Space from_space,
                                     std::uint64_t from, Space to_space, std::uint64_t to,
                                     Access access, std::uint32_t blocks) {
#if __CUDA_ARCH__ >= 900  // others have none
  if (!is_given(given) || blocks == 0) return;
  const std::uint32_t before = gpu::lanes_before(), own = gpu::own_lane();
  if ((__activemask() & before) != 0) return;
  const std::uint32_t bytes = blocks * kBulkBytes;
  on_access<Patch, true>(given, pc, from_space, Access::kRead, from, bytes, own);
  on_access<Patch, true>(given, pc, to_space, access, to, bytes, own);
#endif
}

// What is as an access of shared memory calls the function for that, so that its stack is taken
// once.
__device__ inline void* shared_address(std::uint32_t address) {
  return reinterpret_cast<void*>(std::uint64_t{address});
}

#define PASTA_GPU_ENTRY(name, kind) extern "C" __device__ __noinline__ int pasta_##name##_##kind

#define PASTA_GPU_FLAGGED(name, kind, Patch, space)                                                \
  PASTA_GPU_ENTRY(name, kind)                                                                      \
  (void* given, std::uint64_t pc, void* address, std::uint32_t width, std::uint32_t flags,         \
   const void*) {                                                                                  \
    ::pasta::device::on_flagged<Patch>(given, pc, space, reinterpret_cast<std::uint64_t>(address), \
                                       width, flags);                                              \
    return 0;                                                                                      \
  }

#define PASTA_GPU_PATCH(name, Patch)                                                               \
  PASTA_GPU_FLAGGED(name, global, Patch, ::pasta::device::Space::kGlobal)                          \
  PASTA_GPU_FLAGGED(name, shared, Patch, ::pasta::device::Space::kShared)                          \
  PASTA_GPU_FLAGGED(name, local, Patch, ::pasta::device::Space::kLocal)                            \
  PASTA_GPU_ENTRY(name, copy_read)                                                                 \
  (void* given, std::uint64_t pc, void* from, std::uint32_t, std::uint32_t bytes) {                \
    ::pasta::device::on_copy_read<Patch>(given, pc, reinterpret_cast<std::uint64_t>(from), bytes); \
    return 0;                                                                                      \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, copy)                                                                      \
  (void* given, std::uint64_t pc, void* from, std::uint32_t to, std::uint32_t bytes) {             \
    if (!::pasta::device::is_given(given)) return 0;                                               \
    const std::uint32_t lanes = __activemask();                                                    \
    pasta_##name##_copy_read(given, pc, from, to, bytes);                                          \
    __syncwarp(lanes);                                                                             \
    return pasta_##name##_shared(given, pc, ::pasta::device::shared_address(to), bytes,            \
                                 ::pasta::device::kWrites, nullptr);                               \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, matrix)                                                                    \
  (void* given, std::uint64_t pc, std::uint32_t address, std::uint32_t width, std::uint32_t flags, \
   std::uint32_t count, const void*) {                                                             \
    ::pasta::device::on_matrix<Patch>(given, pc, address, width, flags, count);                    \
    return 0;                                                                                      \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, async_store)                                                               \
  (void* given, std::uint64_t pc, std::uint32_t address, std::uint32_t, void*,                     \
   std::uint32_t width) {                                                                          \
    return pasta_##name##_shared(given, pc, ::pasta::device::shared_address(address), width,       \
                                 ::pasta::device::kWrites, nullptr);                               \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, async_reduction)                                                           \
  (void* given, std::uint64_t pc, std::uint32_t address, std::uint32_t, std::uint32_t width) {     \
    return pasta_##name##_shared(given, pc, ::pasta::device::shared_address(address), width,       \
                                 ::pasta::device::kReads | ::pasta::device::kWrites, nullptr);     \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, bulk_to_shared)                                                            \
  (void* given, std::uint64_t pc, std::uint64_t from, std::uint32_t to, std::uint32_t,             \
   std::uint32_t blocks, std::uint32_t) {                                                          \
    ::pasta::device::on_bulk<Patch>(given, pc, ::pasta::device::Space::kGlobal, from,              \
                                    ::pasta::device::Space::kShared, to,                           \
                                    ::pasta::device::Access::kWrite, blocks & 0xffff);             \
    return 0;                                                                                      \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, bulk_to_global)                                                            \
  (void* given, std::uint64_t pc, std::uint64_t to, std::uint32_t from, std::uint32_t blocks) {    \
    ::pasta::device::on_bulk<Patch>(given, pc, ::pasta::device::Space::kShared, from,              \
                                    ::pasta::device::Space::kGlobal, to,                           \
                                    ::pasta::device::Access::kWrite, blocks & 0xffff);             \
    return 0;                                                                                      \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, bulk_shared)                                                               \
  (void* given, std::uint64_t pc, std::uint32_t from, std::uint32_t to, std::uint32_t,             \
   std::uint32_t blocks) {                                                                         \
    ::pasta::device::on_bulk<Patch>(given, pc, ::pasta::device::Space::kShared, from,              \
                                    ::pasta::device::Space::kShared, to,                           \
                                    ::pasta::device::Access::kWrite, blocks);                      \
    return 0;                                                                                      \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, bulk_reduce_global)                                                        \
  (void* given, std::uint64_t pc, std::uint64_t to, std::uint32_t from, std::uint32_t blocks) {    \
    ::pasta::device::on_bulk<Patch>(given, pc, ::pasta::device::Space::kShared, from,              \
                                    ::pasta::device::Space::kGlobal, to,                           \
                                    ::pasta::device::Access::kAtomic, blocks);                     \
    return 0;                                                                                      \
  }                                                                                                \
  PASTA_GPU_ENTRY(name, bulk_reduce_shared)                                                        \
  (void* given, std::uint64_t pc, std::uint32_t from, std::uint32_t to, std::uint32_t,             \
   std::uint32_t blocks) {                                                                         \
    ::pasta::device::on_bulk<Patch>(given, pc, ::pasta::device::Space::kShared, from,              \
                                    ::pasta::device::Space::kShared, to,                           \
                                    ::pasta::device::Access::kAtomic, blocks);                     \
    return 0;                                                                                      \
  }

// Eight lanes give the rows of each matrix; the others' addresses mean nothing.
template <class Patch>
__device__ void on_matrix(void* given, std::uint64_t pc, std::uint32_t address, std::uint32_t width,
                          std::uint32_t flags, std::uint32_t count) {
  if (!is_given(given)) return;
  constexpr std::uint32_t kRows = 8;
  const std::uint32_t giving = count >= 4 ? ~std::uint32_t{0} : (1u << kRows * count) - 1;
  const std::uint32_t own = gpu::own_lane();
  const std::uint32_t lanes = __activemask() & giving;
  if ((lanes & own) == 0) return;
  on_access<Patch>(given, pc, Space::kShared,
                   (flags & kWrites) != 0 ? Access::kWrite : Access::kRead, address, width, lanes);
}

#endif

}  // namespace pasta::device
