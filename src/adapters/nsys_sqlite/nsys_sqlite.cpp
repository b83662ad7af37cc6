#include "adapters/nsys_sqlite/nsys_sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/nsys_sqlite/places.h"
#include "adapters/nsys_sqlite/row_taker.h"
#include "adapters/nsys_sqlite/strings.h"
#include "correlate/assembler.h"

namespace pasta::adapters::nsys_sqlite {
namespace {

using base::sqlite::Database;
using base::sqlite::Statement;
using base::sqlite::Table;
using correlate::Assembler;
using std::string_view;

constexpr string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr string_view kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";

// Reads the tables one after the other, each from its first row to its last.
class NsysSqlite final : public Adapter {
 public:
  explicit NsysSqlite(Database database) : database_(std::move(database)) {}

  [[nodiscard]] const AdapterInfo& info() const override { return kInfo; }
  Status start(const Plan& plan, EventSink& sink) override;
  Result<bool> pump() override;
  Status stop() override { return {}; }

 private:
  enum class Step : std::uint8_t { kOpen, kRows, kEmit, kEnded };

  Status begin();
  Status read_rows();
  Status finish_reading();
  Status emit();
  // What is damaged ends its table; the others are read.
  Status damaged(const Error& error);
  // Nanoseconds since 1970 at which the times of the file begin.
  std::optional<std::int64_t> base_ns();
  void read_export_facts();
  void say_what_is_missing();
  void count_what_is_not_read();
  void read_diagnostics();
  template <class Row>
  void each_row(string_view table, std::span<const string_view> columns, Row&& row);

  Database database_;
  bool strict_ = false;
  EventSink* sink_ = nullptr;
  Problems problems_;
  std::unique_ptr<Assembler> assembler_;
  std::unique_ptr<Strings> strings_;
  std::unique_ptr<Places> places_;
  std::unique_ptr<RowTaker> taker_;
  std::size_t next_table_ = 0;
  std::optional<Statement> rows_;  // of the table before
  std::uint64_t kernels_ = 0, graphs_ = 0, calls_ = 0;
  Step step_ = Step::kOpen;
};

Status NsysSqlite::start(const Plan& plan, EventSink& sink) {
  sink_ = &sink;
  strict_ = plan.strict;
  assembler_ = std::make_unique<Assembler>(
      sink.dictionary(), problems_,
      Assembler::Options{.memory_budget_bytes = plan.memory_budget_bytes, .scratch = plan.scratch});
  assembler_->drop_launch_flows();
  strings_ = std::make_unique<Strings>(sink.dictionary(), problems_, database_);
  places_ = std::make_unique<Places>(sink.dictionary(), problems_, *strings_, database_.path());
  taker_ = std::make_unique<RowTaker>(sink.dictionary(), problems_, *strings_, *places_,
                                      *assembler_, strict_);
  return {};
}

Result<bool> NsysSqlite::pump() {
  Status status;
  switch (step_) {
    case Step::kOpen:
      status = begin();
      break;
    case Step::kRows:
      status = read_rows();
      break;
    case Step::kEmit:
      status = emit();
      break;
    case Step::kEnded:
      break;
  }
  if (status) return step_ != Step::kEnded;
  Error error = std::move(status).error();
  if (!error.message.starts_with(database_.path())) {
    error.message = fmt::format("{}: {}", database_.path(), error.message);
  }
  return tl::unexpected(std::move(error));
}

Status NsysSqlite::damaged(const Error& error) {
  if (strict_ || error.code == ErrorCode::kIo) return tl::unexpected(error);
  problems_.add(Reason::kRecordSkipped, 1, error.message);
  return {};
}

template <class Row>
void NsysSqlite::each_row(string_view table, std::span<const string_view> columns, Row&& row) {
  if (!database_.has(table)) return;
  auto rows = database_.select(table, columns);
  Result<bool> more = rows ? rows->step() : tl::unexpected<Error>(rows.error());
  for (; more && *more; more = rows->step()) row(*rows);
  if (!more) problems_.add(Reason::kRecordSkipped, 1, more.error().message);
}

Status NsysSqlite::begin() {
  if (!database_.damage().empty()) problems_.add(Reason::kTruncated, 1, database_.damage());
  read_export_facts();
  places_->read_targets(database_);
  PASTA_TRY(taker_->read_nvtx_names(database_));
  step_ = Step::kRows;
  return {};
}

Status NsysSqlite::read_rows() {
  constexpr int kRowsAtOnce = 8192;  // bounded, so that several files can be read in turns
  const std::span<const TableReader> readers = table_readers();
  if (!rows_) {
    while (next_table_ < readers.size() && !database_.has(readers[next_table_].table)) {
      ++next_table_;
    }
    if (next_table_ == readers.size()) return finish_reading();
    const TableReader& reader = readers[next_table_++];
    auto rows = database_.select(reader.table, reader.columns);
    if (!rows) return damaged(rows.error());
    rows_ = std::move(*rows);
  }
  const TableReader& reader = readers[next_table_ - 1];
  for (int i = 0; i < kRowsAtOnce; ++i) {
    const auto more = rows_->step();
    if (more && *more) {
      PASTA_TRY(taker_->take(reader, *rows_));
      continue;
    }
    if (reader.table == kKernels) kernels_ = rows_->rows();
    if (reader.table == kGraphs) graphs_ = rows_->rows();
    if (reader.table == kCalls) calls_ = rows_->rows();
    rows_.reset();
    return more ? Status() : damaged(more.error());
  }
  return {};
}

std::optional<std::int64_t> NsysSqlite::base_ns() {
  static constexpr string_view kColumns[] = {"utcEpochNs"};
  std::optional<std::int64_t> base;
  bool several = false;
  each_row("TARGET_INFO_SESSION_START_TIME", kColumns, [&](const Statement& row) {
    const auto value = row.integer(0);
    several |= base.has_value() && value != base;
    base = value;
  });
  return several ? std::nullopt : base;
}

void NsysSqlite::read_export_facts() {
  static constexpr string_view kColumns[] = {"name", "value"};
  each_row("META_DATA_EXPORT", kColumns, [&](const Statement& row) {
    if (row.text(0) == "EXPORT_PRODUCT_VERSION") {
      sink_->dictionary().fact("nsight_systems", row.text(1));
    } else if (row.text(0) == "EXPORT_SCHEMA_VERSION") {
      sink_->dictionary().fact("nsight_systems_schema", row.text(1));
    }
  });
}

// A table that is not there means that nothing of its kind happened or that it was not recorded:
// the file does not say which.
void NsysSqlite::say_what_is_missing() {
  std::vector<std::string> missing;
  if (kernels_ == 0 && graphs_ == 0) {
    missing.push_back(fmt::format("the file has no kernel {} ({})",
                                  database_.has(kKernels) ? "rows" : "table", kKernels));
  }
  if (calls_ == 0) {
    missing.push_back(fmt::format("the file has no {} of calls ({})",
                                  database_.has(kCalls) ? "rows" : "table", kCalls));
  }
  if (graphs_ != 0) {
    missing.push_back(
        fmt::format("each launch of a CUDA graph was recorded as a whole and is one "
                    "kernel here ({} of them; nsys profile --cuda-graph-trace=node "
                    "records what is in them)",
                    graphs_));
  }
  if (missing.empty()) return;
  std::string text;
  for (const std::string& one : missing) text += (text.empty() ? "" : "; ") + one;
  problems_.add(Reason::kNotRecorded, missing.size(), text);
}

void NsysSqlite::count_what_is_not_read() {
  const std::span<const TableReader> readers = table_readers();
  // Nothing that happened, though it has times.
  constexpr string_view kFacts[] = {"ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME",
                                    "DIAGNOSTIC_EVENT"};
  std::uint64_t all = 0;
  std::string text;
  for (const Table& table : database_.tables()) {
    const bool timed = database_.has(table.name, "start") ||
                       database_.has(table.name, "timestamp") ||
                       database_.has(table.name, "rawTimestamp");
    const bool read = std::any_of(readers.begin(), readers.end(), [&](const TableReader& reader) {
      return reader.table == table.name;
    });
    if (!timed || read || table.view ||
        std::find(std::begin(kFacts), std::end(kFacts), table.name) != std::end(kFacts)) {
      continue;
    }
    auto count = database_.query(
        fmt::format("SELECT count(*) FROM {}", base::sqlite::identifier(table.name)));
    if (!count || !count->step().value_or(false)) continue;
    const auto rows = static_cast<std::uint64_t>(count->integer(0).value_or(0));
    if (rows == 0) continue;
    all += rows;
    text += fmt::format("{}{} rows of {}", text.empty() ? "" : ", ", rows, table.name);
  }
  if (all != 0) problems_.add(Reason::kNotKept, all, text);
}

void NsysSqlite::read_diagnostics() {
  enum { kSeverity, kText };
  static constexpr string_view kColumns[] = {"severity", "text"};
  constexpr std::int64_t kWarning = 2, kError = 3;
  constexpr std::size_t kMostText = 600;
  std::uint64_t count = 0;
  std::string text;
  each_row("DIAGNOSTIC_EVENT", kColumns, [&](const Statement& row) {
    const std::int64_t severity = row.integer(kSeverity).value_or(0);
    if (severity != kWarning && severity != kError) return;
    ++count;
    const string_view line = row.text(kText).substr(0, row.text(kText).find('\n'));
    if (text.find(line) == text.npos && text.size() + line.size() < kMostText) {
      text += fmt::format("{}{}", text.empty() ? "" : " | ", line);
    }
  });
  if (count != 0) problems_.add(Reason::kCollectorWarning, count, text);
}

Status NsysSqlite::finish_reading() {
  PASTA_TRY(taker_->finish());
  places_->read_names(database_);
  const auto base = base_ns();
  say_what_is_missing();
  count_what_is_not_read();
  read_diagnostics();
  PASTA_TRY(assembler_->finish(base.value_or(0)));

  SourceInfo info;
  info.path = database_.path();
  info.format = kInfo.name;
  info.rank = places_->rank().value_or(kUnknownRank);
  info.first_ns = assembler_->first_ns();
  info.absolute_clock = base.has_value();
  sink_->describe(info);
  step_ = Step::kEmit;
  return {};
}

Status NsysSqlite::emit() {
  auto more = assembler_->emit(*sink_, std::size_t{1} << 16);
  if (!more) return tl::unexpected(std::move(more).error());
  if (*more) return {};
  for (const Problem& problem : problems_.list()) sink_->report(problem);
  step_ = Step::kEnded;
  return {};
}

}  // namespace

bool recognise(const Database& database) {
  if (database.has("META_DATA_EXPORT", "name") || database.has("META_DATA_CAPTURE", "name")) {
    return true;
  }
  if (!database.has("StringIds", "value")) return false;
  const std::span<const Table> tables = database.tables();
  return std::any_of(tables.begin(), tables.end(), [](const Table& table) {
    const string_view name = table.name;
    return name.starts_with("CUPTI_ACTIVITY_KIND_") || name.starts_with("TARGET_INFO_") ||
           name.starts_with("CUDA_") || name.starts_with("MPI_") || name == "NVTX_EVENTS" ||
           name == "OSRT_API";
  });
}

Result<std::unique_ptr<Adapter>> open(Database database) {
  return std::make_unique<NsysSqlite>(std::move(database));
}

}  // namespace pasta::adapters::nsys_sqlite
