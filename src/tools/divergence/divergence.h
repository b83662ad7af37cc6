// How many lanes take part at each place, and how evenly groups are loaded.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kDivergence;

}  // namespace pasta::tools
