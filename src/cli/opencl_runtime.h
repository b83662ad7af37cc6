// What of OpenCL is on this machine, for `doctor`: a loader that knows layers, and platforms.
#pragma once

#include "cli/check.h"

namespace pasta::cli {

Found opencl_runtime();

}  // namespace pasta::cli
