// Working sets of kernels and iterations, and what is touched again.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kReuse;

}  // namespace pasta::tools
