// The rival's patch: a record of each access of a warp goes into a ring of the multiprocessor,
// which lies in memory of the host. Threads of the host read it from behind.
#pragma once

#include <cstdint>

#include "device/launch.h"
#include "device/warp.h"
#include "rival/warp_record.h"

namespace pasta::benchmarks {

// Of one multiprocessor, in memory of the GPU.
struct alignas(128) RingEnds {
  std::uint64_t head;      // records for which room was taken
  std::uint64_t released;  // of them those that were read, as was last seen
};

struct RingPatch {
  struct State {
    RingEnds* rings;
    WarpRecord* records;            // of the host: `capacity` for each ring
    const std::uint64_t* released;  // of the host, for each ring a line of its own
    std::uint64_t* lost;            // records that waited too long for room
    std::uint32_t ring_count;
    std::uint32_t capacity;  // a power of two
  };
  static constexpr std::uint32_t kLine = 16;  // numbers of 64 bits from one `released` to the next
  static constexpr std::uint64_t kMostWaitNs = 5'000'000'000;

#if defined(__CUDACC__)
  template <class AnyWarp>
  __device__ static void on_access(State& state, const device::Launch&, const AnyWarp& warp) {
    if (warp.width == 0 || warp.space != device::Space::kGlobal) return;
    std::uint32_t lane, before, ring;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    asm("mov.u32 %0, %%smid;" : "=r"(ring));
    ring %= state.ring_count;
    const std::uint32_t active = warp.active;
    const auto access = static_cast<std::uint64_t>(warp.access);
    const int first = __ffs(static_cast<int>(active)) - 1;
    const std::uint64_t begin = __shfl_sync(active, warp.address, first);
    WarpRecord record;
    std::uint32_t count = 1, rank = 0;
    bool writes = static_cast<int>(lane) == first;
    if (warp.width > device::kSectorBytes) {  // a bulk copy, of one lane
      record = WarpRecord::of(begin, 0, access, warp.width, 0);
    } else {
      // Where pieces of lanes side by side begin.
      const std::uint32_t earlier = active & before;
      const int neighbour = earlier == 0 ? static_cast<int>(lane) : 31 - __clz(earlier);
      const std::uint64_t previous = __shfl_sync(active, warp.address, neighbour);
      const bool begins = earlier == 0 || warp.address - previous != warp.width ||
                          neighbour + 1 != static_cast<int>(lane);
      const std::uint32_t pieces = __ballot_sync(active, begins);
      // As rows, of as many lanes as the first piece; of one lane where those are no power of two.
      const std::uint32_t later = pieces & (pieces - 1);
      unsigned row_log = 5;
      std::int64_t step = 0;
      if (later != 0) {
        const int second = __ffs(static_cast<int>(later)) - 1;
        const unsigned lanes = second - first;
        row_log = first == 0 && (lanes & (lanes - 1)) == 0 ? 31 - __clz(lanes) : 0;
        const int of_second =
            row_log == 0 ? __ffs(static_cast<int>(active & (active - 1))) - 1 : second;
        step = static_cast<std::int64_t>(__shfl_sync(active, warp.address, of_second) - begin);
        const int apart = row_log == 0 ? of_second - first : 1;
        if (apart != 1) {
          const auto small = static_cast<std::int32_t>(step);
          step = small == step && small % apart == 0 ? small / apart : std::int64_t{1} << 40;
        }
      }
      const int row = (static_cast<int>(lane) >> row_log) - (first >> row_log);
      const int in_row =
          (static_cast<int>(lane) & ((1 << row_log) - 1)) - (first & ((1 << row_log) - 1));
      const bool even = static_cast<std::int32_t>(step) == step &&
                        warp.address - begin == static_cast<std::uint64_t>(
                                                    step * row + std::int64_t{warp.width} * in_row);
      if (__all_sync(active, even)) {
        const std::int64_t back = row_log == 0 ? step * first : std::int64_t{warp.width} * first;
        record = WarpRecord::of(begin - static_cast<std::uint64_t>(back), warp.width, access,
                                active, static_cast<std::int32_t>(step), row_log);
      } else if (const WarpRecord tile = tile_of(warp, active, lane, begin, access);
                 tile.packed != 0) {
        record = tile;
      } else {
        count = __popc(pieces);
        writes = begins;
        rank = __popc(pieces & before);
        // Up to where the next one begins.
        const std::uint32_t behind = pieces & ~before & ~(1u << lane);
        const std::uint32_t until = behind == 0 ? 0 : (behind & -behind);
        const std::uint32_t piece = active & (until - 1) & ~before;
        record = WarpRecord::of(warp.address - std::uint64_t{warp.width} * lane, warp.width, access,
                                piece, 0, 5);
        if (behind != 0) record.packed |= WarpRecord::kGoesOn;
      }
    }
    RingEnds& ends = state.rings[ring];
    const auto seen = reinterpret_cast<volatile std::uint64_t*>(&ends.released);
    std::uint64_t slot = 0, released = *seen;
    if (static_cast<int>(lane) == first) {
      slot = atomicAdd(reinterpret_cast<unsigned long long*>(&ends.head), count);
    }
    if (count > 1) slot = __shfl_sync(active, slot, first) + rank;
    if (!writes) return;
    if (slot - released >= state.capacity && !waits(state, ring, slot)) return;
    if ((slot & state.capacity) == 0) record.packed |= WarpRecord::kLap;
    WarpRecord* const to =
        state.records + std::uint64_t{ring} * state.capacity + (slot & (state.capacity - 1));
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                 "l"(record.packed),
                 "l"(record.active |
                     static_cast<std::uint64_t>(static_cast<std::uint32_t>(record.stride)) << 32)
                 : "memory");
  }

  // Of all lanes, in rows of lanes that are evenly apart; 0 where they are not.
  template <class AnyWarp>
  __device__ static WarpRecord tile_of(const AnyWarp& warp, std::uint32_t active,
                                       std::uint32_t lane, std::uint64_t begin,
                                       std::uint64_t access) {
    constexpr std::uint32_t kAll = ~std::uint32_t{0};
    if (active != kAll) return {};
    const auto apart = static_cast<std::int64_t>(warp.address - begin);
    const std::int64_t step = __shfl_sync(kAll, apart, 1);
    const std::uint32_t others = __ballot_sync(kAll, apart != step * lane);
    const int lanes = __ffs(static_cast<int>(others)) - 1;  // of a row
    if (lanes < 2 || (lanes & (lanes - 1)) != 0) return {};
    const std::int64_t row = __shfl_sync(kAll, apart, lanes);
    const int row_log = 31 - __clz(lanes);
    const bool even = static_cast<std::int32_t>(step) == step &&
                      static_cast<std::int32_t>(row) == row &&
                      apart == row * (lane >> row_log) + step * (lane & (lanes - 1));
    if (!__all_sync(kAll, even)) return {};
    return WarpRecord::tile(begin, warp.width, access, static_cast<std::int32_t>(step),
                            static_cast<std::int32_t>(row), row_log);
  }

  // Until there is room for the slot.
  __device__ static bool waits(State& state, std::uint32_t ring, std::uint64_t slot) {
    const auto seen = reinterpret_cast<volatile std::uint64_t*>(&state.rings[ring].released);
    const auto told = reinterpret_cast<const volatile std::uint64_t*>(state.released +
                                                                      std::uint64_t{ring} * kLine);
    std::uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    for (;;) {
      if (slot - *seen < state.capacity) return true;
      const std::uint64_t released = *told;
      atomicMax(reinterpret_cast<unsigned long long*>(&state.rings[ring].released), released);
      if (slot - released < state.capacity) return true;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      if (now - begin > kMostWaitNs) {
        atomicAdd(reinterpret_cast<unsigned long long*>(state.lost), 1);
        return false;
      }
    }
  }
#endif
};

}  // namespace pasta::benchmarks
