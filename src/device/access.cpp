#include "device/access.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "device/layout.h"
#include "device/result.h"

namespace pasta::device {
namespace {

std::uint64_t object_of(const Launch& launch, Space space, const SiteExtremes& extremes) {
  if (space == Space::kShared) return kSharedMemory;
  if (space == Space::kLocal) return kLocalMemory;
  if (extremes.object != ~extremes.least_object) return kSeveralObjects;
  return extremes.object == 0 ? kUnknownObject : launch.objects[extremes.object - 1].number;
}

// What was counted at all places that access this space, which is not global.
void add_sites(const AccessPatch::State& state, Space space, AccessCounts& sum) {
  const std::uint32_t capacity = state.keys.capacity;
  for (std::uint32_t i = 0; i < capacity; ++i) {
    if (state.keys.keys[i] == 0) continue;
    const SiteKey key = site_of_key(state.keys.keys[i]);
    if (key.space != space) continue;
    const SiteCounts counts = total_row(state.sites, state.copies, capacity + 1, i);
    (key.access == Access::kRead    ? sum.reads
     : key.access == Access::kWrite ? sum.writes
                                    : sum.atomics) += counts.lanes;
    sum.warps += counts.warps;
    sum.asked_bytes += counts.asked_bytes;
    sum.passes += counts.passes;
    sum.passes_without_conflicts += counts.passes_without_conflicts;
  }
}

ResultTable accesses(const Launch& launch, const AccessPatch::State& state, const Names& names,
                     ResultTable& objects) {
  ResultTable table{.id = TableId::kAccesses};
  const std::uint32_t all = launch.object_count + AccessPatch::kExtraRows;
  for (std::uint32_t i = 0; i < all; ++i) {
    AccessRow row{.granule = 1, .counts = total_row(state.objects, state.copies, all, i)};
    if (i == launch.object_count + AccessPatch::kSharedRow) {
      add_sites(state, Space::kShared, row.counts);
    } else if (i == launch.object_count + AccessPatch::kLocalRow) {
      add_sites(state, Space::kLocal, row.counts);
    }
    if (row.counts.warps == 0) continue;
    if (i < launch.object_count) {
      const MemoryObject& object = launch.objects[i];
      row.object = object.number;
      row.granule = state.marks.granule(i);
      row.counts.touched = state.marks.touched(i, object);
      append_object(objects, object, names);
    } else {
      const std::uint32_t extra = i - launch.object_count;
      row.object = extra == AccessPatch::kSharedRow  ? kSharedMemory
                   : extra == AccessPatch::kLocalRow ? kLocalMemory
                                                     : kUnknownObject;
    }
    append_row(table, row);
  }
  return table;
}

ResultTable sites(const Launch& launch, const AccessPatch::State& state, const Names& names) {
  ResultTable table{.id = TableId::kSites};
  const std::uint32_t capacity = state.keys.capacity;
  for (std::uint32_t i = 0; i <= capacity; ++i) {
    const std::uint64_t key = i < capacity ? state.keys.keys[i] : 0;
    const SiteExtremes& extremes = state.extremes[i];
    SiteRow row{.counts = total_row(state.sites, state.copies, capacity + 1, i)};
    if (row.counts.warps == 0) continue;
    row.width = extremes.width;
    row.degree = extremes.degree;
    row.crowd = extremes.crowd;
    if (row.counts.strided > 0) {
      row.least_step = static_cast<std::int64_t>(~extremes.least_step - kStepBias);
      row.most_step = static_cast<std::int64_t>(extremes.step - kStepBias);
    }
    if (i < capacity) {
      const auto [site, space, access] = site_of_key(key);
      row.site = site;
      row.space = static_cast<std::uint64_t>(space);
      row.access = static_cast<std::uint64_t>(access);
      row.object = object_of(launch, space, extremes);
    } else {
      row.site = kOtherSites;
      row.object = kSeveralObjects;
    }
    append_row(table, row);
    table.names.push_back(i < capacity ? names.site(row.site) : std::string());
  }
  return table;
}

}  // namespace

AccessPatch::State AccessPatch::lay_out(const Launch& launch, const Settings& settings,
                                        Layout& layout) {
  State state{};
  state.copies = std::max(settings.copies, 1u);
  std::uint64_t words = 0;
  const auto places = Marks::plan(launch, settings.marks, words);
  const std::uint64_t rows = std::uint64_t{settings.sites} + 1;
  state.marks.places = layout.table(std::span<const Marks::Place>(places));
  state.objects = layout.counters<AccessCounts>(std::uint64_t{state.copies} *
                                                (launch.object_count + kExtraRows));
  state.sites = layout.counters<SiteCounts>(state.copies * rows);
  state.extremes = layout.counters<SiteExtremes>(rows);
  state.keys = {layout.counters<std::uint64_t>(settings.sites), settings.sites};
  state.marks.words = layout.counters<std::uint64_t>(words);
  state.hints = {layout.scratch<std::uint64_t>(ObjectHints::kCount)};
  return state;
}

PatchResult AccessPatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects};
  ResultTable rows = accesses(launch, state, names, objects);
  return result_of(launch, {std::move(objects), std::move(rows), sites(launch, state, names)});
}

}  // namespace pasta::device
