// pastaprof dump: events as lines of text.
#include "cli/options.h"
#include "cli/reading.h"
#include "trace/text_form.h"

namespace pasta::cli {
namespace {

Result<int> run(const Settings& settings) {
  return record_all(open_traces(settings), settings, [&] {
    return trace::make_text_writer(settings.output, {.overwrite = settings.force});
  });
}

}  // namespace

const Verb kDump = {"dump",
                    "Print events as lines of text, in order of their ends",
                    "TRACE",
                    kTraceHelp,
                    false,
                    true,
                    {&kOutputRow, &kForceRow, &kFromRow, &kToRow, &kDeviceRow, &kRankRow,
                     &kLabelRow, &kStrictRow, &kMemoryRow, &kQuietRow},
                    run};

}  // namespace pasta::cli
