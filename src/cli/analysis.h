// The tools that a user chose, for verbs that run them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/tool_names.h"
#include "cli/verb.h"
#include "pasta/result.h"
#include "pasta/session.h"
#include "pasta/tool.h"

namespace pasta::cli {

extern const OptionRow kToolRow, kOptRow;

class Analysis {
 public:
  // The tools that the settings name, or `defaults` and those of plug-ins, with their options.
  // kUsage, saying what would be right.
  static Result<Analysis> make(const Settings& settings,
                               std::span<const std::string_view> defaults);
  // Once. Of the defaults, those that no source can serve are left out, and it is said. This must
  // outlive the session.
  void add_to(Session& session, KindSet provided);

 private:
  Analysis(plugins::ToolList known, bool by_name) : known_(std::move(known)), by_name_(by_name) {}
  plugins::ToolList known_;
  bool by_name_;
  std::vector<std::pair<const ToolEntry*, std::unique_ptr<Tool>>> tools_;
};

}  // namespace pasta::cli
