// Cutting a long string into repetitions of a template, each with its own small errors.
#pragma once

#include <cstdint>
#include <vector>

#include "mine/align.h"

namespace pasta::mine {

// One repetition: the symbols [begin, end) of the string are the symbols [first, last) of the
// template with these edits (the template is what is edited from).
struct Copy {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  Edits edits;
  bool operator==(const Copy&) const = default;
};

struct SegmentOptions {
  // A symbol in no copy costs so many edits: a stretch that differs from the template by more than
  // this share is better left out.
  double max_error = 0.4;
  // An alternative that is so many edits worse than the best one at some point of the string is
  // given up there. Also what bounds the time.
  std::uint32_t beam = 32;
};

struct Segmentation {
  std::vector<Copy> copies;   // ascending, without overlap; what lies between them is in none
  std::uint32_t outside = 0;  // symbols in no copy
};

// The cheapest way to read `string` as copies of `pattern` in a row, with symbols outside between
// them where they are dearer to explain. All copies have first == 0 and last == pattern.size(), but
// for the first one of the string, which may begin anywhere in the pattern, and copies that end
// early: at the string's end, or where the repetition breaks off (which costs as much as if the
// rest of the pattern had been outside).
//
// Wraparound dynamic programming (Myers and Miller, "Approximate matching of regular expressions",
// 1989; Fischer, Landau, Schmidt, Sellers, "Identifying periodic occurrences of a template with
// applications to protein structure", 1992), of which only states within `beam` of the best are
// kept, and of these only such as no other reaches by as
// many edits. O(n beam) time, much less where the string follows the pattern; O(copies + beam)
// memory, and for the first symbols O(pattern). The answer is the best one if that never falls
// behind by `beam`.
Segmentation segment(Symbols string, Symbols pattern, const SegmentOptions& options = {});

}  // namespace pasta::mine
