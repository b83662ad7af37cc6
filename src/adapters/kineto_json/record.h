// One record of "traceEvents", as it stands in the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "adapters/kineto_json/vocabulary.h"
#include "base/json_reader.h"

namespace pasta::adapters::kineto_json {

// The args of a counter are its series: any names, numbers as values.
struct CounterSeries {
  std::string_view name, value;
};

// Text of the three numbers of "grid" or "block".
using Triple = std::array<std::string_view, 3>;

// One record as it stands in the file. Views into the reader's window.
struct Record {
  bool is_object = false;
  bool has_members = false;
  std::string_view first_member;  // its name; "[" of an array
  std::string_view phase, category, name, pid, tid, time, duration, id, scope;
  std::array<std::string_view, kArgCount> args;
  Triple grid, block;
  std::vector<CounterSeries> series;  // of a counter, in place of args; of others without meaning

  [[nodiscard]] std::string_view arg(Arg a) const { return args[static_cast<std::size_t>(a)]; }
  [[nodiscard]] bool has(Arg a) const { return !arg(a).empty(); }
};

// A number of the file that has to be whole and not negative: also 5 for "5.0" and "5e0", as
// programs write that keep all numbers as floating point.
bool whole_number(std::string_view text, std::uint64_t& value);

// Reads the value at the cursor into `record`, whatever was in it.
void read_record(base::JsonCursor& cursor, Record& record);

}  // namespace pasta::adapters::kineto_json
