#include "session/quality.h"

#include <fmt/format.h>

#include <algorithm>

namespace pasta::session {

void Quality::observe(std::span<const Event> events) {
  if (events.empty()) return;
  if (rare_.size() < events.size()) rare_.resize(events.size());
  std::size_t rare = 0;
  // Kinds are mixed, so branches on them cost more than the rest: those that need a closer look
  // are only listed here.
  constexpr KindSet kCloserLook =
      kDeviceWork | Kind::kAlloc | Kind::kFree | Kind::kCounter | Kind::kGap;
  std::array<std::array<std::uint64_t, kKindCount>, 2> counts{};
  std::int64_t first_ns = first_ns_;
  std::int64_t last_ns = last_ns_;
  const Event* before = any_ ? &last_ : nullptr;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    ++counts[i % 2][static_cast<unsigned>(event.kind)];
    rare_[rare] = static_cast<std::uint32_t>(i);
    rare += kCloserLook.has(event.kind) ? 1 : 0;
    if (event.lane.value >= lane_seen_.size() || !lane_seen_[event.lane.value]) [[unlikely]] {
      add_lane(event.lane);
    }
    if (before != nullptr && before->end_ns == event.end_ns) [[unlikely]] {
      check_duplicate(*before, event);
    } else {
      tied_ = false;
    }
    before = &event;
    if ((event.flags & (kUntimed | kAnnotation)) == 0) [[likely]] {
      first_ns = std::min(first_ns, event.start_ns);
      last_ns = std::max(last_ns, event.end_ns);
    } else {
      untimed_ += event.untimed();
    }
  }
  first_ns_ = first_ns;
  last_ns_ = last_ns;
  for (unsigned kind = 0; kind < kKindCount; ++kind) {
    counts_[kind] += counts[0][kind] + counts[1][kind];
  }
  last_ = events.back();
  any_ = true;
  for (std::size_t i = 0; i < rare; ++i) look_closer(events[rare_[i]]);
}

void Quality::look_closer(const Event& event) {
  switch (event.kind) {
    case Kind::kKernel:
      linked_kernels_ += (event.flags & kLinked) != 0;
      [[fallthrough]];
    case Kind::kCopy:
    case Kind::kFill: {
      if (event.untimed()) break;
      if (event.lane.value >= overlaps_.size()) overlaps_.resize(lane_seen_.size());
      const auto overlaps = overlaps_[event.lane.value].add(event.start_ns, event.end_ns);
      if (overlaps == 0) break;
      problems_.add(Reason::kQueueOverlap, [&] { return place(event); });
      problems_.add(Reason::kQueueOverlap, overlaps - 1, {});
      break;
    }
    case Kind::kAlloc:
    case Kind::kFree:
      add_device(event.memory.device);
      break;
    case Kind::kCounter:
      add_device(event.counter.device);
      break;
    case Kind::kGap:
      problems_.add(Reason::kDroppedByCollector, std::max<std::uint64_t>(event.gap.lost, 1),
                    place(event));
      break;
    default:
      break;
  }
}

void Quality::add_lane(LaneId lane) {
  if (lane.value >= lane_seen_.size()) {
    lane_seen_.resize(std::max<std::size_t>(lane.value + 1, lane_seen_.size() * 2));
  }
  lane_seen_[lane.value] = 1;
  if (lane) lanes_.push_back(lane);
}

void Quality::add_device(DeviceId device) {
  if (device &&
      std::find(other_devices_.begin(), other_devices_.end(), device) == other_devices_.end()) {
    other_devices_.push_back(device);
  }
}

void Quality::check_duplicate(const Event& before, const Event& event) {
  if (!tied_) {
    tied_ = true;
    ties_.clear();
    ties_.add(before);
  }
  if (ties_.add(event)) problems_.add(Reason::kDuplicate, [&] { return place(event); });
}

std::string Quality::place(const Event& event) const {
  const std::string_view name = dictionary_->text(event.name);
  if (event.untimed()) return fmt::format("{} \"{}\" without time", kind_name(event.kind), name);
  return fmt::format("{} \"{}\" at {} ns", kind_name(event.kind), name, event.start_ns);
}

}  // namespace pasta::session
