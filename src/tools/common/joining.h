// What the joins of tools share: reading tables of reports back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::tools {

// A table of a report, by the names of its columns.
class TableReader {
 public:
  // kBadInput, naming rank and table, when there is no such table or a column is missing.
  static Result<TableReader> open(const RankReport& rank, std::string_view table,
                                  std::span<const std::string_view> columns);
  [[nodiscard]] const Table& table() const { return *table_; }
  [[nodiscard]] bool has(std::string_view column) const;
  [[nodiscard]] const std::vector<std::vector<Cell>>& rows() const { return table_->rows; }
  // Of a column that is there. Unknown, or not of the type: none.
  [[nodiscard]] std::optional<std::int64_t> integer(std::span<const Cell> row,
                                                    std::string_view column) const;
  [[nodiscard]] std::optional<std::string> text(std::span<const Cell> row,
                                                std::string_view column) const;

 private:
  explicit TableReader(const Table& table) : table_(&table) {}
  [[nodiscard]] const Cell* find(std::span<const Cell> row, std::string_view column) const;

  const Table* table_;
};

// The rows of table `id` of all ranks, in the natural order of their first cells, the devices; all
// must have the same columns.
Result<Table> rows_of_all_devices(std::span<const RankReport> ranks, std::string_view id);

// The rows of the table of that id of all ranks, whose first column is `process` where a session
// tells of several: a rank's own names, or its label where its report tells of one process and has
// none. One rank's stay as they are. In the natural order of processes. kBadInput where a rank has
// other columns than `all`, or no such table unless it `may_lack` one.
Status add_rows_by_process(Table& all, std::span<const RankReport> ranks, bool may_lack);

struct LabelledFinding {
  std::string process;
  Finding finding;
};
// Adds a rank's findings about processes, named likewise by what their text begins with, in the
// natural order of processes. The columns of `table` tell whether they have names already.
void add_findings_by_process(std::vector<LabelledFinding>& all, const RankReport& rank,
                             std::string_view table, std::size_t ranks);

// The finding with that id, or null.
const Finding* find_finding(const Report& report, std::string_view id);

// a + b; unknown only where both are.
std::optional<std::int64_t> add_known(std::optional<std::int64_t> a, std::optional<std::int64_t> b);

// Sum by number, rounded to the nearest integer, halves up; number > 0.
std::int64_t rounded_mean(std::int64_t sum, std::int64_t number);

Cell cell_of(std::optional<std::int64_t> number);
// Part of the whole; unknown where one of them is, or the whole is nothing.
Cell share_of(std::optional<std::int64_t> part, std::int64_t whole);

}  // namespace pasta::tools
