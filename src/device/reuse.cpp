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
  constexpr std::uint64_t kMost = (std::uint64_t{1} << kRowBits) - 1 - kFirstRow;
  const auto places = Pieces::places(objects, [&](std::uint32_t i) {
    const MemoryObject& object = objects.objects[i];
    if (i >= kMost) return nothing;
    const Pieces::Target target = {
        .row = static_cast<std::uint32_t>(kFirstRow + i + 1) | shifts[i] << kRowBits | kIsObject,
        .base = static_cast<std::uint32_t>((words_at / 4 + shared.words) * 32 -
                                           (object.address >> shifts[i]))};
    shared.words += (granules_of(object, shifts[i]) - 1) / 32 + 1;
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
    const std::uint32_t shift = known ? shift_of(state.shared.objects.places[i].row) : 0;
    const std::uint64_t count = known ? granules_of(launch.objects[i], shift) : 0;
    const std::uint32_t* marks = words;
    words += known && has_object(state.shared.objects.places[i].row) ? (count - 1) / 32 + 1 : 0;
    if (row.counts.sectors == 0) continue;
    if (!known) {
      append_row(sets, row);
      continue;
    }
    const MemoryObject& object = launch.objects[i];
    append_object(objects, object, names);
    row.object = object.number;
    row.granule = row.run_granule = std::uint64_t{1} << shift;
    // Its first granule may begin before it.
    const std::uint64_t before = object.address & (row.granule - 1);
    std::vector<Run> runs = runs_of(marks, count);
    const auto bytes_of = [&](const Run& run) {
      return Run{std::max(run.first * row.run_granule, before) - before,
                 std::min(run.second * row.run_granule - before, object.bytes)};
    };
    for (const Run& run : runs) row.counts.touched += bytes_of(run).second - bytes_of(run).first;
    for (; runs.size() > kMostRuns; row.run_granule *= 2) runs = halved(runs);
    append_row(sets, row);
    for (const Run& run : runs) {
      append_row(all_runs, RunRow{object.number, bytes_of(run).first, bytes_of(run).second});
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
