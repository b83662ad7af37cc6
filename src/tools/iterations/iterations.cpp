#include "tools/iterations/iterations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "stats/quantiles.h"
#include "tools/common/demangle.h"
#include "tools/common/iterations.h"
#include "tools/common/joining.h"
#include "tools/common/rows.h"

namespace pasta::tools {
namespace {

// How the durations of the steady iterations of one process are spread.
struct Steady {
  stats::Quantiles durations;
  std::int64_t median = 0;
  std::int64_t deviation = 0;  // median absolute deviation

  explicit Steady(const IterationRun& run) {
    for (const Iteration& one : run.list) {
      if (counts(one)) durations.add(one.duration_ns());
    }
    median = durations.quantile(0.5);
    stats::Quantiles distances;
    for (const Iteration& one : run.list) {
      if (counts(one)) {
        distances.add(std::abs(one.duration_ns() - median));
      }
    }
    deviation = distances.quantile(0.5);
  }

  // Whether its duration tells of the steady state.
  static bool counts(const Iteration& one) {
    return one.phase == IterationPhase::kSteady && one.whole;
  }

  // Far outside of what the others do: beyond five times their usual distance from the middle, and
  // by a tenth of it at least. Of few, none can be called odd.
  [[nodiscard]] bool odd(const Iteration& one) const {
    const std::int64_t distance = std::abs(one.duration_ns() - median);
    return counts(one) && durations.count() >= 5 && distance > 5 * deviation &&
           distance > median / 10;
  }
};

Table steady_table() {
  return {.id = "steady",
          .title = "The steady state",
          .columns = {{"iterations", Unit::kCount},
                      {"steady", Unit::kCount},
                      {"median", Unit::kNanoseconds},
                      {"mean", Unit::kNanoseconds},
                      {"min", Unit::kNanoseconds},
                      {"p95", Unit::kNanoseconds},
                      {"max", Unit::kNanoseconds},
                      {"spread", Unit::kShare}},
          .rows = {}};
}

Table iterations_table() {
  return {.id = "iterations",
          .title = "Iterations in order of time",
          .columns = {{"index", Unit::kCount},
                      {"start", Unit::kNanoseconds},
                      {"end", Unit::kNanoseconds},
                      {"duration", Unit::kNanoseconds},
                      {"phase"},
                      {"kernels", Unit::kCount},
                      {"deviation"}},
          .rows = {}};
}

std::string prefix(const std::string& label) { return label.empty() ? "" : label + ": "; }

constexpr std::string_view kNoWork = "no device work and no mark in this trace";
constexpr std::string_view kSeriesTitle = "Duration of each iteration";

Finding abstention(std::string_view why, const std::string& label) {
  return {.id = "no-iterations",
          .level = Finding::Level::kInfo,
          .text = fmt::format("{}no iterations: {}", prefix(label), why),
          .of = {},
          .evidence = {},
          .advice = "mark them: torch.profiler's step(), or a range \"iteration N\" around each"};
}

class IterationsTool : public Tool {
 public:
  explicit IterationsTool(MarksUse marks) : iterations_(marks) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    iterations_.consume(events, context);
    return {};
  }

  Result<Report> finish(const Context& context) override {
    iterations_.finish(context);
    const auto runs = iterations_.runs();
    several_ = runs.size() > 1;
    Report report{.tool = "iterations", .title = "Iterations", .parts = {}};
    Table steady = steady_table(), table = iterations_table();
    if (several_) {
      for (Table* one : {&steady, &table}) one->columns.insert(one->columns.begin(), {"process"});
    }
    std::vector<Part> series;
    if (runs.empty()) {
      report.parts.emplace_back(abstention(kNoWork, {}));
    }
    std::vector<ProcessId> ids;
    for (const IterationRun& run : runs) ids.push_back(run.process);
    const std::vector<std::string> labels = process_labels(context.dictionary(), ids);
    std::vector<std::pair<std::string, const IterationRun*>> processes;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      processes.emplace_back(several_ ? labels[i] : "", &runs[i]);
    }
    std::ranges::stable_sort(processes, natural_less,
                             &std::pair<std::string, const IterationRun*>::first);
    for (const auto& [label, of_process] : processes) {
      const IterationRun& run = *of_process;
      if (run.list.empty()) {
        report.parts.emplace_back(abstention(run.abstained, label));
        continue;
      }
      Steady state(run);
      report.parts.emplace_back(found(run, label));
      add_odd(report, run, state, label, context);
      steady.rows.push_back(row_of(run, state, label));
      Series durations{.id = "durations",
                       .title = label.empty() ? std::string(kSeriesTitle)
                                              : fmt::format("{}, {}", kSeriesTitle, label),
                       .unit = Unit::kNanoseconds,
                       .points = {}};
      for (std::size_t i = 0; i < run.list.size(); ++i) {
        const Iteration& one = run.list[i];
        table.rows.push_back(row_of(one, i, state, context.origin_ns(), label));
        durations.points.emplace_back(one.start_ns - context.origin_ns(),
                                      static_cast<double>(one.duration_ns()));
      }
      series.emplace_back(std::move(durations));
    }
    if (!steady.rows.empty()) report.parts.emplace_back(std::move(steady));
    report.parts.emplace_back(std::move(table));
    for (Part& part : series) report.parts.push_back(std::move(part));
    return report;
  }

 private:
  static Finding found(const IterationRun& run, const std::string& label) {
    Finding finding{.id = "iterations-found",
                    .level = Finding::Level::kInfo,
                    .text = {},
                    .of = {},
                    .evidence = {},
                    .advice = {}};
    finding.text = fmt::format("{}{} iteration{} {}, {} steady", prefix(label), run.list.size(),
                               run.list.size() == 1 ? "" : "s",
                               run.origin == IterationOrigin::kMarks
                                   ? fmt::format("marked by {}", run.marks)
                                   : std::string("found in the device work alone"),
                               run.repeats);
    finding.evidence = {{"confidence", run.confidence, Unit::kShare},
                        {"repeats", static_cast<std::int64_t>(run.repeats)}};
    if (run.period > 0) {
      finding.evidence.emplace_back("period", static_cast<std::int64_t>(run.period));
      finding.evidence.emplace_back("coverage", run.coverage, Unit::kShare);
      finding.evidence.emplace_back("edits", static_cast<std::int64_t>(run.edits));
    }
    if (run.lost > 0) finding.evidence.emplace_back("lost", static_cast<std::int64_t>(run.lost));
    return finding;
  }

  void add_odd(Report& report, const IterationRun& run, const Steady& state,
               const std::string& label, const Context& context) {
    std::vector<std::size_t> odd;
    std::int64_t excess = 0, all = 0;
    for (std::size_t i = 0; i < run.list.size(); ++i) {
      if (Steady::counts(run.list[i])) all += run.list[i].duration_ns();
      if (!state.odd(run.list[i])) continue;
      odd.push_back(i);
      excess += std::max<std::int64_t>(run.list[i].duration_ns() - state.median, 0);
    }
    // If many are, the iterations vary, which the spread tells, and none is odd.
    if (odd.empty() || odd.size() * 4 > state.durations.count()) return;
    const auto worst = std::ranges::max_element(
        odd, {}, [&](std::size_t i) { return std::abs(run.list[i].duration_ns() - state.median); });
    Finding finding{.id = "odd-iterations",
                    .level = Finding::Level::kInfo,
                    .text = {},
                    .share = all > 0 ? static_cast<double>(excess) / static_cast<double>(all) : 0,
                    .of = "the time of the steady iterations",
                    .evidence = {},
                    .advice = {}};
    finding.text = fmt::format(
        "{}{} of {} steady iterations {} unlike the others, iteration {} most: {:+.0f} % of the "
        "median",
        prefix(label), odd.size(), state.durations.count(), odd.size() == 1 ? "is" : "are", *worst,
        100 * deviation(run.list[*worst], state).value_or(0));
    finding.evidence = {{"iteration", static_cast<std::int64_t>(*worst)},
                        {"duration", run.list[*worst].duration_ns(), Unit::kNanoseconds},
                        {"median", state.median, Unit::kNanoseconds}};
    const auto index = static_cast<std::size_t>(&run - iterations_.runs().data());
    const IterationExcess excess_of = iterations_.excess(index, *worst);
    const Dictionary& dictionary = context.dictionary();
    if (run.list[*worst].duration_ns() > state.median && excess_of.wait_ns > excess_of.work_ns) {
      const std::string name = short_name(demangle(dictionary.text(excess_of.waited_for)));
      finding.text += fmt::format("; mostly the device stood still before {}", name);
      finding.evidence.emplace_back("waited_for", name);
      finding.evidence.emplace_back("wait", excess_of.wait_ns, Unit::kNanoseconds);
      finding.advice = "tool idle tells what the host did then";
    } else if (run.list[*worst].duration_ns() > state.median && excess_of.work_ns > 0) {
      const std::string name = short_name(demangle(dictionary.text(excess_of.work)));
      finding.text += fmt::format("; most of it is {}", name);
      finding.evidence.emplace_back("work", name);
      finding.evidence.emplace_back("work_excess", excess_of.work_ns, Unit::kNanoseconds);
    }
    report.parts.emplace_back(std::move(finding));
  }

  static std::optional<double> deviation(const Iteration& one, const Steady& state) {
    if (state.median <= 0 || !one.whole) return std::nullopt;
    return static_cast<double>(one.duration_ns()) / static_cast<double>(state.median) - 1;
  }

  [[nodiscard]] std::vector<Cell> row_of(const IterationRun& run, Steady& state,
                                         const std::string& label) const {
    std::vector<Cell> row;
    if (several_) row.emplace_back(label);
    const auto steady = static_cast<std::int64_t>(state.durations.count());
    row.emplace_back(static_cast<std::int64_t>(run.list.size()));
    row.emplace_back(static_cast<std::int64_t>(run.repeats));
    if (steady == 0) {
      row.resize(row.size() + 6);
      return row;
    }
    row.emplace_back(state.median);
    row.emplace_back(state.durations.sum() / steady);
    row.emplace_back(state.durations.min());
    row.emplace_back(state.durations.quantile(0.95));
    row.emplace_back(state.durations.max());
    row.emplace_back();
    if (state.median > 0) {
      row.back() = static_cast<double>(state.deviation) / static_cast<double>(state.median);
    }
    return row;
  }

  [[nodiscard]] std::vector<Cell> row_of(const Iteration& one, std::size_t index,
                                         const Steady& state, std::int64_t origin,
                                         const std::string& label) const {
    std::vector<Cell> row;
    if (several_) row.emplace_back(label);
    row.emplace_back(static_cast<std::int64_t>(index));
    row.emplace_back(one.start_ns - origin);
    row.emplace_back(one.end_ns - origin);
    row.emplace_back(one.duration_ns());
    row.emplace_back(std::string(phase_name(one.phase)));
    row.emplace_back(static_cast<std::int64_t>(one.kernels));
    const auto differs = deviation(one, state);
    row.push_back(differs ? Cell(*differs) : Cell());
    return row;
  }

  Iterations iterations_;
  bool several_ = false;
};

// Where the axes of the reports begin is not known, so neither when their iterations were.
Result<Report> join(std::span<const RankReport> ranks) {
  if (ranks.size() == 1) return ranks.front().report;
  const Finding nothing = abstention(kNoWork, {});
  std::vector<RankReport> working;
  for (const RankReport& rank : ranks) {
    const Finding* none = find_finding(rank.report, nothing.id);
    if (none == nullptr || *none != nothing) working.push_back(rank);
  }
  if (working.empty()) return ranks.front().report;
  Table steady = steady_table(), table = iterations_table();
  std::vector<LabelledFinding> findings;
  for (Table* one : {&steady, &table}) {
    const bool may_lack = one == &steady;  // where no process has iterations
    PASTA_TRY(add_rows_by_process(*one, working, may_lack));
  }
  for (const RankReport& rank : working) {
    add_findings_by_process(findings, rank, "iterations", working.size());
  }
  for (std::vector<Cell>& row : table.rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string& name = table.columns[column].name;
      if (name == "start" || name == "end") row[column] = Cell();
    }
  }
  Report report{.tool = "iterations", .title = ranks.front().report.title, .parts = {}};
  for (LabelledFinding& one : findings) report.parts.emplace_back(std::move(one.finding));
  if (!steady.rows.empty()) report.parts.emplace_back(std::move(steady));
  report.parts.emplace_back(std::move(table));
  return report;
}

Result<std::unique_ptr<Tool>> make(const Options& options) {
  return std::make_unique<IterationsTool>(marks_use(options.text("marks")));
}

constexpr OptionInfo kOptions[] = {kMarksOption};

}  // namespace

constinit const ToolEntry kIterations = {
    .name = "iterations",
    .help = "what repeats, when each repetition began and ended, and which were unlike the others",
    .needs = Kind::kKernel,
    .options = kOptions,
    .make = make,
    .join = join,
    .also = kIterationKinds};

}  // namespace pasta::tools
