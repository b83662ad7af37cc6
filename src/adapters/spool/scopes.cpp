#include "adapters/spool/scopes.h"

#include <algorithm>
#include <limits>

#include "event/path_nodes.h"

namespace pasta::adapters::spool {

void Scopes::learn(const Event& event) {
  if (event.kind != Kind::kScope || (event.flags & (kAnnotation | kInstant | kUntimed)) != 0 ||
      event.start_ns == event.end_ns) {
    return;
  }
  const auto domain = static_cast<ScopeDomain>(event.detail);
  if (!event::is_path_node(domain, dictionary_->text(event.name))) return;
  const FrameId inside = dictionary_->find_frame({event.scope, event.name, domain});
  if (inside) ended_[event.lane.value].push_back({event.start_ns, event.end_ns, inside});
}

void Scopes::open(LaneId lane, std::int64_t start_ns, FrameId inside) {
  open_[lane.value].push_back({start_ns, std::numeric_limits<std::int64_t>::max(), inside});
}

void Scopes::resolve(std::span<Event* const> calls) const {
  std::vector<Event*> sorted(calls.begin(), calls.end());
  std::sort(sorted.begin(), sorted.end(), [](const Event* a, const Event* b) {
    return a->lane.value != b->lane.value ? a->lane.value < b->lane.value
                                          : middle_ns(*a) < middle_ns(*b);
  });
  std::vector<Range> ranges, around;
  std::size_t next = 0;
  LaneId lane{};
  for (Event* call : sorted) {
    if (call->lane != lane) {
      lane = call->lane;
      ranges.clear();
      around.clear();
      next = 0;
      for (const Ranges* from : {&ended_, &open_}) {
        if (const auto found = from->find(lane.value); found != from->end()) {
          ranges.insert(ranges.end(), found->second.begin(), found->second.end());
        }
      }
      // Of those that begin together the longer is the outer one, and of equals the one that was
      // told later, as it ended later.
      std::reverse(ranges.begin(), ranges.end());
      std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
        return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
      });
    }
    const std::int64_t at = middle_ns(*call);
    for (; next < ranges.size() && ranges[next].start_ns <= at; ++next) {
      around.push_back(ranges[next]);
    }
    while (!around.empty() && around.back().end_ns <= at) around.pop_back();
    call->scope = around.empty() ? FrameId{} : around.back().inside;
  }
}

void Scopes::forget(std::int64_t before_ns) {
  for (auto& [lane, ranges] : ended_) {
    std::erase_if(ranges, [&](const Range& range) { return range.end_ns < before_ns; });
  }
}

}  // namespace pasta::adapters::spool
