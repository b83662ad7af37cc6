#include "session/sieve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

namespace pasta {
namespace {

// In the largest unit that is exact.
std::string duration(std::int64_t ns) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 3> kUnits = {
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}};
  for (const auto& [size, unit] : kUnits) {
    if (ns != 0 && ns % size == 0) return fmt::format("{} {}", ns / size, unit);
  }
  return fmt::format("{} ns", ns);
}

}  // namespace

std::string Filter::describe() const {
  std::vector<std::string> parts;
  if (from_ns || to_ns) {
    const char* since = relative ? "after the start" : "on the trace's clock";
    std::string text = "events that start";
    if (from_ns) text += fmt::format(" from {}", duration(*from_ns));
    if (to_ns) text += fmt::format(" before {}", duration(*to_ns));
    parts.push_back(fmt::format("{} {}", text, since));
  }
  if (!devices.empty()) parts.push_back(fmt::format("device {}", fmt::join(devices, ", ")));
  if (!ranks.empty()) parts.push_back(fmt::format("rank {}", fmt::join(ranks, ", ")));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace pasta

namespace pasta::session {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::int64_t add_clamped(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return b < 0 ? kMin : kMax;
  return sum;
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::string listed(const std::vector<std::string>& list) {
  return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
}

}  // namespace

void Sieve::prepare(Filter filter, std::span<const SourceInfo> sources,
                    std::span<const std::int64_t> origins, DeviceLabels& labels) {
  filter_ = std::move(filter);
  sources_ = sources;
  labels_ = &labels;
  for (const std::int64_t origin : origins) {
    const std::int64_t base = filter_.relative && origin != kNoTime ? origin : 0;
    bounds_.push_back({filter_.from_ns ? add_clamped(base, *filter_.from_ns) : kMin,
                       filter_.to_ns ? add_clamped(base, *filter_.to_ns) : kMax});
  }
  lanes_.resize(sources.size());
  devices_.resize(sources.size());
  device_met_.resize(filter_.devices.size());
  rank_met_.resize(filter_.ranks.size());
}

std::span<const Event> Sieve::pass(std::size_t source, std::span<const Event> events) {
  passed_.clear();
  const Bounds bounds = bounds_[source];
  const bool by_time = filter_.from_ns || filter_.to_ns;
  for (const Event& event : events) {
    // The lane comes first, so that what unmatched() says does not depend on the times.
    if (!lane_passes(source, event.lane)) continue;
    if (by_time &&
        (event.untimed() || event.start_ns < bounds.from_ns || event.start_ns >= bounds.to_ns)) {
      continue;
    }
    const DeviceId device = event.kind == Kind::kAlloc || event.kind == Kind::kFree
                                ? event.memory.device
                            : event.kind == Kind::kCounter ? event.counter.device
                                                           : DeviceId{};
    if (device && !device_passes(source, device)) continue;
    passed_.push_back(event);
  }
  return passed_;
}

bool Sieve::lane_passes(std::size_t source, LaneId lane) {
  auto& known = lanes_[source];
  if (lane.value >= known.size()) known.resize(lane.value + 64, Verdict::kUnknown);
  Verdict& verdict = known[lane.value];
  if (verdict == Verdict::kUnknown) {
    verdict = judge_lane(source, lane) ? Verdict::kPass : Verdict::kStop;
  }
  return verdict == Verdict::kPass;
}

bool Sieve::judge_lane(std::size_t source, LaneId id) {
  const Lane lane = dictionary_->lane(id);
  if (!rank_passes(source, lane.process)) return false;
  return !lane.device || device_passes(source, lane.device);
}

bool Sieve::rank_passes(std::size_t source, ProcessId process) {
  if (filter_.ranks.empty()) return true;
  std::int32_t rank = dictionary_->process(process).rank;
  if (rank == kUnknownRank) rank = sources_[source].rank;
  // A job of one process has no ranks, but scripts over many jobs ask it for its rank 0.
  if (rank == kUnknownRank && sources_.size() == 1) rank = 0;
  add_once(ranks_seen_, rank == kUnknownRank ? "unknown" : fmt::to_string(rank));
  bool met = false;
  for (std::size_t i = 0; i < filter_.ranks.size(); ++i) {
    if (filter_.ranks[i] == rank) met = rank_met_[i] = true;
  }
  return met;
}

bool Sieve::device_passes(std::size_t source, DeviceId device) {
  if (filter_.devices.empty()) return true;
  auto& known = devices_[source];
  if (device.value >= known.size()) known.resize(device.value + 16, Verdict::kUnknown);
  Verdict& verdict = known[device.value];
  if (verdict == Verdict::kUnknown) {
    verdict = judge_device(source, device) ? Verdict::kPass : Verdict::kStop;
  }
  return verdict == Verdict::kPass;
}

bool Sieve::judge_device(std::size_t source, DeviceId id) {
  const Device device = dictionary_->device(id);
  const SourceInfo& info = sources_[source];
  const std::string ordinal = fmt::to_string(device.ordinal);
  const std::string label = labels_->label(id);
  // The label may still grow a prefix, so the forms that it can take are accepted from the start.
  const std::array<std::string, 5> names = {
      ordinal, label, std::string(dictionary_->text(device.uuid)),
      info.label.empty() ? ordinal : device_name(device, info.label),
      info.rank < 0 ? ordinal : device_name(device, fmt::format("rank {}", info.rank))};
  add_once(devices_seen_, label);
  bool met = false;
  for (std::size_t i = 0; i < filter_.devices.size(); ++i) {
    const std::string& wanted = filter_.devices[i];
    if (std::find(names.begin(), names.end(), wanted) == names.end()) continue;
    met = device_met_[i] = true;
  }
  return met;
}

Status Sieve::unmatched() const {
  for (std::size_t i = 0; i < rank_met_.size(); ++i) {
    if (rank_met_[i]) continue;
    return fail(ErrorCode::kUsage, fmt::format("no events of rank {}; ranks with events: {}",
                                               filter_.ranks[i], listed(ranks_seen_)));
  }
  for (std::size_t i = 0; i < device_met_.size(); ++i) {
    if (device_met_[i]) continue;
    return fail(ErrorCode::kUsage, fmt::format("no work of device \"{}\"; devices with work: {}",
                                               filter_.devices[i], listed(devices_seen_)));
  }
  return {};
}

}  // namespace pasta::session
