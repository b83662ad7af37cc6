// pastaprof check: whether a trace keeps the rules that all tools rely on, and what it lacks.
#include <fmt/format.h>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/reading.h"

namespace pasta::cli {
namespace {

Result<int> run(const Settings& settings) {
  const auto text_options = text_options_of(settings);
  if (!text_options) return tl::unexpected(text_options.error());
  auto traces = open_traces(settings);
  if (!traces) return tl::unexpected(std::move(traces).error());
  auto session = make_session(settings, std::move(*traces));
  if (!session) return tl::unexpected(std::move(session).error());
  auto document = read_all(*session, settings.strict);
  if (!document) return tl::unexpected(std::move(document).error());
  PASTA_TRY(deliver(*document, settings, *text_options));
  return completeness(*session, *document);
}

}  // namespace

const Verb kCheck = {"check",
                     "Test the rules that all tools rely on, and show what a trace lacks",
                     "TRACE",
                     kTraceHelp,
                     false,
                     true,
                     {&kFormatRow, &kOutputRow, &kForceRow, &kLabelRow, &kStrictRow, &kMemoryRow},
                     run};

}  // namespace pasta::cli
