// The calling warp of a GPU, as warp.h has it: what a patch may ask of its lanes, each question one
// step that all active lanes take together. It gives the same answers as the host's Warp.
//
// What the GPU itself sees to is relied on: lanes of one instruction ask for as many bytes each, at
// most a sector, at multiples of that; only copies of one lane are longer.
#pragma once

#include <cstdint>

#include "device/portable.h"
#include "device/warp.h"

namespace pasta::device {

class GpuWarp {
 public:
  Space space;
  Access access;
  std::uint64_t site;
  std::uint32_t width;
  std::uint32_t active;
  std::uint32_t number;
  std::uint64_t group;
  std::uint64_t address;  // of the calling lane

  // Of the calling lane and those that came here with it.
  __device__ GpuWarp(Space of_space, Access of_access, std::uint64_t at, std::uint64_t where,
                     std::uint32_t bytes, std::uint32_t lanes)
      : space(of_space), access(of_access), site(at), width(bytes), active(lanes), address(where) {
    const std::uint32_t item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    number = item / kWarpLanes;
    group = blockIdx.x +
            std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
  }

  __device__ unsigned lanes() const { return __popc(active); }

  __device__ static std::uint32_t copy(std::uint32_t copies) {
    std::uint32_t multiprocessor;
    asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    return multiprocessor & (copies - 1);
  }

  template <class Key, class Use>
  __device__ void match(Key key, Use use) const {
    const auto own = key(address);
    for (std::uint32_t left = active; left != 0;) {
      const auto wanted = __shfl_sync(active, own, first_of(left));
      const std::uint32_t mask = __ballot_sync(active, own == wanted);
      use(wanted, mask);
      left &= ~mask;
    }
  }

  template <class Test>
  __device__ bool all(Test test) const {
    return __all_sync(active, test(address)) != 0;
  }
  template <class Value>
  __device__ auto first(Value value) const {
    return __shfl_sync(active, value(address), first_of(active));
  }
  template <class Change>
  __device__ void each(std::uint32_t mask, Change change) const {
    if (is_in(mask)) change(address);
  }

  // Lane k changes the k-th number, so that all of them are one request.
  template <class Row>
  __device__ void add(Row& to, const Row& more) const {
    constexpr unsigned kNumbers = sizeof(Row) / sizeof(std::uint64_t);
    static_assert(sizeof(Row) == kNumbers * sizeof(std::uint64_t));
    const auto* mores = reinterpret_cast<const std::uint64_t*>(&more);
    for (unsigned at = rank(); at < kNumbers; at += lanes()) {
      std::uint32_t value = 0;
#pragma unroll
      for (unsigned i = 0; i < kNumbers; ++i) {
        value = i == at ? static_cast<std::uint32_t>(mores[i]) : value;
      }
      if (value != 0) ::pasta::device::add(reinterpret_cast<std::uint64_t*>(&to)[at], value);
    }
  }
  template <class Row, std::size_t kCount>
  __device__ void add(Row& to, const Number (&more)[kCount]) const {
    for (unsigned own = rank(); own < kCount; own += lanes()) {
      std::uint32_t at = 0, value = 0;
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i) {
        at = i == own ? more[i].at : at;
        value = i == own ? static_cast<std::uint32_t>(more[i].value) : value;
      }
      if (value != 0) ::pasta::device::add(reinterpret_cast<std::uint64_t*>(&to)[at], value);
    }
  }
  template <class Row, std::size_t kCount>
  __device__ void raise(Row& to, const Number (&more)[kCount]) const {
    for (unsigned own = rank(); own < kCount; own += lanes()) {
      std::uint32_t at = 0;
      std::uint64_t value = 0;
#pragma unroll
      for (unsigned i = 0; i < kCount; ++i) {
        at = i == own ? more[i].at : at;
        value = i == own ? more[i].value : value;
      }
      ::pasta::device::raise(reinterpret_cast<std::uint64_t*>(&to)[at], value);
    }
  }

  __device__ std::uint64_t sectors(std::uint32_t mask) const {
    if ((mask & (mask - 1)) == 0) {
      return sectors_of(__shfl_sync(active, address, first_of(mask)), width);
    }
    return different(mask, address / kSectorBytes);
  }
  __device__ Footprint footprint(std::uint32_t mask) const {
    if ((mask & (mask - 1)) == 0) return {sectors(mask), width};
    // Two accesses are of the same bytes or of none that are the same.
    return {different(mask, address / kSectorBytes),
            std::uint64_t{different(mask, address)} * width};
  }
  __device__ Shape shape() const {
    const int first = first_of(active);
    const std::uint64_t begin = __shfl_sync(active, address, first);
    const std::uint64_t apart = address - begin;
    Shape shape{};
    if (__all_sync(active, apart == width * static_cast<std::uint32_t>(lane() - first))) {
      const std::uint32_t above = active >> first;
      shape.footprint.bytes = width * lanes();
      shape.footprint.sectors = (above & (above + 1)) == 0
                                    ? sectors_of(begin, width * lanes())
                                    : different(active, address / kSectorBytes);
      shape.stride.pattern = above == 1 ? Pattern::kSingle : Pattern::kUnit;
      shape.stride.bytes = above == 1 ? 0 : width;
      return shape;
    }
    if (__all_sync(active, apart == 0)) {
      shape.footprint.bytes = width;
      shape.footprint.sectors = sectors_of(begin, width);
      shape.stride.pattern = Pattern::kBroadcast;
      return shape;
    }
    shape.footprint = footprint(active);
    shape.stride = irregular();
    return shape;
  }

  __device__ Passes passes() const {
    const unsigned words = (width + kWordBytes - 1) / kWordBytes;
    if (words > 4) {
      // As wide as only copies of one lane are.
      const std::uint64_t first = address / kWordBytes;
      const std::uint64_t end = (address + width + kWordBytes - 1) / kWordBytes;
      const auto needed = static_cast<unsigned>((end - first + kBanks - 1) / kBanks);
      return {needed, 1};  // of one lane
    }
    const unsigned log = words <= 1 ? 0 : words == 2 ? 1 : 2;  // of words, of parts
    const unsigned at_once = kWarpLanes >> log;
    const unsigned part = static_cast<unsigned>(lane()) / at_once;
    unsigned parts = 0;
    for (unsigned i = 0; i < 1u << log; ++i) {
      parts += (active >> i * at_once & (~0u >> (kWarpLanes - at_once))) != 0 ? 1 : 0;
    }
    // Of pieces of as many words as a lane asks for there are as many banks as lanes at once.
    const auto piece = static_cast<std::uint32_t>(address / kWordBytes) >> log;
    const std::uint32_t in_bank =
        __match_any_sync(active, part * kWarpLanes + (piece & (at_once - 1)));
    // Mostly each lane has a bank for itself.
    if (__all_sync(active, (in_bank & (in_bank - 1)) == 0)) return {parts, parts};
    const std::uint32_t same = __match_any_sync(active, piece << log | part);
    const std::uint32_t different = __ballot_sync(active, (same & lanes_before()) == 0);
    const unsigned own = __popc(in_bank & different);
    unsigned needed = 0;
    for (unsigned i = 0; i < 1u << log; ++i) needed += largest(part == i ? own : 0);
    return {needed, parts};
  }

  __device__ Stride stride() const {
    if ((active & (active - 1)) == 0) return {Pattern::kSingle, 0};
    const int first = first_of(active);
    const std::uint64_t apart = address - __shfl_sync(active, address, first);
    if (__all_sync(active, apart == width * static_cast<std::uint32_t>(lane() - first))) {
      return {Pattern::kUnit, width};
    }
    if (__all_sync(active, apart == 0)) return {Pattern::kBroadcast, 0};
    return irregular();
  }
  __device__ unsigned crowd() const { return largest(__popc(__match_any_sync(active, address))); }

 private:
  // Neither of one lane nor unit nor broadcast.
  __device__ Stride irregular() const {
    const int first = first_of(active);
    const int second = first_of(active & (active - 1));
    const std::uint64_t begin = __shfl_sync(active, address, first);
    const std::uint64_t next = __shfl_sync(active, address, second);
    const auto apart_bytes = static_cast<std::int64_t>(next - begin);
    const std::int64_t step =
        second == first + 1 ? apart_bytes : divided(apart_bytes, second - first);
    if (__all_sync(active, static_cast<std::int64_t>(address - begin) == step * (lane() - first))) {
      return {Pattern::kStrided, step};
    }
    const std::uint32_t before = active & lanes_before();
    const int neighbour = before == 0 ? lane() : last_of(before);
    const std::uint64_t previous = __shfl_sync(active, address, neighbour);
    const bool apart =
        static_cast<std::int64_t>(address - previous) != std::int64_t{width} * (lane() - neighbour);
    const unsigned pieces = 1 + __popc(__ballot_sync(active, before != 0 && apart));
    return {pieces <= lanes() / 4 ? Pattern::kPieces : Pattern::kGather, 0};
  }

  // Of those of the active lanes.
  __device__ unsigned rank() const { return __popc(active & lanes_before()); }

  // How many values these lanes have.
  __device__ unsigned different(std::uint32_t mask, std::uint64_t value) const {
    const std::uint32_t same = __match_any_sync(active, value) & mask;
    return __popc(__ballot_sync(active, is_in(mask) && (same & lanes_before()) == 0));
  }
  __device__ static std::uint64_t sectors_of(std::uint64_t begin, std::uint32_t bytes) {
    return (begin + (bytes - 1)) / kSectorBytes - begin / kSectorBytes + 1;
  }
  // Of numbers up to 32.
  __device__ unsigned largest(unsigned own) const {
    if (__all_sync(active, own <= 1)) return __any_sync(active, own == 1) ? 1 : 0;
    unsigned most = 0;
    bool may_be = true;
    for (unsigned bit = 32; bit != 0; bit >>= 1) {
      const bool has = may_be && (own & bit) != 0;
      if (!__any_sync(active, has)) continue;
      most |= bit;
      may_be = has;
    }
    return most;
  }

  // By a number of less than 32, towards 0. In pieces of 16 bits: a division of 64 is a function,
  // and calls cost registers.
  __device__ static std::int64_t divided(std::int64_t number, int by) {
    const auto divisor = static_cast<std::uint32_t>(by);
    const std::uint64_t size = number < 0 ? 0 - static_cast<std::uint64_t>(number) : number;
    std::uint64_t result = 0;
    std::uint32_t rest = 0;
#pragma unroll 1
    for (int shift = 48; shift >= 0; shift -= 16) {
      const std::uint32_t part = rest << 16 | static_cast<std::uint32_t>(size >> shift & 0xffff);
      result = result << 16 | part / divisor;
      rest = part % divisor;
    }
    return number < 0 ? -static_cast<std::int64_t>(result) : static_cast<std::int64_t>(result);
  }

  __device__ static int lane() { return static_cast<int>(lane_id()); }
  __device__ static std::uint32_t lane_id() {
    std::uint32_t id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
  }
  __device__ static std::uint32_t lanes_before() {
    std::uint32_t mask;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
  }
  __device__ static int first_of(std::uint32_t mask) { return __ffs(static_cast<int>(mask)) - 1; }
  __device__ static int last_of(std::uint32_t mask) { return 31 - __clz(static_cast<int>(mask)); }
  __device__ static bool is_in(std::uint32_t mask) { return (mask >> lane_id() & 1) != 0; }
};

}  // namespace pasta::device
