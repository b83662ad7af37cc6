// One record of "traceEvents", as it stands in the file.
#pragma once

#include <array>
#include <cstddef>
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
  std::string_view phase, category, name, pid, tid, time, duration, id, scope;
  std::array<std::string_view, kArgCount> args;
  Triple grid, block;
  std::vector<CounterSeries> series;  // of a counter, in place of args

  [[nodiscard]] std::string_view arg(Arg a) const { return args[static_cast<std::size_t>(a)]; }
  [[nodiscard]] bool has(Arg a) const { return !arg(a).empty(); }
};

// Reads the value at the cursor into `record`, whatever was in it. Phases stand before args in all
// known writers' files; a counter of which they stand behind has no series.
void read_record(base::JsonCursor& cursor, Record& record);

}  // namespace pasta::adapters::kineto_json
