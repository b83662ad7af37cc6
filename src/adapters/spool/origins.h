// Where the program made what it ran later, such as the nodes of a graph: paths by the numbers that
// the collector gives, and what becomes of the path of a launch.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/ids.h"

namespace pasta::adapters::spool {

class Origins {
 public:
  explicit Origins(Dictionary& dictionary) : dictionary_(&dictionary) {}

  // Of the whole run, for `number` of a process image; below 2^31. The work may be read before the
  // path is.
  std::uint32_t id(std::uint32_t image, std::uint32_t number);
  void learn(std::uint32_t id, FrameId path) { paths_[id] = path; }
  // The path of work that was launched at `launch`: what was open when it was made, inside of what
  // is open when it is launched.
  FrameId inside(FrameId launch, std::uint32_t id);

 private:
  FrameId join(FrameId outer, FrameId inner);

  Dictionary* dictionary_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> ids_;
  std::vector<FrameId> paths_;
  std::unordered_map<std::uint64_t, FrameId> joined_;  // by both
};

}  // namespace pasta::adapters::spool
