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
  struct Settings {
    std::uint32_t copies = 1;  // a power of two
    Marks::Room marks = {.together = std::uint64_t{8} << 20,
                         .each = std::uint64_t{1} << 20,
                         .least_granule = kSectorBytes};
    std::uint32_t groups = 64;  // that leave a fingerprint
  };
  struct State {
    SetCounts* sets;  // copies x (objects of the launch, one for no object)
    GroupSectors* groups;
    Marks marks;
    DistinctBits fingerprints;
    ObjectHints hints;
    GroupSample sample;
    std::uint64_t words;  // of the marks
    std::uint32_t copies;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0 || warp.space != Space::kGlobal) return;
    SetCounts* sets =
        state.sets + std::uint64_t{warp.copy(state.copies)} * (launch.object_count + 1);
    const std::uint32_t object = state.hints.find(launch, warp);
    if (object != kNoObject) {
      add_part(state, launch, warp, object, warp.active, sets);
    } else {
      warp.match([&](std::uint64_t address) { return launch.find(address, warp.width); },
                 [&](std::uint32_t one, std::uint32_t mask) {
                   add_part(state, launch, warp, one, mask, sets);
                 });
    }
    const std::uint32_t slot = state.sample.slot(warp.group);
    if (slot == GroupSample::kNone) return;
    warp.add(state.groups[slot],
             {{PASTA_NUMBER(GroupSectors, sectors), warp.sectors(warp.active)}});
    warp.each(warp.active, [&](std::uint64_t address) {
      const std::uint64_t last = (address + (warp.width - 1)) / kSectorBytes;
      for (std::uint64_t sector = address / kSectorBytes; sector <= last; ++sector) {
        state.fingerprints.insert(slot, sector);
      }
    });
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  template <class AnyWarp>
  PASTA_DEVICE static void add_part(const State& state, const Launch& launch, const AnyWarp& warp,
                                    std::uint32_t object, std::uint32_t mask, SetCounts* sets) {
    warp.add(sets[object == kNoObject ? launch.object_count : object],
             {{PASTA_NUMBER(SetCounts, asked_bytes), std::uint64_t{count_bits(mask)} * warp.width},
              {PASTA_NUMBER(SetCounts, sectors), warp.sectors(mask)}});
    if (object == kNoObject) return;
    warp.each(mask, [&](std::uint64_t address) {
      state.marks.touch(object, address - launch.objects[object].address, warp.width);
    });
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
