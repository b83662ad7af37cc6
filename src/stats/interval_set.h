// Unions of time intervals, built from a stream ordered by end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pasta::stats {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Interval&) const = default;
};

// The union of half-open intervals [begin, end) as disjoint, ascending, non-touching pieces.
// Intervals arrive in order of `end`. Amortised constant time for each. Old pieces are kept as
// variable-length differences (about 4 bytes a piece for kernels), since a long interval that ends
// late may still swallow them.
class IntervalSet {
 public:
  // `end` must not be less than the end of any earlier call's; empty intervals change nothing.
  void add(std::int64_t begin, std::int64_t end);
  [[nodiscard]] std::int64_t length() const;  // sum of the pieces
  [[nodiscard]] std::size_t pieces() const;
  [[nodiscard]] bool empty() const { return pieces() == 0; }

  // Walks the pieces in ascending order.
  class Reader {
   public:
    explicit Reader(const IntervalSet& set);
    bool next(Interval& piece);

   private:
    const IntervalSet* set_;
    std::size_t block_ = 0;
    std::size_t byte_ = 0;
    std::size_t in_block_ = 0;
    std::int64_t at_ = 0;
    std::size_t open_ = 0;
  };

 private:
  friend class Reader;
  void freeze();
  void thaw();
  struct Block {
    std::int64_t begin;  // of the first piece
    std::int64_t end;    // of the last piece
    std::int64_t length;
    std::uint32_t count;
    std::vector<std::uint8_t> bytes;  // (gap to the previous piece's end, length) as LEB128 pairs
  };
  std::vector<Block> frozen_;
  std::vector<Interval> open_;  // the newest pieces
  std::int64_t frozen_length_ = 0;
  std::size_t frozen_pieces_ = 0;
};

// Length of the intersection of two sets.
std::int64_t intersection_length(const IntervalSet& a, const IntervalSet& b);
IntervalSet unite(const IntervalSet& a, const IntervalSet& b);

}  // namespace pasta::stats
