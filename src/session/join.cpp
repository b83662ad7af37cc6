#include "session/join.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "pasta/event.h"
#include "session/labels.h"

namespace pasta::session {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// What tells the answers apart. One of several sources keeps what its session called them.
Result<std::vector<std::string>> labels_of(std::span<const Answer> answers) {
  std::vector<SourceInfo> infos;
  for (const Answer& answer : answers) {
    SourceInfo& info = infos.emplace_back();
    info.path = answer.path;
    info.label = answer.label;
    const auto& sources = answer.document.trace.sources;
    if (sources.size() != 1) continue;
    if (info.label.empty()) info.label = sources[0].label;
    if (const auto* rank = std::get_if<std::int64_t>(&sources[0].rank)) {
      info.rank = static_cast<std::int32_t>(*rank);
    }
  }
  PASTA_TRY(label_sources(infos));
  std::vector<std::string> labels;
  for (SourceInfo& info : infos) labels.push_back(std::move(info.label));
  return labels;
}

// The new names of an answer's devices.
std::map<std::string, std::string> device_names(const TraceSummary& trace,
                                                const std::string& label) {
  std::map<std::string, std::string> names;
  for (const TraceSummary::DeviceFacts& device : trace.devices) {
    // A bare number is the ordinal of the only process's device.
    const char* word = device.type == "cpu"           ? "cpu "
                       : device.type == "accelerator" ? "accelerator "
                                                      : "gpu ";
    names[device.id] = fmt::format("{} {}{}", label, is_number(device.id) ? word : "", device.id);
  }
  return names;
}

void rename_devices(Document& document, const std::map<std::string, std::string>& names) {
  const auto rename = [&](std::string& device) {
    if (const auto name = names.find(device); name != names.end()) device = name->second;
  };
  for (auto& device : document.trace.devices) rename(device.id);
  for (auto& lane : document.trace.lanes) rename(lane.device);
  for (Report& report : document.reports) {
    for (Part& part : report.parts) {
      auto* table = std::get_if<Table>(&part);
      if (table == nullptr) continue;
      for (std::size_t column = 0; column < table->columns.size(); ++column) {
        if (table->columns[column].name != "device") continue;
        for (auto& row : table->rows) {
          if (auto* device = std::get_if<std::string>(&row[column])) rename(*device);
        }
      }
    }
  }
}

Status check_devices(std::span<const Answer> answers) {
  std::map<std::string, const Answer*> owners;
  for (const Answer& answer : answers) {
    for (const auto& device : answer.document.trace.devices) {
      const auto [owner, is_new] = owners.try_emplace(device.id, &answer);
      if (is_new || owner->second == &answer) continue;
      return fail(ErrorCode::kUsage,
                  fmt::format("{} and {} both tell of device \"{}\"; if they are of different "
                              "runs, make them with one --label for each trace",
                              owner->second->path, answer.path, device.id));
    }
  }
  return {};
}

std::int64_t count_of(const TraceSummary& trace, std::string_view kind) {
  for (const auto& [name, count] : trace.events) {
    if (name == kind) return count;
  }
  return 0;
}

TraceSummary add_up(std::span<const Answer> answers) {
  TraceSummary sum;
  double linked = 0;
  std::map<std::string, std::int64_t> events;
  for (const Answer& answer : answers) {
    const TraceSummary& trace = answer.document.trace;
    sum.sources.insert(sum.sources.end(), trace.sources.begin(), trace.sources.end());
    sum.lanes.insert(sum.lanes.end(), trace.lanes.begin(), trace.lanes.end());
    sum.devices.insert(sum.devices.end(), trace.devices.begin(), trace.devices.end());
    sum.problems.insert(sum.problems.end(), trace.problems.begin(), trace.problems.end());
    sum.untimed += trace.untimed;
    sum.lost += trace.lost;
    for (const auto& [kind, count] : trace.events) events[kind] += count;
    if (const auto* share = std::get_if<double>(&trace.kernels_linked)) {
      linked += std::round(*share * static_cast<double>(count_of(trace, "kernel")));
    }
  }
  for (unsigned kind = 0; kind < kKindCount; ++kind) {
    const std::string name(kind_name(static_cast<Kind>(kind)));
    if (events[name] > 0) sum.events.emplace_back(name, events[name]);
  }
  if (const std::int64_t kernels = count_of(sum, "kernel"); kernels > 0) {
    sum.kernels_linked = linked / static_cast<double>(kernels);
  }
  // When the sources' clocks began is not in a report: only one answer knows its span.
  if (answers.size() == 1) sum.span_ns = answers[0].document.trace.span_ns;
  sum.filter = answers.front().document.trace.filter;
  // As in a report of one session: the worst first, then the most frequent.
  const auto rank = [](const TraceSummary::ProblemRow& row) {
    constexpr std::string_view kOrder[] = {"dropped", "altered", "repaired", "note"};
    return std::ranges::find(kOrder, row.severity) - std::begin(kOrder);
  };
  std::ranges::stable_sort(sum.problems, [&](const auto& a, const auto& b) {
    return std::pair(rank(a), b.count) < std::pair(rank(b), a.count);
  });
  return sum;
}

}  // namespace

Result<Joined> join(std::vector<Answer> answers, std::span<const ToolEntry> tools) {
  if (answers.empty()) return fail(ErrorCode::kUsage, "there is nothing to join");
  auto labels = labels_of(answers);
  if (!labels) return tl::unexpected(std::move(labels).error());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Document& document = answers[i].document;
    const std::string& first = answers[0].document.trace.filter;
    if (document.trace.filter != first) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{} is about {}, but {} about {}; make all with the same filter",
                              answers[i].path,
                              document.trace.filter.empty() ? "everything" : document.trace.filter,
                              answers[0].path, first.empty() ? "everything" : first));
    }
    auto& sources = document.trace.sources;
    if (sources.size() != 1 || (*labels)[i].empty()) continue;
    sources[0].label = (*labels)[i];
    rename_devices(document, device_names(document.trace, (*labels)[i]));
  }
  PASTA_TRY(check_devices(answers));

  std::vector<std::string> names;
  for (const Answer& answer : answers) {
    for (const Report& report : answer.document.reports) {
      if (std::ranges::find(names, report.tool) == names.end()) names.push_back(report.tool);
    }
  }
  Joined joined{.document = {.trace = add_up(answers), .reports = {}}, .left_out = {}};
  for (const std::string& name : names) {
    const auto tool = std::ranges::find(tools, name, &ToolEntry::name);
    if (tool == tools.end() || tool->join == nullptr) {
      joined.left_out.push_back(name);
      continue;
    }
    std::vector<RankReport> ranks;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      Document& document = answers[i].document;
      const auto report = std::ranges::find(document.reports, name, &Report::tool);
      if (report == document.reports.end()) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("{} has no report of tool {}, others have; make all with the same "
                                "tools",
                                answers[i].path, name));
      }
      ranks.push_back({.label = (*labels)[i].empty() ? answers[i].path : (*labels)[i],
                       .untimed = document.trace.untimed,
                       .report = std::move(*report)});
    }
    auto report = tool->join(ranks);
    if (!report) return tl::unexpected(std::move(report).error());
    joined.document.reports.push_back(std::move(*report));
  }
  if (joined.document.reports.empty()) {
    std::vector<std::string_view> can;
    for (const ToolEntry& tool : tools) {
      if (tool.join != nullptr) can.push_back(tool.name);
    }
    return fail(ErrorCode::kUnsupported,
                fmt::format("there is no report that joins; those of {} do", fmt::join(can, ", ")));
  }
  return joined;
}

}  // namespace pasta::session
