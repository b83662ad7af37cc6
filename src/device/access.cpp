#include "device/access.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>
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

// What is counted of one place of the program: SiteRow, before it is known of which object.
struct Site {
  SiteCounts counts = {};
  SiteExtremes extremes = {};
};
// By place, space and access.
using Sites = std::map<std::tuple<std::uint64_t, Space, Access>, Site>;

void raise_all(SiteExtremes& extremes, const SiteExtremes& other) {
  auto* all = reinterpret_cast<std::uint64_t*>(&extremes);
  const auto* one = reinterpret_cast<const std::uint64_t*>(&other);
  for (std::size_t i = 0; i < sizeof other / sizeof *one; ++i) raise(all[i], one[i]);
}

}  // namespace

Outcome Outcome::of_key(std::uint64_t key) {
  const auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  Outcome outcome{.place = low >> (32 - kPlaceBits),
                  .access = access_of(low),
                  .row = high >> 17,
                  .lanes = lanes_of(low) + 1,
                  .width = width_of(low),
                  .pattern = pattern_of(low)};
  const std::uint32_t counts = high >> 6 & 0x3ff;
  if (outcome.access == Access::kAtomic) outcome.crowd = (high >> 1 & 31) + 1;
  if (outcome.row < kEndOfRows) {
    outcome.sectors = (counts >> 5) + 1;
    const std::uint32_t parts = (counts & 31) + 1;
    const bool unit = outcome.pattern == Pattern::kUnit;
    outcome.parts = unit ? outcome.lanes : parts;
    outcome.misaligned =
        AccessPatch::is_misaligned(outcome.pattern, outcome.sectors, parts, outcome.width);
  } else if (outcome.row == kSharedRow) {
    outcome.passes = (counts >> 4) + 1;
    outcome.passes_without_conflicts = (counts & 15) + 1;
  }
  return outcome;
}

// All that was counted.
struct AccessPatch::Totals {
  std::vector<AccessCounts> objects;
  Sites sites;
  Site other_sites;  // that found no room

  explicit Totals(const State& state) : objects(state.objects, state.objects + state.rows) {
    other_sites = {state.sites[state.keys.capacity], state.extremes[state.keys.capacity]};
    for (std::uint32_t i = 0; i < state.keys.capacity; ++i) {
      if (state.keys.keys[i] == 0) continue;
      const auto [place, space, access] = site_of_key(state.keys.keys[i]);
      const Site site = {state.sites[i], state.extremes[i]};
      sites.emplace(std::tuple(place, space, access), site);
      // What is counted of objects is in their rows.
      if (space != Space::kGlobal) {
        add_row(memory(state, space),
                {.warps = site.counts.warps,
                 .asked_bytes = site.counts.asked_bytes,
                 .passes = site.counts.passes,
                 .passes_without_conflicts = site.counts.passes_without_conflicts});
        lanes(memory(state, space), access) += site.counts.lanes;
      }
    }
    const std::uint32_t capacity = state.outcomes.capacity;
    for (std::uint32_t i = 0; i < capacity; ++i) {
      if (state.outcomes.keys[i] == 0) continue;
      std::uint64_t times = 0;
      for (std::uint32_t copy = 0; copy < state.times_copies; ++copy) {
        times += state.times[std::uint64_t{copy} * capacity + i];
      }
      if (times > 0) add(state, Outcome::of_key(state.outcomes.keys[i]), times, state.steps[i]);
    }
  }

 private:
  AccessCounts& memory(const State& state, Space space) {
    return objects[state.rows - kExtraRows + (space == Space::kShared ? kSharedRow : kLocalRow)];
  }
  static std::uint64_t& lanes(AccessCounts& counts, Access access) {
    return reinterpret_cast<std::uint64_t*>(&counts)[lanes_number(access)];
  }
  void add(const State& state, const Outcome& outcome, std::uint64_t times, const Steps& steps) {
    const Space space = outcome.row < Outcome::kEndOfRows    ? Space::kGlobal
                        : outcome.row == Outcome::kSharedRow ? Space::kShared
                                                             : Space::kLocal;
    const std::uint64_t asked = times * outcome.lanes * outcome.width;
    const std::uint64_t used = std::uint64_t{outcome.parts} * outcome.width;
    SiteCounts counts = {.warps = times,
                         .lanes = times * outcome.lanes,
                         .asked_bytes = asked,
                         .used_bytes = times * used,
                         .sectors = times * outcome.sectors,
                         .needed_sectors = times * sectors_for(used),
                         .misaligned = outcome.misaligned ? times : 0,
                         .passes = times * outcome.passes,
                         .passes_without_conflicts = times * outcome.passes_without_conflicts,
                         .crowds = times * outcome.crowd};
    reinterpret_cast<std::uint64_t*>(&counts)[pattern_number(outcome.pattern)] = times;
    SiteExtremes most = {.width = outcome.width,
                         .step = steps.most,
                         .least_step = steps.least,
                         .degree = outcome.passes,
                         .crowd = outcome.crowd};
    if (space == Space::kGlobal) {
      most.object = outcome.row;
      most.least_object = ~most.object;
    }
    AccessCounts of_object = {.warps = times,
                              .asked_bytes = asked,
                              .used_bytes = counts.used_bytes,
                              .sectors = counts.sectors,
                              .passes = counts.passes,
                              .passes_without_conflicts = counts.passes_without_conflicts};
    lanes(of_object, outcome.access) = counts.lanes;
    add_row(space == Space::kGlobal ? objects[outcome.row] : memory(state, space), of_object);
    Site& site = sites[{std::uint64_t{outcome.place} << state.site_bits, space, outcome.access}];
    add_row(site.counts, counts);
    raise_all(site.extremes, most);
  }
};

namespace {

ResultTable accesses(const Launch& launch, const AccessPatch::State& state,
                     const std::vector<AccessCounts>& totals, const Names& names,
                     ResultTable& objects) {
  ResultTable table{.id = TableId::kAccesses};
  const auto rows = static_cast<std::uint32_t>(totals.size());
  const std::uint32_t* words = state.words;
  // Objects, then what is of none.
  for (std::uint32_t n = 1; n <= rows; ++n) {
    const std::uint32_t i = n <= launch.object_count ? n : n == launch.object_count + 1 ? 0 : n - 1;
    AccessRow row{.granule = 1, .counts = totals[i]};
    const bool is_object = i != AccessPatch::kNoObjectRow && i <= launch.object_count;
    const std::uint32_t index = i - AccessPatch::kFirstObjectRow;
    const std::uint32_t shift =
        is_object ? Marks::shift_of(state.shared.objects.places[index].target.row) : 0;
    const std::uint32_t* marks = words;
    if (is_object && Marks::has_object(state.shared.objects.places[index].target.row)) {
      words += Marks::words_of(launch.objects[index], shift);
    }
    if (row.counts.warps == 0) continue;
    if (i == AccessPatch::kNoObjectRow) {
      row.object = kUnknownObject;
    } else if (is_object) {
      const MemoryObject& object = launch.objects[index];
      row.object = object.number;
      row.granule = Marks::granule(shift);
      for (const Marks::Run& run : Marks::runs(marks, object, shift)) {
        row.counts.touched += run.second - run.first;
      }
      append_object(objects, object, names);
    } else {
      const bool shared = i == rows - AccessPatch::kExtraRows + AccessPatch::kSharedRow;
      row.object = shared ? kSharedMemory : kLocalMemory;
    }
    append_row(table, row);
  }
  return table;
}

SiteRow row_of(const Site& site) {
  SiteRow row{.width = site.extremes.width,
              .counts = site.counts,
              .degree = site.extremes.degree,
              .crowd = site.extremes.crowd};
  if (row.counts.strided > 0) {
    row.least_step = static_cast<std::int64_t>(~site.extremes.least_step - kStepBias);
    row.most_step = static_cast<std::int64_t>(site.extremes.step - kStepBias);
  }
  return row;
}

ResultTable sites_table(const Launch& launch, const Sites& sites, const Site& others,
                        const Names& names) {
  ResultTable table{.id = TableId::kSites};
  for (const auto& [key, site] : sites) {
    SiteRow row = row_of(site);
    const auto [place, space, access] = key;
    row.site = place;
    row.space = static_cast<std::uint64_t>(space);
    row.access = static_cast<std::uint64_t>(access);
    row.object = object_of(launch, space, site.extremes);
    append_row(table, row);
    table.names.push_back(names.site(row.site));
  }
  if (others.counts.warps > 0) {
    SiteRow row = row_of(others);
    row.site = kOtherSites;
    row.object = kSeveralObjects;
    append_row(table, row);
    table.names.emplace_back();
  }
  return table;
}

}  // namespace

AccessPatch::Shared AccessPatch::share(const Launch& objects, const Settings& settings,
                                       Layout& layout) {
  Shared shared{};
  const std::vector<std::uint32_t> shifts = Marks::shifts(objects, settings.marks);
  const Pieces::Target nothing = {.row = kNoObjectRow, .base = 0};
  // More objects than rows have numbers: the last ones are as good as none.
  constexpr std::uint32_t kMost = (1u << Marks::kRowBits) - kFirstObjectRow;
  const auto places = Pieces::places(objects, [&](std::uint32_t i) {
    const MemoryObject& object = objects.objects[i];
    if (i >= kMost) return nothing;
    const Pieces::Target target = Marks::target(
        object, shifts[i], kHeaderBytes<AccessPatch> / 4 + shared.words, kFirstObjectRow + i);
    shared.words += Marks::words_of(object, shifts[i]);
    return target;
  });
  shared.objects = Pieces::lay_out(objects, places, nothing, layout, kMost);
  return shared;
}

AccessPatch::State AccessPatch::lay_out(const Launch& launch, const Shared& shared,
                                        const Settings& settings, Layout& layout) {
  State state{};
  state.shared = shared;
  state.site_bits = settings.on_gpu ? kGpuSiteBits : Warp::kSiteBits;
  state.times_copies = settings.on_gpu ? kTimes : 1;
  state.rows = kFirstObjectRow + launch.object_count + kExtraRows;
  const std::uint32_t outcomes =
      settings.on_gpu ? kOutcomes : std::min(settings.outcomes, kMostOutcomes);
  state.words = layout.counters<std::uint32_t>(shared.words);
  state.objects = layout.counters<AccessCounts>(state.rows);
  state.sites = layout.counters<SiteCounts>(std::uint64_t{settings.sites} + 1);
  state.extremes = layout.counters<SiteExtremes>(std::uint64_t{settings.sites} + 1);
  state.keys = {layout.counters<std::uint64_t>(settings.sites), settings.sites};
  state.steps = layout.counters<Steps>(outcomes);
  const std::uint64_t header = layout.address() - kHeaderBytes<AccessPatch>;
  state.times = settings.on_gpu ? reinterpret_cast<std::uint64_t*>(header - kTimesBytesBefore)
                                : layout.counters<std::uint64_t>(outcomes);
  state.outcomes = {settings.on_gpu ? reinterpret_cast<std::uint64_t*>(header - kBytesBefore)
                                    : layout.counters<std::uint64_t>(outcomes),
                    outcomes};
  return state;
}

PatchResult AccessPatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects};
  const Totals totals(state);
  ResultTable rows = accesses(launch, state, totals.objects, names, objects);
  return result_of(launch, {std::move(objects), std::move(rows),
                            sites_table(launch, totals.sites, totals.other_sites, names)});
}

}  // namespace pasta::device
