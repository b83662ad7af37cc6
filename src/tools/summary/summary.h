// What the devices did with their time.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kSummary;

}  // namespace pasta::tools
