// The tool `patterns`: which sequences of launches repeat, from whole iterations down to layers.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kPatterns;

}  // namespace pasta::tools
