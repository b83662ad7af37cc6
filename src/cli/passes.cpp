#include "cli/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace pasta::cli {
namespace {

using Names = std::vector<std::string>;

constexpr std::array<std::string_view, 3> kPassChoices = {"auto", "1", "2"};

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Adapters with patches that work here; else why none does.
Result<Names> patching_here() {
  Names names, reasons;
  for (const LiveAdapter& adapter : live_adapters()) {
    if (!adapter.patches) continue;
    const Found found = adapter.check();
    if (found.state != Found::State::kMissing) {
      names.emplace_back(adapter.name);
    } else {
      reasons.push_back(
          fmt::format("{} ({}): {}; {}", adapter.name, adapter.help, found.detail, found.remedy));
    }
  }
  if (!names.empty()) return names;
  return fail(ErrorCode::kUnsupported, fmt::format("{}", fmt::join(reasons, ". ")));
}

// What can be beside `patching` without times of devices or a second look at them.
Names with_what_marks(const Names& patching) {
  Names names = {"annotations", "nvtx", "torch"};
  names.insert(names.end(), patching.begin(), patching.end());
  return names;
}

// All that excludes none of `patching`.
Names all_beside(const Names& patching) {
  Names names = patching;
  for (const LiveAdapter& adapter : live_adapters()) {
    const bool excluded = adapter.name == "cupti" && has(patching, "sanitizer");
    if (!adapter.patches && !excluded) names.emplace_back(adapter.name);
  }
  return names;
}

Names parts_of(const std::string& list) {
  Names parts;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string note_of_input() {
  struct stat input {};
  if (fstat(STDIN_FILENO, &input) != 0) return {};
  if (isatty(STDIN_FILENO) == 1)
    return "the first run alone has the terminal for its input; others find none";
  if (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode)) {
    return "standard input is a pipe, which can be read only once: other runs find what the first "
           "has left; give a file if the program reads it";
  }
  return {};
}

}  // namespace

const OptionRow kPassesRow = {
    "--passes",
    "PASTA_PASSES",
    "N",
    "How often to run the program: again (2) for patches in kernels, which make them slower, after "
    "a run for times; once (1), without times of them; or what the tools need (auto)",
    &Settings::passes,
    kPassChoices};

Result<Passes> plan_passes(const Settings& settings, const std::string& patches,
                           const std::string& timed_tools, bool is_rank) {
  const Names& given = settings.adapters;
  const bool all = given.empty() || (given.size() == 1 && given[0] == "auto");
  Names patching, others;
  for (const std::string& name : given) {
    const auto known = std::ranges::find(live_adapters(), name, &LiveAdapter::name);
    const bool patcher = known != live_adapters().end() && known->patches;
    (patcher ? patching : others).push_back(name);
  }
  const bool excluded = has(others, "cupti") && has(patching, "sanitizer");
  const bool both =
      excluded || (!patches.empty() && !timed_tools.empty() && (all || !patching.empty()));
  const bool by_itself = settings.passes == "auto";
  bool again = settings.passes == "2" || (by_itself && both && !is_rank);
  const bool chosen_here = patching.empty() && (again || (all && !patches.empty()));
  if (chosen_here) {
    if (patches.empty()) {
      return fail(ErrorCode::kUsage,
                  "--passes 2: the second run is for tools that need patches in kernels, such as "
                  "access; name one by --tool");
    }
    auto here = patching_here();
    if (!here) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: nothing here tells what happens inside of kernels. {}", patches,
                              here.error().message));
    }
    patching = std::move(*here);
  }
  // On a GPU one patch runs at a time.
  const Names names = parts_of(patches);
  const bool each = names.size() > 1 && has(patching, "sanitizer");
  again = again || (by_itself && each && !is_rank);
  Passes plan;
  if (chosen_here || again) {
    plan.notes.push_back(
        fmt::format("what happens inside of kernels is told by {}: they are slower meanwhile{}",
                    fmt::join(patching, " and "),
                    has(patching, "oclgrind") ? ", and those of OpenCL run in a simulator" : ""));
  }
  if (again) {
    const AdapterNames timing = all || others.empty() ? AdapterNames{} : AdapterNames{others, true};
    plan.passes.push_back({timing, false, ""});
    for (const std::string& name : each ? names : Names{patches}) {
      plan.passes.push_back({{with_what_marks(patching), false}, true, name});
    }
    plan.notes.push_back(fmt::format(
        "the program runs {} times: for times, and again for the inside of kernels{}; what it "
        "writes and sends, it does as often, but its output and exit code are those of the first "
        "run (--passes 1: once)",
        plan.passes.size(), each ? fmt::format(", once for each of {}", patches) : ""));
    if (std::string note = note_of_input(); !note.empty()) plan.notes.push_back(std::move(note));
    return plan;
  }
  const AdapterNames once =
      chosen_here ? AdapterNames{all_beside(patching), false} : AdapterNames{given, true};
  plan.passes.push_back({once, !patching.empty(), patches});
  if (!both) return plan;
  plan.notes.push_back(fmt::format(
      "{}the program runs once, with patches in its kernels: {} will find no kernels of CUDA, and "
      "times of a simulator of those of OpenCL",
      by_itself ? "this is one process of a job, which may not be able to start again: run the job "
                  "again with and without --tool for patches, and put both together by pastaprof "
                  "merge --patched; "
                : "",
      timed_tools.empty() ? "tools" : timed_tools));
  return plan;
}

}  // namespace pasta::cli
