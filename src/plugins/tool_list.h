// The tools that there are: the program's own and those of plug-ins.
#pragma once

#include <string>
#include <vector>

#include "pasta/result.h"
#include "pasta/tool.h"
#include "plugins/plugin.h"

namespace pasta::plugins {

// Outlives its entries, and every tool made by them.
class ToolList {
 public:
  // Adds the tools of the plug-in at `path`. kUsage when one of them has a name that is taken.
  Status load(const std::string& path);
  // Of plug-ins last, in the order of loading.
  [[nodiscard]] std::vector<const ToolEntry*> entries() const;

 private:
  std::vector<Plugin> plugins_;
};

}  // namespace pasta::plugins
