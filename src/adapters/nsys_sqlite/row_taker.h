// Rows become events.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/common/recent_attributes.h"
#include "adapters/nsys_sqlite/places.h"
#include "adapters/nsys_sqlite/strings.h"
#include "adapters/nsys_sqlite/vocabulary.h"
#include "base/sqlite.h"
#include "correlate/assembler.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta::adapters::nsys_sqlite {

class RowTaker;

// A table that is read: which columns, and what makes events of a row with these.
struct TableReader {
  std::string_view table;
  std::span<const std::string_view> columns;
  Status (RowTaker::*take)(const base::sqlite::Row& row);
  // What take_on_thread() makes of it, and the column of its name.
  Kind kind = Kind::kApi;
  std::uint16_t detail = 0;
  int name = 0;
};
// In the order in which they are to be read: the host's tables tell which process it is where the
// device's do not say, and work tells which device a context is of where waits do not.
std::span<const TableReader> table_readers();

class RowTaker {
 public:
  RowTaker(Dictionary& dictionary, Problems& problems, Strings& strings, Places& places,
           correlate::Assembler& assembler, bool strict, std::string_view path)
      : dictionary_(dictionary),
        problems_(problems),
        strings_(strings),
        places_(places),
        assembler_(assembler),
        strict_(strict),
        path_(path) {}

  // Names of domains and categories, which may stand behind the ranges that use them.
  Status read_nvtx_names(const base::sqlite::Database& database);
  // `row` was made with reader.columns. In strict mode a fault of the row is an error.
  Status take(const TableReader& reader, const base::sqlite::Row& row);
  // After the last row: ends the ranges that are open.
  Status finish();
  // How many of this table there were.
  [[nodiscard]] std::uint64_t rows_of(std::string_view table) const;

  Status take_call(const base::sqlite::Row& row);
  Status take_on_thread(const base::sqlite::Row& row);
  Status take_nvtx(const base::sqlite::Row& row);
  Status take_kernel(const base::sqlite::Row& row);
  Status take_copy(const base::sqlite::Row& row);
  Status take_fill(const base::sqlite::Row& row);
  Status take_graph(const base::sqlite::Row& row);
  Status take_sync(const base::sqlite::Row& row);
  Status take_memory(const base::sqlite::Row& row);
  Status take_cpu_fault(const base::sqlite::Row& row);
  Status take_gpu_fault(const base::sqlite::Row& row);

 private:
  struct Label {  // of a range
    StringId name{};
    std::uint64_t sequence = 0;
    StringId sizes{};
    StringId hlo{};
    ScopeDomain domain = ScopeDomain::kAnnotation;
  };
  using DomainKey = std::array<std::uint64_t, 3>;  // process, domain, category

  // Sets start and end from the columns, or the flag of an untimed event with the reason counted.
  Status set_times(Event& event, const base::sqlite::Row& row, int start, int end);
  // The same for what is still open where its end is missing; then it waits until finish().
  Status add_range(Event& event, const base::sqlite::Row& row, int start, int end);
  Status set_moment(Event& event, const base::sqlite::Row& row, int at);
  Status correlation(Event& event, ProcessId process, const base::sqlite::Row& row, int id);
  // As whole numbers; what is no number or does not fit is counted and unknown.
  std::optional<std::int64_t> number(const base::sqlite::Row& row, int column) {
    const base::sqlite::Row::Cell& cell = row.cell(column);
    if (cell.type == base::sqlite::Type::kInteger) return cell.integer;
    if (cell.type == base::sqlite::Type::kNull) return std::nullopt;
    return unusual_number(row, column);
  }
  std::optional<std::int64_t> unusual_number(const base::sqlite::Row& row, int column);
  std::uint64_t size(const base::sqlite::Row& row, int column);
  StringId call_name(const base::sqlite::Row& row, int column);
  // Ready names that are put together from a few parts.
  template <class Make>
  StringId part_name(std::uint64_t key, Make&& make);
  Label label(const base::sqlite::Row& row);
  Label make_label(std::string_view text);
  StringId arguments(const base::sqlite::Row& row, const Label& label);
  Status add(Event& event);
  // Counts a problem of the row at hand; `detail` makes its text.
  template <class Detail>
  Status note(Reason reason, Detail&& detail);

  Dictionary& dictionary_;
  Problems& problems_;
  Strings& strings_;
  Places& places_;
  correlate::Assembler& assembler_;
  bool strict_;
  std::string_view path_;
  const TableReader* reader_ = nullptr;  // of the row at hand
  std::uint64_t row_ = 0;
  std::map<std::string_view, std::uint64_t> rows_;  // of the tables before
  std::int64_t last_end_ns_ = kNoTime;
  std::vector<Event> open_;
  std::uint64_t binary_payloads_ = 0;
  ById<StringId> calls_;
  ById<Label> labels_;
  std::unordered_map<std::uint64_t, StringId> parts_;
  std::map<DomainKey, std::string> nvtx_names_;
  std::string scratch_;
  common::RecentAttributes attributes_;
};

}  // namespace pasta::adapters::nsys_sqlite
