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

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

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
  std::string_view text;  // a short excerpt; valid during the call only
};

class JsonReader;

// Walks one value that lies in memory whole. All views it gives are valid until the callable that
// got the cursor returns. After anything unreadable every call gives "end" or an empty value, so a
// caller needs no checks of its own: `record()` sees to it.
class JsonCursor {
 public:
  // Type of the value at the cursor, not consuming it.
  JsonType type();

  // An object:  if (c.enter_object()) while (c.next_member(key)) { read or skip one value }
  // A value of another type is skipped, counts as nothing, and gives false.
  bool enter_object();
  bool next_member(std::string_view& key);
  // An array:   if (c.enter_array()) while (c.next_element()) { read or skip one value }
  bool enter_array();
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
  explicit JsonCursor(JsonReader& reader) : reader_(&reader) {}
  JsonReader* reader_;
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
      begin_record();
      JsonCursor cursor(*this);
      read(cursor);
      auto more = end_record();
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
  void begin_record();
  Result<Step> end_record();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta::base
