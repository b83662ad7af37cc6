// The patch `access`: what a launch asks of each object, and what memory moves for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/launch.h"
#include "device/warp.h"
#include "pasta/result.h"

namespace pasta::device {

// Of one object, of what lies in none, or of shared memory.
struct AccessCounts {
  std::uint64_t reads = 0, writes = 0, atomics = 0;  // of lanes
  std::uint64_t warps = 0;                           // accesses of warps
  std::uint64_t asked_bytes = 0;                     // by lanes: twice what two of them ask for
  // Of objects:
  std::uint64_t used_bytes = 0;  // of the sectors: what a warp asks for, once
  std::uint64_t sectors = 0;
  // Of shared memory:
  std::uint64_t passes = 0;
  std::uint64_t passes_without_conflicts = 0;
  bool operator==(const AccessCounts&) const = default;
};

struct AccessPatch {
  // One bit for each granule of an object that was touched.
  struct Touched {
    unsigned shift = 0;  // a granule is 1 << shift bytes
    std::vector<std::uint64_t> bits;
    void mark(std::uint64_t offset, std::uint32_t bytes);
    [[nodiscard]] std::uint64_t granules() const;
  };
  // Objects up to this size are marked byte by byte; of larger ones, so that as many bits suffice.
  static constexpr std::uint64_t kMostBits = std::uint64_t{8} << 20;

  struct State {
    explicit State(const Launch& launch);
    std::vector<AccessCounts> objects;  // as in Launch
    std::vector<Touched> touched;       // as in Launch; made at the first access
    AccessCounts unknown;               // global memory in no object
    AccessCounts shared;
  };
  static void on_access(State& state, const Launch& launch, const Warp& warp);
};

// --- The result of one launch, as it is kept in a trace

inline constexpr std::string_view kAccessFormat = "access/1";

struct AccessRow {
  enum class Where : std::uint32_t { kObject, kUnknown, kShared };
  Where where = Where::kObject;
  AccessCounts counts;
  std::string name;           // of the object: what the kernel calls it
  std::uint64_t number = 0;   // of the object
  std::uint64_t bytes = 0;    // of the object
  std::uint64_t touched = 0;  // of its bytes
  // `touched` is of pieces of so many bytes, so at most so many too large for each; 1: exact.
  std::uint64_t granule = 1;
  bool operator==(const AccessRow&) const = default;
};
struct AccessResult {
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint32_t block[3] = {0, 0, 0};
  std::uint64_t barriers = 0;  // of groups
  std::uint64_t dropped = 0;   // accesses that were not analysed
  std::vector<AccessRow> rows;
  bool operator==(const AccessResult&) const = default;
};

// Rows of what was accessed; `name_of(object)` is what the kernel calls it.
template <class NameOf>
AccessResult access_result(const Launch& launch, const AccessPatch::State& state, NameOf name_of) {
  AccessResult result;
  for (int i = 0; i < 3; ++i) {
    result.grid[i] = launch.grid[i];
    result.block[i] = launch.block[i];
  }
  for (std::size_t i = 0; i < launch.objects.size(); ++i) {
    if (state.objects[i].warps == 0) continue;
    const AccessPatch::Touched& touched = state.touched[i];
    const std::uint64_t granule = std::uint64_t{1} << touched.shift;
    result.rows.push_back(
        {.counts = state.objects[i],
         .name = std::string(name_of(launch.objects[i])),
         .number = launch.objects[i].number,
         .bytes = launch.objects[i].bytes,
         .touched = std::min(touched.granules() * granule, launch.objects[i].bytes),
         .granule = granule});
  }
  if (state.unknown.warps > 0) {
    result.rows.push_back(
        {.where = AccessRow::Where::kUnknown, .counts = state.unknown, .name = {}});
  }
  if (state.shared.warps > 0) {
    result.rows.push_back({.where = AccessRow::Where::kShared, .counts = state.shared, .name = {}});
  }
  return result;
}

// Parts of at most `most_bytes`, each a result of its own of some of the rows: what is counted of
// the launch as a whole is in the first.
std::vector<std::string> write_access(const AccessResult& result, std::size_t most_bytes);
// kBadInput when it is none.
Result<AccessResult> read_access(std::span<const std::byte> bytes);

}  // namespace pasta::device
