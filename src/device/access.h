// The patch `access`: what a launch asks of each object, what memory moves for it, and at which
// places of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/launch.h"
#include "device/reducers.h"
#include "device/warp.h"

namespace pasta::device {

class Layout;
struct Names;
struct PatchResult;

// Sums over accesses.
struct AccessCounts {
  std::uint64_t reads = 0, writes = 0, atomics = 0;  // of lanes
  std::uint64_t warps = 0;                           // accesses of warps
  std::uint64_t asked_bytes = 0;                     // by lanes: twice what two of them ask for
  // Of global memory:
  std::uint64_t used_bytes = 0;  // of the sectors: what a warp asks for, once
  std::uint64_t sectors = 0;
  std::uint64_t touched = 0;  // bytes; in results only, in states by the marks
  // Of shared memory:
  std::uint64_t passes = 0;
  std::uint64_t passes_without_conflicts = 0;
  bool operator==(const AccessCounts&) const = default;
};

struct SiteCounts {
  std::uint64_t warps = 0, lanes = 0;
  std::uint64_t asked_bytes = 0, used_bytes = 0;
  std::uint64_t sectors = 0;
  std::uint64_t needed_sectors = 0;  // that would hold what each warp asks for
  std::uint64_t misaligned = 0;      // warps that touch a sector more only for where they begin
  std::uint64_t single = 0, broadcast = 0, unit = 0, strided = 0, pieces = 0, gather = 0;  // warps
  std::uint64_t passes = 0, passes_without_conflicts = 0;
  std::uint64_t crowds = 0;  // of atomics: for each warp, the lanes at the address with the most
  bool operator==(const SiteCounts&) const = default;
};
// The most of all accesses; what begins with `least` is kept as ~value, so that it is that, too.
struct SiteExtremes {
  std::uint64_t width = 0;
  std::uint64_t object = 0, least_object = 0;  // index in the launch + 1
  std::uint64_t step = 0, least_step = 0;      // of strided warps: bytes + kStepBias
  std::uint64_t degree = 0;                    // passes of one access
  std::uint64_t crowd = 0;
};
inline constexpr std::uint64_t kStepBias = std::uint64_t{1} << 63;

struct AccessPatch {
  static constexpr std::string_view kFormat = "access/2";
  // Behind the rows of the objects.
  enum Extra : std::uint32_t { kNoObjectRow, kSharedRow, kLocalRow, kExtraRows };
  struct Settings {
    // Of all counters, for threads of a GPU that run apart; a power of two.
    std::uint32_t copies = 1;
    std::uint32_t sites = 1024;  // a power of two
    Marks::Room marks = {.together = std::uint64_t{1} << 30, .each = std::uint64_t{8} << 20};
  };
  struct State {
    AccessCounts* objects;   // copies x (objects of the launch, then kNoObjectRow and so on)
    SiteCounts* sites;       // copies x (sites + 1)
    SiteExtremes* extremes;  // sites + 1
    KeyTable keys;
    Marks marks;
    ObjectHints hints;
    std::uint32_t copies;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0) return;
    if (warp.space == Space::kGlobal) {
      count_global(state, launch, warp);
    } else {
      count_other(state, launch, warp);
    }
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  template <class AnyWarp>
  PASTA_DEVICE static AccessCounts* objects_of(const State& state, const Launch& launch,
                                               const AnyWarp& warp) {
    return state.objects +
           std::uint64_t{warp.copy(state.copies)} * (launch.object_count + kExtraRows);
  }
  template <class AnyWarp>
  PASTA_DEVICE static SiteCounts& counts_of(const State& state, const AnyWarp& warp,
                                            std::uint32_t site) {
    return state.sites[std::uint64_t{warp.copy(state.copies)} * (state.keys.capacity + 1) + site];
  }
  template <class AnyWarp>
  PASTA_DEVICE static std::uint32_t site_of(const State& state, const AnyWarp& warp) {
    return state.keys.find(site_key(warp.site, warp.space, warp.access));
  }

  template <class AnyWarp>
  PASTA_DEVICE static void count_global(const State& state, const Launch& launch,
                                        const AnyWarp& warp) {
    const Shape shape = warp.shape();
    const std::uint32_t site = site_of(state, warp);
    const std::uint64_t bytes = shape.footprint.bytes, sectors = shape.footprint.sectors;
    // Lanes that stay out leave gaps, which are not for where the warp begins.
    const std::uint64_t reach =
        (std::uint64_t{highest_bit(warp.active)} - lowest_bit(warp.active) + 1) * warp.width;
    const bool misaligned = shape.stride.pattern == Pattern::kUnit && sectors > sectors_for(reach);
    warp.add(counts_of(state, warp, site),
             {{PASTA_NUMBER(SiteCounts, warps), 1},
              {PASTA_NUMBER(SiteCounts, lanes), warp.lanes()},
              {PASTA_NUMBER(SiteCounts, asked_bytes), asked(warp, warp.lanes())},
              {PASTA_NUMBER(SiteCounts, used_bytes), bytes},
              {PASTA_NUMBER(SiteCounts, sectors), sectors},
              {PASTA_NUMBER(SiteCounts, needed_sectors), sectors_for(bytes)},
              {PASTA_NUMBER(SiteCounts, misaligned), misaligned ? 1u : 0u},
              {pattern_number(shape.stride.pattern), 1}});
    count_rest(state, warp, site, shape.stride);
    const std::uint32_t object = state.hints.find(launch, warp);
    if (object != kNoObject) {
      add_part(state, launch, warp, object, warp.active, shape.footprint);
      raise_object(state, warp, site, object + 1, object + 1);
      return;
    }
    std::uint32_t least = kNoObject, last = 0;  // of the objects + 1; 0: none
    warp.match([&](std::uint64_t address) { return launch.find(address, warp.width); },
               [&](std::uint32_t one, std::uint32_t mask) {
                 add_part(state, launch, warp, one, mask, warp.footprint(mask));
                 // kNoObject + 1 is 0, which is less than every other.
                 if (one + 1 < least) least = one + 1;
                 if (one + 1 > last) last = one + 1;
               });
    raise_object(state, warp, site, least, last);
  }
  template <class AnyWarp>
  PASTA_DEVICE static void add_part(const State& state, const Launch& launch, const AnyWarp& warp,
                                    std::uint32_t object, std::uint32_t mask,
                                    const Footprint& part) {
    const std::uint64_t lanes = count_bits(mask);
    warp.add(objects_of(state, launch,
                        warp)[object == kNoObject ? launch.object_count + kNoObjectRow : object],
             {{lanes_number(warp.access), lanes},
              {PASTA_NUMBER(AccessCounts, warps), 1},
              {PASTA_NUMBER(AccessCounts, asked_bytes), asked(warp, lanes)},
              {PASTA_NUMBER(AccessCounts, used_bytes), part.bytes},
              {PASTA_NUMBER(AccessCounts, sectors), part.sectors}});
    if (object == kNoObject) return;
    warp.each(mask, [&](std::uint64_t address) {
      state.marks.touch(object, address - launch.objects[object].address, warp.width);
    });
  }
  template <class AnyWarp>
  PASTA_DEVICE static void raise_object(const State& state, const AnyWarp& warp, std::uint32_t site,
                                        std::uint32_t least, std::uint32_t last) {
    warp.raise(state.extremes[site],
               {{PASTA_NUMBER(SiteExtremes, width), warp.width},
                {PASTA_NUMBER(SiteExtremes, object), last},
                {PASTA_NUMBER(SiteExtremes, least_object), ~std::uint64_t{least}}});
  }
  // Of shared and local memory. What a place counts is the memory's, too, but of places that found
  // no room.
  template <class AnyWarp>
  PASTA_DEVICE static void count_other(const State& state, const Launch& launch,
                                       const AnyWarp& warp) {
    const bool shared = warp.space == Space::kShared;
    const Stride stride = warp.stride();
    const Passes passes = shared ? warp.passes() : Passes{0, 0};
    const std::uint32_t site = site_of(state, warp);
    warp.add(counts_of(state, warp, site),
             {{PASTA_NUMBER(SiteCounts, warps), 1},
              {PASTA_NUMBER(SiteCounts, lanes), warp.lanes()},
              {PASTA_NUMBER(SiteCounts, asked_bytes), asked(warp, warp.lanes())},
              {PASTA_NUMBER(SiteCounts, passes), passes.needed},
              {PASTA_NUMBER(SiteCounts, passes_without_conflicts), passes.without_conflicts},
              {pattern_number(stride.pattern), 1}});
    warp.raise(state.extremes[site], {{PASTA_NUMBER(SiteExtremes, width), warp.width},
                                      {PASTA_NUMBER(SiteExtremes, degree), passes.needed}});
    count_rest(state, warp, site, stride);
    if (site != state.keys.capacity) return;
    warp.add(
        objects_of(state, launch, warp)[launch.object_count + (shared ? kSharedRow : kLocalRow)],
        {{lanes_number(warp.access), warp.lanes()},
         {PASTA_NUMBER(AccessCounts, warps), 1},
         {PASTA_NUMBER(AccessCounts, asked_bytes), asked(warp, warp.lanes())},
         {PASTA_NUMBER(AccessCounts, passes), passes.needed},
         {PASTA_NUMBER(AccessCounts, passes_without_conflicts), passes.without_conflicts}});
  }
  // What few accesses have.
  template <class AnyWarp>
  PASTA_DEVICE static void count_rest(const State& state, const AnyWarp& warp, std::uint32_t site,
                                      const Stride& stride) {
    if (stride.pattern == Pattern::kStrided) {
      const std::uint64_t step = static_cast<std::uint64_t>(stride.bytes) + kStepBias;
      warp.raise(state.extremes[site], {{PASTA_NUMBER(SiteExtremes, step), step},
                                        {PASTA_NUMBER(SiteExtremes, least_step), ~step}});
    }
    if (warp.access == Access::kAtomic) {
      const unsigned crowd = warp.crowd();
      warp.add(counts_of(state, warp, site), {{PASTA_NUMBER(SiteCounts, crowds), crowd}});
      warp.raise(state.extremes[site], {{PASTA_NUMBER(SiteExtremes, crowd), crowd}});
    }
  }

  template <class AnyWarp>
  PASTA_DEVICE static std::uint64_t asked(const AnyWarp& warp, std::uint64_t lanes) {
    return lanes * warp.width;
  }
  PASTA_DEVICE static std::uint64_t sectors_for(std::uint64_t bytes) {
    return (bytes + kSectorBytes - 1) / kSectorBytes;
  }
  // In the order of the enumerations.
  PASTA_DEVICE static std::uint32_t lanes_number(Access access) {
    return PASTA_NUMBER(AccessCounts, reads) + static_cast<std::uint32_t>(access);
  }
  PASTA_DEVICE static std::uint32_t pattern_number(Pattern pattern) {
    return PASTA_NUMBER(SiteCounts, single) + static_cast<std::uint32_t>(pattern);
  }
  static_assert(PASTA_NUMBER(AccessCounts, atomics) ==
                PASTA_NUMBER(AccessCounts, reads) + static_cast<std::uint32_t>(Access::kAtomic));
  static_assert(PASTA_NUMBER(SiteCounts, gather) ==
                PASTA_NUMBER(SiteCounts, single) + static_cast<std::uint32_t>(Pattern::kGather));
};

// --- Rows of the result

struct AccessRow {
  std::uint64_t object = 0;  // its number, or one of those in result.h
  // `counts.touched` is bytes here, of pieces of so many, so at most so many too large for each;
  // 1: exact.
  std::uint64_t granule = 1;
  AccessCounts counts = {};
  bool operator==(const AccessRow&) const = default;
};
struct SiteRow {
  std::uint64_t site = 0;               // kOtherSites: all that found no room in the table
  std::uint64_t space = 0, access = 0;  // as the enumerations
  std::uint64_t width = 0;              // of the widest access
  std::uint64_t object = 0;             // its number, or one of those in result.h
  SiteCounts counts = {};
  std::int64_t least_step = 0, most_step = 0;  // bytes from lane to lane, of strided warps
  std::uint64_t degree = 0;                    // the most passes that one access took
  std::uint64_t crowd = 0;                     // the most lanes at one address, of atomics
  bool operator==(const SiteRow&) const = default;
};
}  // namespace pasta::device
