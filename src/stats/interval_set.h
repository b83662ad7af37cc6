// Unions of time intervals, built from a stream ordered by end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cold_bytes.h"

namespace pasta::stats {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Interval&) const = default;
};

// The union of half-open intervals [begin, end) as disjoint, ascending, non-touching pieces.
// Intervals arrive in order of `end`. Amortised constant time for each. Old pieces are kept as
// variable-length differences (about 4 bytes a piece for kernels), since a long interval that ends
// late may still swallow them: of millions of them, on disk.
class IntervalSet {
 public:
  // `end` must not be less than the end of any earlier call's; empty intervals change nothing.
  // Returns by how much the union grew, at most the largest int64.
  std::int64_t add(std::int64_t begin, std::int64_t end);
  [[nodiscard]] std::int64_t length() const;  // sum of the pieces, at most the largest int64
  [[nodiscard]] std::size_t pieces() const { return frozen_pieces_ + open_.size(); }
  [[nodiscard]] bool empty() const { return pieces() == 0; }

  // In memory of our own.
  [[nodiscard]] std::size_t held_bytes() const;

  // Walks the pieces in ascending order. The set must outlive it and not change meanwhile.
  class Reader {
   public:
    explicit Reader(const IntervalSet& set) : set_(&set) {}
    bool next(Interval& piece);

   private:
    const IntervalSet* set_;
    std::size_t block_ = 0;
    std::size_t byte_ = 0;
    std::int64_t at_ = 0;
    std::size_t open_ = 0;
  };

 private:
  // Neighbouring pieces, written as LEB128 pairs (gap to the previous piece's end, length); the
  // first gap counts from `begin` and is 0.
  struct Block {
    std::int64_t begin;
    std::int64_t end;
    std::uint64_t length;
    std::uint32_t count;
    base::ColdBytes::Place place;
    std::uint32_t bytes;
  };
  bool decode(const Block& block, std::size_t& byte, std::int64_t& at, Interval& piece) const;
  void freeze();
  void drop_newest_block();

  std::vector<Block> frozen_;
  std::shared_ptr<base::ColdBytes> cold_;  // of `frozen_`; copies of a set share it
  std::vector<Interval> open_;             // the newest pieces
  std::uint64_t frozen_length_ = 0;
  std::size_t frozen_pieces_ = 0;
};

// Length of the intersection of two sets, at most the largest int64.
std::int64_t intersection_length(const IntervalSet& a, const IntervalSet& b);
IntervalSet unite(const IntervalSet& a, const IntervalSet& b);
// What is in `a` and not in `b`.
IntervalSet subtract(const IntervalSet& a, const IntervalSet& b);

}  // namespace pasta::stats
