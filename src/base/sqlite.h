// SQLite databases, only ever read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/result.h"

struct sqlite3_stmt;
struct sqlite3_value;

namespace pasta::base::sqlite {

enum class Type : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

// A row of a query. Columns count from 0. SQLite's types are those of the value, not of the column:
// any column may hold any type, so readers ask.
class Row {
 public:
  // What stands there: `integer` is set for kInteger only.
  struct Cell {
    Type type = Type::kNull;
    std::int64_t integer = 0;
  };
  // The quickest way to a column that nearly always holds an integer or NULL.
  [[nodiscard]] const Cell& cell(int column) const {
    return cells_[static_cast<std::size_t>(column)];
  }
  [[nodiscard]] Type type(int column) const { return cell(column).type; }
  [[nodiscard]] bool null(int column) const { return type(column) == Type::kNull; }
  // The value as a whole number, where it is one exactly: an integer, a real without fraction, or
  // decimal text. Nothing for NULL, and nothing for what would have to be guessed.
  [[nodiscard]] std::optional<std::int64_t> integer(int column) const {
    const Cell& known = cell(column);
    if (known.type == Type::kInteger) return known.integer;
    if (known.type == Type::kNull) return std::nullopt;
    return whole_number(column);
  }
  // As a number for showing; nothing when it is none.
  [[nodiscard]] std::optional<double> real(int column) const;
  // The bytes of a text or blob; numbers and NULL give "". Valid until the next row.
  [[nodiscard]] std::string_view text(int column) const;

  // Whether the table has this column at all; see Database::select().
  [[nodiscard]] bool has(int column) const { return present_[static_cast<std::size_t>(column)]; }
  // How many there were up to this one.
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

 protected:
  [[nodiscard]] std::optional<std::int64_t> whole_number(int column) const;

  sqlite3_value* const* values_ = nullptr;
  std::vector<Cell> cells_;  // what `values_` are
  std::vector<bool> present_;
  std::uint64_t rows_ = 0;
};

// The rows of one query, from front to back; it is itself the row that it stands on.
class Statement : public Row {
 public:
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  // False after the last row. kBadInput for a damaged page: names file and table and says how many
  // rows came before, which were good. Not for what Database::scan() gave.
  Result<bool> step();
  // Has `take` called for each row, until it returns false or `limit` rows were taken. Then true;
  // false after the last row; errors as of step(). `take` may run other statements, not this one.
  using Take = std::function<bool(const Row&)>;
  Result<bool> each(std::size_t limit, const Take& take);

  // Starts over, with `value` for the query's one parameter ("?").
  void restart(std::int64_t value);

 private:
  friend class Database;
  struct Scan;
  Statement() = default;
  void take_cells(sqlite3_value* const* values);
  Result<bool> advance();  // to the next row that SQLite gives back

  sqlite3_stmt* handle_ = nullptr;
  Scan** scan_ = nullptr;  // of the database, the one that runs; null when this is none
  std::vector<sqlite3_value*> columns_;
  std::string where_;  // "FILE: table T", for messages
};

struct Table {
  std::string name;
  bool view = false;
  std::vector<std::string> columns;
  // Which it is of them, from 0. Names are compared as SQLite does, ignoring the case of ASCII
  // letters.
  [[nodiscard]] std::optional<std::size_t> place(std::string_view column) const;
};

// An open database. One thread at a time. Statements must not outlive it.
class Database {
 public:
  // A plain file is read where it stands, also from a folder that cannot be written to, together
  // with a write-ahead log beside it ("-wal"); what is compressed or comes through a pipe is put
  // aside in `scratch` first (empty: the system's temporary folder), and then input.stream is used
  // up. Nothing is ever written beside the file. Errors name the path: kBadInput for a database
  // that is damaged at its head, or whose last writer died in the middle of a change.
  static Result<Database> open(Input input, const std::string& scratch = {});
  // Over bytes in memory, which outlive it. `name` is for messages.
  static Result<Database> open_memory(std::span<const std::byte> bytes, std::string name);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  [[nodiscard]] const std::string& path() const;
  // "gzip stream ends early": the database is not whole; empty while all is well.
  [[nodiscard]] const std::string& damage() const;
  // Tables and views, in the order of the schema, without SQLite's own.
  [[nodiscard]] std::span<const Table> tables() const;
  // Null when not there; names as of Table::place().
  [[nodiscard]] const Table* table(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view table_name) const { return table(table_name) != nullptr; }
  [[nodiscard]] bool has(std::string_view table_name, std::string_view column) const;

  // The rows of a table with these columns in this order, whatever else it has. A column that the
  // table lacks is NULL in each row, and Statement::has() is false for it: a reader works with the
  // columns there are. `tail` is SQL after the table's name ("ORDER BY start"). kNotFound for a
  // table that is not there.
  Result<Statement> select(std::string_view table_name, std::span<const std::string_view> columns,
                           std::string_view tail = {}) const;
  // The same for a table that is read as a whole, by each().
  Result<Statement> scan(std::string_view table_name,
                         std::span<const std::string_view> columns) const;
  // The rows of `SELECT columns FROM from`, for each(), which are handed over from within SQLite:
  // that takes about two thirds of the time. They are taken as they are found, so `from` must not
  // order them, nor a column look at other rows. `furthest` is the column that lies last in the
  // rows of the file: asked for first, it has SQLite find all of them in one go.
  Result<Statement> scan(std::span<const std::string> columns, std::string_view furthest,
                         std::string_view from) const;
  // Any one query. The text is the program's own, never a user's.
  Result<Statement> query(std::string_view sql) const;

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  static Result<Database> open(std::unique_ptr<Impl> impl);
  Result<Statement> prepare(std::string_view sql, std::string where) const;
  tl::unexpected<Error> no_table(std::string_view name) const;
  std::unique_ptr<Impl> impl_;
};

// Whether a file with these first bytes is a SQLite 3 database.
bool is_database(std::span<const std::byte> head);
// "name" as an SQL identifier, quotes inside doubled.
std::string identifier(std::string_view name);

}  // namespace pasta::base::sqlite
