// How often and how long the ranges of host threads ran, and which lay in which.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "stats/interval_set.h"

namespace pasta::tools::operators {

// The calls of one name, of one domain, at one place of the call tree, with one shape.
struct Site {
  FrameId scope;  // the path it lies in
  FrameId frame;  // its own node; none where it opens none
  StringId name;
  ScopeDomain domain;
  std::uint32_t shape;
  std::int64_t calls = 0;  // those without times included
  std::int64_t timed = 0;
  std::int64_t total_ns = 0;
  std::int64_t self_ns = 0;
};

// Self times come from nesting in time on one thread, not from the tree: a backward operator hangs
// below its forward operator there, but runs elsewhere. Told of ranges such that those that end
// earlier come first, and of those that end together the inner ones.
class HostCalls {
 public:
  std::uint32_t site(const Event& range, std::uint32_t shape, const Dictionary& dictionary);
  void add_untimed(std::uint32_t site) { ++sites_[site].calls; }
  // Time of the thread that no counted range had before this one is its own: of what nests, each
  // moment belongs to the innermost; of what overlaps without nesting, to what ended first.
  void add_counted(std::uint32_t site, const Event& range);
  // Learns from any range that has a node whether the node runs inside its parent or elsewhere.
  void note_nesting(std::uint32_t site, const Event& range);

  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }
  // kElsewhere: no call of the node lay in a call of its parent on the same thread, as a backward
  // operator does not lie in its forward operator. kUnknown: no timed call of one of them was seen.
  enum class Nesting : std::uint8_t { kInside, kElsewhere, kUnknown };
  [[nodiscard]] Nesting nesting(FrameId frame, FrameId parent) const;
  // Whether a timed call of the node was seen.
  [[nodiscard]] bool seen(FrameId frame) const {
    return frame.value < nodes_.size() && nodes_[frame.value].seen;
  }

 private:
  struct Key {
    FrameId scope;
    StringId name;
    std::uint32_t domain, shape;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Node {
    std::int64_t start_ns = 0;  // of the latest call, while it waits for a call of its parent
    std::int64_t end_ns = 0;
    LaneId lane;
    bool seen = false;
    bool nested = false;
    std::vector<FrameId> waiting;  // children of which no call is known to be nested
  };
  Node& node(FrameId frame);

  std::unordered_map<Key, std::uint32_t, Hash> known_;
  std::vector<Site> sites_;
  std::vector<Node> nodes_;                // by frame
  std::vector<stats::IntervalSet> lanes_;  // when counted ranges ran, by lane
};

}  // namespace pasta::tools::operators
