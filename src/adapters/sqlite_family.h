// Formats that are SQLite databases: told from each other by their tables, not by first bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/sqlite.h"
#include "pasta/adapter.h"

namespace pasta::adapters {

// One line of the list in builtin.cpp.
struct SqliteFamily {
  AdapterInfo info;
  // Whether the tables are this family's, with columns that it cannot be without.
  bool (*recognise)(const base::sqlite::Database& database);
  Result<std::unique_ptr<Adapter>> (*open)(base::sqlite::Database database);
};
std::span<const SqliteFamily> sqlite_families();

// The functions of every family's ReaderEntry: any of them opens any database, with the first
// family that recognises it. One of no family is refused, naming some of its tables.
bool sniff_sqlite(std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open_sqlite(Input input);
// False for a database of up to 16 MiB that no family recognises; what is larger may be a trace.
bool confirm_sqlite(ByteStream& stream);
constexpr ReaderEntry sqlite_reader(const AdapterInfo& info) {
  return {.info = info, .sniff = sniff_sqlite, .open = open_sqlite, .confirm = confirm_sqlite};
}
// As open_sqlite(), for a database that is open already.
Result<std::unique_ptr<Adapter>> open_sqlite(base::sqlite::Database database);

}  // namespace pasta::adapters
