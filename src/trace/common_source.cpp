#include "trace/common_source.h"

#include <algorithm>

#include "pasta/event.h"

namespace pasta::trace {

SourceInfo common_source(std::span<const SourceInfo> sources) {
  SourceInfo common;
  common.first_ns = kNoTime;
  if (sources.empty()) return common;
  common.rank = sources[0].rank;
  common.world_size = sources[0].world_size;
  common.absolute_clock = true;
  for (const SourceInfo& source : sources) {
    if (source.rank != common.rank) common.rank = -1;
    if (source.world_size != common.world_size) common.world_size = 0;
    common.absolute_clock = common.absolute_clock && source.absolute_clock;
    if (source.first_ns == kNoTime) continue;
    common.first_ns =
        common.first_ns == kNoTime ? source.first_ns : std::min(common.first_ns, source.first_ns);
  }
  return common;
}

}  // namespace pasta::trace
