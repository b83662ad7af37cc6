// Watches ROCm in this process through rocprofiler-sdk: kernels, copies, memory, calls of HIP and
// RCCL, ROCTx, and counters when they are asked for.
//
// The SDK keeps records in a buffer of its own and hands them out when it is full or when it is
// asked to, every kFlushNs; what is in them becomes events in the SDK's thread that brings them.
// ROCTx and the names of kernels come by callbacks of the thread that is concerned.
#pragma once

#include <cstdint>

namespace pasta::adapters::rocprofiler {

struct ConfigureResult;

// Between two times that the SDK is asked for what is complete.
inline constexpr std::int64_t kFlushNs = 100'000'000;

// What rocprofiler_configure() is told and answers: none when this process is not to be watched.
// `client` is ClientId05 or ClientId1.
ConfigureResult* configure(std::uint32_t version, const char* version_text, void* client) noexcept;
// What rocprofiler-register calls with the functions of each library of ROCm that is loaded, before
// it loads rocprofiler-sdk: passes it on to the SDK, if there is one and anybody wants it.
int set_api_table(const char* name, std::uint64_t version, std::uint64_t instance, void** tables,
                  std::uint64_t count, const void* caller) noexcept;
// What has been recorded up to now goes into the spool; waits for that, but not for ever.
void flush() noexcept;
// In the child after fork(), where the SDK's threads are not.
void after_fork() noexcept;

}  // namespace pasta::adapters::rocprofiler
