#pragma once

#include "cli/check.h"

namespace pasta::cli {

// What of CUDA can be watched on this machine.
Found check_cuda();

}  // namespace pasta::cli
