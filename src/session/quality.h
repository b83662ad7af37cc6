// What one source gave, and what is odd about it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "session/overlap_counter.h"
#include "session/tie_group.h"

namespace pasta::session {

// Sees every event of one source, in order of end, before any filter.
class Quality {
 public:
  explicit Quality(const Dictionary& dictionary) : dictionary_(&dictionary) {}
  void observe(std::span<const Event> events);

  [[nodiscard]] const std::array<std::uint64_t, kKindCount>& counts() const { return counts_; }
  [[nodiscard]] std::uint64_t untimed() const { return untimed_; }
  [[nodiscard]] std::uint64_t linked_kernels() const { return linked_kernels_; }
  // Of all timed events but ranges drawn on device queues; kNoTime when there is none.
  [[nodiscard]] std::int64_t first_ns() const { return has_span() ? first_ns_ : kNoTime; }
  [[nodiscard]] std::int64_t last_ns() const { return has_span() ? last_ns_ : kNoTime; }
  // That have events, in order of first sight.
  [[nodiscard]] std::span<const LaneId> lanes() const { return lanes_; }
  // That events are about without being on one of their queues, in order of first sight.
  [[nodiscard]] std::span<const DeviceId> other_devices() const { return other_devices_; }
  [[nodiscard]] const Problems& problems() const { return problems_; }

 private:
  void look_closer(const Event& event);
  void add_lane(LaneId lane);
  void add_device(DeviceId device);
  void check_duplicate(const Event& before, const Event& event);
  [[nodiscard]] std::string place(const Event& event) const;
  [[nodiscard]] bool has_span() const { return first_ns_ <= last_ns_; }

  const Dictionary* dictionary_;
  std::array<std::uint64_t, kKindCount> counts_{};
  std::uint64_t untimed_ = 0;
  std::uint64_t linked_kernels_ = 0;
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
  std::vector<std::uint8_t> lane_seen_;   // by lane id
  std::vector<OverlapCounter> overlaps_;  // by lane id
  std::vector<LaneId> lanes_;
  std::vector<DeviceId> other_devices_;
  bool tied_ = false;  // the last event ended with the one before it
  TieGroup ties_;
  Event last_{};  // of the span before
  bool any_ = false;
  std::vector<std::uint32_t> rare_;  // of the span at hand
  Problems problems_;
};

}  // namespace pasta::session
