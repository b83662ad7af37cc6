// Runs the program that is watched: once, or several times for one trace.
#pragma once

#include <string>
#include <vector>

#include "cli/analysis.h"
#include "cli/console.h"
#include "cli/watch.h"
#include "pasta/result.h"

namespace pasta::cli {

// The exit code of `run`. Errors are of usage: then no program has run.
Result<int> run_once(const std::vector<std::string>& words, WatchPlan plan, Analysis& analysis,
                     Destination& destination);
// First as `timed` says, then as each of `patched`, and then the program's output goes nowhere, and
// what it reads is what it read before, where that is a file; it does not come to that when a run
// was interrupted. The trace is that of the first with what the others tell of its launches.
Result<int> run_again(const std::vector<std::string>& words, WatchPlan timed,
                      std::vector<WatchPlan> patched, Analysis& analysis, Destination& destination);

}  // namespace pasta::cli
