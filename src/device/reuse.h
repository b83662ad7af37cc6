// The patch `reuse`: which parts of objects a launch touches, and whether its groups come back to
// what they had.
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

struct SetCounts {
  std::uint64_t asked_bytes = 0;  // by lanes
  std::uint64_t sectors = 0;
  std::uint64_t touched = 0;  // bytes; in results only, in states by the marks
  bool operator==(const SetCounts&) const = default;
};

struct ReusePatch {
  static constexpr std::string_view kFormat = "reuse/1";
  static constexpr std::uint32_t kCopies = 64;  // on a GPU
  struct Settings {
    std::uint32_t copies = 1;  // on a GPU kCopies
    Marks::Room marks = {.together = std::uint64_t{8} << 20,
                         .each = std::uint64_t{1} << 20,
                         .least_granule = kSectorBytes};
    std::uint32_t groups = 16;  // that leave a fingerprint
  };
  // What is counted as it happens.
  struct Counts {
    std::uint64_t asked_bytes, sectors;
  };
  // Of one group.
  struct Print {
    DistinctBits different;
    std::uint64_t sectors;  // of each object by itself
  };
  // Where the arrays of a launch begin that lanes use is in the pieces, or here, in bytes from the
  // header.
  struct Shared {
    Pieces::Table objects;
    std::uint32_t copies, rows;  // rows of each copy, some of which may be none's
    std::uint32_t prints_at;
    std::uint64_t words;  // of marks
  };
  // Arrays one behind the other.
  struct State {
    Shared shared;
    std::uint32_t slots, apart;  // of prints: one for the first of each 1 << apart groups
    Counts* sets;                // copies x rows: one for no object, then the objects of the launch
    std::uint32_t* words;        // of marks
    Print* prints;
  };
  static Shared share(const Launch& objects, const Settings& settings, Layout& layout);
  static State lay_out(const Launch& launch, const Shared& shared, const Settings& settings,
                       Layout& layout);

  template <class AnyWarp>
  PASTA_DEVICE static void on_access(State& state, const Launch& launch, const AnyWarp& warp) {
    if (warp.width == 0 || warp.space != Space::kGlobal) return;
    if constexpr (AnyWarp::kWide) {
      on_wide(state, launch, warp);
    } else {
      // Mostly the lanes ask in order, within one piece of one object. Of a sector 32 bits are
      // enough: what is 128 GiB apart has the same, but not the bit above, and of pieces that are
      // alike in that, too, the table has one.
      bool here;
      const Pieces::Target found =
          Pieces::find(launch, state.shared.objects, warp.address, warp.width, here);
      const std::uint32_t row = opaque(found.row);
      const auto sector = static_cast<std::uint32_t>(warp.address / kSectorBytes);
      const auto before = warp.before(sector);
      const bool in_order =
          warp.all_of(here & (before.is_none |
                              ((sector >= before.value) & ((sector ^ before.value) < kSectors))));
      // In this order all of it keeps to the registers that a patch may change.
      std::uint32_t mask = warp.active, firsts;
      if (in_order && warp.agree((warp.address >> (32 + kSectorBits) & 1) != 0)) {
        marks(state).template in_order<kSectorBits, true>(warp, {row, found.base}, kSectorBits,
                                                          before.is_none, sector, before.value);
        firsts = warp.lanes_with(before.is_none | (sector != before.value));
      } else {
        mask = warp.lanes_of(row);
        firsts = warp.first_of_sectors(mask);
        marks(state).any(warp, {row, found.base});
      }
      leave_print(state, warp, firsts);
      add(state, warp, mask, row, count_bits(firsts & mask));
    }
  }

  static PatchResult result(const Launch& launch, const State& state, const Names& names);

 private:
  // So many bytes behind the header of the launch.
  template <class T>
  PASTA_DEVICE static T* at(const State& state, std::uint64_t bytes) {
    return behind_header<ReusePatch, T>(state, state.sets, bytes);
  }

  static constexpr std::uint32_t kSectors = (1u << Pieces::kBits) / kSectorBytes;  // of a piece
  static_assert(Pieces::kBits + Pieces::kMostCountBits <= 32 + kSectorBits + 1);

  PASTA_DEVICE static Marks marks(const State& state) { return {at<std::uint32_t>(state, 0)}; }

  // Where there are copies of rows, those of one lie together: changes of what lies together wait
  // for each other.
  template <class AnyWarp>
  PASTA_DEVICE static void add(const State& state, const AnyWarp& warp, std::uint32_t mask,
                               std::uint32_t row, std::uint32_t sectors) {
    const std::uint32_t which =
        Marks::row_of(row) + warp.template copy<kCopies>() * fixed(state.shared.rows);
    auto* counts = at<std::uint64_t>(state, std::uint64_t{which} * sizeof(Counts));
    warp.add_two(mask, counts, PASTA_NUMBER(Counts, asked_bytes), count_bits(mask) * warp.width,
                 PASTA_NUMBER(Counts, sectors), sectors);
  }

  // Whether a group leaves this fingerprint. A graph may change its grids on the GPU, so that there
  // are groups of which nobody knew when the launch was laid out.
  PASTA_DEVICE static bool is_sampled(const State& state, std::uint32_t group,
                                      std::uint32_t& slot) {
    const std::uint32_t apart = fixed(state.apart);
    slot = group >> apart;
    return slot << apart == group && slot < fixed(state.slots);
  }
  template <class AnyWarp>
  PASTA_DEVICE static void leave_print(const State& state, const AnyWarp& warp,
                                       std::uint32_t firsts) {
    if (!warp.is_in(firsts)) return;
    std::uint32_t slot;
    if (!is_sampled(state, warp.group32(), slot)) return;
    const std::uint32_t print = begin_of_print(state, slot);
    insert(state, print, warp.address / kSectorBytes);
    if (warp.is_first(firsts)) {
      ::pasta::device::add(
          *at<std::uint64_t>(state, std::uint64_t{print} + offsetof(Print, sectors)),
          count_bits(firsts));
    }
  }
  // Numbers of bytes, as they are in one register.
  PASTA_DEVICE static std::uint32_t begin_of_print(const State& state, std::uint32_t slot) {
    return fixed(state.shared.prints_at) + slot * static_cast<std::uint32_t>(sizeof(Print));
  }
  PASTA_DEVICE static void insert(const State& state, std::uint32_t print, std::uint64_t sector) {
    const std::uint32_t bit = DistinctBits::bit_of(sector);
    set_bits(*at<std::uint32_t>(state, print + bit / 32 * 4), 1u << bit % 32);
  }

  // Lanes that may ask for several sectors each.
  template <class AnyWarp>
  PASTA_DEVICE static void on_wide(const State& state, const Launch& launch, const AnyWarp& warp) {
    warp.match(
        [&](std::uint64_t address) {
          return Pieces::find(launch, state.shared.objects, address, warp.width).row;
        },
        [&](std::uint32_t row, std::uint32_t mask) {
          add(state, warp, mask, row, warp.sectors(mask));
          print_wide(state, warp, mask);
          if (Marks::has_object(row)) mark_wide(state, launch, warp, mask, row);
        });
  }
  template <class AnyWarp>
  PASTA_DEVICE static void mark_wide(const State& state, const Launch& launch, const AnyWarp& warp,
                                     std::uint32_t mask, std::uint32_t row) {
    warp.each(mask, [&](std::uint64_t address) {
      const std::uint32_t base =
          Pieces::find(launch, state.shared.objects, address, warp.width).base;
      marks(state).one({row, base}, address, warp.width);
    });
  }
  template <class AnyWarp>
  PASTA_DEVICE static void print_wide(const State& state, const AnyWarp& warp, std::uint32_t mask) {
    std::uint32_t slot;
    if (!is_sampled(state, warp.group32(), slot)) return;
    const std::uint32_t print = begin_of_print(state, slot);
    warp.each(mask, [&](std::uint64_t address) {
      std::uint64_t sector = address / kSectorBytes;
      const std::uint64_t last = (address + (warp.width - 1)) / kSectorBytes;
      PASTA_ROLLED for (;; ++sector) {
        insert(state, print, sector);
        if (sector == last) break;
      }
    });
    warp.add(mask, *at<std::uint64_t>(state, print + offsetof(Print, sectors)), warp.sectors(mask));
  }
};

// --- Rows of the result

struct SetRow {
  std::uint64_t object = 0;       // its number or kUnknownObject
  std::uint64_t granule = 1;      // `counts.touched` is bytes here, of pieces of so many
  std::uint64_t run_granule = 1;  // the same, of its runs
  SetCounts counts = {};
  bool operator==(const SetRow&) const = default;
};
// Bytes [begin, end) of an object that were touched, in pieces of its run_granule.
struct RunRow {
  std::uint64_t object = 0, begin = 0, end = 0;
  bool operator==(const RunRow&) const = default;
};
// Of the groups that left a fingerprint, all together.
struct FingerprintRow {
  std::uint64_t groups = 0;
  std::uint64_t sectors = 0;   // that they accessed, again and again
  std::uint64_t distinct = 0;  // about: for each group the different ones
  std::uint64_t full = 0;      // groups whose fingerprint was too small: there may be more
  bool operator==(const FingerprintRow&) const = default;
};

}  // namespace pasta::device
