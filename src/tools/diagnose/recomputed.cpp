#include "tools/diagnose/recomputed.h"

namespace pasta::tools::diagnose {

void Recomputed::add(const Event& scope, const Dictionary& dictionary) {
  const auto domain = static_cast<ScopeDomain>(scope.detail);
  if (domain != ScopeDomain::kOperator || scope.range.sequence == 0) return;
  const bool backward = scope.range.forward_thread != 0;
  const std::uint64_t key =
      (std::uint64_t{scope.scope.value} << 32 | scope.name.value) * 2 + (backward ? 1 : 0);
  if (!seen_.insert(key).second) return;
  const FrameId frame =
      dictionary.find_frame({.parent = scope.scope, .name = scope.name, .domain = domain});
  if (frame) (backward ? backward_ : forward_).insert(frame.value);
}

Recomputed::Found Recomputed::of(FrameId path, const Dictionary& dictionary) const {
  Found found;
  for (; path; path = dictionary.frame(path).parent) {
    if (backward_.contains(path.value)) {
      found.path = found.path == Path::kForward ? Path::kRecomputed : Path::kBackward;
      return found;
    }
    if (forward_.contains(path.value)) {
      found = {Path::kForward, dictionary.frame(path).name};
    }
  }
  return found;
}

}  // namespace pasta::tools::diagnose
