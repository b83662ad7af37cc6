// Which kernels the time went to.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kKernels;

}  // namespace pasta::tools
