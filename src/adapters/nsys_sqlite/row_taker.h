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
  Status (RowTaker::*take)(const base::sqlite::Statement& row);
};
// In the order in which they are to be read: the host's tables tell which process it is where the
// device's do not say, and work tells which device a context is of where waits do not.
std::span<const TableReader> table_readers();

class RowTaker {
 public:
  RowTaker(Dictionary& dictionary, Problems& problems, Strings& strings, Places& places,
           correlate::Assembler& assembler, bool strict)
      : dictionary_(dictionary),
        problems_(problems),
        strings_(strings),
        places_(places),
        assembler_(assembler),
        strict_(strict) {}

  // Names of domains and categories, which may stand behind the ranges that use them.
  Status read_nvtx_names(const base::sqlite::Database& database);
  // `row` was made with reader.columns. In strict mode a fault of the row is an error.
  Status take(const TableReader& reader, const base::sqlite::Statement& row);
  // After the last row: ends the ranges that are open.
  Status finish();

  Status take_call(const base::sqlite::Statement& row);
  Status take_library_call(const base::sqlite::Statement& row);
  Status take_os_call(const base::sqlite::Statement& row);
  Status take_mpi_call(const base::sqlite::Statement& row);
  Status take_overhead(const base::sqlite::Statement& row);
  Status take_nvtx(const base::sqlite::Statement& row);
  Status take_kernel(const base::sqlite::Statement& row);
  Status take_copy(const base::sqlite::Statement& row);
  Status take_fill(const base::sqlite::Statement& row);
  Status take_graph(const base::sqlite::Statement& row);
  Status take_sync(const base::sqlite::Statement& row);
  Status take_memory(const base::sqlite::Statement& row);
  Status take_cpu_fault(const base::sqlite::Statement& row);
  Status take_gpu_fault(const base::sqlite::Statement& row);

 private:
  struct Label {  // of a range
    StringId name{};
    std::uint64_t sequence = 0;
    StringId sizes{};
    ScopeDomain domain = ScopeDomain::kAnnotation;
  };
  using DomainKey = std::array<std::uint64_t, 3>;  // process, domain, category

  // Sets start and end from the columns, or the flag of an untimed event with the reason counted.
  Status set_times(Event& event, const base::sqlite::Statement& row, int start, int end);
  // The same for what is still open where its end is missing; then it waits until finish().
  Status add_range(Event& event, const base::sqlite::Statement& row, int start, int end);
  Status set_moment(Event& event, const base::sqlite::Statement& row, int at);
  Status correlation(Event& event, ProcessId process, const base::sqlite::Statement& row, int id);
  // As whole numbers; what is no number or does not fit is counted and unknown.
  std::optional<std::int64_t> number(const base::sqlite::Statement& row, int column);
  std::uint64_t size(const base::sqlite::Statement& row, int column);
  StringId call_name(const base::sqlite::Statement& row, int column);
  // Ready names that are put together from a few parts.
  template <class Make>
  StringId part_name(std::uint64_t key, Make&& make);
  Label label(const base::sqlite::Statement& row);
  Label make_label(std::string_view text);
  StringId arguments(const base::sqlite::Statement& row, const Label& label);
  AttributesId attributes(const LaunchAttributes& attributes);
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
  std::string_view table_;
  std::uint64_t row_ = 0;
  std::int64_t last_end_ns_ = kNoTime;
  std::vector<Event> open_;
  ById<StringId> calls_;
  ById<Label> labels_;
  std::unordered_map<std::uint64_t, StringId> parts_;
  std::map<DomainKey, std::string> nvtx_names_;
  std::string scratch_;
  struct RecentAttributes {
    LaunchAttributes attributes;
    AttributesId id{};
  };
  std::array<RecentAttributes, 512> recent_attributes_{};
};

}  // namespace pasta::adapters::nsys_sqlite
