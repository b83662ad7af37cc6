// Which launch of one run of a program is which of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace pasta::session {

// Of one process.
struct LaunchKey {
  std::uint32_t kernel = 0;           // a number for its name, the same in both runs
  std::uint32_t grid[3] = {0, 0, 0};  // 0: unknown
  std::uint32_t stream = 0;           // the n-th of those that were launched on, from 1; 0: unknown
  std::uint32_t iteration = kNoIteration;

  static constexpr std::uint32_t kNoIteration = std::numeric_limits<std::uint32_t>::max();
};
struct NumberedLaunch {
  LaunchKey key;
  std::uint64_t number = 0;     // the n-th of its process, from 1
  std::uint64_t in_stream = 0;  // the n-th of its stream, from 1, where that is known
};

inline constexpr std::size_t kNoMatch = std::numeric_limits<std::size_t>::max();

// For each of `some`, in order of their numbers, the index in `all` of the same launch in the other
// run, or kNoMatch. `all` are in the order in which they were launched. Between those of `some`
// others may have been left out, of which only the numbers tell how many they were.
//
// Where all say in which iteration they were launched, those of one iteration are looked for in the
// same iteration: between iterations that are analysed, nobody counts. Both are aligned by kernel
// and grid with the fewest edits, up to 1024: runs differ where kernels are chosen by measuring
// them, or launched until something has happened. Where all say on which stream, and there are
// several, those of each are aligned with those of the same, because in one run threads get their
// turn otherwise than in the other; unless fewer find their like that way. What is left over then
// is matched in order, of each kernel and grid of which both have left as many. The grid does not
// count for kernels that have one of unknown size in `all`.
std::vector<std::size_t> match_launches(std::span<const LaunchKey> all,
                                        std::span<const NumberedLaunch> some);

}  // namespace pasta::session
