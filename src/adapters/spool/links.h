// Links device work to the call that launched it, by correlation: whatever adapter of the collector
// has said both.
#pragma once

#include <cstdint>
#include <vector>

#include "adapters/spool/origins.h"
#include "correlate/frame_map.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"

namespace pasta::adapters::spool {

class Links {
 public:
  Links(const Dictionary& dictionary, Origins& origins)
      : dictionary_(&dictionary), origins_(&origins) {}

  // A call that launches is known from its correlation. Anything else is left alone.
  void learn(const Event& event);
  // Device work gets its launch's scope, below it the path of its origin if it has one, and the
  // flags that say so; what has no launch is counted. All that learn() is ever told of this launch
  // must have been told.
  void link(Event& event, Problems& problems);

 private:
  [[nodiscard]] bool on_queue(LaneId lane);

  void link_to_launch(Event& event, Problems& problems);

  const Dictionary* dictionary_;
  Origins* origins_;
  correlate::FrameMap launches_;
  std::vector<std::int8_t> queues_;  // by lane; -1 = not looked up yet
};

}  // namespace pasta::adapters::spool
