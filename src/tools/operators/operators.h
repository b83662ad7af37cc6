// Which host operators ran, and what device time they caused.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kOperators;

}  // namespace pasta::tools
