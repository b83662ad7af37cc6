// pastaprof join: reports about ranks that were analysed apart become one about the job.
#include "session/join.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstddef>

#include "base/input.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/reading.h"
#include "pasta/tool.h"
#include "report/render.h"

namespace pasta::cli {
namespace {

Result<std::string> read_whole(const std::string& path) {
  auto opened = base::open_input(path);
  if (!opened) return tl::unexpected(std::move(opened).error());
  std::string text;
  std::array<std::byte, 65536> part;
  for (;;) {
    const auto size = opened->stream->read(part);
    if (!size) return tl::unexpected(size.error());
    text.append(reinterpret_cast<const char*>(part.data()), *size);
    if (*size < part.size()) break;
  }
  if (const std::string_view damage = opened->stream->damage(); !damage.empty()) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", path, damage));
  }
  return text;
}

Result<session::Answer> read_answer(const std::string& path) {
  auto text = read_whole(path);
  if (!text) return tl::unexpected(std::move(text).error());
  auto document = report::parse_json(*text);
  if (!document) {
    return fail(document.error().code,
                fmt::format("{}: {}; join reads what pastaprof report --format json writes", path,
                            document.error().message));
  }
  return session::Answer{.path = path, .label = {}, .document = std::move(*document)};
}

Result<int> run(const Settings& settings) {
  const auto& paths = settings.operands;
  if (!settings.labels.empty() && settings.labels.size() != paths.size()) {
    return fail(ErrorCode::kUsage, fmt::format("{} --label for {} reports; give one for each, in "
                                               "their order",
                                               settings.labels.size(), paths.size()));
  }
  auto destination = Destination::open(settings);
  if (!destination) return tl::unexpected(std::move(destination).error());
  std::vector<session::Answer> answers;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto answer = read_answer(paths[i]);
    if (!answer) return tl::unexpected(std::move(answer).error());
    if (!settings.labels.empty()) answer->label = settings.labels[i];
    answers.push_back(std::move(*answer));
  }
  auto joined = session::join(std::move(answers), builtin_tools());
  if (!joined) return tl::unexpected(std::move(joined).error());
  if (!joined->left_out.empty()) {
    say(fmt::format("left out {}: the reports of ranks do not join",
                    fmt::join(joined->left_out, ", ")));
  }
  PASTA_TRY(destination->write(joined->document));
  return completeness(joined->document);
}

}  // namespace

const Verb kJoin = {"join",
                    "Make the job's report of reports about its ranks",
                    "REPORT",
                    "Report as JSON, or - for standard input",
                    false,
                    true,
                    {&kFormatRow, &kOutputRow, &kForceRow, &kTopRow, &kTimeUnitRow, &kWidthRow,
                     &kNoPagerRow, &kLabelRow},
                    run};

}  // namespace pasta::cli
