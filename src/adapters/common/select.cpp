#include "adapters/common/select.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pasta::adapters::common {

using base::sqlite::identifier;

Select::Select(const base::sqlite::Database& database, std::string_view table,
               std::string_view alias)
    : database_(database) {
  if (!database.has(table)) return;
  tables_.emplace_back(alias, table);
  from_ = fmt::format("{} AS {}", identifier(table), alias);
  view_ = database.table(table)->view;
}

bool Select::has(std::string_view alias, std::string_view column) const {
  const auto it = std::ranges::find(tables_, alias, &std::pair<std::string, std::string>::first);
  return it != tables_.end() && database_.has(it->second, column);
}

bool Select::join(std::string_view table, std::string_view alias, std::initializer_list<Equal> on,
                  std::initializer_list<Equal> also) {
  const auto both = [&](const Equal& pair) {
    return has(pair.alias, pair.column) && database_.has(table, pair.other);
  };
  if (!std::ranges::all_of(on, both)) return false;
  std::string condition;
  const auto add = [&](const Equal& pair) {
    condition += fmt::format("{}{}.{} = {}.{}", condition.empty() ? "" : " AND ", alias,
                             identifier(pair.other), pair.alias, identifier(pair.column));
  };
  std::ranges::for_each(on, add);
  for (const Equal& pair : also) {
    if (both(pair)) add(pair);
  }
  tables_.emplace_back(alias, table);
  view_ |= database_.table(table)->view;
  from_ += fmt::format(" LEFT JOIN {} AS {} ON {}", identifier(table), alias, condition);
  return true;
}

int Select::column(std::string_view alias, std::string_view column) {
  if (!has(alias, column)) return kAbsent;
  const int number = expression(fmt::format("{}.{}", alias, identifier(column)));
  if (alias == tables_.front().first) {
    const std::size_t place = *database_.table(tables_.front().second)->place(column);
    if (place >= furthest_place_) {
      furthest_place_ = place;
      furthest_ = columns_.back();
    }
  }
  return number;
}

int Select::expression(std::string_view sql) {
  columns_.emplace_back(sql);
  return static_cast<int>(columns_.size()) - 1;
}

std::string Select::sql(std::string_view tail) const {
  const std::string columns =
      columns_.empty() ? "NULL" : fmt::format("{}", fmt::join(columns_, ", "));
  if (from_.empty()) return fmt::format("SELECT {} WHERE 0", columns);
  return fmt::format("SELECT {} FROM {} {}", columns, from_, tail);
}

Result<base::sqlite::Statement> Select::rows() const {
  // A view may order its rows.
  if (from_.empty() || view_) return database_.query(sql());
  return database_.scan(columns_, furthest_, from_);
}

}  // namespace pasta::adapters::common
