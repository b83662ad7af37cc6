#include "cli/reading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/progress.h"

namespace pasta::cli {

namespace {

// Which a user cannot know of the files of a folder.
std::string order_of(const std::vector<OpenedSource>& sources) {
  if (std::ranges::none_of(sources, &OpenedSource::found)) return "";
  std::vector<std::string_view> paths;
  for (const OpenedSource& source : sources) paths.push_back(source.paths[0]);
  return fmt::format(": {}", fmt::join(paths, ", "));
}

}  // namespace

Result<Reading> open_traces(const Settings& settings) {
  auto plan = plan_of(settings);
  if (!plan) return tl::unexpected(std::move(plan).error());
  auto filter = filter_of(settings);
  if (!filter) return tl::unexpected(std::move(filter).error());
  const auto& operands = settings.operands;
  if (std::count(operands.begin(), operands.end(), "-") > 1) {
    return fail(ErrorCode::kUsage, "standard input (-) can be read only once");
  }
  auto progress = std::make_unique<ReadProgress>();
  auto opened = open_sources(operands, progress.get());
  if (!opened) return tl::unexpected(std::move(opened).error());
  auto& sources = opened->sources;
  if (!settings.labels.empty() && settings.labels.size() != sources.size()) {
    return fail(ErrorCode::kUsage,
                fmt::format("{} --label for {} traces; give one for each, in "
                            "their order{}",
                            settings.labels.size(), sources.size(), order_of(sources)));
  }
  std::for_each(opened->left_out.begin(), opened->left_out.end(), say);

  plan->memory_budget_bytes /= sources.size();  // all sources share it
  Reading reading{std::move(progress), Session(std::move(*plan)), {}};
  reading.session.filter(std::move(*filter));
  for (std::size_t i = 0; i < sources.size(); ++i) {
    reading.provided = reading.provided | sources[i].adapter->info().provides;
    reading.session.add(std::move(sources[i].adapter),
                        settings.labels.empty() ? "" : settings.labels[i], sources[i].found);
  }
  return reading;
}

Result<Document> read_all(Reading& reading, const Settings& settings, bool printed_meanwhile) {
  Session& session = reading.session;
  PASTA_TRY(session.start());
  std::vector<std::string> stops;
  const auto read = [&]() -> Result<Document> {
    const bool in_the_way =
        printed_meanwhile && settings.output == "-" && isatty(STDOUT_FILENO) == 1;
    Progress progress(*reading.progress, !settings.quiet && !in_the_way);
    for (;;) {
      progress.update();
      auto more = session.pump();
      if (more && !*more) return session.finish();
      if (more) continue;
      if (settings.strict) return tl::unexpected(std::move(more).error());
      stops.push_back(more.error().message);
    }
  };
  auto document = read();
  // Else the error of finish() says it all.
  if (document) std::for_each(stops.begin(), stops.end(), say);
  return document;
}

Result<int> record_all(Result<Reading> reading, const Settings& settings,
                       const std::function<Result<std::unique_ptr<Recorder>>()>& make) {
  if (!reading) return tl::unexpected(std::move(reading).error());
  auto recorder = make();
  if (!recorder) return tl::unexpected(std::move(recorder).error());
  reading->session.add(std::move(*recorder), true);
  auto document = read_all(*reading, settings, true);
  if (!document) return tl::unexpected(std::move(document).error());
  return completeness(reading->session, *document);
}

int completeness(const Session& session, const Document& document) {
  return session.worst() < Severity::kAltered ? kComplete : completeness(document);
}

int completeness(const Document& document) {
  std::vector<std::string> losses;
  for (const auto& problem : document.trace.problems) {
    if (problem.severity != "altered" && problem.severity != "dropped") continue;
    losses.push_back(fmt::format("{} {}", problem.count, problem.reason));
  }
  if (losses.empty()) return kComplete;
  say(fmt::format("the answer is not complete: {}", fmt::join(losses, ", ")));
  return kIncomplete;
}

}  // namespace pasta::cli
