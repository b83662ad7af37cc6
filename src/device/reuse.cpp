#include "device/reuse.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "device/layout.h"
#include "device/result.h"

namespace pasta::device {
namespace {

// Of one object; beyond it, they are kept more coarsely.
constexpr std::size_t kMostRuns = 1024;

using Run = std::pair<std::uint64_t, std::uint64_t>;

// The first granule from `at` on that is marked, or is not; `granules` when there is none.
std::uint64_t next(const std::uint32_t* words, std::uint64_t granules, std::uint64_t at,
                   bool marked) {
  while (at < granules) {
    const std::uint32_t word = marked ? words[at / 32] : ~words[at / 32];
    const std::uint32_t rest = word >> at % 32;
    if (rest != 0) return std::min(at + lowest_bit(rest), granules);
    at = (at / 32 + 1) * 32;
  }
  return granules;
}

// Granules [begin, end) that are marked.
std::vector<Run> runs_of(const std::uint32_t* words, std::uint64_t granules) {
  std::vector<Run> runs;
  for (std::uint64_t end = 0;;) {
    const std::uint64_t begin = next(words, granules, end, true);
    if (begin >= granules) return runs;
    end = next(words, granules, begin, false);
    runs.emplace_back(begin, end);
  }
}

// In granules twice as large.
std::vector<Run> halved(const std::vector<Run>& runs) {
  std::vector<Run> coarse;
  for (const auto& [begin, end] : runs) {
    const Run run = {begin / 2, (end + 1) / 2};
    if (!coarse.empty() && run.first <= coarse.back().second) {
      coarse.back().second = run.second;
    } else {
      coarse.push_back(run);
    }
  }
  return coarse;
}

}  // namespace

ReusePatch::State ReusePatch::lay_out(const Launch& launch, const Settings& settings,
                                      Layout& layout) {
  State state{};
  state.copies = std::max(settings.copies, 1u);
  state.rows = launch.object_count + 1;
  state.sample = GroupSample::of(launch, settings.groups);
  const auto places = Marks::plan(launch, settings.marks, state.words);
  state.marks.places = layout.table(std::span<const Marks::Place>(places));
  state.sets = layout.counters<SetCounts>(std::uint64_t{state.copies} * (launch.object_count + 1));
  state.groups = layout.counters<GroupSectors>(state.sample.slots);
  state.marks.words = layout.counters<std::uint32_t>(state.words);
  state.fingerprints.words =
      layout.counters<std::uint32_t>(std::uint64_t{state.sample.slots} * DistinctBits::kWords);
  state.hints = {layout.scratch<std::uint32_t>(ObjectHints::kCount)};
  return state;
}

PatchResult ReusePatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects}, sets{.id = TableId::kSets},
      all_runs{.id = TableId::kRuns}, fingerprints{.id = TableId::kFingerprints};
  for (std::uint32_t i = 0; i <= launch.object_count; ++i) {
    SetRow row{.counts = total_row(state.sets, state.copies, state.rows,
                                   i == launch.object_count ? 0 : i + 1)};
    if (row.counts.sectors == 0) continue;
    if (i == launch.object_count) {
      append_row(sets, row);
      continue;
    }
    const MemoryObject& object = launch.objects[i];
    append_object(objects, object, names);
    row.object = object.number;
    row.granule = row.run_granule = state.marks.granule(i);
    row.counts.touched = state.marks.touched(i, object);
    std::vector<Run> runs = runs_of(state.marks.words + state.marks.places[i].first_word,
                                    (object.bytes - 1) / row.granule + 1);
    for (; runs.size() > kMostRuns; row.run_granule *= 2) runs = halved(runs);
    append_row(sets, row);
    for (const auto& [begin, end] : runs) {
      append_row(all_runs, RunRow{object.number, begin * row.run_granule,
                                  std::min(end * row.run_granule, object.bytes)});
    }
  }
  FingerprintRow sum;
  for (std::uint32_t slot = 0; slot < state.sample.slots; ++slot) {
    const GroupSectors& group = state.groups[slot];
    if (group.sectors == 0) continue;
    ++sum.groups;
    sum.sectors += group.sectors;
    const std::uint64_t told = DistinctBits::estimate(state.fingerprints.count(slot));
    sum.distinct += std::min(told, group.sectors);
    sum.full += told == DistinctBits::kMostTold ? 1 : 0;
  }
  if (sum.groups > 0) append_row(fingerprints, sum);
  return result_of(
      launch, {std::move(objects), std::move(sets), std::move(all_runs), std::move(fingerprints)});
}

}  // namespace pasta::device
