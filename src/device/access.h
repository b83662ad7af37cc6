// The patch `access`: what a launch asks of each object, what memory moves for it, and at which
// places of the program.
#pragma once

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
  std::uint64_t touched = 0;  // granules
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
    std::uint32_t copies = 1;    // of all counters, for threads of a GPU that run apart
    std::uint32_t sites = 1024;  // a power of two
    Marks::Room marks = {.together = std::uint64_t{1} << 30, .each = std::uint64_t{8} << 20};
  };
  struct State {
    AccessCounts* objects;   // copies x (objects of the launch, then kNoObjectRow and so on)
    SiteCounts* sites;       // copies x (sites + 1)
    SiteExtremes* extremes;  // sites + 1
    KeyTable keys;
    Marks marks;
    std::uint32_t copies;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0) return;
    const bool global = warp.space == Space::kGlobal;
    const std::uint32_t copy = warp.copy(state.copies);
    const unsigned lanes = warp.lanes();
    SiteCounts at_site = {
        .warps = 1, .lanes = lanes, .asked_bytes = std::uint64_t{lanes} * warp.width};
    AccessCounts* objects =
        state.objects + std::uint64_t{copy} * (launch.object_count + kExtraRows);
    Passes passes{0, 0};
    std::uint32_t least = kNoObject, most = kNoObject;  // of the objects; + 1: 0 is none
    if (!global) {
      AccessCounts counts = of_lanes(warp, lanes);
      if (warp.space == Space::kShared) {
        passes = warp.passes();
        at_site.passes = counts.passes = passes.needed;
        at_site.passes_without_conflicts = counts.passes_without_conflicts =
            passes.without_conflicts;
      }
      const std::uint32_t row = warp.space == Space::kShared ? kSharedRow : kLocalRow;
      warp.add(objects[launch.object_count + row], counts);
    } else {
      const Footprint whole = warp.footprint(warp.active);
      at_site.used_bytes = whole.bytes;
      at_site.sectors = whole.sectors;
      at_site.needed_sectors = (whole.bytes + kSectorBytes - 1) / kSectorBytes;
      warp.match([&](std::uint64_t address) { return launch.find(address, warp.width); },
                 [&](std::uint32_t object, std::uint32_t mask) {
                   const Footprint part = mask == warp.active ? whole : warp.footprint(mask);
                   AccessCounts counts = of_lanes(warp, count_bits(mask));
                   counts.used_bytes = part.bytes;
                   counts.sectors = part.sectors;
                   if (object != kNoObject) {
                     const std::uint64_t begin = launch.objects[object].address;
                     counts.touched = warp.sum(mask, [&](std::uint64_t address) {
                       return state.marks.mark(object, address - begin, warp.width);
                     });
                   }
                   warp.add(
                       objects[object == kNoObject ? launch.object_count + kNoObjectRow : object],
                       counts);
                   // kNoObject + 1 is 0, which is less than every other.
                   if (least == kNoObject || object + 1 < least) least = object + 1;
                   if (most == kNoObject || object + 1 > most) most = object + 1;
                 });
    }
    const Stride stride = warp.stride();
    count_pattern(at_site, stride.pattern);
    // Lanes that stay out leave gaps, which are not for where the warp begins.
    const std::uint64_t span =
        (std::uint64_t{highest_bit(warp.active)} - lowest_bit(warp.active) + 1) * warp.width;
    if (stride.pattern == Pattern::kUnit &&
        at_site.sectors > (span + kSectorBytes - 1) / kSectorBytes) {
      at_site.misaligned = 1;
    }
    const unsigned crowd = warp.access == Access::kAtomic ? warp.crowd() : 0;
    at_site.crowds = crowd;
    const std::uint32_t site =
        warp.uniform([&] { return state.keys.find(site_key(warp.site, warp.space, warp.access)); });
    warp.add(state.sites[std::uint64_t{copy} * (state.keys.capacity + 1) + site], at_site);
    warp.uniform([&] {
      SiteExtremes& extremes = state.extremes[site];
      raise(extremes.width, warp.width);
      if (global) {
        raise(extremes.object, most);
        raise(extremes.least_object, ~std::uint64_t{least});
      }
      if (stride.pattern == Pattern::kStrided) {
        const std::uint64_t step = static_cast<std::uint64_t>(stride.bytes) + kStepBias;
        raise(extremes.step, step);
        raise(extremes.least_step, ~step);
      }
      raise(extremes.degree, passes.needed);
      raise(extremes.crowd, crowd);
      return 0;
    });
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  template <class AnyWarp>
  PASTA_DEVICE static AccessCounts of_lanes(const AnyWarp& warp, unsigned lanes) {
    AccessCounts counts;
    (warp.access == Access::kRead    ? counts.reads
     : warp.access == Access::kWrite ? counts.writes
                                     : counts.atomics) = lanes;
    counts.warps = 1;
    counts.asked_bytes = std::uint64_t{lanes} * warp.width;
    return counts;
  }
  PASTA_DEVICE static void count_pattern(SiteCounts& counts, Pattern pattern) {
    switch (pattern) {
      case Pattern::kSingle:
        counts.single = 1;
        break;
      case Pattern::kBroadcast:
        counts.broadcast = 1;
        break;
      case Pattern::kUnit:
        counts.unit = 1;
        break;
      case Pattern::kStrided:
        counts.strided = 1;
        break;
      case Pattern::kPieces:
        counts.pieces = 1;
        break;
      case Pattern::kGather:
        counts.gather = 1;
        break;
    }
  }
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
