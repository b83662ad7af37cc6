// The records of one process become events.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "adapters/rocprofv3_json/names.h"
#include "adapters/rocprofv3_json/record.h"
#include "adapters/rocprofv3_json/record_spool.h"
#include "correlate/assembler.h"
#include "pasta/adapter.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta::adapters::rocprofv3_json {

// One element of "rocprofiler-sdk-tool". Records name kernels, calls, marks, agents and their own
// process by numbers; those that come before what these numbers mean wait in a spool.
class ProcessTaker {
 public:
  struct Shared {
    Dictionary& dictionary;
    Problems& problems;
    correlate::Assembler& assembler;
    StringId source;  // tells its processes from those of other files
    bool strict;
    std::filesystem::path scratch;
  };
  // `number`: of the process in its file, from 1; its id where the file does not say one.
  ProcessTaker(const Shared& shared, std::uint64_t number);

  void add(const Metadata& metadata);
  // One element of `table`, one of kAgents to kKernelSymbols.
  void add(Table table, const Name& name);
  // A table of names was met, if only an empty one.
  void met(Table table) { met_ |= 1u << static_cast<unsigned>(table); }

  // One record; `counters` of a record of kCounters. In strict mode a fault of the record is an
  // error; the message says the place but not the file.
  Status take(const Record& record, const std::vector<CounterSum>& counters);
  // After the last record.
  Status finish();

 private:
  struct Symbol {
    StringId name{};
    std::uint32_t vector_registers = 0;
    std::uint32_t group_bytes = 0;
  };
  struct Allocation {
    std::uint64_t bytes;
    DeviceId device;
  };

  [[nodiscard]] bool names_known() const;
  Status take_now(const Record& record);
  Status take_kernel(const Record& record);
  Status take_call(const Record& record, ApiDomain domain);
  Status take_marker(const Record& record);
  Status take_copy(const Record& record);
  Status take_allocation(const Record& record);
  Status take_counter(const Record& record);

  Status place(Event& event, const Record& record);
  Status correlate(Event& event, const Record& record);
  ProcessId process();
  LaneId thread_lane(const Record& record);
  LaneId queue_lane(const Record& record, DeviceId device);
  DeviceId device(std::uint64_t agent);
  StringId operation_name(const Record& record);
  StringId text(std::string_view text) { return shared_.dictionary.string(text); }
  template <class Detail>
  Status note(const Record& record, Reason reason, Detail&& detail);

  Shared shared_;
  std::uint32_t met_ = 0;
  bool metadata_met_ = false;
  std::uint64_t pid_ = 0;
  StringId name_{}, host_{};
  ProcessId process_{};
  std::unordered_map<std::uint64_t, DeviceId> agents_;  // none: a CPU
  std::unordered_map<std::uint64_t, StringId> counters_, markers_;
  std::unordered_map<std::uint64_t, Symbol> symbols_;
  std::vector<std::vector<StringId>> operations_;         // by kind
  std::unordered_set<std::uint64_t> counted_dispatches_;  // were in kCounters
  std::unordered_map<std::uint64_t, Allocation> live_;    // by address
  std::unordered_map<std::uint64_t, LaneId> threads_;
  RecordSpool waiting_;
};

}  // namespace pasta::adapters::rocprofv3_json
