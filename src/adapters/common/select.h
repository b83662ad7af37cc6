// Queries over tables whose columns differ from one version of a profiler to the next.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sqlite.h"

namespace pasta::adapters::common {

// A SELECT from one table and from others joined to it. A reader asks for all columns that it
// knows, and works with what there is.
class Select {
 public:
  // `alias.column` of what was named before equals `other` of the table that is being joined.
  struct Equal {
    std::string_view alias, column, other;
  };

  // `database` outlives this object. A table that is not there gives no rows.
  Select(const base::sqlite::Database& database, std::string_view table, std::string_view alias);

  // LEFT JOIN on all pairs of `on`, and on those of `also` that both sides have. Does nothing, and
  // returns false, where the table or a column of `on` is not there.
  bool join(std::string_view table, std::string_view alias, std::initializer_list<Equal> on,
            std::initializer_list<Equal> also = {});

  [[nodiscard]] bool has(std::string_view alias, std::string_view column) const;
  // The number, from 0, under which each row has it; kAbsent for one that is not there.
  static constexpr int kAbsent = -1;
  int column(std::string_view alias, std::string_view column);
  int expression(std::string_view sql);

  // `tail`: what follows the tables ("WHERE ...", "ORDER BY ...").
  [[nodiscard]] std::string sql(std::string_view tail = {}) const;
  // The rows, for Statement::each(). No expression may look at other rows of the tables.
  Result<base::sqlite::Statement> rows() const;

 private:
  const base::sqlite::Database& database_;
  std::vector<std::pair<std::string, std::string>> tables_;  // alias, name; only those there are
  std::string from_;
  std::vector<std::string> columns_;
  std::string furthest_ = "NULL";  // of the columns of the first table, as they lie in it
  std::size_t furthest_place_ = 0;
  bool view_ = false;  // one of the tables is
};

}  // namespace pasta::adapters::common
