// One record of a table of rocprofv3's JSON, as numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json_reader.h"

namespace pasta::adapters::rocprofv3_json {

// The arrays of one process that are read.
enum class Table : std::uint8_t {
  kOther,
  // What the records refer to.
  kAgents,
  kCounterNames,
  kOperationNames,
  kMarkerTexts,
  kKernelSymbols,
  // Records.
  kKernels,
  kRuntimeCalls,
  kDriverCalls,
  kCommunicationCalls,
  kMarkers,
  kCopies,
  kAllocations,
  kScratch,
  kCounters,  // of one dispatch each, which need not be in kKernels
};

// `group`: the member of the process that holds it; empty when it lies in the process itself.
Table find_table(std::string_view group, std::string_view key);

// All numbers that a record of any table may have. {"handle": 7} counts as 7.
enum class Field : std::uint8_t {
  kKind,
  kOperation,
  kThread,
  kCorrelation,
  kStart,
  kEnd,
  kAgent,
  kQueue,
  kStream,
  kKernel,
  kDispatch,
  kPrivateBytes,
  kGroupBytes,
  kGroupX,
  kGroupY,
  kGroupZ,
  kGridX,
  kGridY,
  kGridZ,
  kSource,
  kDestination,
  kSourceAddress,
  kDestinationAddress,
  kBytes,
  kAddress,
  kAllocated,
  kCounter,
};
inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::kCounter) + 1;

// Trivially copyable, so that records can wait on disk for the names that they refer to.
struct Record {
  std::array<std::uint64_t, kFieldCount> values;
  std::uint64_t offset;  // where it stands, for messages
  double counter_value;
  std::uint32_t present;  // a bit a field
  Table table;
  bool unreadable;  // some number of it is none

  [[nodiscard]] bool has(Field field) const {
    return (present >> static_cast<unsigned>(field) & 1u) != 0;
  }
  [[nodiscard]] std::uint64_t get(Field field) const {
    return values[static_cast<std::size_t>(field)];
  }
  void set(Field field, std::uint64_t value) {
    values[static_cast<std::size_t>(field)] = value;
    present |= 1u << static_cast<unsigned>(field);
  }
};
static_assert(std::is_trivially_copyable_v<Record> && kFieldCount <= 32);

// The value of one counter during a dispatch, summed over the instances of the counter.
struct CounterSum {
  std::uint64_t counter;
  double value;
};

// Reads the value at the cursor into `record`, whatever was in it, and into `counters` what it has
// of them.
void read_record(base::JsonCursor& cursor, Record& record, std::vector<CounterSum>& counters);

// A number, a number in quotes (also 0x hexadecimal), or {"handle": number}; false when it is none.
bool read_handle(base::JsonCursor& cursor, std::uint64_t& value);

}  // namespace pasta::adapters::rocprofv3_json
