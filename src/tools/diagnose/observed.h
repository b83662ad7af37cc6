// What is remembered of a trace until its iterations are known.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "stats/interval_set.h"
#include "stats/quantiles.h"
#include "tools/common/host_activity.h"
#include "tools/common/idle_time.h"
#include "tools/common/kernel_class.h"
#include "tools/common/memo.h"
#include "tools/diagnose/recomputed.h"
#include "tools/diagnose/work_log.h"

namespace pasta::tools::diagnose {

// Work of one device for one process.
struct DeviceWork {
  ProcessId process{};
  DeviceId device{};
  std::vector<LaneId> queues;
  std::vector<ProcessId> owners;  // of the queues
  stats::IntervalSet compute, communication, copies;
  WaitingWork waiting;
  WorkLog log;
  std::int64_t untimed = 0;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  std::uint64_t last_correlation = 0;  // of a kernel
};

// A host call that waits, or that gets or returns device memory.
struct HostCall {
  std::int64_t start_ns, end_ns;
  StringId name;
  FrameId scope;
  ProcessId process;
  bool waits;  // else it allocates or frees
};

// The caching allocator gave memory back to the driver.
struct Return {
  std::int64_t at_ns;
  DeviceId device;
  std::int64_t bytes;
};

class Observed {
 public:
  void add(const Event& event, const Dictionary& dictionary);

  [[nodiscard]] std::span<const std::unique_ptr<DeviceWork>> devices() const { return devices_; }
  [[nodiscard]] const HostActivity& host() const { return host_; }
  [[nodiscard]] std::span<const HostCall> calls() const { return calls_; }
  [[nodiscard]] std::span<const Return> returns() const { return returns_; }
  [[nodiscard]] const Recomputed& recomputed() const { return recomputed_; }
  [[nodiscard]] KernelClass type_of(StringId kernel, const Dictionary& dictionary) const {
    return types_.get(kernel, [&] { return classify_kernel(dictionary.text(kernel)); });
  }
  // Median duration of the calls that launch one piece of work each, of the host process that makes
  // most of them for a queue; 0 = none.
  [[nodiscard]] std::int64_t median_launch_ns(ProcessId queue_owner, const Dictionary& dictionary);

 private:
  struct Role {
    ApiRole role;
    bool allocates = false;
  };
  void add_work(const Event& event, const Dictionary& dictionary);
  void add_call(const Event& event, const Dictionary& dictionary);
  void add_reserved(const Event& event, const Dictionary& dictionary);

  Memo<LaneId, DeviceWork*> device_of_;
  std::vector<std::unique_ptr<DeviceWork>> devices_;
  mutable Memo<StringId, KernelClass> types_;
  Memo<StringId, Role> roles_;
  Memo<LaneId, Lane> lanes_;
  PendingLaunches launches_;
  HostActivity host_;
  std::vector<HostCall> calls_;
  Memo<StringId, bool> tells_reserved_;
  std::map<DeviceId, double> reserved_;  // now
  std::vector<Return> returns_;
  Recomputed recomputed_;
  std::map<ProcessId, stats::Quantiles> launch_ns_;
};

}  // namespace pasta::tools::diagnose
