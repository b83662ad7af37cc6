#include "correlate/open_ranges.h"

#include <algorithm>

namespace pasta::correlate {

void OpenRanges::close(std::int64_t now_ns, bool keep_started) {
  while (!ranges_.empty() && ranges_.back().end_ns <= now_ns &&
         !(keep_started && ranges_.back().start_ns == now_ns)) {
    ranges_.pop_back();
  }
}

std::uint32_t OpenRanges::held_by(std::int64_t end_ns) const {
  std::uint32_t at = newest();
  while (at != kNone && ranges_[at].end_ns < end_ns) at = ranges_[at].outer;
  return at;
}

std::uint32_t OpenRanges::innermost_node() const {
  std::uint32_t at = newest();
  while (at != kNone && !ranges_[at].node) at = ranges_[at].outer;
  return at;
}

void OpenRanges::open(const Range& range) {
  ranges_.push_back(range);
  if (ranges_.size() >= compact_at_) compact(range.start_ns);
}

void OpenRanges::move(std::uint32_t node, FrameId path) {
  const FrameId before = ranges_[node].path;
  for (std::size_t i = node; i < ranges_.size(); ++i) {
    if (ranges_[i].path == before) ranges_[i].path = path;
  }
}

// Overlapping ranges can end below a newer one that is still open, where close() does not see
// them.
void OpenRanges::compact(std::int64_t now_ns) {
  std::vector<std::uint32_t> moved_to(ranges_.size(), kNone);
  std::uint32_t kept = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    Range range = ranges_[i];
    const bool newest_range = i + 1 == ranges_.size();
    if (range.end_ns <= now_ns && !newest_range) continue;
    if (range.outer != kNone) range.outer = moved_to[range.outer];
    moved_to[i] = kept;
    ranges_[kept++] = range;
  }
  ranges_.resize(kept);
  compact_at_ = std::max<std::size_t>(64, ranges_.size() * 2);
}

}  // namespace pasta::correlate
