// Any bytes through the JSON reader: it ends, stays within the input, and sees the same whatever
// the size of its window.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/input.h"
#include "base/json_reader.h"

namespace {

using namespace pasta;
using namespace pasta::base;

void walk(JsonCursor& cursor, std::string& seen) {
  switch (cursor.type()) {
    case JsonType::kObject: {
      std::string_view key;
      if (cursor.enter_object()) {
        while (cursor.next_member(key)) {
          seen += key;
          walk(cursor, seen);
        }
      }
      break;
    }
    case JsonType::kArray:
      if (cursor.enter_array()) {
        while (cursor.next_element()) walk(cursor, seen);
      }
      break;
    case JsonType::kNumber:
      seen += cursor.number();
      break;
    default:
      seen += cursor.string();
  }
  seen += '\n';
}

std::string read_all(std::span<const std::byte> bytes, std::size_t window, bool strict) {
  std::string seen;
  auto stream = memory_stream(bytes);
  JsonReader reader(
      *stream,
      {.strict = strict, .window_bytes = window, .on_problem = [&](const JsonProblem& problem) {
         if (problem.offset > bytes.size()) std::abort();
         seen += std::to_string(static_cast<int>(problem.reason)) + '@' +
                 std::to_string(problem.offset) + ' ' + std::string(problem.text) + '\n';
       }});
  const auto value = [&] {
    std::string record;
    auto outcome = reader.record([&](JsonCursor& cursor) {
      record.clear();
      walk(cursor, record);
    });
    if (!outcome) {
      seen += outcome.error().message;
    } else if (*outcome == RecordOutcome::kRead) {
      seen += record;
    }
    return outcome.has_value();
  };
  const auto elements = [&] {
    while (true) {
      auto more = reader.next_element();
      if (!more) seen += more.error().message;
      if (!more || !*more) return;
      if (!value()) return;
    }
  };

  auto type = reader.open();
  if (!type) return type.error().message;
  if (*type == JsonType::kArray) {
    elements();
  } else if (*type == JsonType::kObject) {
    std::string key;
    while (true) {
      auto more = reader.next_member(key);
      if (!more) seen += more.error().message;
      if (!more || !*more) break;
      seen += key;
      auto member = reader.type();
      if (member && *member == JsonType::kArray && key.size() % 3 != 0 && reader.enter()) {
        elements();
      } else if (key.size() % 2 == 0) {
        if (!value()) break;
      } else if (auto passed = reader.skip(); !passed) {
        seen += passed.error().message;
        break;
      }
    }
  } else if (*type != JsonType::kEnd) {
    value();
  }
  return seen + (reader.truncated() ? "truncated" : "whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::size_t window = size == 0 ? 1 : 1 + data[0] % 64;
  for (const bool strict : {false, true}) {
    if (read_all(bytes, window, strict) != read_all(bytes, std::size_t{1} << 14, strict)) {
      std::abort();
    }
  }
  return 0;
}
