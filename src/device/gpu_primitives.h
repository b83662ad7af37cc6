// What a GPU has that no C++ says, for patches; only code for GPUs includes this, by portable.h.
// Lanes that a test makes (tests/lanes) have functions of the same names instead.
#pragma once

#include <cstdint>

namespace pasta::device::gpu {

#define PASTA_GPU_REGISTER(name, special)                     \
  __device__ inline std::uint32_t name() {                    \
    std::uint32_t value;                                      \
    asm volatile("mov.u32 %0, %%" special ";" : "=r"(value)); \
    return value;                                             \
  }
PASTA_GPU_REGISTER(lane, "laneid")
PASTA_GPU_REGISTER(own_lane, "lanemask_eq")  // as masks
PASTA_GPU_REGISTER(lanes_before, "lanemask_lt")
PASTA_GPU_REGISTER(lanes_up_to, "lanemask_le")
PASTA_GPU_REGISTER(lanes_from, "lanemask_ge")
PASTA_GPU_REGISTER(lanes_behind, "lanemask_gt")
PASTA_GPU_REGISTER(warp_slot, "warpid")  // of the multiprocessor
PASTA_GPU_REGISTER(multiprocessor, "smid")
PASTA_GPU_REGISTER(group_x, "ctaid.x")
PASTA_GPU_REGISTER(group_y, "ctaid.y")
PASTA_GPU_REGISTER(group_z, "ctaid.z")
PASTA_GPU_REGISTER(groups_x, "nctaid.x")
PASTA_GPU_REGISTER(groups_y, "nctaid.y")
#undef PASTA_GPU_REGISTER

// What lies aside is in local memory.
__device__ inline void put_aside(std::uint64_t& to, std::uint64_t value) {
  asm volatile("st.local.u64 [%0], %1;" ::"l"(__cvta_generic_to_local(&to)), "l"(value) : "memory");
}
__device__ inline void put_aside(std::uint32_t& to, std::uint32_t value) {
  asm volatile("st.local.u32 [%0], %1;" ::"l"(__cvta_generic_to_local(&to)), "r"(value) : "memory");
}
// The assembler, too, reads ahead, but not past the prefetch.
__device__ inline std::uint64_t take_from_aside(const std::uint64_t& from) {
  const std::uint64_t at = __cvta_generic_to_local(&from);
  std::uint64_t value;
  asm volatile("prefetch.local.L1 [%0];" ::"l"(at) : "memory");
  asm volatile("ld.local.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  return value;
}
__device__ inline std::uint32_t take_from_aside(const std::uint32_t& from) {
  const std::uint64_t at = __cvta_generic_to_local(&from);
  std::uint32_t value;
  asm volatile("prefetch.local.L1 [%0];" ::"l"(at) : "memory");
  asm volatile("ld.local.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

// States are in global memory, which the compiler cannot know.
template <class T>
__device__ inline std::uint64_t global_address(const T& of) {
  return __cvta_generic_to_global(&of);
}
// As it was some time since the kernel began.
__device__ inline std::uint64_t glance(const std::uint64_t& at) {
  std::uint64_t seen;
  asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(seen) : "l"(global_address(at)));
  return seen;
}
__device__ inline std::uint32_t glance(const std::uint32_t& at) {
  std::uint32_t seen;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(seen) : "l"(global_address(at)));
  return seen;
}
// As it is now.
__device__ inline std::uint64_t latest(const std::uint64_t& at) {
  std::uint64_t seen;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(seen)
               : "l"(global_address(at))
               : "memory");
  return seen;
}
__device__ inline void add(std::uint64_t& to, std::uint64_t more) {
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(global_address(to)), "l"(more) : "memory");
}
// To at least `value`.
__device__ inline void raise(std::uint64_t& to, std::uint64_t value) {
  asm volatile("red.global.max.u64 [%0], %1;" ::"l"(global_address(to)), "l"(value) : "memory");
}
__device__ inline void set_bits(std::uint32_t& to, std::uint32_t bits) {
  asm volatile("red.global.or.b32 [%0], %1;" ::"l"(global_address(to)), "r"(bits) : "memory");
}
// Gives what it was.
__device__ inline std::uint64_t replace_zero(std::uint64_t& at, std::uint64_t value) {
  std::uint64_t before;
  asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(global_address(at)), "l"(std::uint64_t{0}), "l"(value)
               : "memory");
  return before;
}

}  // namespace pasta::device::gpu
