// The Python frames of a thread, read where they lie: without the interpreter's lock, so that
// whoever asks never waits, and makes no object. What a frame looks like differs between versions
// of Python and is no interface of it. So it is found out in the process itself, and held to what
// Python's public functions say of the same stack; where they differ nothing is read. Needs no
// libstdc++: this is for the collector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "adapters/common/python/interpreter.h"

namespace pasta::adapters::common::python {

inline constexpr std::size_t kLongestText = 1024;

// With the interpreter's lock, on a thread that runs Python: whether frames can be read from now
// on.
bool learn_frames() noexcept;

// While one of these exists the interpreter does not take away what the thread's frames are made
// of. Any thread, with or without the lock; nothing is waited for.
class Frames {
 public:
  Frames() noexcept;
  ~Frames();
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;
  // Some frame is there: the innermost at first.
  explicit operator bool() const { return frame_ != nullptr; }
  void to_caller() noexcept;

  // Python's own strings, which live as long as the frame.
  [[nodiscard]] Object* file() const noexcept;
  [[nodiscard]] Object* function() const noexcept;
  [[nodiscard]] int line() const noexcept;

 private:
  void skip_others() noexcept;
  const char* frame_ = nullptr;
  Object* code_ = nullptr;
};

// When the interpreter is about to end, with its lock: waits for those who read, who take less than
// a microsecond, and from then on there are no frames.
void end_frames() noexcept;

// A string of Python as UTF-8, cut where there is no room; without the lock.
std::string_view text_of(Object* text, char* to, std::size_t room) noexcept;
// Whether it is this one, which text_of() has given.
bool is_text(Object* text, std::string_view known) noexcept;

}  // namespace pasta::adapters::common::python
