// The tools that a user chose, for verbs that run them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/tool_names.h"
#include "cli/verb.h"
#include "pasta/result.h"
#include "pasta/session.h"
#include "pasta/tool.h"

namespace pasta::cli {

extern const OptionRow kToolRow, kOptRow;

// A tool that runs when the user names none.
struct UsualTool;

class Analysis {
 public:
  // The tools that the settings name, or the usual ones and those of plug-ins, with their options.
  // kUsage, saying what would be right.
  static Result<Analysis> make(const Settings& settings);
  // Once. Of the usual ones, those that no source can serve are left out, and it is said. This must
  // outlive the session.
  void add_to(Session& session, KindSet provided);
  // What runs beside kernels for the tools that were asked for: "access,reuse".
  [[nodiscard]] std::string patches() const;
  // Of the tools that were asked for, those that need what no patch tells: "kernels and idle".
  [[nodiscard]] std::string without_patches() const;
  // Whether one of them reads samples of program counters.
  [[nodiscard]] bool wants_samples() const;
  // Takes the reports of usual tools away that have nothing to say of this trace.
  void keep_telling(Document& document) const;

 private:
  struct Chosen {
    const ToolEntry* entry;
    const UsualTool* usual;  // none: it was asked for
    std::unique_ptr<Tool> tool;
  };
  explicit Analysis(plugins::ToolList known) : known_(std::move(known)) {}
  plugins::ToolList known_;
  std::vector<Chosen> tools_;
};

}  // namespace pasta::cli
