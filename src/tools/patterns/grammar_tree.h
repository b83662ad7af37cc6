// A grammar read as levels of repetition, with the device time of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mine/grammar.h"

namespace pasta::tools::patterns {

// What is known of each launch of the sequence that the grammar is of.
struct Launches {
  std::span<const std::uint32_t> symbols;
  std::span<const std::int64_t> times_ns;  // device time of each
};

struct Pattern {
  std::uint32_t rule = 0;
  std::size_t level = 0;     // 0: inside nothing that repeats
  std::size_t first = 0;     // position of its first occurrence
  std::uint32_t length = 0;  // launches
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;  // of all occurrences
  std::vector<std::size_t>
      inner;  // indices of the patterns that repeat inside of it, longest first
};

// The rules of a grammar of one lane that are levels of their own: what occurs more often than what
// holds it. A pattern that takes less than `least_ns` is left out, as is what is inside of it. Each
// stands once, inside the first that holds it; those of level 0 come first.
std::vector<Pattern> patterns_of(const mine::Grammar& grammar, const Launches& launches,
                                 std::int64_t least_ns);

// The longest stretches of rules without any symbol for which `breaks` holds, that occur at least
// `min_count` times and are at least `min_length` long, by device time.
std::vector<Pattern> unbroken(const mine::Grammar& grammar, const Launches& launches,
                              std::uint32_t min_length, std::uint64_t min_count,
                              bool (*breaks)(std::uint32_t symbol));

}  // namespace pasta::tools::patterns
