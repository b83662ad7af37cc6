// pastaprof dump: events as lines of text.
#include "cli/options.h"
#include "cli/reading.h"
#include "trace/text_form.h"

namespace pasta::cli {
namespace {

Result<int> run(const Settings& settings) {
  auto reading = open_traces(settings);
  if (!reading) return tl::unexpected(std::move(reading).error());
  Session& session = reading->session;
  auto writer = trace::make_text_writer(settings.output, {.overwrite = settings.force});
  if (!writer) return tl::unexpected(std::move(writer).error());
  session.add(std::move(*writer), true);
  auto document = read_all(*reading, settings, true);
  if (!document) return tl::unexpected(std::move(document).error());
  return completeness(session, *document);
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
