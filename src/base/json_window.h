// The part of a stream that the JSON reader has in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "pasta/adapter.h"

namespace pasta::base {

// Bytes [pos, end) are there to be read, followed by scan::kPadding bytes of NUL. The byte before
// `pos` may be read too ('\n' at the very start).
class JsonWindow {
 public:
  JsonWindow(ByteStream& stream, std::size_t bytes);

  const char* pos;
  const char* end;

  // Reads on. What lies before `pos` is let go; what follows may move, and `pos` with it. False
  // when there is no more: at the end of the input, or after an error of the stream.
  bool more();
  // The byte at pos + i, reading on as needed; -1 behind the end of the input.
  int peek(std::size_t i);
  // Moves `pos` to the first byte that is not white space; false at the end of the input.
  bool skip_blank();

  [[nodiscard]] bool at_end() const { return at_end_; }
  [[nodiscard]] std::uint64_t offset_of(const char* at) const {
    return base_ + static_cast<std::uint64_t>(at - begin_);
  }
  // No text that lies in the window whole is longer.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  ByteStream& stream_;
  std::size_t capacity_;
  std::unique_ptr<char[]> memory_;
  char* begin_;             // capacity_ bytes, with one byte in front and the padding behind
  std::uint64_t base_ = 0;  // offset of begin_
  bool at_end_ = false;
  std::optional<Error> error_;
};

}  // namespace pasta::base
