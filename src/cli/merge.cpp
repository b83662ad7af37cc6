// pastaprof merge: the traces of a job's ranks as one .pasta file, which tells them apart.
#include <unistd.h>

#include "cli/options.h"
#include "cli/reading.h"
#include "trace/pasta_writer.h"

namespace pasta::cli {
namespace {

Result<int> run(const Settings& settings) {
  if (settings.output == "-" && isatty(STDOUT_FILENO) == 1) {
    return fail(ErrorCode::kUsage,
                "a .pasta file is no text for a terminal; give -o FILE, such as -o job.pasta");
  }
  return record_all(settings, [&] {
    return trace::make_pasta_writer(settings.output, {.overwrite = settings.force});
  });
}

}  // namespace

const Verb kMerge = {"merge",
                     "Write the traces of a job's ranks as one .pasta file, which tells them apart",
                     "TRACE",
                     kTraceHelp,
                     false,
                     true,
                     {&kOutputRow, &kForceRow, &kLabelRow, &kStrictRow, &kMemoryRow, &kQuietRow},
                     run};

}  // namespace pasta::cli
