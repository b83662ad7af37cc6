// What launching cost, and how long launched work waited.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kLaunches;

}  // namespace pasta::tools
