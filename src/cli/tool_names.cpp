#include "cli/tool_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/console.h"

namespace pasta::cli {

const OptionRow kPluginRow = {"--plugin",
                              "PASTA_PLUGIN",
                              "FILE",
                              "Take the tools of this shared library as well",
                              &Settings::plugins,
                              {},
                              false,
                              true};

std::vector<std::string_view> tool_names() {
  std::vector<std::string_view> names;
  for (const ToolEntry& entry : builtin_tools()) names.push_back(entry.name);
  return names;
}

Result<plugins::ToolList> tools_of(const Settings& settings) {
  plugins::ToolList tools;
  for (const std::string& path : settings.plugins) PASTA_TRY(tools.load(path));
  return tools;
}

Result<const ToolEntry*> find_tool(const plugins::ToolList& tools, std::string_view name) {
  std::vector<std::string_view> names;
  for (const ToolEntry* entry : tools.entries()) {
    if (entry->name == name) return entry;
    names.push_back(entry->name);
  }
  const std::string_view slip = nearest(name, names);
  return fail(ErrorCode::kUsage,
              slip.empty() ? fmt::format("there is no tool \"{}\"; the tools are {}", name,
                                         fmt::join(names, ", "))
                           : fmt::format("there is no tool \"{}\"; did you mean {}?", name, slip));
}

}  // namespace pasta::cli
