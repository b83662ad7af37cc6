#include "tools/memory/curve.h"

#include "tools/common/saturate.h"

namespace pasta::tools::memory {

void Curve::append(Group& group, const Group& later) {
  if (later.highest.value > group.highest.value) group.highest = later.highest;
  group.last = later.last;
}

void Curve::add(std::int64_t time_ns, std::int64_t value) {
  const Group change{{time_ns, value}, {time_ns, value}};
  if (!groups_.empty() && in_last_ < group_size_) {
    append(groups_.back(), change);
    ++in_last_;
    return;
  }
  if (groups_.size() == kMaxGroups) {
    for (std::size_t i = 0; i < kMaxGroups / 2; ++i) {
      groups_[i] = groups_[2 * i];
      append(groups_[i], groups_[2 * i + 1]);
    }
    groups_.resize(kMaxGroups / 2);
    group_size_ *= 2;
  }
  groups_.push_back(change);
  in_last_ = 1;
}

std::vector<std::pair<std::int64_t, double>> Curve::points(std::int64_t origin_ns) const {
  std::vector<std::pair<std::int64_t, double>> points;
  const auto add = [&](const Point& point) {
    points.emplace_back(distance_saturated(origin_ns, point.time_ns),
                        static_cast<double>(point.value));
  };
  for (const Group& group : groups_) {
    add(group.highest);
    if (group.last != group.highest) add(group.last);
  }
  return points;
}

}  // namespace pasta::tools::memory
