// pastaprof merge: the traces of a job's ranks as one .pasta file, which tells them apart.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "cli/reading.h"
#include "pasta/adapter.h"
#include "session/passes.h"
#include "trace/pasta_writer.h"

namespace pasta::cli {
namespace {

const OptionRow kPatchedRow = {
    "--patched",
    "PASTA_PATCHED",
    "FILE",
    "A trace of the same program with patches in its kernels: what they found goes to the launches "
    "that it belongs to",
    &Settings::patched,
    {},
    false,
    true};

Result<Reading> open_passes(const Settings& settings) {
  auto plan = plan_of(settings);
  if (!plan) return tl::unexpected(std::move(plan).error());
  const std::string& timed = settings.operands[0];
  const auto& patched = settings.patched;
  if (settings.operands.size() > 1 || timed == "-" ||
      std::ranges::find(patched, "-") != patched.end()) {
    return fail(ErrorCode::kUsage,
                "--patched: give one trace besides, and all as files, which are read twice");
  }
  Reading reading{std::make_unique<ReadProgress>(), Session(std::move(*plan)), {}};
  std::vector<session::OpenTrace> open_patched;
  for (const std::string& path : patched) {
    open_patched.emplace_back([path] { return open_source(path); });
  }
  auto adapter = session::join_passes(
      [timed, progress = reading.progress.get()] { return open_source(timed, progress); },
      std::move(open_patched), "");
  if (!adapter) return tl::unexpected(std::move(adapter).error());
  reading.session.add(std::move(*adapter));
  return reading;
}

Result<int> run(const Settings& settings) {
  if (settings.output == "-" && isatty(STDOUT_FILENO) == 1) {
    return fail(ErrorCode::kUsage,
                "a .pasta file is no text for a terminal; give -o FILE, such as -o job.pasta");
  }
  auto reading = settings.patched.empty() ? open_traces(settings) : open_passes(settings);
  return record_all(std::move(reading), settings, [&] {
    return trace::make_pasta_writer(settings.output,
                                    {.overwrite = settings.force, .compress = true});
  });
}

}  // namespace

const Verb kMerge = {
    "merge",
    "Write the traces of a job's ranks as one .pasta file, which tells them apart",
    "TRACE",
    kTraceHelp,
    false,
    true,
    {&kOutputRow, &kForceRow, &kPatchedRow, &kLabelRow, &kStrictRow, &kMemoryRow, &kQuietRow},
    run};

}  // namespace pasta::cli
