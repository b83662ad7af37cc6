#pragma once

#include "cli/check.h"

namespace pasta::cli {

// What of ROCm can be watched on this machine.
Found check_rocm();
// Whether there is a rocprofiler-sdk that counts by dispatch.
bool can_count_on_rocm();
// --pc-sampling, if a GPU offers it.
bool can_sample_on_rocm();

}  // namespace pasta::cli
