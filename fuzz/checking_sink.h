// A sink that ends the program when an adapter breaks a promise of the stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "pasta/adapter.h"

namespace pasta::fuzz {

class CheckingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override { described_ = true; }
  void push(std::span<const Event> events) override {
    if (!described_) std::abort();
    for (const Event& event : events) {
      if (event.end_ns < last_end_ns_ || event.end_ns < event.start_ns) std::abort();
      if (event.lane.value >= dictionary_.lane_count()) std::abort();
      if (event.name.value >= dictionary_.string_count()) std::abort();
      if (event.scope.value >= dictionary_.frame_count()) std::abort();
      if (event.untimed() != (event.end_ns == kNoTime)) std::abort();
      last_end_ns_ = event.end_ns;
    }
  }
  void push(Event event, std::span<const std::byte>) override { push({&event, 1}); }
  void advance(std::int64_t) override {}
  void report(const Problem& problem) override {
    if (problem.count == 0) std::abort();
  }

 private:
  Dictionary dictionary_;
  bool described_ = false;
  std::int64_t last_end_ns_ = kNoTime;
};

// Reads all that `adapter` has.
inline void drain(Adapter& adapter, bool strict) {
  CheckingSink sink;
  Plan plan;
  plan.strict = strict;
  if (!adapter.start(plan, sink)) return;
  for (;;) {
    const auto more = adapter.pump();
    if (!more || !*more) return;
  }
}

}  // namespace pasta::fuzz
