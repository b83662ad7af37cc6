#include "adapters/nsys_sqlite/nsys_sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/common/database_adapter.h"
#include "adapters/nsys_sqlite/places.h"
#include "adapters/nsys_sqlite/row_taker.h"
#include "adapters/nsys_sqlite/strings.h"

namespace pasta::adapters::nsys_sqlite {
namespace {

using base::sqlite::Database;
using base::sqlite::Row;
using base::sqlite::Table;
using std::string_view;

constexpr string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr string_view kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
constexpr string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";

class NsysSqlite final : public common::DatabaseAdapter {
 public:
  explicit NsysSqlite(Database database) : DatabaseAdapter(kInfo, std::move(database)) {}

 private:
  Status prepare() override;
  Result<std::int64_t> rows_end() override;
  Status complete(SourceInfo& source) override;

  // Nanoseconds since 1970 at which the times of the file begin.
  std::optional<std::int64_t> read_base_ns();
  void read_export_facts();
  void say_what_is_missing();
  void count_what_is_not_read();
  void read_diagnostics();
  void each_row(string_view table, std::span<const string_view> columns,
                const std::function<void(const Row&)>& take) {
    common::each_row(database(), problems(), table, columns, take);
  }

  std::unique_ptr<Strings> strings_;
  std::unique_ptr<Places> places_;
  std::unique_ptr<RowTaker> taker_;
  std::optional<std::int64_t> base_ns_;
};

Status NsysSqlite::prepare() {
  assembler().drop_launch_flows();
  strings_ = std::make_unique<Strings>(dictionary(), problems(), database());
  places_ = std::make_unique<Places>(dictionary(), problems(), *strings_, database().path());
  taker_ = std::make_unique<RowTaker>(dictionary(), problems(), *strings_, *places_, assembler(),
                                      strict(), database().path());
  read_export_facts();
  places_->read_targets(database());
  PASTA_TRY(taker_->read_nvtx_names(database()));
  for (const TableReader& reader : table_readers()) {
    if (!database().has(reader.table)) continue;
    scan(reader.table, reader.columns, [this, &reader] { return taker_->take(reader, row()); });
  }
  return {};
}

Result<std::int64_t> NsysSqlite::rows_end() {
  PASTA_TRY(taker_->finish());
  places_->read_names(database());
  base_ns_ = read_base_ns();
  say_what_is_missing();
  count_what_is_not_read();
  read_diagnostics();
  return base_ns_.value_or(0);
}

Status NsysSqlite::complete(SourceInfo& source) {
  source.rank = places_->rank().value_or(kUnknownRank);
  source.absolute_clock = base_ns_.has_value();
  return {};
}

std::optional<std::int64_t> NsysSqlite::read_base_ns() {
  static constexpr string_view kColumns[] = {"utcEpochNs"};
  std::optional<std::int64_t> base;
  bool several = false;
  each_row("TARGET_INFO_SESSION_START_TIME", kColumns, [&](const Row& row) {
    const auto value = row.integer(0);
    several |= base.has_value() && value != base;
    base = value;
  });
  return several ? std::nullopt : base;
}

void NsysSqlite::read_export_facts() {
  static constexpr string_view kColumns[] = {"name", "value"};
  each_row("META_DATA_EXPORT", kColumns, [&](const Row& row) {
    if (row.text(0) == "EXPORT_PRODUCT_VERSION") {
      dictionary().fact("nsight_systems", row.text(1));
    } else if (row.text(0) == "EXPORT_SCHEMA_VERSION") {
      dictionary().fact("nsight_systems_schema", row.text(1));
    }
  });
}

// A table that is not there means that nothing of its kind happened or that it was not recorded:
// the file does not say which.
void NsysSqlite::say_what_is_missing() {
  std::vector<std::string> missing;
  const std::uint64_t graphs = taker_->rows_of(kGraphs);
  if (taker_->rows_of(kKernels) == 0 && graphs == 0) {
    missing.push_back(fmt::format("the file has no kernel {} ({})",
                                  database().has(kKernels) ? "rows" : "table", kKernels));
  }
  if (taker_->rows_of(kCalls) == 0) {
    missing.push_back(fmt::format("the file has no {} of calls ({})",
                                  database().has(kCalls) ? "rows" : "table", kCalls));
  }
  if (graphs != 0) {
    missing.push_back(
        fmt::format("each launch of a CUDA graph was recorded as a whole and is one "
                    "kernel here ({} of them; nsys profile --cuda-graph-trace=node "
                    "records what is in them)",
                    graphs));
  }
  if (missing.empty()) return;
  std::string text;
  for (const std::string& one : missing) text += (text.empty() ? "" : "; ") + one;
  problems().add(Reason::kNotRecorded, missing.size(), text);
}

void NsysSqlite::count_what_is_not_read() {
  const std::span<const TableReader> readers = table_readers();
  // Nothing that happened, though it has times.
  constexpr string_view kFacts[] = {"ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME",
                                    "DIAGNOSTIC_EVENT"};
  std::uint64_t all = 0;
  std::string text;
  for (const Table& table : database().tables()) {
    const bool timed = database().has(table.name, "start") ||
                       database().has(table.name, "timestamp") ||
                       database().has(table.name, "rawTimestamp");
    const bool read = std::any_of(readers.begin(), readers.end(), [&](const TableReader& reader) {
      return reader.table == table.name;
    });
    if (!timed || read || table.view ||
        std::find(std::begin(kFacts), std::end(kFacts), table.name) != std::end(kFacts)) {
      continue;
    }
    auto count = database().query(
        fmt::format("SELECT count(*) FROM {}", base::sqlite::identifier(table.name)));
    if (!count || !count->step().value_or(false)) continue;
    const auto rows = static_cast<std::uint64_t>(count->integer(0).value_or(0));
    if (rows == 0) continue;
    all += rows;
    text += fmt::format("{}{} rows of {}", text.empty() ? "" : ", ", rows, table.name);
  }
  if (all != 0) problems().add(Reason::kNotKept, all, text);
}

void NsysSqlite::read_diagnostics() {
  enum { kSeverity, kText };
  static constexpr string_view kColumns[] = {"severity", "text"};
  constexpr std::int64_t kWarning = 2, kError = 3;
  constexpr std::size_t kMostText = 600;
  std::uint64_t count = 0;
  std::string text;
  each_row("DIAGNOSTIC_EVENT", kColumns, [&](const Row& row) {
    const std::int64_t severity = row.integer(kSeverity).value_or(0);
    if (severity != kWarning && severity != kError) return;
    ++count;
    const string_view line = row.text(kText).substr(0, row.text(kText).find('\n'));
    if (text.find(line) == text.npos && text.size() + line.size() < kMostText) {
      text += fmt::format("{}{}", text.empty() ? "" : " | ", line);
    }
  });
  if (count != 0) problems().add(Reason::kCollectorWarning, count, text);
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
