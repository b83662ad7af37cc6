// Ranges whose begin and end are records of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pasta/event.h"

namespace pasta::adapters::kineto_json {

// Open ranges of one file, by thread or by asynchronous id. An event goes in with its start, and
// comes out with its end.
class RangePairing {
 public:
  // What was closed: first the range that was ended, then what was opened inside it, never ended on
  // its own and ends with it (kUnfinished). None: there was no such range.
  using Closed = std::vector<Event>;

  void begin(const Event& event) { by_lane_[event.lane.value].push_back(event); }
  // Ends the innermost range of the lane, or the innermost of that name when `name` is one.
  Closed end(LaneId lane, StringId name, std::int64_t at_ns);

  void begin_async(const std::string& key, const Event& event) { by_key_[key].push_back(event); }
  Closed end_async(const std::string& key, std::int64_t at_ns);

  // All that is still open, closed at `at_ns` (or at its own start, when that is later).
  std::vector<Event> end_all(std::int64_t at_ns);

 private:
  std::unordered_map<std::uint32_t, std::vector<Event>> by_lane_;
  std::unordered_map<std::string, std::vector<Event>> by_key_;
};

}  // namespace pasta::adapters::kineto_json
