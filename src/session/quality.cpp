#include "session/quality.h"

#include <fmt/format.h>

#include <algorithm>

namespace pasta::session {

void Quality::observe(std::span<const Event> events) {
  if (events.empty()) return;
  const Event* before = any_ ? &last_ : nullptr;
  for (const Event& event : events) {
    ++counts_[static_cast<unsigned>(event.kind)];
    LaneState& state = state_of(event.lane);
    if (before != nullptr && before->end_ns == event.end_ns) [[unlikely]] {
      check_duplicate(*before, event);
    } else {
      tied_ = false;
    }
    before = &event;
    switch (event.kind) {
      case Kind::kKernel:
        linked_kernels_ += (event.flags & kLinked) != 0;
        [[fallthrough]];
      case Kind::kCopy:
      case Kind::kFill:
        if (event.untimed()) break;
        if (const auto overlaps = state.overlaps.add(event.start_ns, event.end_ns)) [[unlikely]] {
          problems_.add(Reason::kQueueOverlap, [&] { return place(event); });
          problems_.add(Reason::kQueueOverlap, overlaps - 1, {});
        }
        break;
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
    if ((event.flags & (kUntimed | kAnnotation)) == 0) {
      first_ns_ = std::min(first_ns_, event.start_ns);
      last_ns_ = std::max(last_ns_, event.end_ns);
    }
    untimed_ += event.untimed();
  }
  last_ = events.back();
  any_ = true;
}

Quality::LaneState& Quality::state_of(LaneId lane) {
  if (lane.value >= states_.size()) [[unlikely]] {
    states_.resize(std::max<std::size_t>(lane.value + 1, states_.size() * 2));
  }
  LaneState& state = states_[lane.value];
  if (!state.seen) [[unlikely]] {
    state.seen = true;
    if (lane) lanes_.push_back(lane);
  }
  return state;
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
