#include "adapters/common/string_table.h"

#include <fmt/format.h>

#include <utility>

namespace pasta::adapters::common {

using base::sqlite::identifier;

StringTable::StringTable(const base::sqlite::Database& database, Dictionary& dictionary,
                         std::string_view table, std::string_view id_column,
                         std::string_view text_column)
    : database_(database), dictionary_(dictionary), id_column_(identifier(id_column)) {
  if (!database.has(table, id_column) || !database.has(table, text_column)) return;
  sql_ =
      fmt::format("SELECT {}, {} FROM {}", id_column_, identifier(text_column), identifier(table));
  // A whole-numbered primary key is the key of the table itself.
  auto key = database.query(
      fmt::format("SELECT 1 FROM pragma_table_info({}) WHERE pk = 1 AND name = {} COLLATE NOCASE "
                  "AND type = 'INTEGER' COLLATE NOCASE",
                  identifier(table), identifier(id_column)));
  if (!key) return;
  auto found = key->step();
  one_by_one_ = found && *found;
}

StringId StringTable::get(std::int64_t id) {
  if (sql_.empty()) return {};
  if (const auto it = known_.find(id); it != known_.end()) return it->second;
  if (one_by_one_) {
    fetch(fmt::format("WHERE {} = {}", id_column_, id));
  } else if (!all_fetched_) {
    all_fetched_ = true;
    fetch("");
  }
  return known_.try_emplace(id).first->second;
}

void StringTable::fetch(std::string_view condition) {
  auto rows = database_.query(fmt::format("{} {}", sql_, condition));
  Result<bool> more = true;
  while (rows && (more = rows->step()) && *more) {
    if (const auto id = rows->integer(0)) {
      known_.try_emplace(*id, dictionary_.string(rows->text(1)));
    }
  }
  if (!damage_.empty() || (rows && more)) return;
  damage_ = rows ? std::move(more).error().message : std::move(rows).error().message;
}

}  // namespace pasta::adapters::common
