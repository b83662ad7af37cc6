// Runs a patch on the host, over the accesses of work-items as somebody tells of them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "device/launch.h"
#include "device/warp.h"

namespace pasta::device {

struct ItemAccess {
  std::uint32_t item;  // of its group, numbered x first
  std::uint64_t site;
  std::uint64_t address;
  std::uint32_t width;
  Space space;
  Access access;
};

// Of a patch (see layout.h) it needs State and on_access. Accesses of one group are told before
// those of the next; of one item in the order in which they happen; of different items in any
// order. See warp.h for how they become warps.
template <class Patch>
class HostRunner {
 public:
  // What one group may hold back until a barrier or its end; beyond it, accesses are dropped.
  static constexpr std::size_t kMostWarps = std::size_t{1} << 20;

  HostRunner(const Launch& launch, typename Patch::State& state)
      : launch_(&launch), state_(&state) {}

  void begin_group(std::uint64_t number) {
    flush();
    group_ = number;
  }

  void access(const ItemAccess& a) {
    const std::uint64_t place = a.site << 3 | static_cast<std::uint64_t>(a.space) << 1 |
                                (a.access == Access::kAtomic ? 1u : 0u);
    const std::uint32_t warp = a.item / kWarpLanes;
    const std::uint32_t time = times_[{place, a.item}]++;
    const auto [known, is_new] = slots_.try_emplace({place, warp, time}, warps_.size());
    if (is_new) {
      if (warps_.size() == kMostWarps) {
        slots_.erase(known);
        ++dropped_;
        return;
      }
      Warp& fresh = warps_.emplace_back();
      fresh.space = a.space;
      fresh.access = a.access;
      fresh.site = a.site;
      fresh.width = a.width;
      fresh.number_in_group = warp;
      fresh.group_number = group_;
    }
    Warp& slot = warps_[known->second];
    const std::uint32_t lane = a.item % kWarpLanes;
    slot.active |= 1u << lane;
    slot.address[lane] = a.address;
  }

  // All items of the group have come to it, or the group is over.
  void flush() {
    for (const Warp& warp : warps_) Patch::on_access(*state_, *launch_, warp);
    warps_.clear();
    slots_.clear();
    times_.clear();
  }

  // Accesses that were not analysed.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  struct Key {
    std::uint64_t place;
    std::uint32_t warp, time = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t sum = key.place * 0x9fb21c651e98df25u;
      sum = (sum ^ (std::uint64_t{key.warp} << 32 | key.time)) * 0xd6e8feb86659fd93u;
      return sum ^ sum >> 29;
    }
  };

  const Launch* launch_;
  typename Patch::State* state_;
  std::uint64_t group_ = 0;
  std::unordered_map<Key, std::uint32_t, Hash> times_;  // by place and item: how often so far
  std::unordered_map<Key, std::size_t, Hash> slots_;    // by place, warp and time: in warps_
  std::vector<Warp> warps_;                             // in order of their first lanes
  std::uint64_t dropped_ = 0;
};

}  // namespace pasta::device
