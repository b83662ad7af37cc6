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
};

// The collector's function of this name; what it is given is copied. It ends now, on this thread.
inline constexpr const char* kPushDeviceResult = "pasta_push_device_result_v1";
using PushDeviceResult = void (*)(const DeviceResult*);

}  // namespace pasta::trace
