// What code for a GPU needs of one, of lanes that the host makes: CUDA's names, and the functions
// of device/gpu_primitives.h, instead of which portable.h includes this.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "lanes.h"

#define __device__
#define __noinline__
#define threadIdx (::lanes::here().item)
#define blockDim (::lanes::here().items)
#define blockIdx (::lanes::here().group)
#define gridDim (::lanes::here().groups)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline int __ffs(int bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1;
}
inline int __ffsll(long long bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(bits)) + 1;
}
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) {
  return std::countl_zero(static_cast<unsigned long long>(bits));
}
template <class T>
T __ldg(const T* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline void __threadfence() { lanes::forget(); }

// Questions of lanes, with the line in which they are asked.
inline unsigned __activemask(unsigned line = __builtin_LINE()) {
  return static_cast<unsigned>(lanes::ask({lanes::Ask::kActive, 0, line}));
}
inline void __syncwarp(unsigned of, unsigned line = __builtin_LINE()) {
  lanes::ask({lanes::Ask::kWait, of, line});
}
inline unsigned __shfl_sync(unsigned of, unsigned value, int from,
                            unsigned line = __builtin_LINE()) {
  return static_cast<unsigned>(
      lanes::ask({lanes::Ask::kShuffle, of, line, value, static_cast<unsigned>(from)}));
}
inline unsigned __shfl_up_sync(unsigned of, unsigned value, unsigned far,
                               unsigned line = __builtin_LINE()) {
  return static_cast<unsigned>(lanes::ask({lanes::Ask::kShuffleUp, of, line, value, far}));
}
inline unsigned __ballot_sync(unsigned of, bool is_so, unsigned line = __builtin_LINE()) {
  return static_cast<unsigned>(lanes::ask({lanes::Ask::kBallot, of, line, is_so ? 1u : 0u}));
}
inline int __all_sync(unsigned of, bool is_so, unsigned line = __builtin_LINE()) {
  return static_cast<int>(lanes::ask({lanes::Ask::kAll, of, line, is_so ? 1u : 0u}));
}
inline int __any_sync(unsigned of, bool is_so, unsigned line = __builtin_LINE()) {
  return static_cast<int>(lanes::ask({lanes::Ask::kAny, of, line, is_so ? 1u : 0u}));
}
inline unsigned __match_any_sync(unsigned of, std::uint64_t value,
                                 unsigned line = __builtin_LINE()) {
  return static_cast<unsigned>(lanes::ask({lanes::Ask::kMatch, of, line, value}));
}

namespace pasta::device::gpu {

inline std::uint32_t lane() { return lanes::here().lane; }
inline std::uint32_t own_lane() { return 1u << lane(); }
inline std::uint32_t lanes_before() { return own_lane() - 1; }
inline std::uint32_t lanes_up_to() { return lanes_before() | own_lane(); }
inline std::uint32_t lanes_from() { return ~lanes_before(); }
inline std::uint32_t lanes_behind() { return ~lanes_up_to(); }
inline std::uint32_t warp_slot() { return lanes::here().warp_slot; }
inline std::uint32_t multiprocessor() { return lanes::here().multiprocessor; }
inline std::uint32_t group_x() { return lanes::here().group.x; }
inline std::uint32_t group_y() { return lanes::here().group.y; }
inline std::uint32_t group_z() { return lanes::here().group.z; }
inline std::uint32_t groups_x() { return lanes::here().groups.x; }
inline std::uint32_t groups_y() { return lanes::here().groups.y; }

template <class T>
void put_aside(T& to, T value) {
  to = value;
}
template <class T>
T take_from_aside(const T& from) {
  return from;
}
template <class T>
T glance(const T& at) {
  return static_cast<T>(lanes::glance(&at, at));
}
inline std::uint64_t latest(const std::uint64_t& at) { return at; }
inline void add(std::uint64_t& to, std::uint64_t more) { to += more; }
inline void raise(std::uint64_t& to, std::uint64_t value) {
  if (to < value) to = value;
}
inline void set_bits(std::uint32_t& to, std::uint32_t bits) { to |= bits; }
inline std::uint64_t replace_zero(std::uint64_t& at, std::uint64_t value) {
  const std::uint64_t before = at;
  if (before == 0) at = value;
  return before;
}

}  // namespace pasta::device::gpu
