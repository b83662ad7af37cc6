// pastaprof export: a trace in another format.
#include <array>

#include "cli/options.h"
#include "cli/reading.h"
#include "trace/chrome_writer.h"
#include "trace/pasta_writer.h"

namespace pasta::cli {
namespace {

constexpr std::array<std::string_view, 2> kTargets = {"pasta", "chrome"};
const OptionRow kTargetRow = {"--to",
                              "PASTA_EXPORT_TO",
                              "FORMAT",
                              "pasta, or chrome for JSON that Perfetto and PyTorch's tools read",
                              &Settings::target,
                              kTargets};

Result<std::unique_ptr<Recorder>> make_writer(const Settings& settings) {
  if (settings.target == "chrome") {
    return trace::make_chrome_writer(settings.output, {.overwrite = settings.force});
  }
  return trace::make_pasta_writer(settings.output, {.overwrite = settings.force});
}

Result<int> run(const Settings& settings) {
  return record_all(open_traces(settings), settings, [&] { return make_writer(settings); });
}

}  // namespace

const Verb kExport = {"export",
                      "Write traces as one file of another format",
                      "TRACE",
                      kTraceHelp,
                      false,
                      true,
                      {&kTargetRow, &kOutputRow, &kForceRow, &kFromRow, &kUntilRow, &kDeviceRow,
                       &kRankRow, &kLabelRow, &kStrictRow, &kMemoryRow, &kQuietRow},
                      run};

}  // namespace pasta::cli
