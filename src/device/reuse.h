// The patch `reuse`: which parts of objects a launch touches, and whether its groups come back to
// what they had.
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

struct SetCounts {
  std::uint64_t asked_bytes = 0;  // by lanes
  std::uint64_t sectors = 0;
  std::uint64_t touched = 0;  // bytes; in results only, in states by the marks
  bool operator==(const SetCounts&) const = default;
};
// Of one group.
struct GroupSectors {
  std::uint64_t sectors = 0;
};

struct ReusePatch {
  static constexpr std::string_view kFormat = "reuse/1";
  static constexpr std::uint32_t kCopies = 8;  // on a GPU
  struct Settings {
    std::uint32_t copies = 1;  // on a GPU kCopies
    Marks::Room marks = {.together = std::uint64_t{8} << 20,
                         .each = std::uint64_t{1} << 20,
                         .least_granule = kSectorBytes};
    std::uint32_t groups = 64;  // that leave a fingerprint
  };
  struct State {
    SetCounts* sets;  // copies x rows: one for no object, then the objects of the launch
    GroupSectors* groups;
    Marks marks;
    DistinctBits fingerprints;
    ObjectHints hints;
    GroupSample sample;
    std::uint64_t words;  // of the marks
    std::uint32_t copies, rows;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0 || warp.space != Space::kGlobal) return;
    leave_print(state, warp);
    warp.match(
        [&](std::uint64_t address) {
          return state.hints.find(launch, state.marks.places, address, warp.width);
        },
        [&](std::uint32_t object, std::uint32_t mask) {
          // One after the other, as there are registers for one.
          warp.add(mask, row(state, warp, object).asked_bytes, count_bits(mask) * warp.width);
          const std::uint32_t sectors = warp.sectors(mask);
          warp.add(mask, row(warp.after(sectors, state), warp, object).sectors, sectors);
          if (object != kNoObject) state.marks.touch(warp, mask, object);
        });
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  template <class AnyWarp>
  PASTA_DEVICE static SetCounts& row(const State& state, const AnyWarp& warp,
                                     std::uint32_t object) {
    return state.sets[warp.template copy<kCopies>() * state.rows + (object + 1)];
  }
  template <class AnyWarp>
  PASTA_DEVICE static void leave_print(const State& state, const AnyWarp& warp) {
    const std::uint32_t slot = state.sample.slot(warp.group());
    if (slot == GroupSample::kNone) return;
    warp.each(warp.active, [&](std::uint64_t address) {
      std::uint64_t sector = address / kSectorBytes;
      state.fingerprints.insert(slot, sector);
      if constexpr (AnyWarp::kWide) {
        const std::uint64_t last = (address + (warp.width - 1)) / kSectorBytes;
        while (sector != last) state.fingerprints.insert(slot, ++sector);
      }
    });
    warp.add(warp.active, state.groups[slot].sectors, warp.sectors(warp.active));
  }
};

// --- Rows of the result

struct SetRow {
  std::uint64_t object = 0;       // its number or kUnknownObject
  std::uint64_t granule = 1;      // `counts.touched` is bytes here, of pieces of so many
  std::uint64_t run_granule = 1;  // the same, of its runs
  SetCounts counts = {};
  bool operator==(const SetRow&) const = default;
};
// Bytes [begin, end) of an object that were touched, in pieces of its run_granule.
struct RunRow {
  std::uint64_t object = 0, begin = 0, end = 0;
  bool operator==(const RunRow&) const = default;
};
// Of the groups that left a fingerprint, all together.
struct FingerprintRow {
  std::uint64_t groups = 0;
  std::uint64_t sectors = 0;   // that they accessed, again and again
  std::uint64_t distinct = 0;  // about: for each group the different ones
  std::uint64_t full = 0;      // groups whose fingerprint was too small: there may be more
  bool operator==(const FingerprintRow&) const = default;
};

}  // namespace pasta::device
