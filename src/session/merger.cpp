#include "session/merger.h"

#include <algorithm>
#include <functional>

namespace pasta::session {

Merger::Merger(std::span<MergeInput* const> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    queues_.push_back({inputs[i], {}});
    heap_.push_back({std::numeric_limits<std::int64_t>::min(), i});  // in order, so a heap
  }
}

// Gives the least entry of the heap another key.
void Merger::replace_least(std::int64_t end_ns) {
  Key key = heap_[0];
  key.end_ns = end_ns;
  std::size_t at = 0;
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (key < heap_[child]) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = key;
}

Merger::Key Merger::second_least() const {
  constexpr Key kNone = {std::numeric_limits<std::int64_t>::max(),
                         std::numeric_limits<std::size_t>::max()};
  return std::min(heap_.size() > 1 ? heap_[1] : kNone, heap_.size() > 2 ? heap_[2] : kNone);
}

std::optional<Merger::Step> Merger::next() {
  while (!heap_.empty()) {
    const std::size_t index = heap_[0].input;
    Queue& queue = queues_[index];
    if (queue.head == queue.events.size()) {
      queue.head = 0;
      const MergeInput::State state = queue.input->take(queue.events);
      if (!queue.events.empty()) {
        replace_least(queue.events.front().end_ns);
      } else if (!state.ended) {
        replace_least(state.watermark_ns);
        if (heap_[0].input == index) return Step{index, {}};
      } else {
        std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
        heap_.pop_back();
      }
      continue;
    }
    const Key bound = second_least();
    const std::size_t from = queue.head;
    do {
      ++queue.head;
    } while (queue.head < queue.events.size() &&
             Key{queue.events[queue.head].end_ns, index} < bound);
    const bool emptied = queue.head == queue.events.size();
    replace_least(emptied ? queue.events.back().end_ns : queue.events[queue.head].end_ns);
    return Step{index, {&queue.events[from], queue.head - from}};
  }
  return std::nullopt;
}

}  // namespace pasta::session
