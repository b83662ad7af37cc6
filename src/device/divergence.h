// The patch `divergence`: how many lanes of a warp take part, place by place, and how evenly the
// groups of a launch are loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

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
struct DivergencePatch {
  static constexpr std::string_view kFormat = "divergence/1";
  static constexpr std::uint32_t kCopies = 8;  // on a GPU
  struct Settings {
    std::uint32_t copies = 1;       // on a GPU kCopies
    std::uint32_t outcomes = 4096;  // a power of two
    std::uint32_t groups = 4096;    // whose work is counted
  };
  // What most warps do again and again, at a place, is one number to count: `keys` says where.
  struct State {
    std::uint64_t* times;    // copies x outcomes
    ActivityCounts* others;  // copies of what found no room there
    std::uint64_t* groups;   // accesses of warps
    KeyTable keys;
    GroupSample sample;
    std::uint32_t copies;
    std::uint32_t whole;  // no warp of the launch has fewer lanes than others
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    const std::uint64_t key =
        key_of(site_key(warp.site, warp.space, warp.access), warp.lanes(),
               state.whole != 0 ? kWarpLanes : existing(launch, warp.number(), warp.lanes()));
    const std::uint32_t at = state.keys.find(key);
    if (at != state.keys.capacity) {
      warp.add(warp.active, state.times[warp.template copy<kCopies>() * state.keys.capacity + at],
               1);
    } else {
      count_other(state, warp, late(static_cast<std::uint32_t>(key >> 32)));
    }
    const std::uint32_t slot = state.sample.slot(warp.group());
    if (slot != GroupSample::kNone) warp.add(warp.active, state.groups[slot], 1);
  }

  // Of the places that found room, in the order in which they did, and of the others.
  struct Activity {
    std::uint64_t site = 0;  // as a site_key
    ActivityCounts counts = {};
  };
  static std::vector<Activity> activity(const State& state);
  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  // A site_key has no more than 52 bits.
  static constexpr unsigned kLanesBit = 52, kThereBit = 57;
  PASTA_DEVICE static std::uint64_t key_of(std::uint64_t site, std::uint32_t lanes,
                                           std::uint32_t there) {
    return site | std::uint64_t{lanes - 1} << kLanesBit | std::uint64_t{there - 1} << kThereBit;
  }
  // Of the higher half of a key.
  PASTA_DEVICE static std::uint32_t lanes_of(std::uint32_t high) {
    return (high >> (kLanesBit - 32)) % kWarpLanes + 1;
  }
  PASTA_DEVICE static std::uint32_t there_of(std::uint32_t high) {
    return (high >> (kThereBit - 32)) + 1;
  }
  template <class AnyWarp>
  PASTA_DEVICE static void count_other(const State& state, const AnyWarp& warp,
                                       std::uint32_t high) {
    warp.add(warp.active, state.others[warp.template copy<kCopies>()],
             {{PASTA_NUMBER(ActivityCounts, warps), 1},
              {PASTA_NUMBER(ActivityCounts, lanes), lanes_of(high)},
              {PASTA_NUMBER(ActivityCounts, existing), there_of(high)},
              {PASTA_NUMBER(ActivityCounts, partial), lanes_of(high) < there_of(high) ? 1u : 0u},
              {PASTA_NUMBER(ActivityCounts, quarters) + quarter(lanes_of(high)), 1}});
  }
  PASTA_DEVICE static std::uint32_t quarter(std::uint32_t lanes) {
    return (lanes - 1) / (kWarpLanes / 4);
  }
  PASTA_DEVICE static std::uint32_t existing(const Launch& launch, std::uint32_t warp,
                                             unsigned active) {
    const std::uint64_t items = launch.items();
    const std::uint64_t before = std::uint64_t{warp} * kWarpLanes;
    if (items <= before) return active;  // no such warp: what is known of the launch is wrong
    return items - before < kWarpLanes ? static_cast<std::uint32_t>(items - before) : kWarpLanes;
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
