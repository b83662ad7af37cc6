#include "tools/launches/queue_length.h"

#include <algorithm>

#include "tools/common/saturate.h"

namespace pasta::tools::launches {

QueueLength::Shape QueueLength::shape(std::size_t max_points) {
  Shape shape;
  if (launched_.empty()) return shape;
  std::sort(launched_.begin(), launched_.end());
  std::sort(started_.begin(), started_.end());
  const std::int64_t first = launched_.front();
  shape.span_ns = distance_saturated(first, started_.back());

  const bool all = 2 * launched_.size() <= max_points;
  const auto piece_of = [&](std::int64_t time) {
    const auto offset = static_cast<double>(distance_saturated(first, time));
    return static_cast<std::size_t>(offset / (static_cast<double>(shape.span_ns) + 1) *
                                    static_cast<double>(max_points));
  };
  std::size_t piece = 0;
  const auto point = [&](std::int64_t time, std::int64_t length) {
    const auto value = static_cast<double>(length);
    if (all || shape.points.empty() || piece_of(time) != piece) {
      shape.points.emplace_back(time, value);
      piece = piece_of(time);
    } else if (value > shape.points.back().second) {
      shape.points.back() = {time, value};
    }
  };

  double sum = 0, area = 0;
  std::int64_t length = 0, before = first;
  for (std::size_t in = 0, out = 0; out < started_.size();) {
    const std::int64_t now =
        in < launched_.size() ? std::min(launched_[in], started_[out]) : started_[out];
    const std::int64_t passed = distance_saturated(before, now);
    area += static_cast<double>(length) * static_cast<double>(passed);
    if (length == 0) shape.empty_ns = add_saturated(shape.empty_ns, passed);
    before = now;
    // At one moment, work is launched before it starts: the length is never negative.
    const std::size_t launched_before = in, started_before = out;
    for (; in < launched_.size() && launched_[in] == now; ++in) {
      sum += static_cast<double>(++length);
    }
    if (in != launched_before) point(now, length);
    shape.max = std::max(shape.max, length);
    for (; out < started_.size() && started_[out] == now; ++out) {
      sum += static_cast<double>(--length);
    }
    if (out != started_before) point(now, length);
  }
  shape.mean = sum / (2 * static_cast<double>(launched_.size()));
  if (shape.span_ns > 0) shape.mean_in_time = area / static_cast<double>(shape.span_ns);
  return shape;
}

}  // namespace pasta::tools::launches
