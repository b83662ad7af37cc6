// Where kernels spend their time: samples of program counters.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kSamples;

}  // namespace pasta::tools
