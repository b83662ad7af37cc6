// The ranges of one thread that are open at a moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pasta/ids.h"

namespace pasta::correlate {

// Ranges are opened in order of start; of those that start together, the longer first. A range
// [start, end) holds what starts in it and ends no later than it does; a range without duration
// holds nothing.
//
// Ranges of one thread should nest, so this is a stack. Where they do not, the overlapping range
// goes on the stack too, but its `outer` is the innermost range that holds it whole:
//
//     A [0 -------- 10]              stack   outer      `held_by` 6..9 is B, the innermost by
//     start; B      [5 ---------- 15]       A       none       of 6..12 is B; of 12..13, after A
//     has ended,
//                                    B       none       is B.
//
// From a range that ends too early, `outer` leads to the next one that may do: all between them on
// the stack end no later. That makes the search amortised constant, whatever the overlaps.
class OpenRanges {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Range {
    std::int64_t start_ns;
    std::int64_t end_ns;
    std::uint64_t sequence;  // autograd's, of the innermost backward range it lies in
    StringId name;
    FrameId path;         // of what happens inside
    std::uint32_t outer;  // index of the innermost range that holds it, or kNone
    std::uint16_t domain;
    bool node;  // it is itself the last node of `path`
  };

  // Forgets the ranges that have ended at `now_ns`. A range without duration that began right then
  // stays until `now_ns` has passed when `keep_started` is set.
  void close(std::int64_t now_ns, bool keep_started = false);
  // Index of the innermost open range that holds one that ends at `end_ns`, or kNone. After
  // close() with its start.
  [[nodiscard]] std::uint32_t held_by(std::int64_t end_ns) const;
  // Index of the innermost open range that is a path node, or kNone.
  [[nodiscard]] std::uint32_t innermost_node() const;
  // `range.outer` is what held_by() gave.
  void open(const Range& range);
  // Changes the path of an open node and of what is open inside it.
  void move(std::uint32_t node, FrameId path);

  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::uint32_t newest() const {
    return static_cast<std::uint32_t>(ranges_.size()) - 1;  // kNone when empty
  }
  [[nodiscard]] const Range& operator[](std::uint32_t index) const { return ranges_[index]; }

 private:
  void compact(std::int64_t now_ns);
  std::vector<Range> ranges_;
  std::size_t compact_at_ = 64;
};

}  // namespace pasta::correlate
