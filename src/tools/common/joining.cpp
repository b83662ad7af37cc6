#include "tools/common/joining.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "tools/common/ratio.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

const Table* find_table(const Report& report, std::string_view id) {
  for (const Part& part : report.parts) {
    if (const auto* table = std::get_if<Table>(&part); table != nullptr && table->id == id) {
      return table;
    }
  }
  return nullptr;
}

tl::unexpected<Error> missing(const RankReport& rank, std::string_view what) {
  return fail(ErrorCode::kBadInput,
              fmt::format("{}: the report of {} has no {}; make the reports of all ranks with one "
                          "version of pastaprof and the same options",
                          rank.label, rank.report.tool, what));
}

}  // namespace

Result<TableReader> TableReader::open(const RankReport& rank, std::string_view id,
                                      std::span<const std::string_view> columns) {
  const Table* table = find_table(rank.report, id);
  if (table == nullptr) return missing(rank, fmt::format("table {}", id));
  TableReader reader(*table);
  for (const std::string_view column : columns) {
    if (!reader.has(column)) return missing(rank, fmt::format("column {}.{}", id, column));
  }
  return reader;
}

bool TableReader::has(std::string_view column) const {
  return std::ranges::find(table_->columns, column, &Column::name) != table_->columns.end();
}

const Cell* TableReader::find(std::span<const Cell> row, std::string_view column) const {
  const auto at = std::ranges::find(table_->columns, column, &Column::name);
  return &row[static_cast<std::size_t>(at - table_->columns.begin())];
}

std::optional<std::int64_t> TableReader::integer(std::span<const Cell> row,
                                                 std::string_view column) const {
  const auto* number = std::get_if<std::int64_t>(find(row, column));
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<std::string> TableReader::text(std::span<const Cell> row,
                                             std::string_view column) const {
  const auto* text = std::get_if<std::string>(find(row, column));
  return text == nullptr ? std::nullopt : std::optional(*text);
}

Result<Table> rows_of_all_devices(std::span<const RankReport> ranks, std::string_view id) {
  Table all;
  for (const RankReport& rank : ranks) {
    const Table* table = find_table(rank.report, id);
    if (table == nullptr) return missing(rank, fmt::format("table {}", id));
    if (&rank == &ranks.front()) {
      all = {.id = table->id, .title = table->title, .columns = table->columns, .rows = {}};
    } else if (table->columns != all.columns) {
      return missing(rank, fmt::format("table {} with the columns of the others", id));
    }
    all.rows.insert(all.rows.end(), table->rows.begin(), table->rows.end());
  }
  std::ranges::stable_sort(all.rows, natural_less, [](const std::vector<Cell>& row) {
    const auto* device = std::get_if<std::string>(&row.front());
    return device == nullptr ? std::string_view() : std::string_view(*device);
  });
  return all;
}

namespace {

constexpr std::string_view kProcess = "process";

bool names_processes(const Table& table) {
  return !table.columns.empty() && table.columns.front().name == kProcess;
}

std::string_view text_of(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

}  // namespace

Status add_rows_by_process(Table& all, std::span<const RankReport> ranks, bool may_lack) {
  const std::vector<Column> columns = all.columns;
  std::vector<Column> with_process = columns;
  with_process.insert(with_process.begin(), {std::string(kProcess)});
  for (const RankReport& rank : ranks) {
    const Table* table = find_table(rank.report, all.id);
    if (table == nullptr && may_lack) continue;
    if (table == nullptr) return missing(rank, fmt::format("table {}", all.id));
    const bool named = names_processes(*table);
    if (table->columns != (named ? with_process : columns)) {
      return missing(rank, fmt::format("table {} with the columns of the others", all.id));
    }
    if (named || ranks.size() > 1) all.columns = with_process;
    for (std::vector<Cell> row : table->rows) {
      if (!named && ranks.size() > 1) row.insert(row.begin(), rank.label);
      all.rows.push_back(std::move(row));
    }
  }
  std::ranges::stable_sort(all.rows, natural_less,
                           [](const std::vector<Cell>& row) { return text_of(row.front()); });
  return {};
}

void add_findings_by_process(std::vector<LabelledFinding>& all, const RankReport& rank,
                             std::string_view table, std::size_t ranks) {
  const Table* names = find_table(rank.report, table);
  const bool named = names != nullptr && names_processes(*names);
  for (const Part& part : rank.report.parts) {
    const auto* finding = std::get_if<Finding>(&part);
    if (finding == nullptr) continue;
    LabelledFinding& one = all.emplace_back(LabelledFinding{rank.label, *finding});
    if (named) {
      one.process = one.finding.text.substr(0, one.finding.text.find(": "));
    } else if (ranks > 1) {
      one.finding.text.insert(0, rank.label + ": ");
    }
  }
  std::ranges::stable_sort(all, natural_less, &LabelledFinding::process);
}

const Finding* find_finding(const Report& report, std::string_view id) {
  for (const Part& part : report.parts) {
    if (const auto* finding = std::get_if<Finding>(&part);
        finding != nullptr && finding->id == id) {
      return finding;
    }
  }
  return nullptr;
}

std::optional<std::int64_t> add_known(std::optional<std::int64_t> a,
                                      std::optional<std::int64_t> b) {
  if (!a) return b;
  return b ? std::optional(add_saturated(*a, *b)) : a;
}

std::int64_t rounded_mean(std::int64_t sum, std::int64_t number) {
  const std::int64_t rest = sum % number;
  return sum / number + (rest >= number - rest ? 1 : 0);
}

Cell cell_of(std::optional<std::int64_t> number) { return number ? Cell(*number) : Cell(); }

Cell share_of(std::optional<std::int64_t> part, std::int64_t whole) {
  return part ? ratio_cell(*part, whole) : Cell();
}

}  // namespace pasta::tools
