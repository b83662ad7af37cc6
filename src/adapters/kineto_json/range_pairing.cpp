#include "adapters/kineto_json/range_pairing.h"

#include <algorithm>
#include <utility>

namespace pasta::adapters::kineto_json {

RangePairing::Closed RangePairing::end(LaneId lane, StringId name, std::int64_t at_ns) {
  auto& stack = by_lane_[lane.value];
  auto it = stack.end();
  if (!name) {
    if (it != stack.begin()) --it;
  } else {
    while (it != stack.begin() && std::prev(it)->name != name) --it;
    it = it == stack.begin() ? stack.end() : std::prev(it);
  }
  Closed closed;
  closed.assign(it, stack.end());
  stack.erase(it, stack.end());
  for (Event& event : closed) {
    event.end_ns = at_ns;
    if (&event != &closed.front()) event.flags |= kUnfinished;
  }
  return closed;
}

RangePairing::Closed RangePairing::end_async(const std::string& key, std::int64_t at_ns) {
  Closed closed;
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return closed;
  closed.push_back(it->second.back());
  closed.back().end_ns = at_ns;
  it->second.pop_back();
  if (it->second.empty()) by_key_.erase(it);
  return closed;
}

std::vector<Event> RangePairing::end_all(std::int64_t at_ns) {
  std::vector<Event> all;
  for (auto& [lane, stack] : by_lane_) all.insert(all.end(), stack.begin(), stack.end());
  for (auto& [key, stack] : by_key_) all.insert(all.end(), stack.begin(), stack.end());
  by_lane_.clear();
  by_key_.clear();
  // The tables have no order of their own, and what is reported first must not depend on it.
  std::stable_sort(all.begin(), all.end(), [](const Event& a, const Event& b) {
    return std::pair(a.start_ns, a.lane) < std::pair(b.start_ns, b.lane);
  });
  for (Event& event : all) {
    event.end_ns = std::max(at_ns, event.start_ns);
    event.flags |= kUnfinished;
  }
  return all;
}

}  // namespace pasta::adapters::kineto_json
