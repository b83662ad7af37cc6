// The words of PyTorch/Kineto and Chrome traces, and what they mean here.
#pragma once

#include <cstdint>
#include <string_view>

#include "pasta/event.h"

namespace pasta::adapters::kineto_json {

// What a record's category says it is. The ages of Kineto differ in spelling only: "Kernel",
// "kernel"; "Memcpy", "gpu_memcpy"; "Operator", "cpu_op".
struct Category {
  std::string_view name;  // lower case
  Kind kind;
  std::uint16_t detail;  // ApiDomain or ScopeDomain
  bool on_device;        // its lane is a device queue
};
// Null for a category that is in no row.
const Category* find_category(std::string_view name);

// The members of a record and of its "args" that are read. Everything else is passed over.
enum class Field : std::uint8_t {
  kOther,
  // Of the record.
  kPhase,
  kCategory,
  kName,
  kPid,
  kTid,
  kTime,
  kDuration,
  kId,
  kScope,
  kArgs,
};
Field find_field(std::string_view key);

enum class Arg : std::uint8_t {
  kOther,
  kCorrelation,
  kDevice,
  kStream,
  kContext,
  kBytes,
  kGrid,
  kBlock,
  kRegisters,
  kSharedMemory,
  kGraphNode,
  kPriority,
  kDeviceType,
  kDeviceId,
  kAddress,
  kMemoryBytes,
  kTotalAllocated,
  kTotalReserved,
  kSequence,
  kForwardThread,
  kCollective,
  kInElements,
  kOutElements,
  kElementType,
  kGroupSize,
  kGroupName,
  kGroupRanks,
  kInputDims,
  kInputTypes,
  kSource,
  kDestination,
  kSyncKind,
  kWaitOnStream,
  kWaitOnEvent,
  kCopyKind,
  kMetadataName,
  // Of other exporters, see dialect.h.
  kBeginNs,
  kEndNs,
  kNativePid,
  kNativeTid,
  kWorkItems,
  kWorkGroup,
  kKernelName,
  kCopyDetails,
  kHloModule,
  kHloOperation,
  kFrameworkOperation,
};
inline constexpr std::size_t kArgCount = static_cast<std::size_t>(Arg::kFrameworkOperation) + 1;
Arg find_arg(std::string_view key);

// From "Memcpy HtoD (Pinned -> Device)" or from the value of "kind" ("HtoD").
CopyDirection copy_direction(std::string_view text);
SyncTarget sync_target(std::string_view text);

// "ProfilerStep#17", "Iteration 17": a mark of an iteration.
bool is_iteration_mark(std::string_view name);

// Arrows by category: from a launch to its work, or from a forward to its backward operator.
enum class FlowKind : std::uint8_t { kNone, kLaunch, kForwardBackward };
FlowKind flow_kind(std::string_view category);

}  // namespace pasta::adapters::kineto_json
