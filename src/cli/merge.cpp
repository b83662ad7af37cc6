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
  auto reading = open_traces(settings);
  if (!reading) return tl::unexpected(std::move(reading).error());
  Session& session = reading->session;
  auto writer = trace::make_pasta_writer(settings.output, {.overwrite = settings.force});
  if (!writer) return tl::unexpected(std::move(writer).error());
  session.add(std::move(*writer));
  auto document = read_all(*reading, settings, true);
  if (!document) return tl::unexpected(std::move(document).error());
  return completeness(session, *document);
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
