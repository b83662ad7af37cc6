// The calling warp of a GPU, as warp.h has it: what a patch may ask of its lanes, each question one
// step that all active lanes take together. It gives the same answers as the host's Warp.
#pragma once

#include <cstdint>

#include "device/portable.h"
#include "device/warp.h"

namespace pasta::device {

// Lanes that take part: of a whole warp, so that the compiler knows it, or some.
template <bool kWhole>
struct GpuLanes {
  std::uint32_t active;
  __device__ explicit GpuLanes(std::uint32_t lanes) : active(lanes) {}
};
template <>
struct GpuLanes<true> {
  static constexpr std::uint32_t active = ~std::uint32_t{0};
  __device__ explicit GpuLanes(std::uint32_t) {}
};

template <bool kWhole>
class GpuWarp : public GpuLanes<kWhole> {
 public:
  using GpuLanes<kWhole>::active;
  Space space;
  Access access;
  std::uint64_t site;
  std::uint32_t width;
  std::uint32_t number;
  std::uint64_t group;
  std::uint64_t address;  // of the calling lane

  // Of the calling lane and those that came here with it.
  __device__ GpuWarp(Space of_space, Access of_access, std::uint64_t at, std::uint64_t where,
                     std::uint32_t bytes, std::uint32_t lanes)
      : GpuLanes<kWhole>(lanes),
        space(of_space),
        access(of_access),
        site(at),
        width(bytes),
        address(where) {
    const std::uint32_t item = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    number = item / kWarpLanes;
    group = blockIdx.x +
            std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
  }

  __device__ unsigned lanes() const { return __popc(active); }

  __device__ static std::uint32_t copy(std::uint32_t copies) {
    std::uint32_t multiprocessor;
    asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    return multiprocessor % copies;
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

  template <class Value>
  __device__ std::uint64_t sum(std::uint32_t mask, Value value) const {
    std::uint64_t own = 0;
    if (is_in(mask)) own = value(address);
    __syncwarp(active);
    return total(own);
  }

  template <class Value>
  __device__ auto uniform(Value value) const {
    decltype(value()) result{};
    const int leader = first_of(active);
    if (lane() == leader) result = value();
    return __shfl_sync(active, result, leader);
  }

  // Lane k looks at the k-th number, and mostly finds it as large.
  template <class Row>
  __device__ void raise(Row& to, const Row& more) const {
    each_number(to, more, [](std::uint64_t& number, std::uint64_t value) {
      ::pasta::device::raise(number, value);
    });
  }

  // Lanes whose bytes are all of a stretch share it among them, so that each word is changed once.
  template <class Mark>
  __device__ std::uint64_t mark(std::uint32_t mask, const Footprint& part, std::uint64_t chunk,
                                Mark mark_bytes) const {
    const std::uint64_t begin = __shfl_sync(active, address, first_of(mask));
    const std::uint64_t end = __shfl_sync(active, address, last_of(mask)) + width;
    const bool inside = begin <= address && address + width <= end;
    if (end - begin != part.bytes || __any_sync(active, is_in(mask) && !inside)) {
      return sum(mask, [&](std::uint64_t at) { return mark_bytes(at, width); });
    }
    std::uint64_t own = 0;
    const std::uint64_t first = begin / chunk * chunk;
    for (std::uint64_t at = first + rank() * chunk; at < end; at += lanes() * chunk) {
      const std::uint64_t from = at < begin ? begin : at;
      const std::uint64_t to = end - at < chunk ? end : at + chunk;
      own += mark_bytes(from, to - from);
    }
    __syncwarp(active);
    return total(own);
  }

  // Lane k changes the k-th number, so that all of them are one request.
  template <class Row>
  __device__ void add(Row& to, const Row& more) const {
    each_number(to, more, [](std::uint64_t& number, std::uint64_t value) {
      ::pasta::device::add(number, value);
    });
  }

  __device__ Footprint footprint(std::uint32_t mask) const {
    const bool in = is_in(mask);
    const std::uint32_t before = mask & lanes_before();
    // Mostly each lane begins where the one before it does, or behind.
    const std::uint64_t previous =
        __shfl_sync(active, address, before == 0 ? lane() : last_of(before));
    if (__all_sync(active, !in || address >= previous)) {
      return behind(in, before != 0, previous);
    }
    if (width <= kSectorBytes && (width & (width - 1)) == 0 &&
        __all_sync(active, !in || (address & (width - 1)) == 0)) {
      // Two accesses are of the same bytes or of none that are the same.
      const std::uint64_t sector = address / kSectorBytes;
      const std::uint32_t same_bytes = __match_any_sync(active, address) & mask;
      const std::uint32_t same_sector = __match_any_sync(active, sector) & mask;
      const std::uint32_t addresses =
          __ballot_sync(active, in && (same_bytes & lanes_before()) == 0);
      const std::uint32_t sectors =
          __ballot_sync(active, in && (same_sector & lanes_before()) == 0);
      return {static_cast<std::uint64_t>(__popc(sectors)),
              static_cast<std::uint64_t>(__popc(addresses)) * width};
    }
    // The lane that begins last of those that begin before.
    std::uint64_t nearest = 0;
    bool has = false;
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const int other = first_of(left);
      const std::uint64_t begin = __shfl_sync(active, address, other);
      if (begin > address || (begin == address && other >= lane())) continue;
      if (!has || begin > nearest) nearest = begin;
      has = true;
    }
    return behind(in, has, nearest);
  }

  __device__ Passes passes() const {
    const unsigned words = (width + kWordBytes - 1) / kWordBytes;
    if (words > 4) {
      // As wide as only copies of one lane are.
      const std::uint64_t first = address / kWordBytes;
      const std::uint64_t end = (address + width + kWordBytes - 1) / kWordBytes;
      const auto needed = static_cast<unsigned>((end - first + kBanks - 1) / kBanks);
      return {add_up(needed), lanes()};
    }
    const unsigned log = words <= 1 ? 0 : words == 2 ? 1 : 2;  // of words, of parts
    const unsigned at_once = kWarpLanes >> log;
    const unsigned part = static_cast<unsigned>(lane()) / at_once;
    // Of pieces of as many words as a lane asks for there are as many banks as lanes at once.
    const auto piece = static_cast<std::uint32_t>(address / kWordBytes) >> log;
    const std::uint32_t same = __match_any_sync(active, piece << log | part);
    const bool leads = (same & lanes_before()) == 0;
    const std::uint32_t leaders = __ballot_sync(active, leads);
    unsigned in_bank = 0;
    if (leads) {
      in_bank = __popc(__match_any_sync(leaders, part * kWarpLanes + piece % at_once));
    }
    __syncwarp(active);
    Passes all{0, 0};
    for (unsigned i = 0; i < 1u << log; ++i) {
      const unsigned most = largest(part == i ? in_bank : 0);
      all.needed += most;
      all.without_conflicts += most != 0 ? 1 : 0;
    }
    return all;
  }

  __device__ Stride stride() const {
    const unsigned count = lanes();
    if (count == 1) return {Pattern::kSingle, 0};
    const int first = first_of(active);
    const int second = first_of(active & (active - 1));
    const std::uint64_t begin = __shfl_sync(active, address, first);
    const std::uint64_t next = __shfl_sync(active, address, second);
    const auto apart_bytes = static_cast<std::int64_t>(next - begin);
    const std::int64_t step = second == first + 1 ? apart_bytes : apart_bytes / (second - first);
    const bool even =
        __all_sync(active, static_cast<std::int64_t>(address - begin) == step * (lane() - first));
    if (even && step == 0) return {Pattern::kBroadcast, 0};
    if (even) return {step == std::int64_t{width} ? Pattern::kUnit : Pattern::kStrided, step};
    const std::uint32_t before = active & lanes_before();
    const int neighbour = before == 0 ? lane() : last_of(before);
    const std::uint64_t previous = __shfl_sync(active, address, neighbour);
    const bool apart =
        static_cast<std::int64_t>(address - previous) != std::int64_t{width} * (lane() - neighbour);
    const unsigned pieces = 1 + __popc(__ballot_sync(active, before != 0 && apart));
    return {pieces <= count / 4 ? Pattern::kPieces : Pattern::kGather, 0};
  }

  __device__ unsigned crowd() const { return largest(__popc(__match_any_sync(active, address))); }

 private:
  static constexpr unsigned kSafeBits = 27;  // 32 such numbers have a sum of 32 bits

  // Of those of the active lanes.
  __device__ unsigned rank() const { return __popc(active & lanes_before()); }

  template <class Row, class Change>
  __device__ void each_number(Row& to, const Row& more, Change change) const {
    constexpr unsigned kNumbers = sizeof(Row) / sizeof(std::uint64_t);
    static_assert(sizeof(Row) == kNumbers * sizeof(std::uint64_t));
    auto* numbers = reinterpret_cast<std::uint64_t*>(&to);
    const auto* mores = reinterpret_cast<const std::uint64_t*>(&more);
    const unsigned step = lanes();
    for (unsigned at = rank(); at < kNumbers; at += step) {
      std::uint64_t value = 0;
#pragma unroll
      for (unsigned i = 0; i < kNumbers; ++i) value = i == at ? mores[i] : value;
      if (value != 0) change(numbers[at], value);
    }
    __syncwarp(active);
  }

  __device__ std::uint64_t total(std::uint64_t own) const {
    if (!__any_sync(active, own >> kSafeBits != 0)) return add_up(static_cast<unsigned>(own));
    std::uint64_t sum = 0;
    for (std::uint32_t left = active; left != 0; left &= left - 1) {
      sum += __shfl_sync(active, own, first_of(left));
    }
    return sum;
  }

  // Patches may not use the instruction that reduces a warp. The numbers are mostly small.
  __device__ unsigned add_up(unsigned own) const {
    unsigned total = 0;
    for (unsigned bit = 0; __any_sync(active, own != 0); ++bit, own >>= 1) {
      total += static_cast<unsigned>(__popc(__ballot_sync(active, (own & 1) != 0))) << bit;
    }
    return total;
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

  // Each lane counts what it asks for behind what the lane that begins before it does.
  __device__ Footprint behind(bool in, bool has, std::uint64_t previous) const {
    const std::uint64_t last = address + (width - 1);
    const std::uint64_t end = previous + width;
    const std::uint64_t begin = has && end > address ? end : address;
    const std::uint64_t sector = address / kSectorBytes;
    const std::uint64_t next = (previous + (width - 1)) / kSectorBytes + 1;
    const std::uint64_t first = has && next > sector ? next : sector;
    const std::uint64_t last_sector = last / kSectorBytes;
    const unsigned bytes = in && begin <= last ? static_cast<unsigned>(last - begin + 1) : 0;
    const unsigned sectors =
        in && first <= last_sector ? static_cast<unsigned>(last_sector - first + 1) : 0;
    const bool all_of_it = bytes == width;
    const unsigned wholes = __popc(__ballot_sync(active, all_of_it));
    return {add_up(sectors), std::uint64_t{wholes} * width + add_up(all_of_it ? 0 : bytes)};
  }
};

}  // namespace pasta::device
