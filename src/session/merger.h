// Several streams in order of end become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pasta/event.h"

namespace pasta::session {

// One of the streams: holds what an adapter has pushed and nobody has taken yet.
class MergeInput {
 public:
  struct State {
    std::int64_t watermark_ns;  // whatever is taken later ends then or afterwards
    bool ended;                 // nothing is taken later
  };
  virtual ~MergeInput() = default;
  // Replaces `events` by what has come since the last call, in order of end.
  virtual State take(std::vector<Event>& events) = 0;
};

// Orders by end time, then by input, then by arrival; what it gives does not depend on the portions
// in which the inputs come.
class Merger {
 public:
  explicit Merger(std::span<MergeInput* const> inputs);

  struct Step {
    std::size_t input;
    // The next events, all of `input`; valid until the next call. Empty: nothing can be given
    // before `input` has more or has ended.
    std::span<const Event> run;
  };
  // None when all inputs have ended.
  std::optional<Step> next();

 private:
  struct Queue {
    MergeInput* input;
    std::vector<Event> events;
    std::size_t head = 0;
  };
  struct Key {
    std::int64_t end_ns;
    std::size_t input;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  void replace_least(std::int64_t end_ns);
  [[nodiscard]] Key second_least() const;

  std::vector<Queue> queues_;
  // Of every input that has not ended, the least key that it can still give; least first.
  std::vector<Key> heap_;
};

}  // namespace pasta::session
