// For tests of readers of CSV tables.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/input.h"
#include "trace/test_support.h"

namespace pasta::adapters::common::testing {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct File {
  std::string path;
  std::string_view text;
};

using Trace = trace::KeepingSink;

inline std::vector<Event> of(const Trace& trace, Kind kind) {
  std::vector<Event> found;
  std::copy_if(trace.events.begin(), trace.events.end(), std::back_inserter(found),
               [&](const Event& e) { return e.kind == kind; });
  return found;
}

inline std::string name(const Trace& trace, const Event& e) {
  return std::string(trace.dictionary_.text(e.name));
}

inline std::string lane(const Trace& trace, const Event& e) {
  return std::string(trace.dictionary_.text(trace.dictionary_.lane(e.lane).name));
}

inline Device device(const Trace& trace, const Event& e) {
  return trace.dictionary_.device(trace.dictionary_.lane(e.lane).device);
}

// By the reader that takes it; several files as one run.
inline Status read(const std::vector<File>& files, Trace& trace, bool strict = false) {
  std::vector<Input> inputs;
  for (const File& file : files) {
    inputs.push_back({file.path, bytes_of(file.text), base::memory_stream(bytes_of(file.text))});
  }
  Plan plan;
  plan.strict = strict;
  for (const ReaderEntry& reader : builtin_readers()) {
    if (!reader.sniff(bytes_of(files[0].text))) continue;
    auto adapter =
        files.size() > 1 ? reader.open_run(std::move(inputs)) : reader.open(std::move(inputs[0]));
    if (!adapter) return tl::unexpected(std::move(adapter).error());
    return trace::drive(**adapter, trace, plan);
  }
  return fail(ErrorCode::kUnsupported, "no reader");
}

inline Status read(std::string_view text, Trace& trace, bool strict = false) {
  return read({{"t.csv", text}}, trace, strict);
}

}  // namespace pasta::adapters::common::testing
