#include "adapters/nsys_sqlite/strings.h"

#include <fmt/format.h>

#include <utility>

namespace pasta::adapters::nsys_sqlite {

using base::sqlite::Database;
using base::sqlite::Row;
using base::sqlite::Type;

namespace {

constexpr std::string_view kTable = "StringIds";
constexpr std::array<std::string_view, 2> kColumns = {"value", "id"};

bool has_key(const Database& database) {
  auto plan = database.query("EXPLAIN QUERY PLAN SELECT value FROM StringIds WHERE id = 1");
  return plan && plan->step().value_or(false) && plan->text(3).starts_with("SEARCH");
}

}  // namespace

Strings::Strings(Dictionary& dictionary, Problems& problems, const Database& database)
    : dictionary_(dictionary), problems_(problems) {
  if (!database.has(kTable, "id") || !database.has(kTable, "value")) return;
  const bool key = has_key(database);
  auto rows = database.select(kTable, kColumns, key ? "WHERE id = ?" : "");
  if (!rows) {
    problems_.add(Reason::kRecordSkipped, 1, rows.error().message);
    return;
  }
  if (key) {
    lookup_ = std::move(*rows);
    return;
  }
  Result<bool> more = rows->step();
  for (; more && *more; more = rows->step()) {
    if (const auto id = rows->integer(1)) whole_.try_emplace(*id, rows->text(0));
  }
  if (!more) problems_.add(Reason::kRecordSkipped, 1, more.error().message);
}

std::optional<std::string_view> Strings::text(const Row& row, int column) {
  const Row::Cell& cell = row.cell(column);
  switch (cell.type) {
    case Type::kText:
      return row.text(column);
    case Type::kInteger:
      return text(cell.integer);
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> Strings::text(std::int64_t id) {
  if (lookup_) {
    lookup_->restart(id);
    const auto found = lookup_->step();
    if (found && *found) return lookup_->text(0);
    if (!found) {
      problems_.add(Reason::kRecordSkipped, 1, found.error().message);
      return std::nullopt;
    }
  } else if (const auto it = whole_.find(id); it != whole_.end()) {
    return it->second;
  }
  problems_.add(Reason::kMissingField,
                [&] { return fmt::format("no string {} in {}", id, kTable); });
  return std::nullopt;
}

StringId Strings::name(const Row& row, int column) {
  const Row::Cell& cell = row.cell(column);
  if (cell.type != Type::kInteger) {
    const auto own = text(row, column);
    return own ? intern(*own) : StringId{};
  }
  return names_.get(cell.integer, [&] {
    const auto found = text(cell.integer);
    return found ? intern(*found) : StringId{};
  });
}

StringId Strings::intern(std::string_view text) {
  return text.empty() ? StringId{} : dictionary_.string(text);
}

}  // namespace pasta::adapters::nsys_sqlite
