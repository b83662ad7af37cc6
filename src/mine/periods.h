// How far apart a text repeats itself, exactly or nearly.
#pragma once

#include <cstdint>
#include <vector>

#include "mine/suffix_array.h"

namespace pasta::mine {

// The smallest p >= 1 such that every symbol equals the one p later; the length if there is no
// smaller, 0 of nothing. Linear time, 4 bytes a symbol (the failure function of Knuth, Morris,
// Pratt, "Fast pattern matching in strings", 1977).
std::uint32_t smallest_period(Symbols string);

// The share of the symbols that equal the one `period` later, of those that have one; 0 if none
// has. Linear time. Sharp: one inserted symbol costs only the pairs that it stands between, but if
// every repetition has its own length no single period scores well; see PeriodCandidate::support.
double match_share(Symbols string, std::uint32_t period);

// A distance at which the text tends to come back.
struct PeriodCandidate {
  std::uint32_t period = 0;  // the commonest distance of the cluster
  std::uint32_t low = 0;     // the cluster: all distances from low to high
  std::uint32_t high = 0;
  std::uint32_t context = 0;  // seen when windows of so many symbols are compared
  // The share of all windows that are back after a distance of the cluster, and not earlier.
  double support = 0;
  double matches = 0;  // match_share of `period`, over all lanes
};

struct PeriodOptions {
  std::uint32_t min_period = 2;
  std::uint32_t max_context = 1U << 16U;  // windows of 1, 2, 4, ... up to this many symbols
  double tolerance = 0.03;  // a cluster is at most 1 + tolerance wide (or 2 distances)
  double min_support = 0.1;
  std::uint32_t max_candidates = 32;
};

// Candidate periods, best support first. For windows of 1, 2, 4, ... symbols, each window is
// measured against its nearest earlier equal in the same lane, and the distances are clustered.
// Short windows find the period of inner loops, long ones that of the outermost, since a window
// longer than an inner loop's whole stretch cannot come back before the outer one does. Inserted,
// missing and changed symbols spoil only the windows that hold them. A cluster that several window
// lengths find is given once, with the length that supports it best. O(n) for each window length,
// and no more lengths are tried once fewer than min_support of the windows come back; 16 bytes a
// symbol.
std::vector<PeriodCandidate> candidate_periods(const SuffixArray& index,
                                               const PeriodOptions& options = {});

}  // namespace pasta::mine
