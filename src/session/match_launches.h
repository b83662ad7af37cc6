// Which launch of one run of a program is which of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pasta::session {

// Of one process.
struct LaunchKey {
  std::string kernel;
  std::uint32_t grid[3] = {0, 0, 0};  // 0: unknown
  std::optional<std::uint64_t> iteration = std::nullopt;
};
struct NumberedLaunch {
  LaunchKey key;
  std::uint64_t number = 0;  // the n-th of its process, from 1
};

inline constexpr std::size_t kNoMatch = std::numeric_limits<std::size_t>::max();

// For each of `some`, in order of their numbers, the index in `all` of the same launch in the other
// run, or kNoMatch. `all` are in the order in which they were launched. Between those of `some`
// others may have been left out, of which only the numbers tell how many they were.
//
// Where all say in which iteration they were launched, those of one iteration are looked for in the
// same iteration: between iterations that are analysed, nobody counts. Both are aligned by kernel
// and grid with the fewest edits, up to 1024: runs differ where kernels are chosen by measuring
// them, or launched until something has happened. What is left over then because threads took
// another turn is matched in order, of each kernel and grid of which both have left as many. The
// grid does not count for kernels that have one of unknown size in `all`.
std::vector<std::size_t> match_launches(std::span<const LaunchKey> all,
                                        std::span<const NumberedLaunch> some);

}  // namespace pasta::session
