// How a library that lives in the watched process beside the collector, and is found by another
// runtime, hands over what a patch computed during one launch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pasta::trace {

// Only grows; `size` says how much of it there is.
struct DeviceResult {
  std::size_t size;
  const char* kernel;
  std::size_t kernel_bytes;
  const char* format;  // of the blob
  std::size_t format_bytes;
  const void* blob;
  std::size_t blob_bytes;  // at most spool::kMaxTextBytes
  std::uint64_t launch;    // the n-th of its process
  std::int64_t start_ns;   // of CLOCK_MONOTONIC
  bool even_stopped;       // whoever hands it over has asked is_collecting() when it began
};

// Memory that has become usable just now, or has ceased to be. Only grows.
struct DeviceMemory {
  std::size_t size;
  std::uint64_t address;
  std::uint64_t bytes;
  std::int32_t device;  // its ordinal; below 0: of the host
  bool freed;
};

// The collector's function of this name; what it is given is copied. It ends now, on this thread.
inline constexpr const char* kPushDeviceResult = "pasta_push_device_result_v1";
using PushDeviceResult = void (*)(const DeviceResult*);

// What such a library may ask the collector besides; only grows.
struct DeviceCollector {
  std::size_t size;
  PushDeviceResult push;
  // What readers of the trace are told besides its events; `reason` is a Reason.
  void (*note)(std::uint32_t reason, std::uint64_t count, const char* text);
  // Whether launches that begin now belong into the trace.
  bool (*is_collecting)();
  // How many iterations of the program have ended, as base::IterationCounter counts them.
  std::uint64_t (*iterations)();
  // `function` is called before the process ends without running its handlers.
  void (*before_end)(void (*function)());
  // `function` is called by the thread that ends an iteration, with how many have ended.
  void (*on_iteration)(void (*function)(std::uint64_t ended));
  // As trace::switch_capture().
  void (*switch_capture)(bool on);
  // As is_collecting(), but for pauses of the whole run, of which nobody is told.
  bool (*is_wanted)();
  // `function` is called when that may have changed.
  void (*on_change)(void (*function)() noexcept);
  // An event of this thread, in the ranges that are open on it; none while it does not collect.
  void (*memory)(const DeviceMemory*);
  // `function` is called by the thread that has given a piece of memory a name (pasta_tag), which
  // the trace has.
  void (*on_tag)(void (*function)(std::uint64_t address, std::uint64_t bytes));
};

// The collector's function of this name.
inline constexpr const char* kDeviceCollector = "pasta_device_collector_v1";
using GetDeviceCollector = const DeviceCollector* (*)();

}  // namespace pasta::trace
