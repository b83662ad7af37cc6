// Reads JSON that is larger than memory and not quite JSON.
//
// Trace files are written by programs that crash, forget to escape, or print what the C library
// prints for infinity. This reader accepts what RFC 8259 accepts, repairs what has one plain
// meaning, skips the record it cannot read, and says each time what it did and at which byte.
// In strict mode the first such problem is an error.
//
// Two levels. The document level walks containers of any size (the top-level object, the array of
// events). The record level reads one value that fits into memory: `record()` hands a cursor to a
// callable, and calls it again from the start when the value did not yet lie in memory whole, so
// the callable must write to its own locals only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json_scan.h"
#include "pasta/adapter.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta::base {

enum class JsonType : std::uint8_t {
  kObject,
  kArray,
  kString,
  kNumber,
  kTrue,
  kFalse,
  kNull,
  kAbsent,  // a bare token (inf, N/A): counted, no value
  kEnd,     // no value here
};

// One thing that was repaired or skipped. Offsets count decompressed bytes from 0.
struct JsonProblem {
  Reason reason;
  std::uint64_t offset;
  std::string_view text;  // what is wrong, with a short excerpt; valid during the call only
};

class JsonReader;

// Containers within containers that one record may have.
inline constexpr std::uint32_t kMaxJsonDepth = 256;

namespace scan {

// The type of a value by its first byte where that byte decides; kEnd elsewhere.
inline constexpr std::array<JsonType, 256> kTypes = [] {
  std::array<JsonType, 256> table{};
  table.fill(JsonType::kEnd);
  table['{'] = JsonType::kObject;
  table['['] = JsonType::kArray;
  table['"'] = JsonType::kString;
  for (std::size_t c = '0'; c <= '9'; ++c) table[c] = JsonType::kNumber;
  return table;
}();
inline JsonType type_of(char c) { return kTypes[static_cast<unsigned char>(c)]; }

}  // namespace scan

// Walks one value that lies in memory whole. All views it gives are valid until the callable that
// got the cursor returns. After anything unreadable every call gives "end" or an empty value, so a
// caller needs no checks of its own: `record()` sees to it.
//
// A container that was entered must be walked to its end, unless the callable returns: what it
// left unread is then checked and passed. A member or element that was not read is passed too.
class JsonCursor {
 public:
  // Type of the value at the cursor, not consuming it.
  JsonType type() {
    const JsonType type = scan::type_of(*p_);
    return type != JsonType::kEnd ? type : type_slow();
  }

  // An object:  if (c.enter_object()) while (c.next_member(key)) { read or skip one value }
  // A value of another type is skipped, counts as nothing, and gives false.
  bool enter_object() { return enter('{'); }
  bool next_member(std::string_view& key);
  // An array:   if (c.enter_array()) while (c.next_element()) { read or skip one value }
  bool enter_array() { return enter('['); }
  bool next_element();

  // The decoded string. Of another scalar type: its text as written. Of a container: "", skipped.
  std::string_view string();
  // The text of a number or of a string that holds one ("12.5" as well as 12.5), for
  // base/decimal.h;
  // "" for anything else, which is skipped.
  std::string_view number();
  // Checks and passes one value of any type; returns its text as written.
  std::string_view skip();

  // Byte offset of the cursor.
  std::uint64_t offset() const;

 private:
  friend class JsonReader;
  enum class State : std::uint8_t {
    kGood,
    kNeedsMore,  // the window ended inside: to be walked again with more of the input
    kCut,        // the input ended inside
    kFault,      // unreadable
  };
  struct Scalar {
    JsonType type = JsonType::kEnd;
    std::string_view text;
  };

  // The members are set by JsonReader: a cursor is made once a record, and clearing the stack
  // would cost as much as reading a short one.
  explicit JsonCursor(JsonReader& reader) : reader_(&reader) {}

  bool enter(char bracket) {
    if (*p_ != bracket || depth_ == kMaxJsonDepth) return enter_slow(bracket);
    stack_[depth_++] = bracket;
    ++p_;
    fresh_ = true;
    return true;
  }
  void leave(const char* after) {
    p_ = after;
    --depth_;
    fresh_ = false;
  }

  JsonType type_slow();
  bool enter_slow(char bracket);
  bool next_member_slow(std::string_view& key);
  bool next_element_slow();
  std::string_view string_slow();
  std::string_view number_slow();
  std::string_view skip_slow();

  std::string_view quoted();
  const char* decode(std::string_view raw, std::string_view& decoded);
  Scalar scalar();
  void pass_rest(std::uint32_t depth);
  void finish();
  void problem(Reason reason, const char* at, const char* what);
  bool out_of_data();
  bool fault(const char* at, const char* what);
  void stop(State state, const char* at);

  // In any state but kGood, p_ and end_ point to a NUL outside of the window, so that the fast
  // paths need not look at the state.
  const char* p_;
  const char* end_;
  const char* unread_;  // the value that next_member() or next_element() left p_ at
  JsonReader* reader_;
  const char* stopped_at_;
  const char* what_;
  std::uint32_t depth_;
  bool fresh_;  // a container was entered and nothing of it was read yet
  State state_;
  char stack_[kMaxJsonDepth];  // opening brackets of the containers entered
};

enum class RecordOutcome : std::uint8_t {
  kRead,
  kSkipped,    // could not be read; the reader stands at the next record
  kTruncated,  // the input ended inside
};

class JsonReader {
 public:
  struct Options {
    bool strict = false;
    std::size_t window_bytes = std::size_t{1} << 20;       // grows for a larger record, up to:
    std::size_t max_record_bytes = std::size_t{64} << 20;  // a larger record is skipped
    std::function<void(const JsonProblem&)> on_problem;    // each problem of a record that was kept
                                                           // or skipped, once
  };
  JsonReader(ByteStream& stream, Options options);
  ~JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // Errors of all members: what the stream says (kIo); in strict mode kBadInput naming the byte.

  // Type of the document's value. Enters it when it is an object or an array.
  Result<JsonType> open();
  // The innermost entered container: moves to its next member or element. False at its end, which
  // is then left.
  Result<bool> next_member(std::string& key);
  Result<bool> next_element();
  // The value at hand: its type; enters it when it is a container that the caller wants to stream.
  Result<JsonType> type();
  Status enter();
  // Passes the value at hand, of any size.
  Status skip();

  // Reads the value at hand with `read(JsonCursor&)`, which returns nothing.
  template <class Read>
  Result<RecordOutcome> record(Read&& read) {
    for (;;) {
      JsonCursor cursor(*this);
      begin_record(cursor);
      read(cursor);
      auto more = end_record(cursor);
      if (!more) return tl::unexpected<Error>(std::move(more).error());
      if (*more != Step::kAgain) {
        return *more == Step::kRead      ? RecordOutcome::kRead
               : *more == Step::kSkipped ? RecordOutcome::kSkipped
                                         : RecordOutcome::kTruncated;
      }
    }
  }

  // Bytes consumed so far.
  [[nodiscard]] std::uint64_t offset() const;
  // The input ended before the document did.
  [[nodiscard]] bool truncated() const;

 private:
  friend class JsonCursor;
  enum class Step : std::uint8_t { kRead, kSkipped, kTruncated, kAgain };
  void begin_record(JsonCursor& cursor);
  Result<Step> end_record(JsonCursor& cursor);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline bool JsonCursor::next_member(std::string_view& key) {
  const char* p = scan::blank_end(p_);
  if (p == unread_) return next_member_slow(key);
  if (*p == ',' && !fresh_) {
    p = scan::short_blank_end(p + 1);
    if (*p != '"') return next_member_slow(key);
  } else if (*p == '}') {
    leave(p + 1);
    return false;
  } else if (*p != '"' || !fresh_) {
    return next_member_slow(key);
  }
  const char* const first = p + 1;
  const char* const last = scan::plain_end(first);
  if (*last != '"') return next_member_slow(key);
  p = last + 1;
  if (*p != ':') {
    p = scan::blank_end(p);
    if (*p != ':') return next_member_slow(key);
  }
  key = {first, static_cast<std::size_t>(last - first)};
  p_ = unread_ = scan::short_blank_end(p + 1);
  fresh_ = false;
  return true;
}

inline bool JsonCursor::next_element() {
  const char* p = scan::blank_end(p_);
  if (p == unread_) return next_element_slow();
  if (*p == ',' && !fresh_) {
    p = scan::short_blank_end(p + 1);
    if (scan::type_of(*p) == JsonType::kEnd) return next_element_slow();
  } else if (*p == ']') {
    leave(p + 1);
    return false;
  } else if (scan::type_of(*p) == JsonType::kEnd || !fresh_) {
    return next_element_slow();
  }
  p_ = unread_ = p;
  fresh_ = false;
  return true;
}

inline std::string_view JsonCursor::string() {
  if (*p_ == '"') {
    const char* const first = p_ + 1;
    const char* const last = scan::plain_end(first);
    if (*last == '"') {
      p_ = last + 1;
      return {first, static_cast<std::size_t>(last - first)};
    }
  }
  return string_slow();
}

inline std::string_view JsonCursor::number() {
  const char* const first = p_;
  const char* const whole = first + (*first == '-' ? 1 : 0);
  const char* const p = scan::plain_number_end(whole);
  // A zero in front needs a look at what follows.
  if (p == nullptr || !scan::ends_scalar(*p) || (*whole == '0' && scan::is_digit(whole[1]))) {
    return number_slow();
  }
  p_ = p;
  return {first, static_cast<std::size_t>(p - first)};
}

inline std::string_view JsonCursor::skip() {
  const char* const first = p_;
  if (*first == '"') {
    const char* const last = scan::plain_end(first + 1);
    if (*last == '"') {
      p_ = last + 1;
      return {first, static_cast<std::size_t>(p_ - first)};
    }
  } else if (scan::type_of(*first) == JsonType::kNumber) {
    return number();
  }
  return skip_slow();
}

}  // namespace pasta::base
