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

using Run = Marks::Run;

// In granules of so many bytes, which begin at multiples of that.
std::vector<Run> coarser(const std::vector<Run>& runs, const MemoryObject& object,
                         std::uint64_t granule) {
  const auto down = [&](std::uint64_t byte) {
    const std::uint64_t begin = (object.address + byte) / granule * granule;
    return std::max(begin, object.address) - object.address;
  };
  std::vector<Run> coarse;
  for (const auto& [begin, end] : runs) {
    const Run run = {down(begin), std::min(down(end + (granule - 1)), object.bytes)};
    if (!coarse.empty() && run.first <= coarse.back().second) {
      coarse.back().second = run.second;
    } else {
      coarse.push_back(run);
    }
  }
  return coarse;
}

}  // namespace

ReusePatch::Shared ReusePatch::share(const Launch& objects, const Settings& settings,
                                     Layout& layout) {
  Shared shared{};
  shared.copies = std::max(settings.copies, 1u);
  // So that copies lie in different lines of a cache.
  constexpr std::uint32_t kRowsOfLine = 128 / sizeof(Counts);
  shared.rows = objects.object_count + 1;
  if (shared.copies > 1) shared.rows = (shared.rows + kRowsOfLine - 1) / kRowsOfLine * kRowsOfLine;
  // The arrays of a launch, as lay_out() makes them.
  constexpr std::uint64_t kRowsAt = kHeaderBytes<ReusePatch>, kFirstRow = kRowsAt / sizeof(Counts);
  const std::uint64_t words_at =
      kRowsAt + Layout::rounded(std::uint64_t{shared.rows} * shared.copies * sizeof(Counts));
  const std::vector<std::uint32_t> shifts = Marks::shifts(objects, settings.marks);
  const Pieces::Target nothing = {.row = kFirstRow, .base = 0};
  // More objects than rows have numbers: the last ones are as good as none.
  constexpr std::uint64_t kMost = (std::uint64_t{1} << Marks::kRowBits) - 1 - kFirstRow;
  const auto places = Pieces::places(objects, [&](std::uint32_t i) {
    const MemoryObject& object = objects.objects[i];
    if (i >= kMost) return nothing;
    const Pieces::Target target = Marks::target(object, shifts[i], words_at / 4 + shared.words,
                                                static_cast<std::uint32_t>(kFirstRow + i + 1));
    shared.words += Marks::words_of(object, shifts[i]);
    return target;
  });
  shared.prints_at =
      static_cast<std::uint32_t>(words_at + Layout::rounded(shared.words * sizeof(std::uint32_t)));
  shared.objects = Pieces::lay_out(objects, places, nothing, layout, kMost);
  return shared;
}

ReusePatch::State ReusePatch::lay_out(const Launch& launch, const Shared& shared,
                                      const Settings& settings, Layout& layout) {
  const GroupSample sample = GroupSample::of(launch, settings.groups);
  State state{};
  state.shared = shared;
  state.slots = sample.slots;
  state.apart = sample.shift;
  state.sets = layout.counters<Counts>(std::uint64_t{shared.rows} * shared.copies);
  state.words = layout.counters<std::uint32_t>(shared.words);
  state.prints = layout.counters<Print>(state.slots);
  return state;
}

PatchResult ReusePatch::result(const Launch& launch, const State& state, const Names& names) {
  ResultTable objects{.id = TableId::kObjects}, sets{.id = TableId::kSets},
      all_runs{.id = TableId::kRuns}, fingerprints{.id = TableId::kFingerprints};
  const std::uint32_t* words = state.words;
  for (std::uint32_t i = 0; i <= launch.object_count; ++i) {
    const bool known = i < launch.object_count;
    SetRow row;
    const Counts counts =
        total_row(state.sets, state.shared.copies, state.shared.rows, known ? i + 1 : 0);
    row.counts.asked_bytes = counts.asked_bytes;
    row.counts.sectors = counts.sectors;
    const std::uint32_t target = known ? state.shared.objects.places[i].target.row : 0;
    const std::uint32_t shift = Marks::shift_of(target);
    const std::uint32_t* marks = words;
    if (Marks::has_object(target)) words += Marks::words_of(launch.objects[i], shift);
    if (row.counts.sectors == 0) continue;
    if (!known) {
      append_row(sets, row);
      continue;
    }
    const MemoryObject& object = launch.objects[i];
    append_object(objects, object, names);
    row.object = object.number;
    row.granule = row.run_granule = Marks::granule(shift);
    std::vector<Run> runs = Marks::runs(marks, object, shift);
    for (const Run& run : runs) row.counts.touched += run.second - run.first;
    while (runs.size() > kMostRuns) runs = coarser(runs, object, row.run_granule *= 2);
    append_row(sets, row);
    for (const Run& run : runs) {
      append_row(all_runs, RunRow{object.number, run.first, run.second});
    }
  }
  FingerprintRow sum;
  for (std::uint32_t slot = 0; slot < state.slots; ++slot) {
    const Print& print = state.prints[slot];
    if (print.sectors == 0) continue;
    ++sum.groups;
    sum.sectors += print.sectors;
    const std::uint64_t told = DistinctBits::estimate(print.different.count());
    sum.distinct += std::min(told, print.sectors);
    sum.full += told == DistinctBits::kMostTold ? 1 : 0;
  }
  if (sum.groups > 0) append_row(fingerprints, sum);
  return result_of(
      launch, {std::move(objects), std::move(sets), std::move(all_runs), std::move(fingerprints)});
}

}  // namespace pasta::device
