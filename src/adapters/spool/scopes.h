// Call paths of calls that were told of afterwards and by another thread, as vendors' buffers do:
// the ranges of the call's own thread that were open in its middle.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "trace/spool.h"

namespace pasta::adapters::spool {

class Scopes {
 public:
  explicit Scopes(const Dictionary& dictionary) : dictionary_(&dictionary) {}

  static bool is_by_time(const Event& event) {
    return event.scope.value == trace::spool::kScopeByTime;
  }
  // The time that decides. The host's clock and the vendor's may be some hundred nanoseconds apart,
  // and a call may follow on the heels of a range: its middle lies on the right side when its ends
  // do not.
  static std::int64_t middle_ns(const Event& call) {
    return call.start_ns + (call.end_ns - call.start_ns) / 2;
  }
  // A range that has ended. Anything else is left alone.
  void learn(const Event& event);
  // A range that has not, as of now: `inside` is the path that it opens.
  void open(LaneId lane, std::int64_t start_ns, FrameId inside);
  void forget_open() { open_.clear(); }
  // Gives each its scope. All ranges that were open at their middles have been told.
  void resolve(std::span<Event* const> calls) const;
  // Nothing that is resolved later has its middle before this.
  void forget(std::int64_t before_ns);

 private:
  struct Range {
    std::int64_t start_ns, end_ns;
    FrameId inside;
  };
  using Ranges = std::unordered_map<std::uint32_t, std::vector<Range>>;  // by lane

  const Dictionary* dictionary_;
  Ranges ended_, open_;
};

}  // namespace pasta::adapters::spool
