// What a patch made of one launch, as it is kept in a trace: tables of rows of 64-bit numbers, each
// row with a name or without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/launch.h"
#include "pasta/result.h"

namespace pasta::device {

// Numbers are for ever: traces hold them.
enum class TableId : std::uint32_t {
  kObjects = 1,       // ObjectRow, named as the kernel calls it
  kAccesses = 2,      // AccessRow
  kSites = 3,         // SiteRow, named by the place in the program
  kBlocks = 4,        // BlockRow
  kSets = 5,          // SetRow
  kRuns = 6,          // RunRow
  kFingerprints = 7,  // FingerprintRow
  kActivity = 8,      // ActivityRow, named by the place in the program
  kBalance = 9,       // BalanceRow
  kSkipped = 11,      // SkippedRow
  kIteration = 12,    // IterationRow: when it was launched
  kStream = 13,       // StreamRow: where
  kTimes = 14,        // TimesRow
  kUnseen = 16,       // UnseenRow: what no patch sees of the kernel
  kMapped = 17,       // MappedRow: objects that it was given tensor maps of
  kSamples = 18,      // SampleRow, in samples.h
  kUnseenToo = 19,    // UnseenTooRow: with kUnseen, more of it
};

// In a trace: a header; for each table its header, its numbers, and where rows have names, first
// the lengths of all and then their bytes. Little-endian.
struct StoredHeader {
  std::uint32_t tables;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t reserved;
  std::uint64_t barriers, dropped;
};
struct StoredTable {
  std::uint32_t id, columns, rows;
  std::uint32_t named;  // 0 or 1
};
static_assert(sizeof(StoredHeader) == 48 && sizeof(StoredTable) == 16);

// Instructions in the code of a kernel that access memory unseen; how often they run is not known.
struct UnseenRow {
  std::uint64_t tensor_loads = 0, tensor_stores = 0;  // of tiles, through tensor maps
  std::uint64_t textures = 0;                         // and surfaces
  bool operator==(const UnseenRow&) const = default;
};

struct UnseenTooRow {
  std::uint64_t constants = 0;  // that read constant memory of the program
  std::uint64_t products = 0;   // of matrices that are read from shared memory
  std::uint64_t multicast = 0;  // reductions of the memory of several devices
  std::uint64_t fills = 0;      // of pieces of shared memory
  bool operator==(const UnseenTooRow&) const = default;
};

struct MappedRow {
  std::uint64_t object = 0;  // its number or kUnknownObject
  bool operator==(const MappedRow&) const = default;
};

// The format of a result that says only that a launch, or as many as its row says, was not
// analysed, as it was not to be.
inline constexpr std::string_view kSkippedFormat = "skipped/1";
struct SkippedRow {
  std::uint64_t launches = 0;
};

// The format of a result that says about how long launches of a kernel take that have no patch in
// them, of another iteration than those that are analysed. It is of no launch.
inline constexpr std::string_view kTimesFormat = "times/1";
struct TimesRow {
  std::uint64_t launches = 0, ns = 0;  // of all these together
};

// Iterations of its process that had ended when it was launched, as base::IterationCounter counts
// them: by pasta_step(), in "step#n-1", n. Results of one launch may have it, or not.
struct IterationRow {
  std::uint64_t begun = 0;
};

// Which stream of its process it was launched on, numbered as they were first launched on, and its
// place among the launches there. Both from 1.
struct StreamRow {
  std::uint64_t stream = 0, launch = 0;
};

struct ObjectRow {
  std::uint64_t number = 0, address = 0, bytes = 0;  // as in MemoryObject
};
// In rows of other tables, instead of the number of an object.
inline constexpr std::uint64_t kUnknownObject = 0;
inline constexpr std::uint64_t kSharedMemory = ~std::uint64_t{0};
inline constexpr std::uint64_t kSeveralObjects = ~std::uint64_t{1};
inline constexpr std::uint64_t kLocalMemory = ~std::uint64_t{2};

struct ResultTable {
  TableId id = TableId::kObjects;
  std::uint32_t columns = 0;
  std::vector<std::uint64_t> numbers = {};  // row by row
  std::vector<std::string> names = {};      // one a row, or none at all

  [[nodiscard]] std::size_t rows() const { return columns == 0 ? 0 : numbers.size() / columns; }
  bool operator==(const ResultTable&) const = default;
};

struct PatchResult {
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  std::uint64_t barriers = 0;  // of groups
  std::uint64_t dropped = 0;   // accesses that were not analysed
  std::vector<ResultTable> tables = {};
  bool operator==(const PatchResult&) const = default;
};

// How an adapter calls what it knows; "" where it knows no name.
struct Names {
  std::function<std::string(const MemoryObject&)> object = [](const MemoryObject&) {
    return std::string();
  };
  std::function<std::string(std::uint64_t site)> site = [](std::uint64_t) { return std::string(); };
};

// `Row` is a struct of 64-bit numbers.
template <class Row>
void append_row(ResultTable& table, const Row& row) {
  static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) % sizeof(std::uint64_t) == 0);
  table.columns = sizeof(Row) / sizeof(std::uint64_t);
  const std::size_t at = table.numbers.size();
  table.numbers.resize(at + table.columns);
  std::memcpy(table.numbers.data() + at, &row, sizeof row);
}
// The rows of a table, whose later versions may have more columns; none when it has fewer.
template <class Row>
std::vector<Row> rows_of(const ResultTable& table) {
  constexpr std::size_t kColumns = sizeof(Row) / sizeof(std::uint64_t);
  std::vector<Row> rows(table.columns < kColumns ? 0 : table.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(static_cast<void*>(&rows[i]), table.numbers.data() + i * table.columns,
                sizeof(Row));
  }
  return rows;
}

// Of the copies of a row, each `apart` rows behind the one before.
template <class Row>
Row total_row(const Row* rows, std::uint32_t copies, std::uint64_t apart, std::uint64_t at) {
  Row sum{};
  for (std::uint32_t copy = 0; copy < copies; ++copy) add_row(sum, rows[copy * apart + at]);
  return sum;
}
// A row of kObjects.
void append_object(ResultTable& objects, const MemoryObject& object, const Names& names);
PatchResult result_of(const Launch& launch, std::vector<ResultTable> tables);
// Puts an IterationRow first.
void say_iteration(PatchResult& result, std::uint64_t begun);
// None where it is not said.
std::optional<std::uint64_t> iteration_of(const PatchResult& result);
// The same of a StreamRow.
void say_stream(PatchResult& result, const StreamRow& row);
std::optional<StreamRow> stream_of(const PatchResult& result);
// Of a result of kSkippedFormat.
std::uint64_t skipped_launches(const PatchResult& result);

// Parts of at most `most_bytes` (or of one row), each a result of its own with some of the rows:
// what is said of the launch as a whole is in the first.
std::vector<std::string> write_result(const PatchResult& result, std::size_t most_bytes);
// kBadInput when it is none.
Result<PatchResult> read_result(std::span<const std::byte> bytes);

}  // namespace pasta::device
