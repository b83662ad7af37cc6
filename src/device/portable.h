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
// Before a loop that seldom has a second turn: of patches, most instructions are to be needed.
#if defined(__CUDACC__)
#define PASTA_ROLLED _Pragma("unroll 1")
#else
#define PASTA_ROLLED
#endif
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define PASTA_ON_GPU 1
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
// States are in global memory, which the compiler cannot know.
template <class T>
__device__ inline std::uint64_t global_address(const T& of) {
  return __cvta_generic_to_global(&of);
}
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
  __device__ void operator=(T value) {
    const std::uint64_t at = __cvta_generic_to_local(&value_);
    if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
      asm volatile("st.local.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    } else {
      asm volatile("st.local.u32 [%0], %1;" ::"l"(at), "r"(static_cast<std::uint32_t>(value))
                   : "memory");
    }
  }
  __device__ operator T() const {
    const std::uint64_t at = __cvta_generic_to_local(&value_);
    // The assembler, too, reads ahead, but not past this.
    asm volatile("prefetch.local.L1 [%0];" ::"l"(at) : "memory");
    if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
      std::uint64_t value;
      asm volatile("ld.local.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
      return static_cast<T>(value);
    } else {
      std::uint32_t value;
      asm volatile("ld.local.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
      return static_cast<T>(value);
    }
  }

 private:
  std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, std::uint32_t> value_;
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
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(global_address(to)), "l"(more) : "memory");
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
  if (glance(to) >= std::uint64_t{value}) return;
  asm volatile("red.global.max.u64 [%0], %1;" ::"l"(global_address(to)), "l"(std::uint64_t{value})
               : "memory");
#else
  if (to < value) to = value;
#endif
}
// Without a look at whether they are set already: nothing waits for this, and for the look all
// would.
PASTA_DEVICE inline void set_bits(std::uint32_t& to, std::uint32_t bits) {
#ifdef PASTA_ON_GPU
  asm volatile("red.global.or.b32 [%0], %1;" ::"l"(global_address(to)), "r"(bits) : "memory");
#else
  to |= bits;
#endif
}
// Makes a value that is 0 into `value`; gives what it was.
PASTA_DEVICE inline std::uint64_t replace_zero(std::uint64_t& at, std::uint64_t value) {
#ifdef PASTA_ON_GPU
  std::uint64_t before;
  asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(global_address(at)), "l"(std::uint64_t{0}), "l"(value)
               : "memory");
  return before;
#else
  const std::uint64_t before = at;
  if (before == 0) at = value;
  return before;
#endif
}
// The same; gives what it is afterwards.
PASTA_DEVICE inline std::uint64_t claim(std::uint64_t& to, std::uint64_t value) {
#ifdef PASTA_ON_GPU
  const std::uint64_t seen = glance(to);
  if (seen != 0) return seen;
#endif
  const std::uint64_t before = replace_zero(to, value);
  return before == 0 ? value : before;
}
// A value that whoever reads it may see as it is or as it was before.
template <class T>
PASTA_DEVICE inline T hint(const T& at) {
#ifdef PASTA_ON_GPU
  return glance(at);
#else
  return at;
#endif
}
template <class T>
PASTA_DEVICE inline T* hint(T* const& at) {
#ifdef PASTA_ON_GPU
  return reinterpret_cast<T*>(glance(reinterpret_cast<const std::uint64_t&>(at)));
#else
  return at;
#endif
}
// As it is now, whatever was seen of it before.
template <class T>
PASTA_DEVICE inline T latest(const T& at) {
#ifdef PASTA_ON_GPU
  T seen;
  if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(seen)
                 : "l"(global_address(at))
                 : "memory");
  } else {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(seen)
                 : "l"(global_address(at))
                 : "memory");
  }
  return seen;
#else
  return at;
#endif
}
// From now on hints are as things are now, on this multiprocessor. That takes long, and is not for
// nothing: one warp in four does it for the others.
PASTA_DEVICE inline void forget_hints() {
#ifdef PASTA_ON_GPU
  std::uint32_t warp;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  if (warp % 4 == 0) __threadfence();
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
