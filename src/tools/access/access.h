// What kernels ask of each memory object, and what memory moves for it.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kAccess;

}  // namespace pasta::tools
