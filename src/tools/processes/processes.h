// Which processes ran, who started whom, how each ended, and which of them used a device.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kProcesses;

}  // namespace pasta::tools
