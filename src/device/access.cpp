#include "device/access.h"

#include <bit>
#include <cstring>

namespace pasta::device {
namespace {

// In a trace: a header, rows, and the names of all rows one after the other; little-endian.
struct StoredHeader {
  std::uint32_t rows;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t reserved;
  std::uint64_t barriers, dropped;
};
struct StoredRow {
  std::uint64_t reads, writes, atomics, warps, asked_bytes, used_bytes, sectors, passes,
      passes_without_conflicts;
  std::uint64_t number, bytes, touched, granule;
  std::uint32_t where;
  std::uint32_t name_bytes;
};
static_assert(sizeof(StoredHeader) == 48 && sizeof(StoredRow) == 112);
static_assert(std::endian::native == std::endian::little);
constexpr std::size_t kMostNameBytes = 256;

void count(AccessCounts& counts, const Warp& warp, unsigned lanes) {
  std::uint64_t& of_kind = warp.access == Access::kRead    ? counts.reads
                           : warp.access == Access::kWrite ? counts.writes
                                                           : counts.atomics;
  of_kind += lanes;
  ++counts.warps;
  counts.asked_bytes += std::uint64_t{lanes} * warp.width;
}

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void AccessPatch::Touched::mark(std::uint64_t offset, std::uint32_t bytes) {
  for (std::uint64_t at = offset >> shift; at <= (offset + bytes - 1) >> shift; ++at) {
    bits[at / 64] |= std::uint64_t{1} << at % 64;
  }
}

std::uint64_t AccessPatch::Touched::granules() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : bits) sum += static_cast<std::uint64_t>(std::popcount(word));
  return sum;
}

AccessPatch::State::State(const Launch& launch)
    : objects(launch.objects.size()), touched(launch.objects.size()) {}

void AccessPatch::on_access(State& state, const Launch& launch, const Warp& warp) {
  if (warp.width == 0) return;
  if (warp.space == Space::kShared) {
    count(state.shared, warp, warp.lanes());
    const Warp::Passes passes = warp.passes();
    state.shared.passes += passes.needed;
    state.shared.passes_without_conflicts += passes.without_conflicts;
    return;
  }
  const auto object_of = [&](std::uint64_t address) { return launch.find(address, warp.width); };
  warp.match(object_of, [&](const MemoryObject* object, std::uint32_t mask) {
    const std::size_t at =
        object == nullptr ? 0 : static_cast<std::size_t>(object - launch.objects.data());
    AccessCounts& counts = object == nullptr ? state.unknown : state.objects[at];
    count(counts, warp, static_cast<unsigned>(std::popcount(mask)));
    warp.sectors(mask, [&](std::uint64_t, std::uint32_t bytes) {
      ++counts.sectors;
      counts.used_bytes += static_cast<unsigned>(std::popcount(bytes));
    });
    if (object == nullptr) return;
    Touched& touched = state.touched[at];
    if (touched.bits.empty()) {
      while (object->bytes >> touched.shift > kMostBits) ++touched.shift;
      touched.bits.resize((object->bytes >> touched.shift) / 64 + 1);
    }
    for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      touched.mark(warp.address[std::countr_zero(rest)] - object->address, warp.width);
    }
  });
}

std::vector<std::string> write_access(const AccessResult& result, std::size_t most_bytes) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  do {
    StoredHeader header{};
    if (parts.empty()) {
      std::memcpy(header.grid, result.grid, sizeof header.grid);
      std::memcpy(header.block, result.block, sizeof header.block);
      header.barriers = result.barriers;
      header.dropped = result.dropped;
    }
    std::string rows, names;
    for (; at < result.rows.size(); ++at) {
      const AccessRow& row = result.rows[at];
      const auto name = std::string_view(row.name).substr(0, kMostNameBytes);
      const std::size_t size =
          sizeof header + rows.size() + names.size() + sizeof(StoredRow) + name.size();
      if (header.rows > 0 && size > most_bytes) break;
      const AccessCounts& c = row.counts;
      append(rows, StoredRow{c.reads, c.writes, c.atomics, c.warps, c.asked_bytes, c.used_bytes,
                             c.sectors, c.passes, c.passes_without_conflicts, row.number, row.bytes,
                             row.touched, row.granule, static_cast<std::uint32_t>(row.where),
                             static_cast<std::uint32_t>(name.size())});
      names += name;
      ++header.rows;
    }
    std::string part;
    append(part, header);
    parts.push_back(part + rows + names);
  } while (at < result.rows.size());
  return parts;
}

Result<AccessResult> read_access(std::span<const std::byte> bytes) {
  const auto bad = [](const char* why) {
    return fail(ErrorCode::kBadInput, std::string("a result of the patch access: ") + why);
  };
  StoredHeader header;
  if (bytes.size() < sizeof header) return bad("it is too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  if (bytes.size() / sizeof(StoredRow) < header.rows) return bad("it has fewer rows than it says");
  std::span<const std::byte> names = bytes.subspan(header.rows * sizeof(StoredRow));
  AccessResult result;
  std::memcpy(result.grid, header.grid, sizeof header.grid);
  std::memcpy(result.block, header.block, sizeof header.block);
  result.barriers = header.barriers;
  result.dropped = header.dropped;
  result.rows.resize(header.rows);
  for (AccessRow& row : result.rows) {
    StoredRow stored;
    std::memcpy(&stored, bytes.data(), sizeof stored);
    bytes = bytes.subspan(sizeof stored);
    if (stored.where > 2 || stored.granule == 0) return bad("a row of no known kind");
    if (stored.name_bytes > names.size()) return bad("a name is cut");
    row.where = static_cast<AccessRow::Where>(stored.where);
    row.counts = {stored.reads,   stored.writes,      stored.atomics,
                  stored.warps,   stored.asked_bytes, stored.used_bytes,
                  stored.sectors, stored.passes,      stored.passes_without_conflicts};
    row.number = stored.number;
    row.bytes = stored.bytes;
    row.touched = stored.touched;
    row.granule = stored.granule;
    row.name.assign(reinterpret_cast<const char*>(names.data()), stored.name_bytes);
    names = names.subspan(stored.name_bytes);
  }
  return result;
}

}  // namespace pasta::device
