#include "tools/kernels/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "tools/common/joining.h"
#include "tools/common/saturate.h"

namespace pasta::tools::kernels {
namespace {

using Number = std::optional<std::int64_t>;

constexpr std::string_view kOwnColumns[] = {"name",   "calls", "total", "share", "mean",
                                            "median", "p95",   "min",   "max",   "class"};

struct Row {
  std::string name, type;
  std::int64_t calls = 0;
  Number total, min, max;
  bool all_timed = true;     // else the number of timed calls is not known
  int reports = 0;           // that have it
  Number mean, median, p95;  // of the one report that has it
  std::int64_t ranks = 0;
  Number rank_min_total, rank_max_total;
  std::string slowest;
};

template <class Better>
void keep(Number& kept, Number other, Better better) {
  if (other && (!kept || better(*other, *kept))) kept = other;
}

void add(Row& row, const TableReader& reader, const std::vector<Cell>& cells,
         const RankReport& rank) {
  const auto integer = [&](std::string_view column) { return reader.integer(cells, column); };
  const std::string type = reader.text(cells, "class").value_or("");
  row.type = row.reports == 0 || row.type == type ? type : "mixed";
  ++row.reports;
  row.calls += integer("calls").value_or(0);
  row.total = add_known(row.total, integer("total"));
  row.all_timed &= rank.untimed == 0;
  keep(row.min, integer("min"), std::less<>());
  keep(row.max, integer("max"), std::greater<>());
  row.mean = integer("mean");
  row.median = integer("median");
  row.p95 = integer("p95");

  const bool joined = reader.has("slowest_rank");
  row.ranks += joined ? integer("ranks").value_or(0) : 1;
  keep(row.rank_min_total, integer(joined ? "rank_min_total" : "total"), std::less<>());
  const Number slowest = integer(joined ? "rank_max_total" : "total");
  if (slowest && (!row.rank_max_total || *slowest > *row.rank_max_total)) {
    row.rank_max_total = slowest;
    row.slowest = joined ? reader.text(cells, "slowest_rank").value_or("") : rank.label;
  }
}

std::vector<Cell> cells_of(const Row& row, std::int64_t total) {
  const bool one = row.reports == 1;
  const bool mean_known = row.total && row.all_timed && row.calls > 0;
  return {row.name,
          row.calls,
          cell_of(row.total),
          share_of(row.total, total),
          cell_of(one          ? row.mean
                  : mean_known ? Number(rounded_mean(*row.total, row.calls))
                               : Number()),
          cell_of(one ? row.median : Number()),
          cell_of(one ? row.p95 : Number()),
          cell_of(row.min),
          cell_of(row.max),
          row.type,
          row.ranks,
          cell_of(row.rank_min_total),
          cell_of(row.rank_max_total),
          row.slowest.empty() ? Cell() : Cell(row.slowest)};
}

}  // namespace

Result<Report> join(std::span<const RankReport> ranks) {
  std::map<std::string, Row> by_name;
  std::string title;
  std::vector<Column> columns;
  for (const RankReport& rank : ranks) {
    auto reader = TableReader::open(rank, "kernels", kOwnColumns);
    if (!reader) return tl::unexpected(std::move(reader).error());
    if (const Finding* cut = find_finding(rank.report, "rows-left-out")) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: the report of kernels is not whole ({}); make it without the "
                              "option top",
                              rank.label, cut->text));
    }
    if (columns.empty()) {
      title = reader->table().title;
      columns = reader->table().columns;
      columns.resize(std::size(kOwnColumns));
    }
    for (const std::vector<Cell>& cells : reader->rows()) {
      const std::string name = reader->text(cells, "name").value_or("");
      Row& row = by_name[name];
      row.name = name;
      add(row, *reader, cells, rank);
    }
  }
  columns.insert(columns.end(), {{"ranks", Unit::kCount},
                                 {"rank_min_total", Unit::kNanoseconds},
                                 {"rank_max_total", Unit::kNanoseconds},
                                 {"slowest_rank"}});

  std::vector<Row> rows;
  std::int64_t total = 0;
  for (auto& [name, row] : by_name) {
    total = add_saturated(total, row.total.value_or(0));
    rows.push_back(std::move(row));
  }
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tuple(b.total.value_or(0), std::string_view(a.name)) <
           std::tuple(a.total.value_or(0), std::string_view(b.name));
  });
  Report report{.tool = "kernels", .title = ranks.front().report.title, .parts = {}};
  const Finding* nothing = find_finding(ranks.front().report, "no-kernels");
  if (rows.empty() && nothing != nullptr) report.parts.emplace_back(*nothing);
  Table table{.id = "kernels", .title = title, .columns = std::move(columns), .rows = {}};
  for (const Row& row : rows) table.rows.push_back(cells_of(row, total));
  report.parts.emplace_back(std::move(table));
  return report;
}

}  // namespace pasta::tools::kernels
