// What the tables of rocprofv3 are called and which columns they have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pasta::adapters::rocprofv3_csv {

// In the order in which the tables of a run are read: what others refer to comes first.
enum class Table : std::uint8_t {
  kAgents,
  kCalls,  // of HIP, HSA, RCCL, ..., and markers
  kKernels,
  kCopies,
  kAllocations,
  kScratch,
  kCounters,
  kSamples,
  kTotals,  // sums by name: no timeline
  kNone,
};

enum Column : std::uint8_t {
  kGuid,
  kAgent,
  kQueue,
  kStream,
  kProcess,
  kThread,
  kDispatch,
  kKernelName,
  kCorrelation,
  kStart,
  kEnd,
  kLds,
  kGroupSegment,
  kScratchSize,
  kPrivateSegment,
  kVgprs,
  kAccumVgprs,
  kGroupX,
  kGroupY,
  kGroupZ,
  kGroup,
  kGridX,
  kGridY,
  kGridZ,
  kGrid,
  kCounterName,
  kCounterValue,
  kDomain,
  kFunction,
  kOperation,
  kDirection,
  kSourceAgent,
  kDestinationAgent,
  kAllocationSize,
  kAddress,
  kSampleTime,
  kInstruction,
  kNode,
  kLogicalNode,
  kAgentType,
  kWaveSize,
  kComputeUnits,
  kMaxWaves,
  kAgentName,
  kProductName,
  kCalls,
  kTotalDuration,
  kColumnCount,
};
inline constexpr std::array<std::string_view, kColumnCount> kColumnNames = {
    "Guid",
    "Agent_Id",
    "Queue_Id",
    "Stream_Id",
    "Process_Id",
    "Thread_Id",
    "Dispatch_Id",
    "Kernel_Name",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "LDS_Block_Size",
    "Group_Segment_Size",
    "Scratch_Size",
    "Private_Segment_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Workgroup_Size",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
    "Grid_Size",
    "Counter_Name",
    "Counter_Value",
    "Domain",
    "Function",
    "Operation",
    "Direction",
    "Source_Agent_Id",
    "Destination_Agent_Id",
    "Allocation_Size",
    "Address",
    "Sample_Timestamp",
    "Instruction",
    "Node_Id",
    "Logical_Node_Id",
    "Agent_Type",
    "Wave_Front_Size",
    "Cu_Count",
    "Max_Waves_Per_Cu",
    "Name",
    "Product_Name",
    "Calls",
    "TotalDurationNs",
};

// kNone when no table of rocprofv3 has these columns.
Table table_of(std::span<const std::string> header);
// "123" of ".../123_kernel_trace.csv", also with ".gz" behind; "" when nothing stands before the
// name of the table, or when that is not known.
std::string_view run_name(std::string_view path);

}  // namespace pasta::adapters::rocprofv3_csv
