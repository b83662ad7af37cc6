#include "adapters/spool/origins.h"

namespace pasta::adapters::spool {

std::uint32_t Origins::id(std::uint32_t image, std::uint32_t number) {
  const auto [known, is_new] = ids_.emplace(std::pair(image, number), paths_.size());
  if (is_new) paths_.emplace_back();
  return known->second;
}

FrameId Origins::inside(FrameId launch, std::uint32_t id) {
  return id < paths_.size() ? join(launch, paths_[id]) : launch;
}

FrameId Origins::join(FrameId outer, FrameId inner) {
  if (!inner) return outer;
  if (!outer) return inner;
  const std::uint64_t key = std::uint64_t{outer.value} << 32 | inner.value;
  if (const auto known = joined_.find(key); known != joined_.end()) return known->second;
  const Frame frame = dictionary_->frame(inner);
  const FrameId path = dictionary_->frame({join(outer, frame.parent), frame.name, frame.domain});
  joined_.emplace(key, path);
  return path;
}

}  // namespace pasta::adapters::spool
