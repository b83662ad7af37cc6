// How much of the communication is hidden under compute.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kOverlap;

}  // namespace pasta::tools
