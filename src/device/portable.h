// What is written once for the host and for a GPU.
//
// Many threads of a GPU change the same state at once, so each change of it is one of the atomic
// steps below. All of them give the same state in any order: patch on the host equals patch on the
// GPU. On the host a state belongs to one thread, and they are plain.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define PASTA_DEVICE __host__ __device__
#else
#define PASTA_DEVICE
#endif
// Before a loop that seldom has a second turn: of patches, most instructions are to be needed. And
// before one whose turns are all known.
#if defined(__CUDACC__)
#define PASTA_ROLLED _Pragma("unroll 1")
#define PASTA_UNROLLED _Pragma("unroll")
#else
#define PASTA_ROLLED
#define PASTA_UNROLLED
#endif
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define PASTA_ON_GPU 1
#endif
// What is for a GPU alone is compiled for one, or for lanes that a test makes (tests/lanes).
#if defined(__CUDACC__) || defined(PASTA_GPU_PRIMITIVES)
#define PASTA_FOR_GPU 1
#ifndef PASTA_GPU_PRIMITIVES
#define PASTA_GPU_PRIMITIVES "device/gpu_primitives.h"
#endif
#include PASTA_GPU_PRIMITIVES
#endif

namespace pasta::device {

PASTA_DEVICE inline unsigned count_bits(std::uint64_t bits) {
#ifdef PASTA_ON_GPU
  return static_cast<unsigned>(__popcll(bits));
#else
  return static_cast<unsigned>(__builtin_popcountll(bits));
#endif
}
// Of a value that is not 0.
PASTA_DEVICE inline unsigned lowest_bit(std::uint64_t bits) {
#ifdef PASTA_ON_GPU
  return static_cast<unsigned>(__ffsll(static_cast<long long>(bits)) - 1);
#else
  return static_cast<unsigned>(__builtin_ctzll(bits));
#endif
}
PASTA_DEVICE inline unsigned lowest_bit(std::uint32_t bits) {
#ifdef PASTA_ON_GPU
  return static_cast<unsigned>(__ffs(static_cast<int>(bits)) - 1);
#else
  return static_cast<unsigned>(__builtin_ctz(bits));
#endif
}
PASTA_DEVICE inline unsigned highest_bit(std::uint64_t bits) {
#ifdef PASTA_ON_GPU
  return static_cast<unsigned>(63 - __clzll(static_cast<long long>(bits)));
#else
  return static_cast<unsigned>(63 - __builtin_clzll(bits));
#endif
}

#ifdef PASTA_ON_GPU
// Of what does not change while a kernel runs: it may be read at any time.
template <class T>
__device__ inline T fixed(const T& at) {
  if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
    return __ldg(reinterpret_cast<const unsigned*>(&at));
  } else if constexpr (sizeof(T) == sizeof(uint4)) {
    const uint2 low = __ldg(reinterpret_cast<const uint2*>(&at)),
                high = __ldg(reinterpret_cast<const uint2*>(&at) + 1);
    return T{low.x, low.y, high.x, high.y};
  } else if constexpr (std::is_class_v<T>) {
    static_assert(sizeof(T) == sizeof(uint2) && alignof(T) == alignof(uint2));
    const uint2 both = __ldg(reinterpret_cast<const uint2*>(&at));
    return T{both.x, both.y};
  } else {
    static_assert(sizeof(T) == sizeof(std::uint64_t));
    return __ldg(reinterpret_cast<const unsigned long long*>(&at));
  }
}
template <class T>
__device__ inline T* fixed(T* const& at) {
  return reinterpret_cast<T*>(__ldg(reinterpret_cast<const unsigned long long*>(&at)));
}
// What is used seldom, and lies in memory meanwhile, not in one of the few registers. The compiler
// keeps volatile variables in registers if it likes, so it is not told what becomes of this.
template <class T>
class Aside {
 public:
  Aside() = default;
  __device__ Aside(T value) { *this = value; }
  __device__ void operator=(T value) { gpu::put_aside(value_, static_cast<Kept>(value)); }
  __device__ operator T() const { return static_cast<T>(gpu::take_from_aside(value_)); }

 private:
  using Kept = std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, std::uint32_t>;
  Kept value_;
};
// The same, half by half, so that no two registers next to each other are needed.
class AsideHalves {
 public:
  __device__ void operator=(std::uint64_t value) {
    low_ = static_cast<std::uint32_t>(value);
    high_ = static_cast<std::uint32_t>(value >> 32);
  }
  __device__ operator std::uint64_t() const { return std::uint64_t{high_} << 32 | low_; }

 private:
  Aside<std::uint32_t> low_, high_;
};
#else
template <class T>
const T& fixed(const T& at) {
  return at;
}
template <class T>
using Aside = T;
using AsideHalves = std::uint64_t;
#endif

// The same, of which the compiler knows nothing: so it keeps nothing that it was made of.
PASTA_DEVICE inline std::uint32_t opaque(std::uint32_t value) {
#ifdef PASTA_ON_GPU
  asm("" : "+r"(value));
#endif
  return value;
}
// The same, of which nothing that is made of it may be made earlier.
PASTA_DEVICE inline std::uint32_t late(std::uint32_t value) {
#ifdef PASTA_ON_GPU
  asm volatile("" : "+r"(value));
#endif
  return value;
}
PASTA_DEVICE inline void add(std::uint64_t& to, std::uint64_t more) {
#ifdef PASTA_ON_GPU
  gpu::add(to, more);
#else
  to += more;
#endif
}
// Number by number, of structs of 64-bit numbers.
template <class Row>
PASTA_DEVICE inline void add_row(Row& to, const Row& more) {
  static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) % sizeof(std::uint64_t) == 0);
  auto* sums = reinterpret_cast<std::uint64_t*>(&to);
  const auto* numbers = reinterpret_cast<const std::uint64_t*>(&more);
  for (unsigned i = 0; i < sizeof(Row) / sizeof(std::uint64_t); ++i) {
    if (numbers[i] != 0) add(sums[i], numbers[i]);
  }
}
// To at least `value`. Most of the time it is already.
template <class Value>
PASTA_DEVICE inline void raise(std::uint64_t& to, const Value& value) {
#ifdef PASTA_ON_GPU
  // What lies aside is read only now.
  if (gpu::glance(to) >= std::uint64_t{value}) return;
  gpu::raise(to, std::uint64_t{value});
#else
  if (to < value) to = value;
#endif
}
// Without a look at whether they are set already: nothing waits for this, and for the look all
// would.
PASTA_DEVICE inline void set_bits(std::uint32_t& to, std::uint32_t bits) {
#ifdef PASTA_ON_GPU
  gpu::set_bits(to, bits);
#else
  to |= bits;
#endif
}
// Makes a value that is 0 into `value`; gives what it was.
PASTA_DEVICE inline std::uint64_t replace_zero(std::uint64_t& at, std::uint64_t value) {
#ifdef PASTA_ON_GPU
  return gpu::replace_zero(at, value);
#else
  const std::uint64_t before = at;
  if (before == 0) at = value;
  return before;
#endif
}
// The same; gives what it is afterwards.
PASTA_DEVICE inline std::uint64_t claim(std::uint64_t& to, std::uint64_t value) {
#ifdef PASTA_ON_GPU
  const std::uint64_t seen = gpu::glance(to);
  if (seen != 0) return seen;
#endif
  const std::uint64_t before = replace_zero(to, value);
  return before == 0 ? value : before;
}
// A value that whoever reads it may see as it is or as it was before.
template <class T>
PASTA_DEVICE inline T hint(const T& at) {
#ifdef PASTA_ON_GPU
  return gpu::glance(at);
#else
  return at;
#endif
}
template <class T>
PASTA_DEVICE inline T* hint(T* const& at) {
#ifdef PASTA_ON_GPU
  return reinterpret_cast<T*>(gpu::glance(reinterpret_cast<const std::uint64_t&>(at)));
#else
  return at;
#endif
}
// As it is now, whatever was seen of it before.
template <class T>
PASTA_DEVICE inline T latest(const T& at) {
#ifdef PASTA_ON_GPU
  return gpu::latest(at);
#else
  return at;
#endif
}
// From now on hints are as things are now, on this multiprocessor. That takes long, and is not for
// nothing: one warp in four does it for the others.
PASTA_DEVICE inline void forget_hints() {
#ifdef PASTA_ON_GPU
  if (gpu::warp_slot() % 4 == 0) __threadfence();
#endif
}
// Bits of the result depend on all bits of the value.
PASTA_DEVICE inline std::uint32_t mix(std::uint64_t value) {
  auto mixed =
      static_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(value >> 32) * 0x9e3779b1u;
  mixed = (mixed ^ mixed >> 16) * 0x85ebca6bu;
  mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35u;
  return mixed ^ mixed >> 16;
}

}  // namespace pasta::device
