#include "plugins/tool_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pasta::plugins {

Status ToolList::load(const std::string& path) {
  auto plugin = Plugin::load(path);
  if (!plugin) return tl::unexpected<Error>(std::move(plugin).error());
  const auto known = entries();
  for (const ToolEntry& entry : plugin->entries()) {
    if (std::ranges::find(known, entry.name, &ToolEntry::name) != known.end()) {
      return fail(
          ErrorCode::kUsage,
          fmt::format("plug-in {} has a tool {}, but there is one already", path, entry.name));
    }
  }
  plugins_.push_back(std::move(*plugin));
  return {};
}

std::vector<const ToolEntry*> ToolList::entries() const {
  std::vector<const ToolEntry*> all;
  for (const ToolEntry& entry : builtin_tools()) all.push_back(&entry);
  for (const Plugin& plugin : plugins_) {
    for (const ToolEntry& entry : plugin.entries()) all.push_back(&entry);
  }
  return all;
}

}  // namespace pasta::plugins
