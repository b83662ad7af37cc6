// Watches CUDA in this process through CUPTI's activity records: kernels, copies, fills, waits,
// memory, and the calls that caused them.
//
// CUPTI fills buffers that lie in files of the run's folder, and hands them back full or when it is
// asked to, every kFlushNs; one thread of ours turns what is in them into events of the spool. So a
// thread of the program does per record what CUPTI does, and nothing for PASTA; a buffer is used
// again and again, its pages always there and zeroed by us, so that CUPTI need not do it while the
// program waits.
#pragma once

#include <cstdint>

namespace pasta::adapters::cupti {

// Between two times that CUPTI is asked for what is complete.
inline constexpr std::int64_t kFlushNs = 100'000'000;

// Once in a process that has joined a run, when its CUDA driver begins. What cannot be had is noted
// in the trace.
void start() noexcept;
// What has been recorded up to now goes into the spool; waits for that, but not for ever.
void flush() noexcept;
// Another profiler of this process has CUPTI write records for it: who begins later leaves it
// alone.
void begins_other() noexcept;
// Another profiler of this process wants CUPTI: everything up to now goes into the spool, and from
// now on CUPTI is its alone.
void hand_over() noexcept;
// A function of the CUPTI that was taken in this process, also after it was handed over; none: none
// was, or it has no such function.
void* used_function(const char* name) noexcept;
// In the child after fork(), where CUPTI is not.
void after_fork() noexcept;

}  // namespace pasta::adapters::cupti
