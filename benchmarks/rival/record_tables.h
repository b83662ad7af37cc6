// What threads of the host do with records: what the patches do to objects. As good as we can make
// it: a rival that loses because it is weak says nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "device/access.h"
#include "device/launch.h"
#include "device/warp.h"
#include "rival/warp_record.h"

namespace pasta::benchmarks {

// Counts of objects and the pieces of them that were touched, of each thread its own, until they
// are added up.
class RecordTables {
 public:
  // Of one stream of records: an access that is not complete yet.
  struct Carry {
    device::Warp warp;
  };

  RecordTables(std::span<const device::MemoryObject> objects, unsigned threads,
               std::uint64_t granule)
      : objects_(objects.begin(), objects.end()),
        first_words_(objects.size()),
        shift_(std::countr_zero(granule)) {
    std::uint64_t words = 0;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      first_words_[i] = words;
      words += (objects_[i].bytes >> shift_) / 64 + 1;
    }
    for (unsigned i = 0; i < threads; ++i) {
      // The last row is of what lies in no object.
      own_.push_back({std::vector<device::AccessCounts>(objects_.size() + 1),
                      std::vector<std::uint64_t>(words),
                      {}});
    }
  }

  [[nodiscard]] std::span<const device::MemoryObject> objects() const { return objects_; }

  void count(std::span<const WarpRecord> records, unsigned thread, Carry& carry) {
    Own& own = own_[thread];
    for (const WarpRecord& record : records) {
      if (record.goes_on() || carry.warp.active != 0) {
        add_lanes(record, carry.warp);
        if (record.goes_on()) continue;
        count_warp(carry.warp, own);
        carry.warp.active = 0;
      } else if (record.is_tile()) {
        count_tile(record, own);
      } else if (record.width() == 0) {
        count_bulk(record, own);
      } else if (record.active != 0) {
        count_even(record, own);
      }
    }
  }

  // As the patch counts them; `touched` is bytes.
  [[nodiscard]] device::AccessCounts total(std::size_t object) const {
    device::AccessCounts sum;
    for (const Own& own : own_) device::add_row(sum, own.rows[object]);
    if (object < objects_.size()) {
      for (std::uint64_t i = 0; i <= (objects_[object].bytes >> shift_) / 64; ++i) {
        std::uint64_t word = 0;
        for (const Own& own : own_) word |= own.touched[first_words_[object] + i];
        sum.touched += static_cast<std::uint64_t>(std::popcount(word)) << shift_;
      }
      sum.touched = std::min(sum.touched, objects_[object].bytes);
    }
    return sum;
  }

 private:
  // Which object was found last for addresses like this one: kernels go through several objects
  // in turns.
  static constexpr std::size_t kHints = 1024;
  static constexpr unsigned kHintShift = 18;

  struct Own {
    std::vector<device::AccessCounts> rows;
    std::vector<std::uint64_t> touched;
    std::array<std::uint32_t, kHints> hints;
  };

  [[nodiscard]] bool holds(std::size_t i, std::uint64_t address, std::uint64_t bytes) const {
    const std::uint64_t offset = address - objects_[i].address;
    return offset < objects_[i].bytes && bytes <= objects_[i].bytes - offset;
  }
  // Which object holds all of it; their number where none does.
  std::size_t find(std::uint64_t address, std::uint64_t bytes, Own& own) const {
    if (objects_.empty()) return 0;
    std::uint32_t& hint = own.hints[address >> kHintShift & (kHints - 1)];
    if (holds(hint, address, bytes)) return hint;
    std::size_t first = 0;
    for (std::size_t count = objects_.size(); count > 1;) {
      const std::size_t half = count / 2;
      first += objects_[first + half].address <= address ? half : 0;
      count -= half;
    }
    if (!holds(first, address, bytes)) return objects_.size();
    hint = static_cast<std::uint32_t>(first);
    return first;
  }

  static void add_lanes(const WarpRecord& record, device::Warp& warp) {
    warp.width = static_cast<std::uint32_t>(record.width());
    warp.access = static_cast<device::Access>(record.access());
    warp.active |= record.lanes();
    for (std::uint32_t rest = record.lanes(); rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      warp.address[lane] = record.lane_address(lane);
    }
  }

  static void count_kind(std::uint64_t access, std::uint64_t width, std::uint64_t lanes,
                         device::AccessCounts& row) {
    (access == 0 ? row.reads : access == 1 ? row.writes : row.atomics) += lanes;
    ++row.warps;
    row.asked_bytes += lanes * width;
  }
  static std::uint64_t sectors_of(std::uint64_t begin, std::uint64_t end) {
    return (end - 1) / device::kSectorBytes - begin / device::kSectorBytes + 1;
  }

  // Without gaps between lanes that take part.
  static bool is_dense(std::uint32_t mask) {
    const std::uint32_t low = mask >> std::countr_zero(mask);
    return (low & (low + 1)) == 0;
  }
  static std::uint64_t step_of(const WarpRecord& record) {
    return static_cast<std::uint64_t>(std::abs(std::int64_t{record.stride}));
  }
  // All the bytes between the first and the last are asked for.
  static bool is_one_piece(const WarpRecord& record) {
    if (record.row_log() == 0) {
      return record.stride == 0 || (step_of(record) <= record.width() && is_dense(record.active));
    }
    return record.stride >= 0 && step_of(record) <= record.width() << record.row_log() &&
           is_dense(record.active);
  }
  // Whole rows, of which no two share a sector, and of which each is whole sectors, or part of one.
  static bool are_rows(const WarpRecord& record) {
    const std::uint64_t bytes = record.width() << record.row_log();
    const std::uint64_t unit = std::min<std::uint64_t>(bytes, device::kSectorBytes);
    return record.active == ~std::uint32_t{0} && record.row_log() < 5 &&
           std::has_single_bit(bytes) &&
           step_of(record) >= std::max<std::uint64_t>(bytes, device::kSectorBytes) &&
           step_of(record) % device::kSectorBytes == 0 && record.address() % unit == 0;
  }

  void count_even(const WarpRecord& record, Own& own) const {
    const std::uint64_t a = record.lane_address(std::countr_zero(record.active));
    const std::uint64_t b = record.lane_address(31 - std::countl_zero(record.active));
    // Rows that go backwards reach as far again beyond the first and the last lane.
    const std::uint64_t beyond =
        record.stride < 0 ? record.width() * ((1u << record.row_log()) - 1) : 0;
    const std::uint64_t begin = std::min(a, b) - beyond;
    const std::uint64_t end = std::max(a, b) + record.width() + beyond;
    const std::size_t object = find(begin, end - begin, own);
    if (object < objects_.size() && is_one_piece(record)) {
      device::AccessCounts& row = own.rows[object];
      count_kind(record.access(), record.width(),
                 static_cast<std::uint64_t>(std::popcount(record.active)), row);
      row.used_bytes += end - begin;
      row.sectors += sectors_of(begin, end);
      mark_bytes(object, begin, end, own);
    } else if (object < objects_.size() && are_rows(record)) {
      count_rows(record, object, own);
    } else {
      device::Warp warp;
      add_lanes(record, warp);
      count_warp(warp, own);
    }
  }

  void count_rows(const WarpRecord& record, std::size_t object, Own& own) const {
    device::AccessCounts& row = own.rows[object];
    count_kind(record.access(), record.width(), device::kWarpLanes, row);
    const std::uint64_t bytes = record.width() << record.row_log();
    const auto rows = std::uint64_t{device::kWarpLanes} >> record.row_log();
    row.used_bytes += bytes * rows;
    row.sectors += rows * ((bytes + device::kSectorBytes - 1) / device::kSectorBytes);
    std::uint64_t begin = record.address();
    for (std::uint64_t i = 0; i < rows; ++i) {
      mark_bytes(object, begin, begin + bytes, own);
      begin += static_cast<std::uint64_t>(std::int64_t{record.stride});
    }
  }

  void count_tile(const WarpRecord& record, Own& own) const {
    // The same lanes in rows the other way: those of which neighbours are nearer.
    std::uint64_t in_row = std::uint64_t{1} << record.row_log(),
                  rows = device::kWarpLanes >> record.row_log();
    std::int64_t step = record.lane_step(), row_step = record.stride;
    if (std::abs(step) > std::abs(row_step)) {
      std::swap(step, row_step);
      std::swap(in_row, rows);
    }
    if (step == 0) in_row = 1;  // all lanes of a row ask for the same
    // And forwards.
    std::uint64_t begin = record.address();
    if (step < 0) begin += static_cast<std::uint64_t>(step) * (in_row - 1);
    if (row_step < 0) begin += static_cast<std::uint64_t>(row_step) * (rows - 1);
    const auto lane_bytes = static_cast<std::uint64_t>(std::abs(step));
    const auto row_bytes = static_cast<std::uint64_t>(std::abs(row_step));
    const std::uint64_t extent = lane_bytes * (in_row - 1) + record.width();
    const std::uint64_t end = begin + row_bytes * (rows - 1) + extent;
    const std::size_t object = find(begin, end - begin, own);
    // Lanes that share no byte, in rows that touch each sector and each marked piece on their way.
    if (object == objects_.size() || (step != 0 && lane_bytes < record.width()) ||
        row_bytes < extent || lane_bytes > device::kSectorBytes ||
        (lane_bytes > record.width() && lane_bytes > std::uint64_t{1} << shift_)) {
      device::Warp warp;
      add_lanes(record, warp);
      count_warp(warp, own);
      return;
    }
    device::AccessCounts& row = own.rows[object];
    count_kind(record.access(), record.width(), device::kWarpLanes, row);
    row.used_bytes += record.width() * in_row * rows;
    std::uint64_t next = 0;  // sector that is not counted yet
    for (std::uint64_t i = 0; i < rows; ++i, begin += row_bytes) {
      const std::uint64_t first = begin / device::kSectorBytes;
      const std::uint64_t last = (begin + extent - 1) / device::kSectorBytes;
      row.sectors += last + 1 - std::min(std::max(first, next), last + 1);
      next = last + 1;
      mark_bytes(object, begin, begin + extent, own);
    }
  }

  // Lanes wherever they are, of one object, of several, or of none.
  void count_warp(const device::Warp& warp, Own& own) const {
    std::uint32_t left = warp.active;
    while (left != 0) {
      const std::size_t object = find(warp.address[std::countr_zero(left)], warp.width, own);
      std::uint32_t mask = 0;
      for (std::uint32_t rest = left; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const bool same = object < objects_.size()
                              ? holds(object, warp.address[lane], warp.width)
                              : find(warp.address[lane], warp.width, own) == objects_.size();
        if (same) mask |= 1u << lane;
      }
      device::AccessCounts& row = own.rows[object];
      const device::Footprint footprint = warp.footprint(mask);
      count_kind(static_cast<std::uint64_t>(warp.access), warp.width,
                 static_cast<std::uint64_t>(std::popcount(mask)), row);
      row.used_bytes += footprint.bytes;
      row.sectors += footprint.sectors;
      for (std::uint32_t rest = mask; rest != 0 && object < objects_.size(); rest &= rest - 1) {
        const std::uint64_t at = warp.address[std::countr_zero(rest)];
        mark_bytes(object, at, at + warp.width, own);
      }
      left &= ~mask;
    }
  }

  void count_bulk(const WarpRecord& record, Own& own) const {
    const std::uint64_t begin = record.address(), bytes = record.active;
    const std::size_t object = find(begin, bytes, own);
    device::AccessCounts& row = own.rows[object];
    count_kind(record.access(), bytes, 1, row);
    row.used_bytes += bytes;
    row.sectors += sectors_of(begin, begin + bytes);
    if (object < objects_.size()) mark_bytes(object, begin, begin + bytes, own);
  }

  void mark_bytes(std::size_t object, std::uint64_t begin, std::uint64_t end, Own& own) const {
    begin = (begin - objects_[object].address) >> shift_;
    end = ((end - 1 - objects_[object].address) >> shift_) + 1;
    while (begin < end) {
      const std::uint64_t stop = std::min(end, begin / 64 * 64 + 64);
      own.touched[first_words_[object] + begin / 64] |= ~std::uint64_t{0} >> (64 - (stop - begin))
                                                                                 << begin % 64;
      begin = stop;
    }
  }

  std::vector<device::MemoryObject> objects_;
  std::vector<std::uint64_t> first_words_;
  int shift_;
  std::vector<Own> own_;  // by thread
};

}  // namespace pasta::benchmarks
