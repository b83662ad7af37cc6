// pastaprof check: whether a trace keeps the rules that all tools rely on, and what it lacks.
#include <fmt/format.h>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/reading.h"
#include "trace/invariants.h"

namespace pasta::cli {
namespace {

Result<int> run(const Settings& settings) {
  auto destination = Destination::open(settings);
  if (!destination) return tl::unexpected(std::move(destination).error());
  auto reading = open_traces(settings);
  if (!reading) return tl::unexpected(std::move(reading).error());
  Session& session = reading->session;
  auto owned = std::make_unique<trace::InvariantChecker>();
  const trace::InvariantChecker& checker = *owned;
  session.add(std::move(owned));
  auto document = read_all(*reading, settings, false);
  if (!document) return tl::unexpected(std::move(document).error());
  document->reports.push_back(checker.report());
  PASTA_TRY(destination->write(*document));
  const int code = completeness(session, *document);
  if (checker.violations() == 0) return code;
  say(fmt::format("{} violations of the rules that all tools rely on", checker.violations()));
  return kNoAnswer;
}

}  // namespace

const Verb kCheck = {"check",
                     "Test the rules that all tools rely on, and show what a trace lacks",
                     "TRACE",
                     kTraceHelp,
                     false,
                     true,
                     {&kFormatRow, &kOutputRow, &kForceRow, &kNoPagerRow, &kLabelRow, &kStrictRow,
                      &kMemoryRow, &kQuietRow},
                     run};

}  // namespace pasta::cli
