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
  struct Place {
    std::uint64_t begin, bytes;  // of an object
    std::uint64_t first_block;
  };
  struct State {
    const Place* places;  // as the objects of the launch
    BlockCounts* blocks;  // copies x (blocks of all objects, one for no object)
    ObjectHints hints;
    std::uint64_t block_count;
    std::uint32_t shift;  // a block is 1 << shift bytes
    std::uint32_t copies;

    // Which one an access is of that begins here and is of this object.
    PASTA_DEVICE std::uint64_t block(std::uint32_t object, std::uint64_t address) const {
      if (object == kNoObject) return block_count;
      const Place& place = places[object];
      return fixed(place.first_block) + (address >> shift) - (fixed(place.begin) >> shift);
    }
  };
  static State lay_out(const Launch& launch, const Settings& settings, Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0 || warp.space != Space::kGlobal) return;
    warp.match(
        [&](std::uint64_t address) {
          const std::uint32_t object = state.hints.find(launch, state.places, address, warp.width);
          return static_cast<std::uint32_t>(state.block(object, address));
        },
        [&](std::uint32_t block, std::uint32_t mask) {
          // One after the other, as there are registers for one.
          warp.add(mask,
                   reinterpret_cast<std::uint64_t*>(
                       &row(state, warp, block))[static_cast<std::uint32_t>(warp.access)],
                   count_bits(mask));
          const std::uint32_t sectors = warp.sectors(mask);
          warp.add(mask, row(warp.after(sectors, state), warp, block).sectors, sectors);
        });
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  template <class AnyWarp>
  PASTA_DEVICE static BlockCounts& row(const State& state, const AnyWarp& warp,
                                       std::uint32_t block) {
    return state.blocks[warp.template copy<kCopies>() *
                            (static_cast<std::uint32_t>(state.block_count) + 1) +
                        block];
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
