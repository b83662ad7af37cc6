// Tandem repeats: stretches that are one block two times or more in a row.
#pragma once

#include <cstdint>
#include <vector>

#include "mine/suffix_array.h"

namespace pasta::mine {

// A stretch [begin, end) whose smallest period is `period`, at least two periods long, that a
// symbol more on either side would break. Every square (a block twice in a row) lies in exactly one
// run with its smallest period, so the runs are all tandem repeats in fewer than n pieces.
struct Run {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t period = 0;
  [[nodiscard]] std::uint32_t length() const { return end - begin; }
  [[nodiscard]] double exponent() const { return static_cast<double>(length()) / period; }
  bool operator==(const Run&) const = default;
};

// All runs, by `begin`, then by `period`. Fewer than one a symbol (Bannai, I, Inenaga, Nakashima,
// Takeda, Tsuruta, "The runs theorem", 2017).
//
// By that paper each run holds a Lyndon word of its period's length that is the longest beginning
// there, in the order of symbols or in the reverse order; so for each position the next smaller and
// the next greater suffix give the only two candidates. Up to 64 symbols to either side are
// compared; where that does not decide, the suffix array answers how far the period holds, in
// constant time. A run that was found is remembered and not measured again. O(n), and for each run
// longer than that O(log) of its length; 12 bytes a symbol beside the index, 12
// a run, 8 for each suffix that waits for a smaller or greater one and for each period that occurs,
// and 5 a symbol (for 10 million) on texts where the index has to be asked.
std::vector<Run> find_runs(const SuffixArray& index);

}  // namespace pasta::mine
