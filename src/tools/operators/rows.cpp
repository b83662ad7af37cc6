#include "tools/operators/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/common/joining.h"
#include "tools/common/saturate.h"
#include "tools/operators/path_tree.h"

namespace pasta::tools::operators {
namespace {

constexpr double kMuchOutside = 0.1;
constexpr double kMuchInOne = 0.25;
constexpr std::size_t kFew = 3;  // among so few operators one has much of the time anyway

constexpr std::pair<const char*, Number Row::*> kNumbers[] = {
    {"calls", &Row::calls},
    {"host_total", &Row::host_total},
    {"host_self", &Row::host_self},
    {"device_total", &Row::device_total},
    {"device_self", &Row::device_self},
    {"device_backward", &Row::device_backward},
    {"kernels", &Row::kernels},
    {"launches", &Row::launches},
};

// In words a percentage is for orientation; the exact share stands beside it.
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::vector<Finding> findings(std::span<const Row> rows, const Scopes& scopes,
                              std::int64_t device_ns) {
  std::vector<Finding> found;
  const auto called = std::ranges::count_if(rows, [](const Row& row) { return row.calls > 0; });
  if (called == 0) {
    found.push_back({.id = "no-ranges",
                     .text = fmt::format("the trace has no {} of the host", scopes.one),
                     .of = {},
                     .evidence = {},
                     .advice = "record the host too (activities CPU and the accelerator), or "
                               "choose other ranges with the option scopes"});
    return found;
  }
  if (device_ns <= 0) {
    found.push_back({.id = "no-device-time",
                     .text = fmt::format("no device work with a time is in the trace: what the {} "
                                         "launched cannot be told",
                                         scopes.many),
                     .of = {},
                     .evidence = {},
                     .advice = {}});
    return found;
  }
  for (const Row& row : rows) {
    const double share =
        static_cast<double>(row.device_self.value_or(0)) / static_cast<double>(device_ns);
    if (row.name == scopes.outside && share >= kMuchOutside) {
      found.push_back(
          {.id = "much-outside",
           .level = Finding::Level::kWarning,
           .text = fmt::format("{} of the device time belongs to no {}: it was launched outside "
                               "of all {}, or its launch is not in the trace",
                               percent(share), scopes.one, scopes.many),
           .share = share,
           .of = "device time",
           .evidence = {},
           .advice = "start recording before the work begins, and mark your own code with ranges "
                     "(record_function, NVTX)"});
    }
  }
  const auto most = std::ranges::max_element(rows, {}, [&](const Row& row) {
    return row.name == scopes.outside ? -1 : row.device_self.value_or(-1);
  });
  const auto with_time = static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const Row& row) { return row.device_self > 0; }));
  const double share =
      static_cast<double>(most->device_self.value_or(0)) / static_cast<double>(device_ns);
  if (share >= kMuchInOne && with_time > kFew && most->name != scopes.outside) {
    Finding finding{
        .id = "most-in-one",
        .text =
            fmt::format("{}{}{} launched {} of the device time itself", most->name,
                        most->shape ? " of shape " : "", most->shape.value_or(""), percent(share)),
        .share = share,
        .of = "device time",
        .evidence = {{"calls", cell_of(most->calls)}, {"kernels", cell_of(most->kernels)}},
        .advice = {}};
    found.push_back(std::move(finding));
  }
  return found;
}

}  // namespace

Report make_report(std::vector<Row> rows, const Scopes& scopes, bool by_shape,
                   std::optional<TreeNode> paths) {
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tie(b.device_self, b.host_self, a.name, a.shape) <
           std::tie(a.device_self, a.host_self, b.name, b.shape);
  });
  std::int64_t device_ns = 0;
  for (const Row& row : rows) device_ns = add_saturated(device_ns, row.device_self.value_or(0));

  Report report{.tool = "operators", .title = "Operators", .parts = {}};
  for (Finding& finding : findings(rows, scopes, device_ns)) {
    report.parts.emplace_back(std::move(finding));
  }
  Table table{
      .id = "operators", .title = std::string(scopes.title), .columns = {{"name"}}, .rows = {}};
  if (by_shape) table.columns.push_back({"shape"});
  for (const auto& [name, member] : kNumbers) {
    const bool count = member == &Row::calls || member == &Row::kernels || member == &Row::launches;
    table.columns.push_back({name, count ? Unit::kCount : Unit::kNanoseconds});
  }
  table.columns.push_back({"share", Unit::kShare});
  for (Row& row : rows) {
    std::vector<Cell> cells;
    cells.reserve(table.columns.size());
    cells.emplace_back(std::move(row.name));
    if (by_shape) {
      cells.emplace_back();
      if (row.shape) cells.back() = std::move(*row.shape);
    }
    for (const auto& [name, member] : kNumbers) cells.push_back(cell_of(row.*member));
    cells.push_back(share_of(row.device_self, device_ns));
    table.rows.push_back(std::move(cells));
  }
  report.parts.emplace_back(std::move(table));
  if (paths) {
    report.parts.emplace_back(Tree{.id = "paths",
                                   .title = "Device time by call path",
                                   .unit = Unit::kNanoseconds,
                                   .root = std::move(*paths)});
  }
  return report;
}

Result<Report> join(std::span<const RankReport> ranks) {
  std::vector<std::string_view> columns = {"name"};
  for (const auto& [name, member] : kNumbers) columns.emplace_back(name);

  std::map<std::pair<std::string, std::optional<std::string>>, Row> joined;
  std::optional<TreeNode> paths;
  std::string title;
  std::optional<bool> by_shape;
  for (const RankReport& rank : ranks) {
    auto reader = TableReader::open(rank, "operators", columns);
    if (!reader) return tl::unexpected(std::move(reader).error());
    if (!by_shape) {
      title = reader->table().title;
      by_shape = reader->has("shape");
    }
    if (title != reader->table().title || *by_shape != reader->has("shape")) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: the report of operators was made with other options than that "
                              "of {}; make all with the same group and scopes",
                              rank.label, ranks.front().label));
    }
    for (const std::vector<Cell>& cells : reader->rows()) {
      const auto name = reader->text(cells, "name").value_or("");
      const auto shape = *by_shape ? reader->text(cells, "shape") : std::nullopt;
      const auto [known, is_new] = joined.try_emplace({name, shape});
      Row& row = known->second;
      row.name = name;
      row.shape = shape;
      for (const auto& [column, member] : kNumbers) {
        const Number number = reader->integer(cells, column);
        // Unknown can mean that nobody knows which of the two the work belongs to: then the sum
        // without it would be too small. Elsewhere it means that nothing has times, which adds 0.
        const bool divided = member == &Row::device_total || member == &Row::device_backward;
        const bool lost = divided && !is_new && (!number || !(row.*member));
        row.*member = lost ? Number() : add_known(row.*member, number);
      }
    }
    for (const Part& part : rank.report.parts) {
      const auto* tree = std::get_if<Tree>(&part);
      if (tree == nullptr || tree->id != "paths") continue;
      if (!paths) paths = TreeNode{.name = tree->root.name, .children = {}};
      merge(*paths, tree->root);
    }
  }
  const auto scopes = std::ranges::find(all_scopes(), title, &Scopes::title);
  if (scopes == all_scopes().end()) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: \"{}\" is no title of a report of operators",
                            ranks.empty() ? "join" : ranks.front().label, title));
  }
  if (paths) prune(*paths, 0, 0);
  std::vector<Row> rows;
  for (auto& [key, row] : joined) rows.push_back(std::move(row));
  return make_report(std::move(rows), *scopes, *by_shape, std::move(paths));
}

}  // namespace pasta::tools::operators
