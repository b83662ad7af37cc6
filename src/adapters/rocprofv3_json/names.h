// What the records of a process refer to by number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapters/rocprofv3_json/record.h"
#include "base/json_reader.h"
#include "pasta/dictionary.h"

namespace pasta::adapters::rocprofv3_json {

// The member "metadata" of a process.
struct Metadata {
  bool has_pid = false;
  std::uint64_t pid = 0;
  std::string command, host;
};
Metadata read_metadata(base::JsonCursor& cursor);

// One element of one of the tables kAgents to kKernelSymbols; a table fills what it has.
struct Name {
  std::uint64_t id = 0;
  std::string text;
  std::vector<std::string> operations;  // of kOperationNames, whose ids are their places
  std::uint32_t vector_registers = 0, group_bytes = 0;  // of a kernel
  Device device;                                        // of an agent; its texts are below
  std::string uuid;                                     // empty: unknown
};
Name read_name(base::JsonCursor& cursor, Table table);

}  // namespace pasta::adapters::rocprofv3_json
