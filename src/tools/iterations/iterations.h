// The tool `iterations`: what repeats, when, and how evenly.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kIterations;

}  // namespace pasta::tools
