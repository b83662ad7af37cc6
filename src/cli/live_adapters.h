// The adapters that `run` can put into a program. All live in the collector, one library with an
// entry point for each vendor's runtime; a variable of the environment makes that runtime load it.
// But for those that put patches into kernels, which need the C++ runtime, and so are libraries of
// their own, and make kernels slower, so that they are there only for who asks for what they tell:
// Oclgrind's, which is a simulator, and Compute Sanitizer's, which takes the place of CUPTI's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/check.h"
#include "pasta/event.h"
#include "pasta/result.h"

namespace pasta::cli {

struct LiveAdapter {
  std::string_view name;
  std::string_view help;
  // What makes the vendor's runtime load the collector. None: LD_PRELOAD is enough.
  const char* variable;
  // Whether the variable holds several libraries, separated by ':'. One that does not, and is set
  // already, is the user's: the adapter stays out, and that is said.
  bool list;
  // What it can do on this machine, for `doctor`.
  Found (*check)();
  // It tells what happens inside of kernels, and changes how long they take.
  bool patches = false;
};

std::span<const LiveAdapter> live_adapters();
// For the completion of shells.
std::vector<std::string_view> live_adapter_names();

// The library that goes into programs: beside this program where it is installed, and where it is
// built.
std::optional<std::string> find_collector();

// Variables for the environment of a program that is to be watched.
struct WatchEnvironment {
  std::vector<std::pair<std::string, std::string>> variables;
  bool torch = false;                                          // PyTorch is to be watched
  bool call_places = false;                                    // and where Python calls runtimes
  std::vector<std::string> warnings;                           // adapters that stay out, and why
  KindSet provides = KindSet::all() - KindSet(Kind::kDevice);  // the most that can be seen
};
// kUsage for an adapter that there is not, or what `of_rocm` says wrongly; kUnsupported for one
// that was not built, if it was `asked` for by name, for a simulator that is not here, or for what
// is asked of AMD GPUs where no SDK does it.
struct AdapterNames {
  std::vector<std::string> names;  // or none, or only "auto": all but those with patches
  bool asked = true;
};
// What is asked of AMD GPUs besides, as the user gave it.
struct OfRocm {
  std::string counters;     // separated by commas
  std::string pc_sampling;  // "auto", "host-trap", "stochastic"; and an interval after a colon
};
Result<WatchEnvironment> watch_environment(const AdapterNames& adapters, const OfRocm& of_rocm,
                                           const std::string& collector);

}  // namespace pasta::cli
