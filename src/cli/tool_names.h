// Tools by name.
#pragma once

#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "pasta/result.h"
#include "pasta/tool.h"
#include "plugins/tool_list.h"

namespace pasta::cli {

extern const OptionRow kPluginRow;

// Of the built-in tools.
std::vector<std::string_view> tool_names();

// The program's tools and those of the plug-ins that `settings` name.
Result<plugins::ToolList> tools_of(const Settings& settings);

// kUsage, with the name that was probably meant, when there is no such tool.
Result<const ToolEntry*> find_tool(const plugins::ToolList& tools, std::string_view name);

}  // namespace pasta::cli
