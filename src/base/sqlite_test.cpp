#include "base/sqlite.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/input.h"

namespace pasta::base::sqlite {
namespace {

namespace fs = std::filesystem;
using std::string;
using std::string_view;
using testing::Test;

class SqliteTest : public Test {
 protected:
  SqliteTest() {
    string name = (fs::temp_directory_path() / "pasta-sqlite-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~SqliteTest() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  // A connection that writes, left open, so that its log is not folded into the file.
  struct Writer {
    explicit Writer(const fs::path& path) { sqlite3_open(path.c_str(), &handle); }
    ~Writer() { sqlite3_close(handle); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    void run(const char* sql) const {
      char* error = nullptr;
      ASSERT_EQ(sqlite3_exec(handle, sql, nullptr, nullptr, &error), SQLITE_OK) << error;
    }
    sqlite3* handle = nullptr;
  };

  fs::path make(const char* sql, string_view name = "a.db") {
    const fs::path path = folder_ / name;
    Writer(path).run(sql);
    return path;
  }
  static Result<Database> open(const fs::path& path) {
    auto input = open_input(path.string());
    if (!input) return tl::unexpected<Error>(input.error());
    return Database::open(Input{path.string(), input->head, std::move(input->stream)});
  }
  static string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

constexpr std::array<string_view, 1> kX = {"x"};

std::int64_t count(const Database& database, string_view table) {
  auto rows = database.select(table, kX);
  if (!rows) return -1;
  while (rows->step().value_or(false)) {
  }
  return static_cast<std::int64_t>(rows->rows());
}

TEST_F(SqliteTest, ReadsTheColumnsThereAre) {
  const auto database = open(make(
      "CREATE TABLE Names(ID INTEGER PRIMARY KEY, value TEXT);"
      "INSERT INTO Names VALUES(1, 'a\"b'), (2, NULL);"
      "CREATE VIEW Both AS SELECT value FROM Names; CREATE VIEW Broken AS SELECT * FROM gone;"));
  ASSERT_TRUE(database) << database.error().message;
  ASSERT_EQ(database->tables().size(), 3u);
  EXPECT_TRUE(database->has("names", "id"));
  EXPECT_FALSE(database->has("Names", "i"));
  EXPECT_TRUE(database->table("BOTH")->view);
  EXPECT_TRUE(database->table("Broken")->columns.empty());
  constexpr std::array<string_view, 3> kColumns = {"missing", "VALUE", "id"};
  auto rows = database->select("NAMES", kColumns, "ORDER BY id");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_FALSE(rows->has(0));
  EXPECT_TRUE(rows->has(1));
  ASSERT_TRUE(*rows->step());
  EXPECT_TRUE(rows->null(0));
  EXPECT_EQ(rows->text(1), "a\"b");
  EXPECT_EQ(rows->integer(2), 1);
  ASSERT_TRUE(*rows->step());
  EXPECT_EQ(rows->type(1), Type::kNull);
  EXPECT_EQ(rows->text(1), "");
  EXPECT_FALSE(*rows->step());
  rows = database->select("names", kColumns, "WHERE id = ?");
  for (const int id : {2, 1}) {
    rows->restart(id);
    ASSERT_TRUE(*rows->step());
    EXPECT_EQ(rows->integer(2), id);
  }
  EXPECT_EQ(database->select("gone", kColumns).error().code, ErrorCode::kNotFound);
}

TEST_F(SqliteTest, TakesOnlyWholeNumbersForIntegers) {
  const auto database = open(
      make("CREATE TABLE t(x);"
           "INSERT INTO t VALUES(-9223372036854775808), ('9223372036854775807'), (3.0), (3.5), "
           "('3.5'), ('abc'), (x'31'), (9.3e18), ('');"));
  ASSERT_TRUE(database) << database.error().message;
  auto rows = database->select("t", kX);
  const std::optional<std::int64_t> expected[] = {INT64_MIN, INT64_MAX, 3, {}, {}, {}, {}, {}, {}};
  for (const auto& value : expected) {
    ASSERT_TRUE(*rows->step());
    EXPECT_EQ(rows->integer(0), value) << "row " << rows->rows();
  }
  rows = database->select("t", kX, "WHERE x IN (3.5, '3.5', 'abc')");
  for (const std::optional<double>& value : {std::optional(3.5), std::optional(3.5), {}}) {
    ASSERT_TRUE(*rows->step());
    EXPECT_EQ(rows->real(0), value);
  }
}

TEST_F(SqliteTest, ScansInSteps) {
  const auto database = open(make(
      "CREATE TABLE t(x, y, z); INSERT INTO t VALUES(1, 'one', 2.5), (2, NULL, 1), (3, 'c', 2);"
      "CREATE VIEW v AS SELECT * FROM t ORDER BY z;"));
  ASSERT_TRUE(database) << database.error().message;
  constexpr std::array<string_view, 4> kColumns = {"missing", "z", "Y", "x"};
  string seen;
  const Statement::Take take = [&](const Row& row) {
    EXPECT_FALSE(row.has(0));
    EXPECT_TRUE(row.null(0));
    seen += std::to_string(*row.integer(3)) + string(row.text(2)) + (row.null(2) ? "-" : ";");
    // Another one may run meanwhile, over the same table too.
    auto inner = database->scan("t", kX);
    std::uint64_t inside = 0;
    EXPECT_FALSE(*inner->each(100, [&](const Row& other) { return (inside = other.rows()) != 0; }));
    EXPECT_EQ(inside, 3u);
    return row.rows() != 2;
  };
  for (const string_view table : {"t", "v"}) {
    seen.clear();
    auto rows = database->scan(table, kColumns);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_TRUE(*rows->each(1, take));  // the limit
    const string first = table == "t" ? "1one;" : "2-";
    EXPECT_EQ(seen, first);
    EXPECT_TRUE(*rows->each(100, take));  // because it said so
    EXPECT_FALSE(*rows->each(100, take));
    EXPECT_EQ(seen, table == "t" ? "1one;2-3c;" : "2-3c;1one;");
    EXPECT_EQ(rows->rows(), 3u);
  }
  EXPECT_EQ(database->scan("gone", kColumns).error().code, ErrorCode::kNotFound);
  constexpr std::array<string_view, 1> kNone = {"none of these"};
  auto empty = database->scan("t", kNone);
  EXPECT_FALSE(*empty->each(100, [](const Row& row) { return row.null(0); }));
  EXPECT_EQ(empty->rows(), 3u);
}

TEST_F(SqliteTest, ReadsFromAFolderThatCannotBeWritten) {
  const fs::path path =
      make("PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES(1);");
  ASSERT_FALSE(fs::exists(path.string() + "-wal"));
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const auto database = open(path);
  ASSERT_TRUE(database) << database.error().message;
  EXPECT_EQ(count(*database, "t"), 1);
  EXPECT_FALSE(fs::exists(path.string() + "-shm"));
}

TEST_F(SqliteTest, ReadsTheLogBesideIt) {
  const fs::path path = folder_ / "a.db";
  const Writer writer(path);
  writer.run(
      "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(x);"
      "INSERT INTO t VALUES(1), (2);");
  // Copied as they stand, as from a machine that went down.
  fs::copy_file(path, folder_ / "b.db");
  fs::copy_file(path.string() + "-wal", folder_ / "b.db-wal");
  const auto database = open(folder_ / "b.db");
  ASSERT_TRUE(database) << database.error().message;
  EXPECT_EQ(count(*database, "t"), 2);
  EXPECT_FALSE(fs::exists(folder_ / "b.db-shm"));
}

TEST_F(SqliteTest, RefusesAnUnfinishedChange) {
  const fs::path path = make("CREATE TABLE t(x);");
  std::ofstream(path.string() + "-journal", std::ios::binary) << "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  const auto database = open(path);
  ASSERT_FALSE(database);
  EXPECT_NE(database.error().message.find("in the middle of a change"), string::npos);
}

TEST_F(SqliteTest, PutsCompressedOnesAside) {
  const string bytes = bytes_of(make("CREATE TABLE t(x); INSERT INTO t VALUES(1), (2), (3);"));
  const fs::path path = folder_ / "a.db.gz";
  gzFile gz = gzopen(path.c_str(), "wb");
  gzwrite(gz, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(gz);
  {
    const auto database = open(path);
    ASSERT_TRUE(database) << database.error().message;
    EXPECT_EQ(count(*database, "t"), 3);
    EXPECT_EQ(database->damage(), "");
  }
  fs::resize_file(path, fs::file_size(path) - 4);
  const auto cut = open(path);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_NE(cut->damage(), "");
}

TEST_F(SqliteTest, KeepsTheRowsBeforeADamagedPage) {
  string bytes = bytes_of(make(
      "PRAGMA page_size=4096; CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
      "i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i FROM n;"));
  ASSERT_GT(bytes.size(), 8 * 4096u);
  std::fill_n(bytes.begin() + 6 * 4096, 4096, '\xff');
  const auto database = Database::open_memory(std::as_bytes(std::span(bytes)), "some.db");
  ASSERT_TRUE(database) << database.error().message;
  std::uint64_t taken = 0;
  for (const bool scan : {false, true}) {
    auto rows = scan ? database->scan("t", kX) : database->select("t", kX);
    const Result<bool> more =
        rows->each(5000, [&](const Row& row) { return ++taken == row.rows(); });
    ASSERT_FALSE(more);
    EXPECT_GT(taken, 0u);
    EXPECT_LT(taken, 5000u);
    EXPECT_EQ(rows->rows(), taken);
    EXPECT_EQ(more.error().message.find("some.db: table t: "), 0u) << more.error().message;
    taken = 0;
  }
}

TEST_F(SqliteTest, NamesWhatIsNoDatabase) {
  const string text = "SQLite format 3";
  string bytes(4096, 'x');
  bytes.replace(0, 16, text.c_str(), 16);
  const auto database = Database::open_memory(std::as_bytes(std::span(bytes)), "bad.db");
  ASSERT_FALSE(database);
  EXPECT_EQ(database.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(database.error().message, "bad.db: file is not a database");
  EXPECT_EQ(identifier("a\"b"), "\"a\"\"b\"");
}

}  // namespace
}  // namespace pasta::base::sqlite
