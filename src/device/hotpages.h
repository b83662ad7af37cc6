// The patch `hotpages`: which pieces of memory a launch accesses, and how much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/launch.h"
#include "device/reducers.h"
#include "device/warp.h"

namespace pasta::device {

class Layout;
struct Names;
struct PatchResult;

struct BlockCounts {
  std::uint64_t reads = 0, writes = 0, atomics = 0;  // of lanes
  std::uint64_t sectors = 0;
  bool operator==(const BlockCounts&) const = default;
};

struct HotpagesPatch {
  static constexpr std::string_view kFormat = "hotpages/1";
  static constexpr std::uint32_t kCopies = 8;  // on a GPU
  struct Settings {
    std::uint32_t copies = 1;  // on a GPU kCopies
    // Blocks are as small as these allow, of all objects together. They begin at multiples of their
    // size: an object may have a part of its first and of its last.
    std::uint64_t least_block = 4096;
    std::uint64_t most_blocks = std::uint64_t{1} << 17;
  };
  // Where blocks are is counted in rows of one block: base of an object is the row of its first
  // block, less what the address of that is in blocks.
  struct Shared {
    Pieces::Table objects;
    std::uint32_t shift;  // a block is 1 << shift bytes
    std::uint32_t copies, rows;
  };
  struct State {
    Shared shared;
    BlockCounts* blocks;  // copies x (blocks of all objects, one for no object)
  };
  static Shared share(const Launch& objects, const Settings& settings, Layout& layout);
  static State lay_out(const Launch& launch, const Shared& shared, const Settings& settings,
                       Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0 || warp.space != Space::kGlobal) return;
    warp.match(
        [&](std::uint64_t address) {
          // The block in which an access begins.
          const Pieces::Target found =
              Pieces::find(launch, state.shared.objects, address, warp.width);
          return found.row == kNoRow
                     ? found.base
                     : found.base + static_cast<std::uint32_t>(address >> found.row);
        },
        [&](std::uint32_t row, std::uint32_t mask) {
          warp.add_two(mask, counts(state, warp, row), static_cast<std::uint32_t>(warp.access),
                       count_bits(mask), PASTA_NUMBER(BlockCounts, sectors), warp.sectors(mask));
        });
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  // Of Target::row, which is how large blocks are.
  static constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

  template <class AnyWarp>
  PASTA_DEVICE static std::uint64_t* counts(const State& state, const AnyWarp& warp,
                                            std::uint32_t row) {
    const std::uint32_t which = row + warp.template copy<kCopies>() * fixed(state.shared.rows);
    return behind_header<HotpagesPatch, std::uint64_t>(state, state.blocks,
                                                       std::uint64_t{which} * sizeof(BlockCounts));
  }
  static_assert(PASTA_NUMBER(BlockCounts, atomics) ==
                PASTA_NUMBER(BlockCounts, reads) + static_cast<std::uint32_t>(Access::kAtomic));
};

// Blocks next to each other of which each has these counts.
struct BlockRow {
  std::uint64_t object = 0;                                // its number or kUnknownObject
  std::uint64_t address = 0, block_bytes = 0, blocks = 0;  // 0 of no object
  BlockCounts counts = {};
  bool operator==(const BlockRow&) const = default;
};

}  // namespace pasta::device
