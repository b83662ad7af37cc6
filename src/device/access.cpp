#include "device/access.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
void add_sites(const AccessPatch::State& state, const std::vector<SiteCounts>& sites, Space space,
               AccessCounts& sum) {
  for (std::uint32_t i = 0; i < state.keys.capacity; ++i) {
    if (state.keys.keys[i] == 0) continue;
    const SiteKey key = site_of_key(state.keys.keys[i]);
    if (key.space != space) continue;
    const SiteCounts& counts = sites[i];
    (key.access == Access::kRead    ? sum.reads
     : key.access == Access::kWrite ? sum.writes
                                    : sum.atomics) += counts.lanes;
    sum.warps += counts.warps;
    sum.asked_bytes += counts.asked_bytes;
    sum.passes += counts.passes;
    sum.passes_without_conflicts += counts.passes_without_conflicts;
  }
}

}  // namespace

Outcome Outcome::of_key(std::uint64_t key, bool global) {
  const auto how = static_cast<std::uint32_t>(key), who = static_cast<std::uint32_t>(key >> 32);
  const std::uint32_t counts = how >> 18;
  return {.kind = kind_of(who),
          .site = site_of(who),
          .row = row_of(who),
          .lanes = (how >> 6 & 31) + 1,
          .width = 1u << (how >> 15 & 7),
          .sectors = global ? counts >> 6 : 0,
          .parts = global ? counts & 63 : 0,
          .passes = global ? 0 : counts >> 4,
          .passes_without_conflicts = global ? 0 : counts & 15,
          .crowd = crowd_of(how),
          .pattern = pattern_of(how),
          .misaligned = is_misaligned(how)};
}

// All that was counted, in rows.
struct AccessPatch::Totals {
  std::vector<AccessCounts> objects;
  std::vector<SiteCounts> sites;
  std::vector<SiteExtremes> extremes;

  explicit Totals(const State& state) {
    const std::uint32_t places = state.keys.capacity + 1;
    for (std::uint32_t i = 0; i < state.rows; ++i) {
      objects.push_back(total_row(state.objects, state.copies, state.rows, i));
    }
    for (std::uint32_t i = 0; i < places; ++i) {
      sites.push_back(total_row(state.sites, state.copies, places, i));
    }
    extremes.assign(state.extremes, state.extremes + places);
    const std::uint32_t capacity = state.outcomes.capacity;
    for (std::uint32_t i = 0; i < capacity; ++i) {
      if (state.outcomes.keys[i] == 0) continue;
      std::uint64_t times = 0;
      for (std::uint32_t copy = 0; copy < state.times_copies; ++copy) {
        times += state.times[std::uint64_t{copy} * kApart + i];
      }
      if (times > 0) add(state, state.outcomes.keys[i], times);
    }
    add_sites(state, sites, Space::kShared, objects[state.rows - kExtraRows + kSharedRow]);
    add_sites(state, sites, Space::kLocal, objects[state.rows - kExtraRows + kLocalRow]);
  }

 private:
  void add(const State& state, std::uint64_t key, std::uint64_t times) {
    const auto [place, space, access] =
        site_of_key(state.keys.keys[Outcome::site_of(static_cast<std::uint32_t>(key >> 32))]);
    const Outcome outcome = Outcome::of_key(key, space == Space::kGlobal);
    const std::uint64_t asked = times * outcome.lanes * outcome.width;
    const std::uint64_t used = std::uint64_t{outcome.parts} * outcome.width;
    SiteCounts counts = {.warps = times,
                         .lanes = times * outcome.lanes,
                         .asked_bytes = asked,
                         .crowds = times * outcome.crowd};
    reinterpret_cast<std::uint64_t*>(&counts)[pattern_number(outcome.pattern)] = times;
    SiteExtremes most = {.width = outcome.width, .crowd = outcome.crowd};
    counts.used_bytes = times * used;
    counts.sectors = times * outcome.sectors;
    counts.needed_sectors = times * sectors_for(used);
    counts.misaligned = outcome.misaligned ? times : 0;
    counts.passes = times * outcome.passes;
    counts.passes_without_conflicts = times * outcome.passes_without_conflicts;
    most.degree = outcome.passes;
    const bool several = outcome.kind == Outcome::kOfSite;
    most.object = several ? ~std::uint64_t{0} : outcome.row;
    most.least_object = several ? ~std::uint64_t{0} : ~most.object;
    if (!several) {
      AccessCounts of_object = {.warps = times,
                                .asked_bytes = asked,
                                .used_bytes = counts.used_bytes,
                                .sectors = counts.sectors};
      reinterpret_cast<std::uint64_t*>(&of_object)[lanes_number(access)] = counts.lanes;
      add_row(objects[outcome.row], of_object);
    }
    add_row(sites[outcome.site], counts);
    auto* all = reinterpret_cast<std::uint64_t*>(&extremes[outcome.site]);
    const auto* one = reinterpret_cast<const std::uint64_t*>(&most);
    for (std::size_t i = 0; i < sizeof most / sizeof *one; ++i) raise(all[i], one[i]);
  }
};

namespace {

ResultTable accesses(const Launch& launch, const AccessPatch::State& state,
                     const std::vector<AccessCounts>& totals, const Names& names,
                     ResultTable& objects) {
  ResultTable table{.id = TableId::kAccesses};
  const auto rows = static_cast<std::uint32_t>(totals.size());
  // Objects, then what is of none.
  for (std::uint32_t n = 1; n <= rows; ++n) {
    const std::uint32_t i = n <= launch.object_count ? n : n == launch.object_count + 1 ? 0 : n - 1;
    AccessRow row{.granule = 1, .counts = totals[i]};
    if (row.counts.warps == 0) continue;
    if (i == AccessPatch::kNoObjectRow) {
      row.object = kUnknownObject;
    } else if (i <= launch.object_count) {
      const std::uint32_t index = i - AccessPatch::kFirstObjectRow;
      const MemoryObject& object = launch.objects[index];
      row.object = object.number;
      row.granule = state.marks.granule(index);
      row.counts.touched = state.marks.touched(index, object);
      append_object(objects, object, names);
    } else {
      const bool shared = i == rows - AccessPatch::kExtraRows + AccessPatch::kSharedRow;
      row.object = shared ? kSharedMemory : kLocalMemory;
    }
    append_row(table, row);
  }
  return table;
}

ResultTable sites(const Launch& launch, const AccessPatch::State& state,
                  const std::vector<SiteCounts>& totals, const std::vector<SiteExtremes>& extremes,
                  const Names& names) {
  ResultTable table{.id = TableId::kSites};
  const std::uint32_t capacity = state.keys.capacity;
  for (std::uint32_t i = 0; i <= capacity; ++i) {
    SiteRow row{.counts = totals[i]};
    if (row.counts.warps == 0) continue;
    row.width = extremes[i].width;
    row.degree = extremes[i].degree;
    row.crowd = extremes[i].crowd;
    if (row.counts.strided > 0) {
      row.least_step = static_cast<std::int64_t>(~extremes[i].least_step - kStepBias);
      row.most_step = static_cast<std::int64_t>(extremes[i].step - kStepBias);
    }
    if (i < capacity) {
      const auto [site, space, access] = site_of_key(state.keys.keys[i]);
      row.site = site;
      row.space = static_cast<std::uint64_t>(space);
      row.access = static_cast<std::uint64_t>(access);
      row.object = object_of(launch, space, extremes[i]);
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
  state.times_copies = state.copies > 1 ? kTimes : 1;
  std::uint64_t words = 0;
  const auto places = Marks::plan(launch, settings.marks, words);
  const std::uint32_t places_of_code = std::min(settings.sites, Outcome::kMostSites / 2);
  const std::uint64_t rows = std::uint64_t{places_of_code} + 1;
  state.marks.places = layout.table(std::span<const Marks::Place>(places));
  const std::uint32_t outcomes =
      std::min(settings.outcomes, state.copies > 1 ? kApart : Shapes::kMostOutcomes);
  const std::uint64_t header = layout.address() - kHeaderBytes<AccessPatch>;
  state.times = settings.on_gpu ? reinterpret_cast<std::uint64_t*>(header - kResultBytesBefore)
                                : layout.counters<std::uint64_t>(
                                      (state.times_copies - 1) * std::uint64_t{kApart} + outcomes);
  state.outcomes = {layout.counters<std::uint64_t>(outcomes), outcomes};
  state.rows = kFirstObjectRow + launch.object_count + kExtraRows;
  state.objects = layout.counters<AccessCounts>(std::uint64_t{state.copies} * state.rows);
  state.sites = layout.counters<SiteCounts>(state.copies * rows);
  state.extremes = layout.counters<SiteExtremes>(rows);
  state.keys = {layout.counters<std::uint64_t>(places_of_code), places_of_code};
  state.marks.words = layout.counters<std::uint32_t>(words);
  state.hints = {layout.scratch<std::uint32_t>(ObjectHints::kCount)};
  state.shapes = {settings.on_gpu ? reinterpret_cast<Shapes::Slot*>(header - kSlotBytesBefore)
                                  : layout.scratch<Shapes::Slot>(Shapes::kSlots),
                  settings.on_gpu ? reinterpret_cast<Shapes::Offsets*>(header - kBytesBefore)
                                  : layout.scratch<Shapes::Offsets>(Shapes::kSlots)};
  return state;
}

PatchResult AccessPatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects};
  const Totals totals(state);
  ResultTable rows = accesses(launch, state, totals.objects, names, objects);
  return result_of(launch, {std::move(objects), std::move(rows),
                            sites(launch, state, totals.sites, totals.extremes, names)});
}

}  // namespace pasta::device
