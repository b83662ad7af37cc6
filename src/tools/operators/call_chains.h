// Which calls of which rows a launch lies in, by time on its thread.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pasta/event.h"

namespace pasta::tools::operators {

// Told of launches and of ranges such that what lies inside comes before what holds it. Takes 24
// bytes a launch.
class CallChains {
 public:
  using Chain = std::uint32_t;
  static constexpr Chain kNone = 0;  // in no call

  void launch(LaneId lane, std::int64_t start_ns, std::uint64_t correlation);
  // A call of `row` that has just ended: it holds the launches that started in it.
  void call(LaneId lane, std::int64_t start_ns, std::uint32_t row);
  // Ends the telling. Of several launches with one correlation the first to start counts.
  void close();
  // After close().
  [[nodiscard]] Chain chain_of(std::uint64_t correlation) const;
  // The rows of a chain, the outermost call first.
  [[nodiscard]] std::vector<std::uint32_t> rows(Chain chain) const;

 private:
  struct Launch {
    std::uint64_t correlation;
    std::int64_t start_ns;
    Chain chain;
  };
  struct Link {
    Chain inner;
    std::uint32_t row;
  };
  std::vector<std::vector<Launch>> lanes_;  // by lane, in order of end
  std::vector<Launch> launches_;            // after close(): by correlation
  std::vector<Link> links_{{kNone, 0}};
  std::unordered_map<std::uint64_t, Chain> known_;  // by inner chain and row
};

}  // namespace pasta::tools::operators
