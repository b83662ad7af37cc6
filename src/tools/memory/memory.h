// How much memory was in use, when it was most, and what it was then in use for.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kMemory;

}  // namespace pasta::tools
