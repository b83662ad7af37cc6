#include "cli/options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/decimal.h"
#include "base/units.h"

namespace pasta::cli {
namespace {

constexpr std::array<std::string_view, 5> kTimeUnits = {"auto", "ns", "us", "ms", "s"};
constexpr std::array<std::string_view, 4> kFormats = {"text", "table", "json", "csv"};

struct TimePoint {
  std::int64_t ns;
  bool absolute;
};

Result<TimePoint> time_of(std::string_view option, std::string_view text) {
  std::int64_t ns = 0;
  if (text.starts_with('@')) {
    if (base::parse_decimal(text.substr(1), 0, ns) == base::DecimalStatus::kExact) {
      return TimePoint{ns, true};
    }
  } else if (base::parse_duration(text, ns)) {
    return TimePoint{ns, false};
  }
  return fail(ErrorCode::kUsage,
              fmt::format("--{} cannot be \"{}\"; give a time after the trace's start, such as "
                          "10ms, or @NS on the trace's clock",
                          option, text));
}

}  // namespace

const OptionRow kStrictRow = {"--strict", "PASTA_STRICT", nullptr,
                              "Fail at the first thing in a trace that has to be repaired",
                              &Settings::strict};
const OptionRow kFromRow = {"--from", "PASTA_FROM", "TIME",
                            "Leave out what starts earlier: 10ms after the trace's start, or @NS",
                            &Settings::from};
const OptionRow kToRow = {"--to,--until", "PASTA_TO", "TIME", "Leave out what starts then or later",
                          &Settings::to};
const OptionRow kUntilRow = {"--until", "PASTA_TO", "TIME", "Leave out what starts then or later",
                             &Settings::to};
const OptionRow kDeviceRow = {"--device",
                              "PASTA_DEVICE",
                              "NAME",
                              "Only the work of this device, named as in tables or by number",
                              &Settings::devices,
                              {},
                              true};
const OptionRow kRankRow = {"--rank",         "PASTA_RANK", "N", "Only what this rank did",
                            &Settings::ranks, {},           true};
const OptionRow kLabelRow = {
    "--label",
    "PASTA_LABEL",
    "TEXT",
    "What to call a trace in tables: one for each, in their order; \"rank 3\" says its rank",
    &Settings::labels,
    {},
    true};
const OptionRow kMemoryRow = {"--memory", "PASTA_MEMORY", "SIZE",
                              "Memory for putting events in order; beyond it, disk",
                              &Settings::memory};
const OptionRow kOutputRow = {"-o,--output",
                              "PASTA_OUTPUT",
                              "FILE",
                              "Where to write; - is standard output",
                              &Settings::output,
                              {},
                              false,
                              true};
const OptionRow kForceRow = {
    "-f,--force", "PASTA_FORCE", nullptr, "Write over a file that is there", &Settings::force,
    {},           false,         true};
const OptionRow kNoPagerRow = {"--no-pager", "PASTA_NO_PAGER", nullptr,
                               "Long text straight to the terminal", &Settings::no_pager};
const OptionRow kQuietRow = {"-q,--quiet", "PASTA_QUIET", nullptr,
                             "Do not show on the terminal how far reading is", &Settings::quiet};
const OptionRow kFormatRow = {"--format",        "PASTA_FORMAT",
                              "FORMAT",          "text, json or csv; table is text",
                              &Settings::format, kFormats};

const OptionRow kTopRow = {"--top", "PASTA_TOP", "N", "Rows of a table in text; 0 is all",
                           &Settings::top};
const OptionRow kTimeUnitRow = {
    "--timeunit",         "PASTA_TIMEUNIT", "UNIT", "Unit of times in text: auto, ns, us, ms or s",
    &Settings::time_unit, kTimeUnits};
const OptionRow kWidthRow = {"--width", "PASTA_WIDTH", "COLUMNS",
                             "Width of text (default: the terminal's)", &Settings::width};

Result<Plan> plan_of(const Settings& settings) {
  Plan plan;
  plan.strict = settings.strict;
  if (!base::parse_bytes(settings.memory, plan.memory_budget_bytes)) {
    return fail(ErrorCode::kUsage, fmt::format("--memory cannot be \"{}\"; give a size with its "
                                               "unit, such as 256MiB",
                                               settings.memory));
  }
  return plan;
}

Result<Filter> filter_of(const Settings& settings) {
  Filter filter;
  filter.devices = settings.devices;
  for (const std::string& text : settings.ranks) {
    auto rank = number_of("rank", text, 0);
    if (!rank) return tl::unexpected(std::move(rank).error());
    filter.ranks.push_back(*rank);
  }
  std::optional<bool> absolute;
  for (const auto& [option, text, target] : {std::tuple("from", &settings.from, &filter.from_ns),
                                             std::tuple("to", &settings.to, &filter.to_ns)}) {
    if (text->empty()) continue;
    auto time = time_of(option, *text);
    if (!time) return tl::unexpected(std::move(time).error());
    if (absolute && *absolute != time->absolute) {
      return fail(ErrorCode::kUsage,
                  fmt::format("--from {} and --to {} count from different moments; give both with "
                              "@ or both without",
                              settings.from, settings.to));
    }
    absolute = time->absolute;
    *target = time->ns;
  }
  filter.relative = !absolute.value_or(false);
  if (filter.from_ns && filter.to_ns && *filter.from_ns >= *filter.to_ns) {
    return fail(ErrorCode::kUsage,
                fmt::format("--from {} is not before --to {}", settings.from, settings.to));
  }
  return filter;
}

Result<int> number_of(std::string_view option, const std::string& text, int least) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= least) return number;
  return fail(ErrorCode::kUsage,
              fmt::format("--{} needs a whole number from {} up, not \"{}\"", option, least, text));
}

}  // namespace pasta::cli
