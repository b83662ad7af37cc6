#include "tools/common/rows.h"

#include <fmt/format.h>

namespace pasta::tools {

std::string queue_label(const Dictionary& dictionary, LaneId queue) {
  const Lane lane = dictionary.lane(queue);
  if (lane.name) return std::string(dictionary.text(lane.name));
  if (lane.native_text) return std::string(dictionary.text(lane.native_text));
  return fmt::format("stream {}", lane.native_id);
}

}  // namespace pasta::tools
