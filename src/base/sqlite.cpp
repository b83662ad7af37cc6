#include "base/sqlite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/decimal.h"
#include "base/file_stream.h"
#include "base/sqlite_vfs.h"
#include "base/temp_file.h"

namespace pasta::base::sqlite {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "SQLite format 3\0"sv;
constexpr std::string_view kOnRow = "pasta_row";
constexpr std::string_view kJournalMagic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

bool equal_names(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool starts_with(const File& file, std::string_view magic) {
  std::byte bytes[16];
  const auto got = file.read_at(0, std::span(bytes).first(magic.size()));
  return got && *got == magic.size() && std::memcmp(bytes, magic.data(), magic.size()) == 0;
}

RandomAccess nothing() {
  return {[](std::uint64_t, std::span<std::byte>) -> Result<std::size_t> { return 0; }, 0, {}};
}

RandomAccess bytes_of(std::shared_ptr<File> file, ReadProgress* progress) {
  const std::uint64_t size = file->size().value_or(0);
  const std::string path = file->path();
  return {[file = std::move(file), progress, left = size](
              std::uint64_t offset, std::span<std::byte> to) mutable -> Result<std::size_t> {
            auto got = file->read_at(offset, to);
            if (got && progress != nullptr) {
              // Pages may be read again; what is shown must not pass the size of the file.
              const std::uint64_t fresh = std::min<std::uint64_t>(*got, left);
              left -= fresh;
              progress->read_bytes.fetch_add(fresh, std::memory_order_relaxed);
            }
            return got;
          },
          size, path};
}

// The file at `path`, when it is a database itself and not one in a wrapping.
std::shared_ptr<File> plain_file(const std::string& path) {
  if (path.empty() || path == "-") return nullptr;
  auto file = File::open(path, nullptr);
  return file && (*file)->size() && starts_with(**file, kMagic) ? *file : nullptr;
}

Result<Image> image_of(std::shared_ptr<File> file, ReadProgress* progress) {
  const std::string path = file->path();
  if (const auto journal = File::open(path + "-journal", nullptr);
      journal && starts_with(**journal, kJournalMagic)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: its last writer ended in the middle of a change ({}-journal lies "
                            "beside it): let SQLite undo that with `sqlite3 {} .tables`",
                            path, path, path));
  }
  Image image{bytes_of(std::move(file), progress), nothing()};
  if (auto log = File::open(path + "-wal", nullptr)) image.log = bytes_of(*log, nullptr);
  return image;
}

Result<RandomAccess> put_aside(ByteStream& stream, const std::string& path,
                               const std::string& scratch) {
  auto made = TempFile::create(scratch);
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  auto file = std::make_shared<TempFile>(std::move(*made));
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (bool more = true; more;) {
    const auto got = stream.read(block);
    if (!got) return tl::unexpected<Error>(got.error());
    more = *got == block.size();
    PASTA_TRY(file->append(std::span(block).first(*got)));
  }
  const auto read_at = [file](std::uint64_t offset,
                              std::span<std::byte> to) -> Result<std::size_t> {
    const std::uint64_t left = file->size() - std::min(offset, file->size());
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), left)));
    PASTA_TRY(file->read_at(offset, to));
    return to.size();
  };
  return RandomAccess{read_at, file->size(), path};
}

}  // namespace

struct Database::Impl {
  Impl(Image image, std::string name) : mount(std::move(image)), path(std::move(name)) {}
  ~Impl() { sqlite3_close_v2(handle); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  tl::unexpected<Error> error(std::string_view where, std::string_view after = {}) const {
    if (!mount.io_error().empty()) return fail(ErrorCode::kIo, mount.io_error());
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}{}", where, sqlite3_errmsg(handle), after));
  }

  Mount mount;
  std::string path;
  std::string damage;
  sqlite3* handle = nullptr;
  std::vector<Table> tables;
  Statement::Scan* scan = nullptr;  // the one that runs
};

// A scan is `SELECT pasta_row(furthest, columns)`: SQLite calls the function for each row.
struct Statement::Scan {
  Statement& rows;
  const Take& take;
  bool more = true;  // what the last `take` returned

  static void on_row(sqlite3_context* context, int, sqlite3_value** values) {
    Scan& scan = **static_cast<Scan**>(sqlite3_user_data(context));
    ++scan.rows.rows_;
    scan.rows.take_cells(values + 1);
    scan.more = scan.take(scan.rows);
  }
};

// --- statement

namespace {

// SQLite counts them in another order.
Type type_of(sqlite3_value* value) {
  static_assert(SQLITE_INTEGER == 1 && SQLITE_FLOAT == 2 && SQLITE_TEXT == 3 && SQLITE_BLOB == 4 &&
                SQLITE_NULL == 5);
  const int type = sqlite3_value_type(value);
  return type == SQLITE_NULL ? Type::kNull : static_cast<Type>(type);
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : Row(std::move(other)),
      handle_(std::exchange(other.handle_, nullptr)),
      scan_(other.scan_),
      columns_(std::move(other.columns_)),
      where_(std::move(other.where_)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(static_cast<Row&>(*this), static_cast<Row&>(other));
  std::swap(handle_, other.handle_);
  std::swap(scan_, other.scan_);
  std::swap(columns_, other.columns_);
  std::swap(where_, other.where_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::take_cells(sqlite3_value* const* values) {
  values_ = values;
  for (Cell& cell : cells_) {
    sqlite3_value* const value = *values++;
    cell.type = type_of(value);
    if (cell.type == Type::kInteger) cell.integer = sqlite3_value_int64(value);
  }
}

Result<bool> Statement::advance() {
  switch (sqlite3_step(handle_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: {}, after {} rows", where_,
                              sqlite3_errmsg(sqlite3_db_handle(handle_)), rows_));
  }
}

Result<bool> Statement::step() {
  auto more = advance();
  if (!more || !*more) return more;
  ++rows_;
  // A value may be used like this only because the connection has no lock: nobody else can change
  // it.
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i] = sqlite3_column_value(handle_, static_cast<int>(i));
  }
  take_cells(columns_.data());
  return true;
}

Result<bool> Statement::each(std::size_t limit, const Take& take) {
  if (scan_ != nullptr) {
    Scan scan{*this, take};
    Scan* const outer = std::exchange(*scan_, &scan);
    Result<bool> more = true;
    for (; more && *more && scan.more && limit != 0; --limit) more = advance();
    *scan_ = outer;
    return more;
  }
  for (; limit != 0; --limit) {
    auto more = step();
    if (!more || !*more) return more;
    if (!take(*this)) break;
  }
  return true;
}

void Statement::restart(std::int64_t value) {
  sqlite3_reset(handle_);
  sqlite3_bind_int64(handle_, 1, value);
  rows_ = 0;
}

std::optional<std::int64_t> Row::whole_number(int column) const {
  switch (type(column)) {
    case Type::kReal: {
      const double real = sqlite3_value_double(values_[column]);
      if (!(real >= -0x1p63 && real < 0x1p63)) return std::nullopt;
      const auto whole = static_cast<std::int64_t>(real);
      if (static_cast<double>(whole) != real) return std::nullopt;
      return whole;
    }
    case Type::kText: {
      std::int64_t whole = 0;
      if (parse_decimal(text(column), 0, whole) != DecimalStatus::kExact) return std::nullopt;
      return whole;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> Row::real(int column) const {
  switch (type(column)) {
    case Type::kInteger:
    case Type::kReal:
      return sqlite3_value_double(values_[column]);
    case Type::kText: {
      double number = 0;
      if (!parse_double(text(column), number)) return std::nullopt;
      return number;
    }
    default:
      return std::nullopt;
  }
}

std::string_view Row::text(int column) const {
  if (type(column) != Type::kText && type(column) != Type::kBlob) return {};
  const void* const bytes = sqlite3_value_blob(values_[column]);
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_value_bytes(values_[column]))};
}

// --- database

std::optional<std::size_t> Table::place(std::string_view column) const {
  const auto at = std::ranges::find_if(
      columns, [&](const std::string& one) { return equal_names(one, column); });
  if (at == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(at - columns.begin());
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(Input input, const std::string& scratch) {
  if (std::shared_ptr<File> file = plain_file(input.path)) {
    auto image = image_of(std::move(file), input.progress);
    if (!image) return tl::unexpected<Error>(std::move(image).error());
    return open(std::make_unique<Impl>(std::move(*image), std::move(input.path)));
  }
  auto aside = put_aside(*input.stream, input.path, scratch);
  if (!aside) return tl::unexpected<Error>(std::move(aside).error());
  auto impl = std::make_unique<Impl>(Image{std::move(*aside), nothing()}, std::move(input.path));
  impl->damage = input.stream->damage();
  return open(std::move(impl));
}

Result<Database> Database::open_memory(std::span<const std::byte> bytes, std::string name) {
  const auto read_at = [bytes](std::uint64_t offset,
                               std::span<std::byte> to) -> Result<std::size_t> {
    const auto at = bytes.subspan(std::min<std::size_t>(offset, bytes.size()));
    const std::size_t size = std::min(to.size(), at.size());
    std::copy_n(at.begin(), size, to.begin());
    return size;
  };
  return open(std::make_unique<Impl>(Image{{read_at, bytes.size(), name}, nothing()}, name));
}

Result<Database> Database::open(std::unique_ptr<Impl> impl) {
  // A connection of its own without locks: nobody else has it.
  const int opened =
      sqlite3_open_v2(impl->mount.file_name(), &impl->handle,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, impl->mount.vfs_name());
  if (opened != SQLITE_OK) return impl->error(impl->path);
  sqlite3* const db = impl->handle;
  // The file may be anybody's: its views must not call functions with effects, and damaged cells
  // must be found before they are used.
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  for (const char* const pragma :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA cell_size_check=ON", "PRAGMA query_only=ON"}) {
    if (sqlite3_exec(db, pragma, nullptr, nullptr, nullptr) != SQLITE_OK) {
      return impl->error(impl->path);
    }
  }
  if (sqlite3_create_function(db, kOnRow.data(), -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &impl->scan,
                              Statement::Scan::on_row, nullptr, nullptr) != SQLITE_OK) {
    return impl->error(impl->path);
  }
  Database database(std::move(impl));
  std::vector<Table> tables;
  {
    auto names = database.query(
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') "
        "AND substr(name, 1, 7) <> 'sqlite_'");
    if (!names) return tl::unexpected<Error>(std::move(names).error());
    for (;;) {
      const auto more = names->step();
      if (!more) return tl::unexpected<Error>(more.error());
      if (!*more) break;
      tables.push_back({std::string(names->text(0)), names->text(1) == "view", {}});
    }
  }
  for (Table& table : tables) {
    // A view over tables that are not there has no columns.
    auto columns = database.query(fmt::format("PRAGMA table_xinfo({})", identifier(table.name)));
    while (columns && columns->step().value_or(false)) {
      table.columns.emplace_back(columns->text(1));
    }
  }
  database.impl_->tables = std::move(tables);
  return database;
}

const std::string& Database::path() const { return impl_->path; }
const std::string& Database::damage() const { return impl_->damage; }
std::span<const Table> Database::tables() const { return impl_->tables; }

const Table* Database::table(std::string_view name) const {
  for (const Table& table : impl_->tables) {
    if (equal_names(table.name, name)) return &table;
  }
  return nullptr;
}

bool Database::has(std::string_view table_name, std::string_view column) const {
  const Table* const known = table(table_name);
  return known != nullptr && known->place(column).has_value();
}

tl::unexpected<Error> Database::no_table(std::string_view name) const {
  return fail(ErrorCode::kNotFound, fmt::format("{}: no table {}", path(), name));
}

namespace {

// Those of a table that are asked for, as SQL.
struct Columns {
  Columns(const Table& table, std::span<const std::string_view> names) {
    std::size_t furthest_place = 0;
    for (const std::string_view name : names) {
      const auto place = table.place(name);
      present.push_back(place.has_value());
      sql.push_back(place ? identifier(name) : "NULL");
      if (!place || *place < furthest_place) continue;
      furthest_place = *place;
      furthest = sql.back();
    }
  }
  std::vector<std::string> sql;
  std::vector<bool> present;
  std::string furthest = "NULL";
};

}  // namespace

Result<Statement> Database::select(std::string_view table_name,
                                   std::span<const std::string_view> columns,
                                   std::string_view tail) const {
  const Table* const known = table(table_name);
  if (known == nullptr) return no_table(table_name);
  const Columns chosen(*known, columns);
  auto rows = prepare(fmt::format("SELECT {} FROM {} {}", fmt::join(chosen.sql, ", "),
                                  identifier(known->name), tail),
                      fmt::format("{}: table {}", path(), known->name));
  if (rows) rows->present_ = chosen.present;
  return rows;
}

Result<Statement> Database::scan(std::string_view table_name,
                                 std::span<const std::string_view> columns) const {
  const Table* const known = table(table_name);
  if (known == nullptr) return no_table(table_name);
  // A view may order its rows.
  if (known->view) return select(table_name, columns);
  const Columns chosen(*known, columns);
  auto rows = scan(chosen.sql, chosen.furthest, identifier(known->name));
  if (!rows) return rows;
  rows->present_ = chosen.present;
  rows->where_ = fmt::format("{}: table {}", path(), known->name);
  return rows;
}

Result<Statement> Database::scan(std::span<const std::string> columns, std::string_view furthest,
                                 std::string_view from) const {
  auto rows = prepare(fmt::format("SELECT {}({}{}{}) FROM {}", kOnRow, furthest,
                                  columns.empty() ? "" : ", ", fmt::join(columns, ", "), from),
                      path());
  if (!rows) return rows;
  rows->present_.assign(columns.size(), true);
  rows->cells_.resize(columns.size());
  rows->scan_ = &impl_->scan;
  return rows;
}

Result<Statement> Database::query(std::string_view sql) const { return prepare(sql, path()); }

Result<Statement> Database::prepare(std::string_view sql, std::string where) const {
  Statement statement;
  if (sqlite3_prepare_v2(impl_->handle, sql.data(), static_cast<int>(sql.size()),
                         &statement.handle_, nullptr) != SQLITE_OK) {
    return impl_->error(where);
  }
  statement.where_ = std::move(where);
  const auto count = static_cast<std::size_t>(sqlite3_column_count(statement.handle_));
  statement.present_.assign(count, true);
  statement.columns_.resize(count);
  statement.cells_.resize(count);
  return statement;
}

bool is_database(std::span<const std::byte> head) {
  return head.size() >= kMagic.size() &&
         std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

std::string identifier(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    out += c;
    if (c == '"') out += c;
  }
  out += '"';
  return out;
}

}  // namespace pasta::base::sqlite
