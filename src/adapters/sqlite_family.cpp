#include "adapters/sqlite_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace pasta::adapters {

using base::sqlite::Database;

namespace {

const SqliteFamily* family_of(const Database& database) {
  const std::span<const SqliteFamily> all = sqlite_families();
  const auto it = std::find_if(all.begin(), all.end(), [&](const SqliteFamily& family) {
    return family.recognise(database);
  });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace

bool sniff_sqlite(std::span<const std::byte> head) { return base::sqlite::is_database(head); }

Result<std::unique_ptr<Adapter>> open_sqlite(Input input) {
  auto database = Database::open(std::move(input));
  if (!database) return tl::unexpected<Error>(std::move(database).error());
  return open_sqlite(std::move(*database));
}

bool confirm_sqlite(ByteStream& stream) {
  std::vector<std::byte> bytes(std::size_t{16} << 20);
  const auto got = stream.read(bytes);
  if (!got || *got == bytes.size()) return true;
  const auto database = Database::open_memory(std::span(bytes).first(*got), "");
  return !database || family_of(*database) != nullptr;  // a damaged one is worth a message
}

Result<std::unique_ptr<Adapter>> open_sqlite(Database database) {
  if (const SqliteFamily* const family = family_of(database)) {
    return family->open(std::move(database));
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
