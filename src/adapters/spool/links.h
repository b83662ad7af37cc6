// Links device work to the call that launched it, by correlation: whatever adapter of the collector
// has said both.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "adapters/spool/origins.h"
#include "correlate/key_table.h"
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
  // must have been told. In order of end: of a call that does not launch many (a graph does), what
  // ends more than kTogetherNs later than the last work that was linked to it is not its own.
  void link(Event& event, Problems& problems);
  // Nothing that is linked from now on ends before this. Launches whose work has all been linked
  // are let go, so that a run of hours holds no more of them than are under way, and those that
  // have launched nothing.
  void forget(std::int64_t before_ns);
  static constexpr std::int64_t kTogetherNs = 2'000'000'000;
  [[nodiscard]] std::size_t held() const { return launches_.size(); }
  // Launches of kernels of which no kernel was linked, and none of a later launch: after all has
  // been linked, of a process that was killed, what it is known to have lost.
  [[nodiscard]] std::uint64_t unseen(ProcessId process) const;

 private:
  [[nodiscard]] bool on_queue(LaneId lane);

#pragma pack(push, 4)
  struct Launch {
    std::uint64_t key;  // its correlation; 0 = free
    std::int64_t at_ns;
    FrameId frame;
    // End of the last work that was linked, in kLinkedNs from at_ns; 0: none was. kMany: it may
    // come at any time.
    std::uint32_t linked;
  };
#pragma pack(pop)
  static_assert(sizeof(Launch) == 24);
  static constexpr std::int64_t kLinkedNs = std::int64_t{1} << 20;
  static constexpr std::uint32_t kMany = ~std::uint32_t{0};
  // Whether nothing that ends then can be its work any more.
  static bool is_done(const Launch& launch, std::int64_t at_ns);

  // What a call of this name launches.
  struct Launches {
    bool kernel = false, many = false;
  };
  Launches launches_of(const Event& call);
  void link_to_launch(Event& event, Problems& problems);

  const Dictionary* dictionary_;
  Origins* origins_;
  correlate::KeyTable<Launch> launches_;
  std::size_t forget_at_ = kForgetAt;
  std::vector<std::int8_t> queues_;  // by lane; -1 = not looked up yet
  static constexpr std::size_t kForgetAt = std::size_t{1} << 16;
  struct Launched {
    std::uint64_t linked = 0;  // the largest correlation of device work
    std::vector<std::uint64_t> kernels;
  };
  std::unordered_map<std::uint32_t, Launched> launched_;  // by process
  std::unordered_map<std::uint32_t, Launches> of_names_;
};

}  // namespace pasta::adapters::spool
