// What the rival of patches sends to the host: 16 bytes for each access of a warp.
#pragma once

#include <cstdint>

#include "device/portable.h"

namespace pasta::benchmarks {

// One access of a warp whose lanes are rows of `1 << row_log()` lanes that lie side by side, evenly
// apart: a row of all lanes, lanes apart, tiles of a matrix. Where all lanes take part, those of a
// row may be evenly apart, too. Of one that is not like this, a record for each piece of lanes side
// by side; all but the last say that it goes on.
struct WarpRecord {
  std::uint64_t packed;
  // Lanes; of a bulk copy, which has the width 0, bytes; of a tile bytes from lane to lane of a
  // row.
  std::uint32_t active;
  std::int32_t stride;  // bytes from row to row

  static constexpr unsigned kRowLogAt = 59;  // three bits
  static constexpr std::uint64_t kGoesOn = std::uint64_t{1} << 58;
  static constexpr std::uint64_t kTile = std::uint64_t{1} << 62;
  // Alternates from one lap of a ring to the next, so that readers see what has been written.
  static constexpr std::uint64_t kLap = std::uint64_t{1} << 63;

  // Of lane 0, whether it takes part or not.
  [[nodiscard]] std::uint64_t address() const { return packed & 0xffffffffffff; }
  [[nodiscard]] std::uint64_t width() const { return packed >> 48 & 0xff; }
  [[nodiscard]] std::uint64_t access() const { return packed >> 56 & 3; }  // as device::Access
  [[nodiscard]] bool goes_on() const { return (packed & kGoesOn) != 0; }
  [[nodiscard]] bool is_tile() const { return (packed & kTile) != 0; }
  [[nodiscard]] std::int64_t lane_step() const {
    return is_tile() ? std::int64_t{static_cast<std::int32_t>(active)}
                     : static_cast<std::int64_t>(width());
  }
  [[nodiscard]] std::uint32_t lanes() const { return is_tile() ? ~std::uint32_t{0} : active; }
  [[nodiscard]] int row_log() const { return static_cast<int>(packed >> kRowLogAt & 7); }
  [[nodiscard]] std::uint64_t lane_address(int lane) const {
    const int row = lane >> row_log(), in_row = lane - (row << row_log());
    return address() +
           static_cast<std::uint64_t>(std::int64_t{stride} * row + lane_step() * in_row);
  }
  PASTA_DEVICE static WarpRecord of(std::uint64_t address, std::uint64_t width,
                                    std::uint64_t access, std::uint32_t active, std::int32_t stride,
                                    unsigned row_log = 0) {
    return {(address & 0xffffffffffff) | width << 48 | access << 56 |
                std::uint64_t{row_log} << kRowLogAt,
            active, stride};
  }
  PASTA_DEVICE static WarpRecord tile(std::uint64_t address, std::uint64_t width,
                                      std::uint64_t access, std::int32_t lane_step,
                                      std::int32_t stride, unsigned row_log) {
    WarpRecord made =
        of(address, width, access, static_cast<std::uint32_t>(lane_step), stride, row_log);
    made.packed |= kTile;
    return made;
  }
};
static_assert(sizeof(WarpRecord) == 16);

}  // namespace pasta::benchmarks
