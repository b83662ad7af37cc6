// Finds events that are there twice.
#pragma once

#include <unordered_set>
#include <vector>

#include "pasta/event.h"

namespace pasta::session {

// Two events are duplicates when all they say is equal: kind, name, lane, start, end, correlation,
// call path and payload (but for the running number that a reader gives to kernels). Equal moments
// without a correlation, and equal events without times, are not: they may well be two.
// Holds the events of one end time.
class TieGroup {
 public:
  // True when an equal event was added since clear().
  bool add(const Event& event);
  void clear() {
    if (!few_.empty()) few_.clear();
    if (!many_.empty()) many_.clear();
  }

 private:
  struct Hash {
    std::size_t operator()(const Event& event) const;
  };
  struct Same {
    bool operator()(const Event& a, const Event& b) const;
  };
  static constexpr std::size_t kFew = 32;  // compared one by one
  std::vector<Event> few_;
  std::unordered_set<Event, Hash, Same> many_;
};

}  // namespace pasta::session
