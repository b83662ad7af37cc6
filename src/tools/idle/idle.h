// Why the devices stood still.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kIdle;

}  // namespace pasta::tools
