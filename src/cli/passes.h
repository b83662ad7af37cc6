// How often `run` runs the program, and what watches it each time.
#pragma once

#include <string>
#include <vector>

#include "cli/live_adapters.h"
#include "cli/verb.h"
#include "pasta/result.h"

namespace pasta::cli {

struct Pass {
  AdapterNames adapters;
  bool patches = false;
  std::string names;  // of the patches: "access,reuse"; none: what adapters do by themselves
};
struct Passes {
  std::vector<Pass> passes;        // one; or several, of which all but the first have patches
  std::vector<std::string> notes;  // what the user has to know before
};

// `patches`: which the tools need, "access,reuse", or none. `timed_tools`: those that need what no
// patch tells. `is_rank`: this program is one process of a job.
// kUsage and kUnsupported, saying why what was asked for cannot be.
Result<Passes> plan_passes(const Settings& settings, const std::string& patches,
                           const std::string& timed_tools, bool is_rank);

extern const OptionRow kPassesRow;

}  // namespace pasta::cli
