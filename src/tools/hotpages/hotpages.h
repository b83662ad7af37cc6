// Which pieces of memory kernels access, over launches.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kHotpages;

}  // namespace pasta::tools
