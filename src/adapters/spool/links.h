// Links device work to the call that launched it, by correlation: whatever adapter of the collector
// has said both.
#pragma once

#include <cstdint>
#include <unordered_map>
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
  // Launches of kernels of which no kernel was linked, and none of a later launch: after all has
  // been linked, of a process that was killed, what it is known to have lost.
  [[nodiscard]] std::uint64_t unseen(ProcessId process) const;

 private:
  [[nodiscard]] bool on_queue(LaneId lane);
  [[nodiscard]] bool launches_kernel(const Event& call);

  void link_to_launch(Event& event, Problems& problems);

  const Dictionary* dictionary_;
  Origins* origins_;
  correlate::FrameMap launches_;
  std::vector<std::int8_t> queues_;  // by lane; -1 = not looked up yet
  struct Launched {
    std::uint64_t linked = 0;  // the largest correlation of device work
    std::vector<std::uint64_t> kernels;
  };
  std::unordered_map<std::uint32_t, Launched> launched_;  // by process
  std::unordered_map<std::uint32_t, bool> of_kernels_;    // by name: whether a call launches one
};

}  // namespace pasta::adapters::spool
