#include "device/divergence.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/layout.h"
#include "device/result.h"

namespace pasta::device {
namespace {

BalanceRow balance_of(const DivergencePatch::State& state) {
  BalanceRow row;
  row.groups = state.sample.slots;
  std::vector<std::uint64_t> work;
  for (std::uint32_t slot = 0; slot < state.sample.slots; ++slot) {
    const std::uint64_t warps = state.groups[slot];
    work.push_back(warps);
    row.total += warps;
    row.working += warps > 0 ? 1 : 0;
    if (warps <= row.most) continue;
    row.most = warps;
    row.heaviest = slot * state.sample.apart();
  }
  // Nearest rank.
  const auto middle = work.begin() + static_cast<std::ptrdiff_t>((work.size() - 1) / 2);
  std::nth_element(work.begin(), middle, work.end());
  row.median = *middle;
  return row;
}

}  // namespace

DivergencePatch::State DivergencePatch::lay_out(const Launch& launch, const Settings& settings,
                                                Layout& layout) {
  State state{};
  state.copies = std::max(settings.copies, 1u);
  state.whole = launch.items() % kWarpLanes == 0 ? 1 : 0;
  state.sample = GroupSample::of(launch, settings.groups);
  state.times = layout.counters<std::uint64_t>(std::uint64_t{state.copies} * settings.outcomes);
  state.others = layout.counters<ActivityCounts>(state.copies);
  state.groups = layout.counters<std::uint64_t>(state.sample.slots);
  state.keys = {layout.counters<std::uint64_t>(settings.outcomes), settings.outcomes};
  return state;
}

std::vector<DivergencePatch::Activity> DivergencePatch::activity(const State& state) {
  std::vector<Activity> found;
  std::unordered_map<std::uint64_t, std::size_t> places;
  const std::uint32_t capacity = state.keys.capacity;
  for (std::uint32_t i = 0; i < capacity; ++i) {
    std::uint64_t times = 0;
    for (std::uint32_t copy = 0; copy < state.copies; ++copy) {
      times += state.times[std::uint64_t{copy} * capacity + i];
    }
    if (times == 0) continue;
    const std::uint64_t key = state.keys.keys[i],
                        site = key & ((std::uint64_t{1} << kLanesBit) - 1);
    const auto high = static_cast<std::uint32_t>(key >> 32);
    const std::uint32_t lanes = lanes_of(high), there = there_of(high);
    const auto [at, is_new] = places.try_emplace(site, found.size());
    if (is_new) found.push_back({.site = site});
    ActivityCounts more{.warps = times,
                        .lanes = times * lanes,
                        .existing = times * there,
                        .partial = lanes < there ? times : 0};
    more.quarters[quarter(lanes)] = times;
    add_row(found[at->second].counts, more);
  }
  Activity others{.counts = total_row(state.others, state.copies, 1, 0)};
  if (others.counts.warps > 0) found.push_back(others);
  return found;
}

PatchResult DivergencePatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable activity_table{.id = TableId::kActivity}, balance{.id = TableId::kBalance};
  for (const Activity& at : activity(state)) {
    ActivityRow row{.site = kOtherSites, .counts = at.counts};
    if (at.site != 0) {
      const SiteKey key = site_of_key(at.site);
      row.site = key.site;
      row.space = static_cast<std::uint64_t>(key.space);
      row.access = static_cast<std::uint64_t>(key.access);
    }
    append_row(activity_table, row);
    activity_table.names.push_back(at.site != 0 ? names.site(row.site) : std::string());
  }
  const BalanceRow row = balance_of(state);
  if (row.total > 0) append_row(balance, row);
  return result_of(launch, {std::move(activity_table), std::move(balance)});
}

}  // namespace pasta::device
