// Finds the way back into JSON behind something unreadable.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/json_window.h"

namespace pasta::base {

// Passes a broken value, looking at structure only. The usual break is an unescaped quote, after
// which inside and outside of strings are swapped. So a quote ends a string here only when what
// follows fits: a colon behind a key, a bracket or the next member or element behind a value.
class JsonResync {
 public:
  // `container` is the bracket of the container that the value lies in, '[' or '{'.
  // `reads_at(i)` tells whether a whole value that can be read starts at window.pos + i. It may
  // move the window.
  JsonResync(JsonWindow& window, char container, std::function<bool(std::size_t)> reads_at);

  enum class End {
    kBehindValue,  // window.pos is where a comma or the container's end is expected
    kAtElement,    // window.pos is at the next element, its comma passed
    kInputEnds,
  };
  // From window.pos: where the broken value starts, or anywhere between the values of `container`.
  End run();

 private:
  [[nodiscard]] char innermost() const { return open_.empty() ? container_ : open_.back(); }
  void close(char bracket);
  bool closes(bool key);
  bool in_string(bool key);
  std::size_t blank_from(std::size_t i);
  bool key_at(std::size_t i);
  bool element_at(std::size_t i);

  JsonWindow& window_;
  char container_;
  std::function<bool(std::size_t)> reads_at_;
  std::string open_;  // brackets open within the value
  bool key_next_ = false;
};

}  // namespace pasta::base
