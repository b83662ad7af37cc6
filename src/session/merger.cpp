#include "session/merger.h"

#include <algorithm>
#include <functional>

namespace pasta::session {

Merger::Merger(std::span<MergeInput* const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    queues_.push_back({inputs[i], {}});
    push({std::numeric_limits<std::int64_t>::min(), i});
  }
}

void Merger::push(Key key) {
  heap_.push_back(key);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
}

std::optional<Merger::Step> Merger::next() {
  while (!heap_.empty()) {
    const std::size_t index = heap_.front().input;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
    Queue& queue = queues_[index];
    if (queue.head == queue.events.size()) {
      queue.head = 0;
      const MergeInput::State state = queue.input->take(queue.events);
      if (!queue.events.empty()) {
        push({queue.events.front().end_ns, index});
      } else if (!state.ended) {
        push({state.watermark_ns, index});
        if (heap_.front().input == index) return Step{index, {}};
      }
      continue;
    }
    const auto from = queue.events.begin() + static_cast<std::ptrdiff_t>(queue.head);
    auto to = queue.events.end();
    if (!heap_.empty()) {
      to = std::find_if(from, queue.events.end(), [&](const Event& event) {
        return Key{event.end_ns, index} > heap_.front();
      });
    }
    queue.head = static_cast<std::size_t>(to - queue.events.begin());
    push({to == queue.events.end() ? queue.events.back().end_ns : to->end_ns, index});
    return Step{index, {from, to}};
  }
  return std::nullopt;
}

}  // namespace pasta::session
