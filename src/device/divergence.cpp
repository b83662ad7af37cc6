#include "device/divergence.h"

#include <algorithm>
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
    const std::uint64_t warps = state.groups[slot].warps;
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
  state.sample = GroupSample::of(launch, settings.groups);
  state.sites = layout.counters<ActivityCounts>(state.copies * (std::uint64_t{settings.sites} + 1));
  state.groups = layout.counters<GroupWork>(state.sample.slots);
  state.keys = {layout.counters<std::uint64_t>(settings.sites), settings.sites};
  return state;
}

PatchResult DivergencePatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable activity{.id = TableId::kActivity}, balance{.id = TableId::kBalance};
  const std::uint32_t capacity = state.keys.capacity;
  for (std::uint32_t i = 0; i <= capacity; ++i) {
    ActivityRow row{.counts = total_row(state.sites, state.copies, capacity + std::uint64_t{1}, i)};
    if (row.counts.warps == 0) continue;
    row.site = kOtherSites;
    if (i < capacity) {
      const SiteKey key = site_of_key(state.keys.keys[i]);
      row.site = key.site;
      row.space = static_cast<std::uint64_t>(key.space);
      row.access = static_cast<std::uint64_t>(key.access);
    }
    append_row(activity, row);
    activity.names.push_back(i < capacity ? names.site(row.site) : std::string());
  }
  const BalanceRow row = balance_of(state);
  if (row.total > 0) append_row(balance, row);
  return result_of(launch, {std::move(activity), std::move(balance)});
}

}  // namespace pasta::device
