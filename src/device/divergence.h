// The patch `divergence`: how many lanes of a warp take part, place by place, and how evenly the
// groups of a launch are loaded.
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

struct ActivityCounts {
  std::uint64_t warps = 0;
  std::uint64_t lanes = 0;
  std::uint64_t existing = 0;      // lanes of these warps: fewer than 32 in the last of a group
  std::uint64_t partial = 0;       // warps of which an existing lane stays out
  std::uint64_t quarters[4] = {};  // warps with up to 8, 16, 24, 32 lanes
  bool operator==(const ActivityCounts&) const = default;
};
struct GroupWork {
  std::uint64_t warps = 0, lanes = 0;
};

struct DivergencePatch {
  static constexpr std::string_view kFormat = "divergence/1";
  static constexpr std::uint32_t kCopies = 8;  // on a GPU
  struct Settings {
    std::uint32_t copies = 1;     // on a GPU kCopies
    std::uint32_t sites = 1024;   // a power of two
    std::uint32_t groups = 4096;  // whose work is counted
  };
  struct State {
    ActivityCounts* sites;  // copies x (sites + 1)
    GroupWork* groups;
    KeyTable keys;
    GroupSample sample;
    std::uint32_t copies;
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    const unsigned lanes = warp.lanes();
    const std::uint64_t there = existing(launch, warp.number(), lanes);
    const std::uint32_t site = state.keys.find(site_key(warp.site, warp.space, warp.access));
    warp.add(warp.active,
             state.sites[warp.template copy<kCopies>() * (state.keys.capacity + 1) + site],
             {{PASTA_NUMBER(ActivityCounts, warps), 1},
              {PASTA_NUMBER(ActivityCounts, lanes), lanes},
              {PASTA_NUMBER(ActivityCounts, existing), there},
              {PASTA_NUMBER(ActivityCounts, partial), lanes < there ? 1u : 0u},
              {PASTA_NUMBER(ActivityCounts, quarters) + (lanes - 1) / (kWarpLanes / 4), 1}});
    const std::uint32_t slot = state.sample.slot(warp.group());
    if (slot == GroupSample::kNone) return;
    warp.add(warp.active, state.groups[slot],
             {{PASTA_NUMBER(GroupWork, warps), 1}, {PASTA_NUMBER(GroupWork, lanes), lanes}});
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  PASTA_DEVICE static std::uint64_t existing(const Launch& launch, std::uint32_t warp,
                                             unsigned active) {
    const std::uint64_t items = launch.items();
    const std::uint64_t before = std::uint64_t{warp} * kWarpLanes;
    if (items <= before) return active;  // no such warp: what is known of the launch is wrong
    return items - before < kWarpLanes ? items - before : kWarpLanes;
  }
};

// --- Rows of the result

struct ActivityRow {
  std::uint64_t site = 0;               // kOtherSites: all that found no room in the table
  std::uint64_t space = 0, access = 0;  // as the enumerations
  ActivityCounts counts = {};
  bool operator==(const ActivityRow&) const = default;
};
// Accesses of warps, by the groups whose work was counted.
struct BalanceRow {
  std::uint64_t groups = 0;   // whose work was counted
  std::uint64_t working = 0;  // of them, with any access
  std::uint64_t total = 0, median = 0, most = 0;
  std::uint64_t heaviest = 0;  // number of the group with the most, the first of equals
  bool operator==(const BalanceRow&) const = default;
};

}  // namespace pasta::device
