// What the modules of a model cost: their tree, with device time, kernels and where their code is.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kLayers;

}  // namespace pasta::tools
