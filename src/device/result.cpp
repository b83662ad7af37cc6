#include "device/result.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace pasta::device {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::size_t kMostNameBytes = 256;

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string_view short_name(const std::string& name) {
  return std::string_view(name).substr(0, kMostNameBytes);
}

class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  bool take(T& value) {
    if (bytes_.size() < sizeof value) return false;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return true;
  }
  template <class T>
  bool take(std::vector<T>& values, std::uint64_t count) {
    if (bytes_.size() / sizeof(T) < count) return false;
    values.resize(count);
    if (count > 0) std::memcpy(values.data(), bytes_.data(), count * sizeof(T));
    bytes_ = bytes_.subspan(count * sizeof(T));
    return true;
  }
  bool take(std::string& text, std::size_t size) {
    if (bytes_.size() < size) return false;
    text.assign(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
};

// Puts rows into parts; a part that is full is over.
class Parts {
 public:
  Parts(const PatchResult& result, std::size_t most_bytes) : most_bytes_(most_bytes) {
    std::copy_n(result.grid, 3, header_.grid);
    std::copy_n(result.block, 3, header_.block);
    header_.barriers = result.barriers;
    header_.dropped = result.dropped;
  }

  void add(const ResultTable& table) {
    begin(table);
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const std::string_view name = named(table) ? short_name(table.names[row]) : "";
      const std::size_t size =
          table.columns * sizeof(std::uint64_t) + (named(table) ? sizeof(std::uint32_t) : 0);
      if (any_row_ && size_ + size + name.size() > most_bytes_) {
        end_part();
        begin(table);
      }
      const std::uint64_t* numbers = table.numbers.data() + row * table.columns;
      numbers_.append(reinterpret_cast<const char*>(numbers),
                      table.columns * sizeof(std::uint64_t));
      if (named(table)) append(lengths_, static_cast<std::uint32_t>(name.size()));
      names_ += name;
      size_ += size + name.size();
      ++open_.rows;
      any_row_ = true;
    }
    end_table();
  }

  std::vector<std::string> take() {
    if (header_.tables > 0 || parts_.empty()) end_part();
    return std::move(parts_);
  }

 private:
  static bool named(const ResultTable& table) { return !table.names.empty(); }

  void begin(const ResultTable& table) {
    open_ = {static_cast<std::uint32_t>(table.id), table.columns, 0, named(table) ? 1u : 0u};
    size_ += sizeof open_;
  }
  void end_table() {
    if (open_.rows > 0) {
      append(tables_, open_);
      tables_ += numbers_ + lengths_ + names_;
      ++header_.tables;
    }
    numbers_.clear();
    lengths_.clear();
    names_.clear();
    open_ = {};
  }
  void end_part() {
    end_table();
    std::string part;
    append(part, header_);
    parts_.push_back(part + tables_);
    tables_.clear();
    header_ = {};
    size_ = sizeof header_;
    any_row_ = false;
  }

  std::size_t most_bytes_;
  std::vector<std::string> parts_;
  StoredHeader header_{};
  std::string tables_;                     // of the part
  StoredTable open_{};                     // of the table under way
  std::string numbers_, lengths_, names_;  // of its rows
  std::size_t size_ = sizeof(StoredHeader);
  bool any_row_ = false;
};

}  // namespace

void append_object(ResultTable& objects, const MemoryObject& object, const Names& names) {
  append_row(objects, ObjectRow{object.number, object.address, object.bytes});
  objects.names.push_back(names.object(object));
}

PatchResult result_of(const Launch& launch, std::vector<ResultTable> tables) {
  PatchResult result{.tables = std::move(tables)};
  std::copy_n(launch.grid, 3, result.grid);
  std::copy_n(launch.block, 3, result.block);
  return result;
}

std::uint64_t skipped_launches(const PatchResult& result) {
  std::uint64_t launches = 0;
  for (const ResultTable& table : result.tables) {
    if (table.id != TableId::kSkipped) continue;
    for (const SkippedRow& row : rows_of<SkippedRow>(table)) launches += row.launches;
  }
  return std::max<std::uint64_t>(launches, 1);
}

void say_iteration(PatchResult& result, std::uint64_t begun) {
  ResultTable table{.id = TableId::kIteration};
  append_row(table, IterationRow{begun});
  result.tables.insert(result.tables.begin(), std::move(table));
}

std::optional<std::uint64_t> iteration_of(const PatchResult& result) {
  for (const ResultTable& table : result.tables) {
    if (table.id != TableId::kIteration) continue;
    for (const IterationRow& row : rows_of<IterationRow>(table)) return row.begun;
  }
  return std::nullopt;
}

void say_stream(PatchResult& result, const StreamRow& row) {
  ResultTable table{.id = TableId::kStream};
  append_row(table, row);
  result.tables.insert(result.tables.begin(), std::move(table));
}

std::optional<StreamRow> stream_of(const PatchResult& result) {
  for (const ResultTable& table : result.tables) {
    if (table.id != TableId::kStream) continue;
    for (const StreamRow& row : rows_of<StreamRow>(table)) return row;
  }
  return std::nullopt;
}

std::vector<std::string> write_result(const PatchResult& result, std::size_t most_bytes) {
  Parts parts(result, most_bytes);
  for (const ResultTable& table : result.tables) parts.add(table);
  return parts.take();
}

Result<PatchResult> read_result(std::span<const std::byte> bytes) {
  const auto bad = [](const char* why) {
    return fail(ErrorCode::kBadInput, std::string("a result of a patch: ") + why);
  };
  Taker taker(bytes);
  StoredHeader header;
  if (!taker.take(header)) return bad("it is too short");
  PatchResult result;
  std::copy_n(header.grid, 3, result.grid);
  std::copy_n(header.block, 3, result.block);
  result.barriers = header.barriers;
  result.dropped = header.dropped;
  for (std::uint32_t i = 0; i < header.tables; ++i) {
    StoredTable stored;
    if (!taker.take(stored)) return bad("it has fewer tables than it says");
    if (stored.columns == 0 || stored.named > 1) return bad("a table of no known kind");
    ResultTable& table = result.tables.emplace_back();
    table.id = static_cast<TableId>(stored.id);
    table.columns = stored.columns;
    if (!taker.take(table.numbers, std::uint64_t{stored.columns} * stored.rows)) {
      return bad("it has fewer rows than it says");
    }
    if (stored.named == 0) continue;
    std::vector<std::uint32_t> lengths;
    if (!taker.take(lengths, stored.rows)) return bad("names are missing");
    for (const std::uint32_t length : lengths) {
      if (!taker.take(table.names.emplace_back(), length)) return bad("a name is cut");
    }
  }
  return result;
}

}  // namespace pasta::device
