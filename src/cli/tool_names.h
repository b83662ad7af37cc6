// Tools by name.
#pragma once

#include <string_view>

#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::cli {

// kUsage, with the name that was probably meant, when there is no such tool.
Result<const ToolEntry*> find_tool(std::string_view name);

}  // namespace pasta::cli
