// Tools from outside: shared libraries that speak include/pasta/c.h.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "pasta/c.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::plugins {

// One loaded plug-in. It outlives the entries, and every tool made by them.
class Plugin {
 public:
  // kNotFound and kUnsupported name the file and what is wrong with it: no library, none of
  // PASTA's, of another version, or a tool that lacks what every tool has.
  static Result<Plugin> load(const std::string& path);
  // The same for a table at hand; `name` stands for the file in messages.
  static Result<Plugin> adopt(const std::string& name, const pasta_plugin* table);
  ~Plugin();
  Plugin(Plugin&&) noexcept;
  Plugin& operator=(Plugin&&) noexcept;

  [[nodiscard]] std::span<const ToolEntry> entries() const;

 private:
  struct Impl;
  explicit Plugin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta::plugins
