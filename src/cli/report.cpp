// pastaprof report: tools over traces.
#include "cli/analysis.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/reading.h"
#include "report/shape.h"

namespace pasta::cli {
namespace {

const OptionRow kSortRow = {"--sort", "PASTA_SORT", "COLUMN[:asc|desc]",
                            "Order of rows of the tables that have this column", &Settings::sort};
const OptionRow kFilterRow = {"--filter", "PASTA_FILTER", "REGEX",
                              "Only rows of tables whose name, such as a kernel's, matches this "
                              "extended regular expression; shares stay those of the whole",
                              &Settings::filter};

Result<int> run(const Settings& settings) {
  auto analysis = Analysis::make(settings);
  if (!analysis) return tl::unexpected(std::move(analysis).error());
  const auto shape = report::Shape::make(settings.sort, settings.filter);
  if (!shape) return tl::unexpected(shape.error());
  auto destination = Destination::open(settings);
  if (!destination) return tl::unexpected(std::move(destination).error());

  auto reading = open_traces(settings);
  if (!reading) return tl::unexpected(std::move(reading).error());
  Session& session = reading->session;
  analysis->add_to(session, reading->provided);
  auto document = read_all(*reading, settings, false);
  if (!document) return tl::unexpected(std::move(document).error());
  analysis->keep_telling(*document);
  PASTA_TRY(shape->apply(*document));
  // Which is told in all formats but this.
  if (settings.format == "csv" && !settings.filter.empty()) say("only " + document->trace.filter);
  PASTA_TRY(destination->write(*document));
  return completeness(session, *document);
}

}  // namespace

const Verb kReport = {
    "report",
    "Analyse traces and print what the tools find",
    "TRACE",
    kTraceHelp,
    false,
    true,
    {&kToolRow,   &kOptRow,  &kPluginRow,   &kFormatRow, &kOutputRow,  &kForceRow, &kSortRow,
     &kFilterRow, &kTopRow,  &kTimeUnitRow, &kWidthRow,  &kNoPagerRow, &kFromRow,  &kToRow,
     &kDeviceRow, &kRankRow, &kLabelRow,    &kStrictRow, &kMemoryRow,  &kQuietRow},
    run};

}  // namespace pasta::cli
