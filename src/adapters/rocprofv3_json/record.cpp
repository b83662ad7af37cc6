#include "adapters/rocprofv3_json/record.h"

#include <algorithm>

#include "base/decimal.h"

namespace pasta::adapters::rocprofv3_json {
namespace {

using base::JsonCursor;
using base::JsonType;

struct TableName {
  std::string_view group, key;
  Table table;
};
constexpr auto kTables = std::to_array<TableName>({
    {"", "agents", Table::kAgents},
    {"", "counters", Table::kCounterNames},
    {"", "kernel_symbols", Table::kKernelSymbols},
    {"strings", "buffer_records", Table::kOperationNames},
    {"strings", "marker_api", Table::kMarkerTexts},
    {"buffer_records", "kernel_dispatch", Table::kKernels},
    {"buffer_records", "hip_api", Table::kRuntimeCalls},
    {"buffer_records", "hsa_api", Table::kDriverCalls},
    {"buffer_records", "rccl_api", Table::kCommunicationCalls},
    {"buffer_records", "rocdecode_api", Table::kRuntimeCalls},
    {"buffer_records", "rocjpeg_api", Table::kRuntimeCalls},
    {"buffer_records", "marker_api", Table::kMarkers},
    {"buffer_records", "memory_copy", Table::kCopies},
    {"buffer_records", "memory_allocation", Table::kAllocations},
    {"buffer_records", "scratch_memory", Table::kScratch},
    {"callback_records", "counter_collection", Table::kCounters},
});

enum class Shape : std::uint8_t { kNumber, kTriple, kMembers, kCounters };
struct Member {
  std::string_view name;
  Shape shape;
  Field field;  // of a triple: its x
};
constexpr auto kMembers = std::to_array<Member>({
    {"kind", Shape::kNumber, Field::kKind},
    {"operation", Shape::kNumber, Field::kOperation},
    {"thread_id", Shape::kNumber, Field::kThread},
    {"correlation_id", Shape::kMembers, {}},
    {"internal", Shape::kNumber, Field::kCorrelation},
    {"start_timestamp", Shape::kNumber, Field::kStart},
    {"end_timestamp", Shape::kNumber, Field::kEnd},
    {"dispatch_info", Shape::kMembers, {}},
    {"dispatch_data", Shape::kMembers, {}},
    {"agent_id", Shape::kNumber, Field::kAgent},
    {"queue_id", Shape::kNumber, Field::kQueue},
    {"stream_id", Shape::kNumber, Field::kStream},
    {"kernel_id", Shape::kNumber, Field::kKernel},
    {"dispatch_id", Shape::kNumber, Field::kDispatch},
    {"private_segment_size", Shape::kNumber, Field::kPrivateBytes},
    {"group_segment_size", Shape::kNumber, Field::kGroupBytes},
    {"workgroup_size", Shape::kTriple, Field::kGroupX},
    {"grid_size", Shape::kTriple, Field::kGridX},
    {"src_agent_id", Shape::kNumber, Field::kSource},
    {"dst_agent_id", Shape::kNumber, Field::kDestination},
    {"src_address", Shape::kNumber, Field::kSourceAddress},
    {"dst_address", Shape::kNumber, Field::kDestinationAddress},
    {"bytes", Shape::kNumber, Field::kBytes},
    {"address", Shape::kNumber, Field::kAddress},
    {"allocation_size", Shape::kNumber, Field::kAllocated},
    {"records", Shape::kCounters, {}},
});

Field following(Field field, unsigned steps) {
  return static_cast<Field>(static_cast<unsigned>(field) + steps);
}

void read_number(JsonCursor& cursor, Record& record, Field field) {
  std::uint64_t value = 0;
  if (read_handle(cursor, value)) {
    record.set(field, value);
  } else {
    record.unreadable = true;
  }
}

void read_counters(JsonCursor& cursor, std::vector<CounterSum>& counters) {
  if (!cursor.enter_array()) return;
  while (cursor.next_element()) {
    CounterSum sum{};
    if (!cursor.enter_object()) continue;
    std::string_view key;
    while (cursor.next_member(key)) {
      if (key == "counter_id") {
        read_handle(cursor, sum.counter);
      } else if (key == "value") {
        base::parse_double(cursor.number(), sum.value);
      } else {
        cursor.skip();
      }
    }
    const auto known = std::find_if(counters.begin(), counters.end(),
                                    [&](const CounterSum& c) { return c.counter == sum.counter; });
    if (known == counters.end()) {
      counters.push_back(sum);
    } else {
      known->value += sum.value;
    }
  }
}

void read_members(JsonCursor& cursor, Record& record, std::vector<CounterSum>& counters) {
  if (!cursor.enter_object()) return;
  std::string_view key;
  while (cursor.next_member(key)) {
    const auto member = std::find_if(kMembers.begin(), kMembers.end(),
                                     [&](const Member& m) { return m.name == key; });
    if (member == kMembers.end()) {
      cursor.skip();
      continue;
    }
    switch (member->shape) {
      case Shape::kNumber:
        read_number(cursor, record, member->field);
        break;
      case Shape::kTriple: {
        if (!cursor.enter_object()) break;
        std::string_view axis;
        while (cursor.next_member(axis)) {
          if (axis.size() == 1 && axis[0] >= 'x' && axis[0] <= 'z') {
            read_number(cursor, record,
                        following(member->field, static_cast<unsigned>(axis[0] - 'x')));
          } else {
            cursor.skip();
          }
        }
        break;
      }
      case Shape::kMembers:
        read_members(cursor, record, counters);
        break;
      case Shape::kCounters:
        read_counters(cursor, counters);
        break;
    }
  }
}

}  // namespace

Table find_table(std::string_view group, std::string_view key) {
  for (const TableName& name : kTables) {
    if (name.group == group && name.key == key) return name.table;
  }
  return Table::kOther;
}

bool read_handle(JsonCursor& cursor, std::uint64_t& value) {
  switch (cursor.type()) {
    case JsonType::kNumber:
      return base::parse_unsigned(cursor.number(), value);
    case JsonType::kString:
      return base::parse_unsigned(cursor.string(), value);
    case JsonType::kObject: {
      bool found = false;
      cursor.enter_object();
      std::string_view key;
      while (cursor.next_member(key)) {
        if (key == "handle") {
          found = base::parse_unsigned(cursor.string(), value);
        } else {
          cursor.skip();
        }
      }
      return found;
    }
    default:
      cursor.skip();
      return false;
  }
}

void read_record(JsonCursor& cursor, Record& record, std::vector<CounterSum>& counters) {
  record = {};
  counters.clear();
  read_members(cursor, record, counters);
}

}  // namespace pasta::adapters::rocprofv3_json
