#include "cli/reading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/options.h"

namespace pasta::cli {

Result<std::vector<std::unique_ptr<Adapter>>> open_traces(const Settings& settings) {
  const auto& paths = settings.operands;
  if (!settings.labels.empty() && settings.labels.size() != paths.size()) {
    return fail(ErrorCode::kUsage, fmt::format("{} --label for {} traces; give one for each, in "
                                               "their order",
                                               settings.labels.size(), paths.size()));
  }
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    return fail(ErrorCode::kUsage, "standard input (-) can be read only once");
  }
  std::vector<std::unique_ptr<Adapter>> traces;
  for (const std::string& path : paths) {
    auto trace = open_source(path);
    if (!trace) return tl::unexpected(std::move(trace).error());
    traces.push_back(std::move(*trace));
  }
  return traces;
}

Result<Session> make_session(const Settings& settings,
                             std::vector<std::unique_ptr<Adapter>> traces) {
  auto plan = plan_of(settings);
  if (!plan) return tl::unexpected(std::move(plan).error());
  auto filter = filter_of(settings);
  if (!filter) return tl::unexpected(std::move(filter).error());
  // All sources share the budget.
  plan->memory_budget_bytes /= std::max<std::size_t>(traces.size(), 1);
  Session session(std::move(*plan));
  session.filter(std::move(*filter));
  for (std::size_t i = 0; i < traces.size(); ++i) {
    session.add(std::move(traces[i]), settings.labels.empty() ? "" : settings.labels[i]);
  }
  return session;
}

Result<Document> read_all(Session& session, bool strict) {
  PASTA_TRY(session.start());
  std::string said;
  for (;;) {
    auto more = session.pump();
    if (more) {
      if (!*more) break;
      continue;
    }
    if (strict) return tl::unexpected(std::move(more).error());
    said = more.error().message;
    say(said);
  }
  return session.finish();
}

int completeness(const Session& session, const Document& document) {
  if (session.worst() < Severity::kAltered) return kComplete;
  std::vector<std::string> losses;
  for (const auto& problem : document.trace.problems) {
    if (problem.severity != "altered" && problem.severity != "dropped") continue;
    losses.push_back(fmt::format("{} {}", problem.count, problem.reason));
  }
  say(fmt::format("the answer is not complete: {}", fmt::join(losses, ", ")));
  return kIncomplete;
}

}  // namespace pasta::cli
