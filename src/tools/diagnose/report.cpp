#include "tools/diagnose/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "base/units.h"
#include "tools/common/joining.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/findings.h"

namespace pasta::tools::diagnose {
namespace {

constexpr std::string_view kAbout = "mean-iteration";
constexpr std::string_view kNoWork = "no-device-work";
constexpr std::string_view kSkew = "rank-skew";

Cell text_or_unknown(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

Table devices_table() {
  return {.id = "devices",
          .title = "What is described, by device: means over the steady iterations",
          .columns = {{"device"},
                      {"found_by"},
                      {"iterations", Unit::kCount},
                      {"steady", Unit::kCount},
                      {"confidence", Unit::kShare},
                      {"duration", Unit::kNanoseconds},
                      {"busy", Unit::kNanoseconds},
                      {"communication", Unit::kNanoseconds},
                      {"collectives"},
                      {"untimed", Unit::kCount}},
          .rows = {}};
}

Table parts_table() {
  return {.id = "parts",
          .title = "Where the time of the mean steady iteration goes",
          .columns = {{"device"}, {"part"}, {"time", Unit::kNanoseconds}, {"share", Unit::kShare}},
          .rows = {}};
}

Table iterations_table() {
  Table table{.id = "iterations",
              .title = "The parts of each iteration",
              .columns = {{"device"},
                          {"index", Unit::kCount},
                          {"number", Unit::kCount},
                          {"start", Unit::kNanoseconds},
                          {"duration", Unit::kNanoseconds},
                          {"phase"}},
              .rows = {}};
  for (const std::string_view part : kPartNames) {
    table.columns.push_back({std::string(part), Unit::kNanoseconds});
  }
  return table;
}

std::string_view name_of(IterationOrigin origin) {
  switch (origin) {
    case IterationOrigin::kMarks:
      return "marks";
    case IterationOrigin::kMined:
      return "mined";
    case IterationOrigin::kNone:
      break;
  }
  return "none";
}

void add_device(const DeviceReport& device, Table& table) {
  const View& view = device.diagnosis.view;
  const bool found = view.origin != IterationOrigin::kNone;
  table.rows.push_back(
      {text_or_unknown(view.device), std::string(name_of(view.origin)),
       found ? Cell(static_cast<std::int64_t>(view.windows.size())) : Cell(std::int64_t{0}),
       found ? Cell(view.iterations) : Cell(std::int64_t{0}),
       found ? Cell(device.confidence) : Cell(), view.mean(view.total_ns), view.mean(view.busy_ns),
       view.mean(view.communication_ns),
       static_cast<double>(view.communication_calls) / static_cast<double>(view.iterations),
       device.untimed});
}

// The means are rounded so that they add up to the rounded mean of the whole.
void add_parts(const View& view, Table& table) {
  std::int64_t sum = 0, given = 0;
  for (std::size_t i = 0; i < kPartCount; ++i) {
    sum = add_saturated(sum, view.parts[i]);
    const std::int64_t mean = view.mean(sum) - given;
    given += mean;
    table.rows.push_back({text_or_unknown(view.device), std::string(kPartNames[i]), mean,
                          share_of(view.parts[i], view.total_ns)});
  }
}

void add_iterations(const View& view, std::int64_t origin_ns, Table& table) {
  if (view.origin == IterationOrigin::kNone) return;
  for (std::size_t i = 0; i < view.windows.size(); ++i) {
    const Window& window = view.windows[i];
    std::vector<Cell> row = {text_or_unknown(view.device),
                             static_cast<std::int64_t>(i),
                             window.number >= 0 ? Cell(window.number) : Cell(),
                             distance_saturated(origin_ns, window.start_ns),
                             window.duration_ns(),
                             std::string(phase_name(window.phase))};
    for (const std::int64_t part : window.parts) row.emplace_back(part);
    table.rows.push_back(std::move(row));
  }
}

Finding about(const DeviceReport& device) {
  const View& view = device.diagnosis.view;
  Finding finding{.id = std::string(kAbout),
                  .level = Finding::Level::kInfo,
                  .text = {},
                  .of = {},
                  .evidence = {{"device", text_or_unknown(view.device)}},
                  .advice = {}};
  if (view.origin == IterationOrigin::kNone) {
    finding.text = fmt::format(
        "device {}: all of its {} are described, not an iteration: {}", view.device,
        base::format_duration(view.total_ns),
        device.abstained.empty() ? "none of the iterations is steady" : device.abstained);
  } else {
    finding.text = fmt::format(
        "device {}: {} of {} is described, {}", view.device,
        view.iterations == 1 ? std::string("one steady iteration")
                             : fmt::format("the mean of {} steady iterations", view.iterations),
        base::format_duration(view.mean(view.total_ns)),
        view.origin == IterationOrigin::kMarks
            ? fmt::format("marked by {}", device.marks)
            : fmt::format("found in the device work with confidence {:.2f}", device.confidence));
  }
  finding.advice =
      "what the findings could save at most does not add up: the same time can be in several";
  return finding;
}

// Charts are of one device each, and no two parts of a report may have one id.
std::string id_of(std::string_view chart, const View& view) {
  return fmt::format("{} {}", chart, view.device);
}

std::string titled(std::string_view title, const View& view) {
  return fmt::format("{}, device {}", title, view.device);
}

Series utilisation(const View& view, const Timeline& line) {
  Series series{.id = id_of("utilisation", view),
                .title = titled("Device utilisation over the mean iteration", view),
                .unit = Unit::kShare,
                .points = {}};
  const std::int64_t length = view.mean(view.total_ns);
  for (std::size_t i = 0; i < line.busy.size(); ++i) {
    const double begin = static_cast<double>(length) * static_cast<double>(i) /
                         static_cast<double>(line.busy.size());
    series.points.emplace_back(static_cast<std::int64_t>(begin), std::min(line.busy[i], 1.0));
  }
  return series;
}

std::vector<std::string> bin_names(std::size_t bins) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < bins; ++i) {
    names.push_back(
        fmt::format("{:.4g}%", 100.0 * static_cast<double>(i) / static_cast<double>(bins)));
  }
  return names;
}

HeatMap classes(const View& view, const Timeline& line) {
  HeatMap map{.id = id_of("classes", view),
              .title = titled("Device time by class over the mean iteration", view),
              .unit = Unit::kShare,
              .rows = {},
              .columns = bin_names(line.busy.size()),
              .values = {}};
  for (std::size_t i = 0; i < line.classes.size(); ++i) {
    const auto& row = line.classes[i];
    if (std::ranges::all_of(row, [](double value) { return value == 0; })) continue;
    map.rows.emplace_back(i < kKernelClassCount ? class_name(static_cast<KernelClass>(i))
                                                : std::string_view("copies and fills"));
    map.values.push_back(row);
  }
  return map;
}

HeatMap spread(const View& view, const Timeline& line) {
  HeatMap map{.id = id_of("spread", view),
              .title = titled("Device utilisation, between the steady iterations", view),
              .unit = Unit::kShare,
              .rows = {"min", "p25", "median", "p75", "max"},
              .columns = bin_names(line.busy.size()),
              .values = std::vector<std::vector<double>>(5)};
  std::vector<float> values(line.each.size());
  for (std::size_t bin = 0; bin < line.busy.size(); ++bin) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = line.each[i][bin];
    std::ranges::sort(values);
    const std::size_t last = values.size() - 1;
    const std::size_t ranks[] = {0, last / 4, last / 2, last - last / 4, last};
    for (std::size_t row = 0; row < 5; ++row) {
      map.values[row].push_back(std::min(static_cast<double>(values[ranks[row]]), 1.0));
    }
  }
  return map;
}

std::string_view device_of(const Finding& finding) {
  for (const Evidence& fact : finding.evidence) {
    const auto* text = std::get_if<std::string>(&fact.value);
    if (fact.name == "device" && text != nullptr) return *text;
  }
  return {};
}

// First what is described, by device; then what costs most. Findings of one device are in the order
// of the rules before.
void rank(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, natural_less, device_of);
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    const bool about_a = a.id == kAbout, about_b = b.id == kAbout;
    if (about_a != about_b) return about_a;
    return !about_a && a.share > b.share;
  });
}

// What all devices say of each other, and the order of everything.
Report assemble(std::vector<Finding> findings, std::vector<Table> tables,
                std::vector<pasta::Part> charts) {
  if (auto skew = rank_skew(tables.front())) findings.push_back(std::move(*skew));
  rank(findings);
  Report report{.tool = "diagnose", .title = "Diagnosis", .parts = {}};
  if (tables.front().rows.empty()) {
    report.parts.emplace_back(Finding{.id = std::string(kNoWork),
                                      .level = Finding::Level::kInfo,
                                      .text = "no device did anything with times in this trace",
                                      .of = {},
                                      .evidence = {},
                                      .advice = {}});
  }
  for (Finding& finding : findings) report.parts.emplace_back(std::move(finding));
  for (Table& table : tables) report.parts.emplace_back(std::move(table));
  for (pasta::Part& chart : charts) report.parts.push_back(std::move(chart));
  return report;
}

}  // namespace

Report make_report(std::span<const DeviceReport> devices, std::int64_t origin_ns) {
  std::vector<Finding> findings;
  std::vector<Table> tables = {devices_table(), parts_table(), iterations_table()};
  std::vector<pasta::Part> charts;
  for (const DeviceReport& device : devices) {
    const View& view = device.diagnosis.view;
    findings.push_back(about(device));
    for (const Rule rule : rules()) {
      if (view.kernels < kEnoughWork || view.total_ns == 0) break;
      if (auto finding = rule(view)) findings.push_back(std::move(*finding));
    }
    add_device(device, tables[0]);
    add_parts(view, tables[1]);
    add_iterations(view, origin_ns, tables[2]);
    if (device.diagnosis.timeline.busy.empty()) continue;
    charts.emplace_back(utilisation(view, device.diagnosis.timeline));
    charts.emplace_back(classes(view, device.diagnosis.timeline));
    if (view.iterations > 1) charts.emplace_back(spread(view, device.diagnosis.timeline));
  }
  return assemble(std::move(findings), std::move(tables), std::move(charts));
}

Result<Report> join(std::span<const RankReport> ranks) {
  std::vector<Table> tables;
  for (const Table& like : {devices_table(), parts_table(), iterations_table()}) {
    auto table = rows_of_all_devices(ranks, like.id);
    if (!table) return tl::unexpected<Error>(std::move(table).error());
    tables.push_back(std::move(*table));
  }
  // Where the axis of a rank's trace begins is not in its report.
  const auto start = std::ranges::find(tables[2].columns, "start", &Column::name);
  for (std::vector<Cell>& row : tables[2].rows) {
    if (ranks.size() > 1) row[static_cast<std::size_t>(start - tables[2].columns.begin())] = Cell();
  }
  std::vector<Finding> findings;
  std::vector<pasta::Part> charts;
  for (const RankReport& rank : ranks) {
    for (const pasta::Part& part : rank.report.parts) {
      if (const auto* finding = std::get_if<Finding>(&part)) {
        if (finding->id != kSkew && finding->id != kNoWork) findings.push_back(*finding);
      } else if (!std::holds_alternative<Table>(part)) {
        charts.push_back(part);
      }
    }
  }
  return assemble(std::move(findings), std::move(tables), std::move(charts));
}

}  // namespace pasta::tools::diagnose
