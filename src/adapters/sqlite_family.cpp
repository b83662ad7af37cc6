#include "adapters/sqlite_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pasta::adapters {

using base::sqlite::Database;

bool sniff_sqlite(std::span<const std::byte> head) { return base::sqlite::is_database(head); }

Result<std::unique_ptr<Adapter>> open_sqlite(Input input) {
  auto database = Database::open(std::move(input));
  if (!database) return tl::unexpected<Error>(std::move(database).error());
  return open_sqlite(std::move(*database));
}

Result<std::unique_ptr<Adapter>> open_sqlite(Database database) {
  for (const SqliteFamily& family : sqlite_families()) {
    if (family.recognise(database)) return family.open(std::move(database));
  }
  constexpr std::size_t kShown = 5;
  std::string tables;
  for (const auto& table : database.tables().first(std::min(kShown, database.tables().size()))) {
    tables += fmt::format("{}{}", tables.empty() ? "" : ", ", table.name);
  }
  if (database.tables().size() > kShown) {
    tables += fmt::format(" and {} more", database.tables().size() - kShown);
  }
  std::string known;
  for (const SqliteFamily& family : sqlite_families()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.info.help);
  }
  return fail(ErrorCode::kUnsupported,
              fmt::format("{}: a SQLite database that is no trace of a kind that is known here "
                          "({}): its tables are {}",
                          database.path(), known, tables.empty() ? "none" : tables));
}

}  // namespace pasta::adapters
