#include "cli/tool_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/console.h"

namespace pasta::cli {

Result<const ToolEntry*> find_tool(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ToolEntry& entry : builtin_tools()) {
    if (entry.name == name) return &entry;
    names.push_back(entry.name);
  }
  const std::string_view slip = nearest(name, names);
  return fail(ErrorCode::kUsage,
              slip.empty() ? fmt::format("there is no tool \"{}\"; the tools are {}", name,
                                         fmt::join(names, ", "))
                           : fmt::format("there is no tool \"{}\"; did you mean {}?", name, slip));
}

}  // namespace pasta::cli
