// Where the time of an iteration goes, and what costs most of it.
#pragma once

#include "pasta/tool.h"

namespace pasta::tools {

extern const ToolEntry kDiagnose;

}  // namespace pasta::tools
