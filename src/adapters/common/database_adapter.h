// What readers of databases share: from the rows of queries to the event stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "adapters/common/recent_attributes.h"
#include "adapters/common/select.h"
#include "base/sqlite.h"
#include "correlate/assembler.h"
#include "pasta/adapter.h"

namespace pasta::adapters::common {

// A reader names its queries and makes events of their rows; this class steps through them a
// bounded amount at a time, keeps what was read before a damaged page, and hands the events on in
// order.
class DatabaseAdapter : public Adapter {
 public:
  [[nodiscard]] const AdapterInfo& info() const final { return info_; }
  Status start(const Plan& plan, EventSink& sink) final;
  Result<bool> pump() final;
  Status stop() final { return {}; }

 protected:
  using Take = std::function<Status()>;

  DatabaseAdapter(const AdapterInfo& info, base::sqlite::Database database)
      : info_(info), database_(std::move(database)) {}

  // Reads the small tables and names the queries of the large ones.
  virtual Status prepare() = 0;
  // After the last row: adds what was kept back. What is returned is added to all times.
  virtual Result<std::int64_t> rows_end() { return 0; }
  // After rows_end(). `info` is filled but for rank and world size.
  virtual Status complete(SourceInfo& info) = 0;

  // Has `take` called for each row, after prepare() and in the order of these calls. `table` is
  // for messages.
  void read(std::string_view table, std::string sql, Take take);
  void read(std::string_view table, const Select& select, Take take);
  // The same for these columns of a table. `columns` outlives this object.
  void scan(std::string_view table, std::span<const std::string_view> columns, Take take);
  // The same at once, for a small table.
  Status read_now(std::string_view table, const std::string& sql, const Take& take);
  // Tables that hold rows of which this reader makes nothing are counted: what, and how many.
  Status leave_out(std::string_view table, std::string_view why);

  // --- of the row at hand

  [[nodiscard]] const base::sqlite::Row& row() const { return *row_; }
  // Counts a problem of it; `detail` makes its text. In strict mode, reading fails after the row.
  template <class Detail>
  void note(Reason reason, Detail&& detail) {
    const auto place = [&] { return where() + ": " + std::string(detail()); };
    problems_.add(reason, place);
    if (strict_ && reason_info(reason).severity > Severity::kNote) refuse(reason, place());
  }
  // Of a column that Select found not to be there: nothing, as of NULL.
  [[nodiscard]] bool is_null(int column) const { return column < 0 || row_->null(column); }
  [[nodiscard]] std::string_view text_of(int column) const {
    return column < 0 ? std::string_view() : row_->text(column);
  }
  [[nodiscard]] std::optional<std::int64_t> plain_integer(int column) const {
    if (column < 0) return std::nullopt;
    return row_->integer(column);
  }
  // Nothing when it is NULL or empty, or no whole number, which is a problem.
  std::optional<std::int64_t> integer(int column, std::string_view what) {
    if (column < 0) return std::nullopt;
    const base::sqlite::Row::Cell& cell = row_->cell(column);
    if (cell.type == base::sqlite::Type::kInteger) return cell.integer;
    if (cell.type == base::sqlite::Type::kNull) return std::nullopt;
    return unusual_integer(column, what);
  }
  // Nothing when it is NULL, which is a missing field, or no finite number; both are problems.
  std::optional<double> real(int column, std::string_view what);
  // 0 when unknown or when 32 bits cannot hold it.
  std::uint32_t small(int column, std::string_view what) {
    const std::int64_t value = integer(column, what).value_or(0);
    return value >= 0 && value <= 0xffffffff ? static_cast<std::uint32_t>(value) : 0;
  }
  AttributesId attributes_id(const LaunchAttributes& a) { return attributes_.id(dictionary(), a); }
  // Sets both times, or makes the event untimed and counts why.
  void set_times(Event& event, int start, int end);
  void set_instant(Event& event, int at);
  // 0 when there is none or when it is too large.
  std::uint64_t correlation(ProcessId process, std::optional<std::int64_t> vendor_id);
  Status add(const Event& event) { return assembler_->add(event); }

  [[nodiscard]] const base::sqlite::Database& database() const { return database_; }
  [[nodiscard]] Dictionary& dictionary() const { return sink_->dictionary(); }
  [[nodiscard]] Problems& problems() { return problems_; }
  [[nodiscard]] correlate::Assembler& assembler() { return *assembler_; }
  [[nodiscard]] bool strict() const { return strict_; }

 private:
  enum class Step : std::uint8_t { kPrepare, kRows, kFinish, kEmit, kEnded };
  struct Query {
    std::string table;
    std::function<Result<base::sqlite::Statement>()> open;
    Take take;
  };

  Status step();
  Status read_rows();
  Status finish();
  Status emit();
  // Takes up to `limit` rows; false when there are no more.
  Result<bool> take_rows(base::sqlite::Statement& rows, const Take& take, std::size_t limit);
  Status damaged(Error error);
  std::optional<std::int64_t> unusual_integer(int column, std::string_view what);
  void refuse(Reason reason, const std::string& place);
  [[nodiscard]] std::string where() const;

  const AdapterInfo& info_;
  base::sqlite::Database database_;
  EventSink* sink_ = nullptr;
  bool strict_ = false;
  Problems problems_;
  std::unique_ptr<correlate::Assembler> assembler_;
  std::deque<Query> queries_;
  std::optional<base::sqlite::Statement> rows_;  // of the first of them
  const base::sqlite::Row* row_ = nullptr;
  std::string table_;  // of row_
  Status refused_;
  RecentAttributes attributes_;
  Step step_ = Step::kPrepare;
};

// Has `take` called for each row of a small table; none where the table is not there. A damaged one
// ends early and is counted.
void each_row(const base::sqlite::Database& database, Problems& problems, std::string_view table,
              std::span<const std::string_view> columns,
              const std::function<void(const base::sqlite::Row&)>& take);

}  // namespace pasta::adapters::common
