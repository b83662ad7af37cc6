#include "adapters/common/database_adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "adapters/common/emit.h"

namespace pasta::adapters::common {

using base::sqlite::Row;
using base::sqlite::Statement;
using base::sqlite::Type;

Status DatabaseAdapter::start(const Plan& plan, EventSink& sink) {
  sink_ = &sink;
  strict_ = plan.strict;
  assembler_ = std::make_unique<correlate::Assembler>(
      sink.dictionary(), problems_,
      correlate::Assembler::Options{.memory_budget_bytes = plan.memory_budget_bytes,
                                    .scratch = plan.scratch});
  return {};
}

Result<bool> DatabaseAdapter::pump() {
  if (Status status = step(); !status) return tl::unexpected(std::move(status).error());
  return step_ != Step::kEnded;
}

Status DatabaseAdapter::step() {
  switch (step_) {
    case Step::kPrepare:
      step_ = Step::kRows;
      return prepare();
    case Step::kRows:
      return read_rows();
    case Step::kFinish:
      step_ = Step::kEmit;
      return finish();
    case Step::kEmit:
      return emit();
    case Step::kEnded:
      return {};
  }
  return {};
}

void DatabaseAdapter::read(std::string_view table, std::string sql, Take take) {
  queries_.push_back({std::string(table),
                      [this, sql = std::move(sql)] { return database_.query(sql); },
                      std::move(take)});
}

void DatabaseAdapter::read(std::string_view table, const Select& select, Take take) {
  queries_.push_back({std::string(table), [select] { return select.rows(); }, std::move(take)});
}

void DatabaseAdapter::scan(std::string_view table, std::span<const std::string_view> columns,
                           Take take) {
  queries_.push_back(
      {std::string(table),
       [this, table = std::string(table), columns] { return database_.scan(table, columns); },
       std::move(take)});
}

Status DatabaseAdapter::read_now(std::string_view table, const std::string& sql, const Take& take) {
  table_ = table;
  auto rows = database_.query(sql);
  if (!rows) return damaged(std::move(rows).error());
  auto more = take_rows(*rows, take, ~std::size_t{0});
  return more ? Status{} : tl::unexpected(std::move(more).error());
}

Status DatabaseAdapter::leave_out(std::string_view table, std::string_view why) {
  if (!database_.has(table)) return {};
  std::int64_t count = 0;
  PASTA_TRY(read_now(table, fmt::format("SELECT count(*) FROM {}", base::sqlite::identifier(table)),
                     [&]() -> Status {
                       count = plain_integer(0).value_or(0);
                       return {};
                     }));
  if (count > 0) {
    problems_.add(Reason::kNotKept, static_cast<std::uint64_t>(count),
                  fmt::format("table {}: {}", table, why));
  }
  return {};
}

Status DatabaseAdapter::read_rows() {
  constexpr std::size_t kRowsAtOnce = 4096;  // bounded, so that several files can be read in turns
  if (queries_.empty()) {
    step_ = Step::kFinish;
    return {};
  }
  const Query& query = queries_.front();
  bool more = false;
  if (!rows_) {
    table_ = query.table;
    auto rows = query.open();
    if (rows) {
      rows_ = std::move(*rows);
      more = true;
    } else {
      PASTA_TRY(damaged(std::move(rows).error()));
    }
  }
  if (rows_) {
    auto taken = take_rows(*rows_, query.take, kRowsAtOnce);
    if (!taken) return tl::unexpected(std::move(taken).error());
    more = *taken;
  }
  if (!more) {
    rows_.reset();
    queries_.pop_front();
  }
  return {};
}

Result<bool> DatabaseAdapter::take_rows(Statement& rows, const Take& take, std::size_t limit) {
  Status taken;
  auto more = rows.each(limit, [&](const Row& row) {
    row_ = &row;
    taken = take();
    if (taken) taken = std::move(refused_);
    return taken.has_value();
  });
  row_ = nullptr;
  PASTA_TRY(std::move(taken));
  if (more) return more;
  PASTA_TRY(damaged(std::move(more).error()));
  return false;
}

// What the rest of the table says cannot be known; the other tables are read.
Status DatabaseAdapter::damaged(Error error) {
  if (strict_ || error.code != ErrorCode::kBadInput) return tl::unexpected(std::move(error));
  problems_.add(Reason::kRecordSkipped, 1, error.message);
  return {};
}

void DatabaseAdapter::refuse(Reason reason, const std::string& place) {
  refused_ = fail(ErrorCode::kBadInput,
                  fmt::format("{}: {}: {}", database_.path(), place, reason_info(reason).help));
}

std::string DatabaseAdapter::where() const {
  return row_ != nullptr ? fmt::format("table {}, row {}", table_, row_->rows())
                         : fmt::format("table {}", table_);
}

std::optional<std::int64_t> DatabaseAdapter::unusual_integer(int column, std::string_view what) {
  const auto value = row_->integer(column);
  if (value) return value;
  // Some writers leave a number out by writing no text for it.
  const Type type = row_->type(column);
  if (type == Type::kText && row_->text(column).empty()) return value;
  note(Reason::kUnreadableNumber, [&] {
    return fmt::format("{} is {}", what,
                       type == Type::kText ? fmt::format("\"{}\"", row_->text(column).substr(0, 40))
                                           : "no whole number");
  });
  return value;
}

std::optional<double> DatabaseAdapter::real(int column, std::string_view what) {
  if (is_null(column)) {
    note(Reason::kMissingField, [&] { return what; });
    return std::nullopt;
  }
  const auto value = row_->real(column);
  if (value && std::isfinite(*value)) return value;
  note(Reason::kUnreadableNumber,
       [&] { return fmt::format("{} is \"{}\"", what, row_->text(column).substr(0, 40)); });
  return std::nullopt;
}

void DatabaseAdapter::set_times(Event& event, int start_column, int end_column) {
  const auto start = integer(start_column, "start");
  const auto end = integer(end_column, "end");
  event.start_ns = event.end_ns = kNoTime;
  if (!start || !end || (*start == 0 && *end == 0)) {
    note(Reason::kUntimed, [&] { return dictionary().text(event.name); });
  } else if (*end < *start) {
    note(Reason::kNegativeDuration, [&] {
      return fmt::format("\"{}\" is from {} to {}", dictionary().text(event.name), *start, *end);
    });
  } else if (*start == kNoTime) {
    note(Reason::kTimeOutOfRange, [&] { return dictionary().text(event.name); });
  } else {
    event.start_ns = *start;
    event.end_ns = *end;
    return;
  }
  event.flags |= kUntimed;
}

void DatabaseAdapter::set_instant(Event& event, int at_column) {
  set_times(event, at_column, at_column);
  event.flags |= kInstant;
}

std::uint64_t DatabaseAdapter::correlation(ProcessId process,
                                           std::optional<std::int64_t> vendor_id) {
  if (!vendor_id || *vendor_id == 0) return 0;
  const auto id = static_cast<std::uint64_t>(*vendor_id);
  if (id > kMaxVendorCorrelation) {
    note(Reason::kCorrelationRange, [&] { return fmt::to_string(*vendor_id); });
    return 0;
  }
  return make_correlation(process, id);
}

Status DatabaseAdapter::finish() {
  if (!database_.damage().empty()) {
    if (strict_) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: {}", database_.path(), database_.damage()));
    }
    problems_.add(Reason::kTruncated, 1, database_.damage());
  }
  const auto shift_ns = rows_end();
  if (!shift_ns) return tl::unexpected<Error>(shift_ns.error());
  PASTA_TRY(assembler_->finish(*shift_ns));
  SourceInfo source;
  source.path = database_.path();
  source.format = info_.name;
  source.first_ns = assembler_->first_ns();
  source.absolute_clock = since_1970(source.first_ns);
  PASTA_TRY(complete(source));
  sink_->describe(source);
  return {};
}

Status DatabaseAdapter::emit() {
  auto more = emit_events(*assembler_, problems_, *sink_);
  if (!more) return tl::unexpected(std::move(more).error());
  if (!*more) step_ = Step::kEnded;
  return {};
}

void each_row(const base::sqlite::Database& database, Problems& problems, std::string_view table,
              std::span<const std::string_view> columns,
              const std::function<void(const Row&)>& take) {
  if (!database.has(table)) return;
  auto rows = database.select(table, columns);
  Result<bool> more = rows ? rows->step() : tl::unexpected<Error>(rows.error());
  for (; more && *more; more = rows->step()) take(*rows);
  if (!more) problems.add(Reason::kRecordSkipped, 1, more.error().message);
}

}  // namespace pasta::adapters::common
