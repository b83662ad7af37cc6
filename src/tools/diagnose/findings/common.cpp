#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/units.h"
#include "tools/common/demangle.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/findings.h"

namespace pasta::tools::diagnose {
namespace {

struct Row {
  std::string name;
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
};

void add_rows(const View& view, std::string_view key, std::vector<Row> rows, std::size_t count,
              Finding& finding) {
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  rows.resize(std::min(rows.size(), count));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = fmt::format("{}_{}", key, i + 1);
    finding.evidence.emplace_back(name, rows[i].name);
    finding.evidence.emplace_back(name + "_time", view.mean(rows[i].total_ns), Unit::kNanoseconds);
    finding.evidence.emplace_back(
        name + "_calls", static_cast<double>(rows[i].calls) / static_cast<double>(view.iterations));
  }
}

// Names of kernels with all their template arguments fill pages; the tool kernels has them whole.
std::string shown(std::string name) {
  constexpr std::size_t kShown = 100;
  if (name.size() <= kShown) return name;
  std::size_t end = kShown - 3;
  while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // inside a character
  return name.substr(0, end) + "...";
}

// The innermost operator or module of a call path, else its innermost range.
std::string place_of(const Dictionary& dictionary, FrameId id) {
  std::string innermost;
  for (; id;) {
    const Frame frame = dictionary.frame(id);
    if (innermost.empty()) innermost = dictionary.text(frame.name);
    if (frame.domain == ScopeDomain::kOperator || frame.domain == ScopeDomain::kModule) {
      return std::string(dictionary.text(frame.name));
    }
    id = frame.parent;
  }
  return innermost;
}

}  // namespace

std::span<const Rule> rules() {
  static constexpr Rule kRules[] = {
      launch_bound,         host_sync,    input_bound,       exposed_communication, exposed_copy,
      gemm_precision,       gemm_choice,  layout_conversion, small_kernels,         tail_effect,
      low_occupancy_launch, memory_churn, stream_serialised, slow_iterations,       recompute};
  return kRules;
}

std::optional<Finding> begin(const View& view, std::string_view id, Basis basis, Cost cost) {
  const double at_most = view.share(cost.at_most_ns);
  if (view.share(cost.total_ns) < kWorthNoting) return std::nullopt;
  Finding finding{.id = std::string(id),
                  .level = Finding::Level::kInfo,
                  .text = {},
                  .share = std::min(view.share(cost.total_ns), 1.0),
                  .of = std::string(view.of()),
                  .evidence = {},
                  .advice = {}};
  if (at_most >= kWorthSaying) finding.level = Finding::Level::kWarning;
  if (at_most >= kSevere) finding.level = Finding::Level::kProblem;
  finding.evidence = {{"device", view.device.empty() ? Cell() : Cell(view.device)},
                      {"basis", std::string(basis == Basis::kMeasured ? "measured" : "inferred")},
                      {"cost", view.mean(cost.total_ns), Unit::kNanoseconds},
                      {"at_most_saved", view.mean(cost.at_most_ns), Unit::kNanoseconds},
                      {"at_most_saved_share", std::min(at_most, 1.0), Unit::kShare}};
  return finding;
}

void add_work(const View& view, std::span<const WorkUse* const> uses, std::size_t count,
              Finding& finding) {
  std::map<StringId, Row> by_name;
  for (const WorkUse* use : uses) {
    Row& row = by_name[use->key.name];
    row.calls += use->calls;
    row.total_ns = add_saturated(row.total_ns, use->total_ns);
  }
  std::vector<Row> rows;
  for (auto& [name, row] : by_name) {
    row.name = shown(demangle(view.dictionary->text(name)));
    rows.push_back(std::move(row));
  }
  add_rows(view, "work", std::move(rows), count, finding);
}

void add_calls(const View& view, std::span<const CallUse> calls, std::size_t count,
               Finding& finding) {
  std::vector<Row> rows;
  for (const CallUse& call : calls) {
    const std::string place = place_of(*view.dictionary, call.scope);
    std::string name(view.dictionary->text(call.name));
    if (!place.empty()) name += " in " + place;
    const auto same = std::ranges::find(rows, name, &Row::name);
    Row& row = same != rows.end() ? *same : rows.emplace_back(Row{.name = std::move(name)});
    row.calls += call.calls;
    row.total_ns = add_saturated(row.total_ns, call.total_ns);
  }
  add_rows(view, "call", std::move(rows), count, finding);
}

std::int64_t total_of(std::span<const WorkUse* const> uses) {
  std::int64_t total = 0;
  for (const WorkUse* use : uses) total = add_saturated(total, use->total_ns);
  return total;
}

std::int64_t calls_of(std::span<const WorkUse* const> uses) {
  std::int64_t calls = 0;
  for (const WorkUse* use : uses) calls += use->calls;
  return calls;
}

std::string amount(const View& view, std::int64_t sum_ns) {
  return fmt::format("{} ({})", base::format_duration(view.mean(sum_ns)),
                     base::format_share(std::min(view.share(sum_ns), 1.0)));
}

}  // namespace pasta::tools::diagnose
