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
