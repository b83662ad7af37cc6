#include "adapters/rocprofv3_csv/tables.h"

#include <algorithm>
#include <initializer_list>

#include "adapters/common/csv_adapter.h"

namespace pasta::adapters::rocprofv3_csv {

Table table_of(std::span<const std::string> header) {
  const auto has = [&](std::initializer_list<Column> columns) {
    return std::all_of(columns.begin(), columns.end(), [&](Column column) {
      return std::any_of(header.begin(), header.end(), [&](std::string_view name) {
        return common::same_letters(name, kColumnNames[column]);
      });
    });
  };
  if (has({kCounterName, kCounterValue, kKernelName})) return Table::kCounters;
  if (has({kKernelName, kStart, kEnd, kAgent})) return Table::kKernels;
  if (has({kDomain, kFunction, kStart, kEnd})) return Table::kCalls;
  if (has({kDirection, kSourceAgent, kDestinationAgent, kStart})) return Table::kCopies;
  if (has({kOperation, kAllocationSize, kStart})) return Table::kAllocations;
  if (has({kOperation, kAgent, kThread, kStart})) return Table::kScratch;
  if (has({kSampleTime, kInstruction})) return Table::kSamples;
  if (has({kNode, kAgentType})) return Table::kAgents;
  if (has({kCalls, kTotalDuration})) return Table::kTotals;
  return Table::kNone;
}

std::string_view run_name(std::string_view path) {
  // Of two that fit the longer stands first.
  constexpr std::string_view kTables[] = {"_memory_allocation_trace",
                                          "_pc_sampling_host_trap",
                                          "_pc_sampling_stochastic",
                                          "_scratch_memory_trace",
                                          "_counter_collection",
                                          "_memory_copy_trace",
                                          "_memory_allocation_stats",
                                          "_memory_copy_stats",
                                          "_scratch_memory_stats",
                                          "_kernel_trace",
                                          "_kernel_stats",
                                          "_domain_stats",
                                          "_agent_info"};
  constexpr std::string_view kInterfaces[] = {
      "_hip_runtime", "_hip_compiler",  "_hip",          "_hsa_core",
      "_hsa_amd_ext", "_hsa_image_ext", "_hsa_finalize", "_hsa_finalizer_ext",
      "_hsa",         "_marker",        "_rccl",         "_rocdecode",
      "_rocjpeg",     "_ompt",          "_kokkos",       "_regions"};
  constexpr std::string_view kEndings[] = {"_api_trace", "_api_stats", "_trace", "_stats"};

  std::string_view name = path.substr(path.rfind('/') + 1);
  const auto take = [&](std::string_view ending) {
    if (!name.ends_with(ending)) return false;
    name.remove_suffix(ending.size());
    return true;
  };
  take(".gz");
  if (!take(".csv")) return {};
  if (std::any_of(std::begin(kTables), std::end(kTables), take)) return name;
  if (std::any_of(std::begin(kEndings), std::end(kEndings), take) &&
      std::any_of(std::begin(kInterfaces), std::end(kInterfaces), take)) {
    return name;
  }
  return {};
}

}  // namespace pasta::adapters::rocprofv3_csv
