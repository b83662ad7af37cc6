#include "session/summary.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/natural_order.h"

namespace pasta::session {
namespace {

std::string_view severity_name(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"note", "repaired", "altered", "dropped"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::string_view device_type_name(DeviceType type) {
  constexpr std::array<std::string_view, 4> kNames = {"unknown", "gpu", "cpu", "accelerator"};
  return kNames[static_cast<std::size_t>(type)];
}

std::vector<std::pair<std::string, std::int64_t>> by_kind(
    const std::array<std::uint64_t, kKindCount>& counts) {
  std::vector<std::pair<std::string, std::int64_t>> rows;
  for (unsigned kind = 0; kind < kKindCount; ++kind) {
    if (counts[kind] == 0) continue;
    rows.emplace_back(kind_name(static_cast<Kind>(kind)), static_cast<std::int64_t>(counts[kind]));
  }
  return rows;
}

std::vector<TraceSummary::ProblemRow> problem_rows(std::span<const SourceInfo> sources,
                                                   std::span<const Problems> problems) {
  struct Ranked {
    Severity severity;
    TraceSummary::ProblemRow row;
  };
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    for (const Problem& problem : problems[i].list()) {
      const ReasonInfo& reason = reason_info(problem.reason);
      ranked.push_back(
          {reason.severity,
           {sources[i].path, std::string(reason.id), std::string(severity_name(reason.severity)),
            static_cast<std::int64_t>(problem.count), problem.first}});
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    return a.row.count > b.row.count;
  });
  std::vector<TraceSummary::ProblemRow> rows;
  for (Ranked& entry : ranked) rows.push_back(std::move(entry.row));
  return rows;
}

}  // namespace

TraceSummary summarize(const Dictionary& dictionary, std::span<const SourceInfo> sources,
                       std::span<const Quality* const> qualities,
                       std::span<const Problems> problems, bool one_clock, DeviceLabels& labels) {
  TraceSummary summary;
  std::array<std::uint64_t, kKindCount> counts{};
  std::uint64_t linked = 0;
  std::int64_t first_ns = kNoTime;
  std::int64_t last_ns = kNoTime;
  std::set<LaneId> lanes;
  std::set<DeviceId> devices;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Quality& quality = *qualities[i];
    Cell rank;
    if (sources[i].rank >= 0) rank = std::int64_t{sources[i].rank};
    summary.sources.push_back(
        {sources[i].path, sources[i].format, sources[i].label, rank, by_kind(quality.counts())});
    for (unsigned kind = 0; kind < kKindCount; ++kind) counts[kind] += quality.counts()[kind];
    linked += quality.linked_kernels();
    summary.untimed += static_cast<std::int64_t>(quality.untimed());
    if (quality.first_ns() != kNoTime) {
      first_ns = first_ns == kNoTime ? quality.first_ns() : std::min(first_ns, quality.first_ns());
      last_ns = std::max(last_ns, quality.last_ns());
    }
    lanes.insert(quality.lanes().begin(), quality.lanes().end());
    devices.insert(quality.other_devices().begin(), quality.other_devices().end());
    for (const Problem& problem : problems[i].list()) {
      if (reason_info(problem.reason).severity != Severity::kDropped) continue;
      summary.lost += static_cast<std::int64_t>(problem.count);
    }
  }
  summary.events = by_kind(counts);
  std::int64_t span_ns = 0;
  if (one_clock && first_ns != kNoTime && !__builtin_sub_overflow(last_ns, first_ns, &span_ns)) {
    summary.span_ns = span_ns;
  }
  if (const auto kernels = counts[static_cast<unsigned>(Kind::kKernel)]) {
    summary.kernels_linked = static_cast<double>(linked) / static_cast<double>(kernels);
  }
  for (const LaneId id : lanes) {
    const Lane lane = dictionary.lane(id);
    if (lane.device) devices.insert(lane.device);
    summary.lanes.push_back({lane_name(dictionary, id),
                             lane.type == LaneType::kQueue ? "queue" : "thread",
                             process_name(dictionary, lane.process), labels.label(lane.device)});
  }
  for (const DeviceId id : devices) {
    const Device device = dictionary.device(id);
    summary.devices.push_back({labels.label(id), std::string(dictionary.text(device.name)),
                               std::string(device_type_name(device.type))});
  }
  std::ranges::stable_sort(summary.devices, base::natural_less, &TraceSummary::DeviceFacts::id);
  summary.problems = problem_rows(sources, problems);
  return summary;
}

}  // namespace pasta::session
