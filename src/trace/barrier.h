// A barrier that one process has all threads of others pass, so that these need none of their own:
// who takes a time and then looks whether somebody may be about to tell of an earlier one sees that
// he is.
//
// Needs no libstdc++: it is loaded into programs that do not have it.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pasta::trace {

// Of this process, by barriers of others. Lasts until it executes another program.
inline bool register_for_barriers() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// All threads of processes that have registered pass one now; false when the system has none.
inline bool make_all_pass_a_barrier() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

}  // namespace pasta::trace
