// What the findings of one device are told from: its steady iterations, added up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "tools/common/iterations.h"
#include "tools/common/kernel_class.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/work_log.h"

namespace pasta::tools::diagnose {

// Where the time of an iteration goes; each moment has one part. In the order of precedence for
// what runs at once, and of tables.
enum class TimePart : std::uint8_t {
  kCompute,
  kCommunication,  // and no compute
  kCopy,           // and no kernel
  kLaunchBound,
  kSyncBound,
  kInputBound,
  kOther,
  kUnknown,
};
inline constexpr std::size_t kPartCount = 8;
inline constexpr std::array<std::string_view, kPartCount> kPartNames = {
    "compute",    "exposed_communication", "exposed_copy", "launch_bound",
    "sync_bound", "input_bound",           "other",        "unknown"};
using PartTimes = std::array<std::int64_t, kPartCount>;
inline std::int64_t& time_of(PartTimes& times, TimePart part) {
  return times[static_cast<std::size_t>(part)];
}
inline std::int64_t time_of(const PartTimes& times, TimePart part) {
  return times[static_cast<std::size_t>(part)];
}

// One stretch of time that is looked at: an iteration, or the whole trace.
struct Window {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  IterationPhase phase = IterationPhase::kSteady;
  std::int64_t number = -1;
  std::uint64_t edits = 0;
  PartTimes parts{};  // add up to its duration
  std::int64_t communication_ns = 0;
  std::int64_t busy_ns = 0;
  std::int64_t waited_ns = 0;    // idle because the host waited: see docs/diagnose.md
  std::int64_t prepared_ns = 0;  // idle while the host, it seems, prepared input

  [[nodiscard]] bool steady() const { return phase == IterationPhase::kSteady; }
  [[nodiscard]] std::int64_t duration_ns() const { return distance_saturated(start_ns, end_ns); }
};

// Work of one sort in the steady iterations.
struct WorkUse {
  WorkKey key;
  KernelClass type = KernelClass::kOther;  // of a kernel
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  std::uint64_t bytes = 0;
  bool bytes_known = true;
};

// Host calls of one name from one place, in the steady iterations.
struct CallUse {
  StringId name{};
  FrameId scope{};
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;
};

// Elementwise kernels that follow one another on a queue with grids of the same size.
struct Chains {
  std::int64_t chains = 0;
  std::int64_t kernels = 0;
  std::int64_t total_ns = 0;
  std::int64_t longest_ns = 0;  // sum of each chain's longest kernel: what is left when it is fused
  std::string longest;          // the names of the chain that costs most
};

// Compute of one queue in the steady iterations.
struct QueueUse {
  LaneId lane{};
  std::int64_t kernels = 0;
  std::int64_t busy_ns = 0;
};

struct View {
  const Dictionary* dictionary = nullptr;
  std::string device;  // label
  Device facts;
  // How the iterations were found; kNone: the one window is the device's span.
  IterationOrigin origin = IterationOrigin::kNone;
  std::vector<Window> windows;

  // Of the steady windows together.
  std::int64_t iterations = 0;
  std::int64_t total_ns = 0;
  PartTimes parts{};
  std::int64_t communication_ns = 0;
  std::int64_t communication_calls = 0;
  std::int64_t busy_ns = 0;
  std::int64_t waited_ns = 0;
  std::int64_t prepared_ns = 0;
  std::uint64_t edits = 0;
  std::int64_t kernels = 0;
  std::int64_t median_kernel_ns = 0;
  std::int64_t median_launch_ns =
      0;                           // of the process' calls that launch one piece of work; 0 = none
  std::int64_t graph_kernels = 0;  // launched by calls that launch many
  std::vector<WorkUse> work;
  std::vector<CallUse> waits;
  std::vector<CallUse> allocations;
  std::int64_t returns = 0;  // of the allocator's cache to the driver, by its own account
  std::int64_t returned_bytes = 0;
  std::int64_t returning_iterations = 0;  // in which that happened
  std::int64_t allocation_idle_ns = 0;    // idle time under calls that allocate or free
  Chains chains;
  std::vector<QueueUse> compute_queues;
  std::int64_t compute_overlap_ns = 0;  // time in which two of them or more ran
  // Recomputed forward work: see docs/diagnose.md.
  std::int64_t recomputed_ns = 0;
  std::int64_t recomputed_kernels = 0;
  std::int64_t recomputed_known_ns = 0;  // of kernels that the forward part runs, too
  std::vector<StringId> recomputed_operators;

  [[nodiscard]] std::string_view of() const {
    return origin == IterationOrigin::kNone ? "the device's span" : "the mean steady iteration";
  }
  // Of a sum over the steady iterations.
  [[nodiscard]] double share(std::int64_t ns) const {
    return total_ns > 0 ? static_cast<double>(ns) / static_cast<double>(total_ns) : 0;
  }
  [[nodiscard]] std::int64_t mean(std::int64_t sum) const {
    return iterations > 0 ? sum / iterations : 0;
  }
};

}  // namespace pasta::tools::diagnose
