// Imperfect repeats: what has to be edited to make one string of another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mine/text.h"

namespace pasta::mine {

struct Edits {
  std::uint32_t matches = 0;
  std::uint32_t substitutions = 0;
  std::uint32_t insertions = 0;  // symbols that only the second string has
  std::uint32_t deletions = 0;   // symbols that only the first string has
  [[nodiscard]] std::uint32_t cost() const { return substitutions + insertions + deletions; }
  bool operator==(const Edits&) const = default;
};

enum class Edit : std::uint8_t { kMatch, kSubstitute, kInsert, kDelete };

struct EditStep {
  Edit edit;
  std::uint32_t count;  // of the same edit in a row
  bool operator==(const EditStep&) const = default;
};

struct Alignment {
  Edits edits;
  std::vector<EditStep> steps;  // from front to back
};

// The fewest edits that turn `from` into `to`, and one way to do it; nothing if more than
// `max_cost` are needed. O((n + d) d) time and 4 d^2 bytes for d edits, so nearly equal strings are
// compared at the speed of comparing (Ukkonen, "Algorithms for approximate string matching", 1985:
// only diagonals that d edits can reach are looked at, and of each only the furthest point).
std::optional<Alignment> align(Symbols from, Symbols to, std::uint32_t max_cost);
// The same, where `any` in `to` matches every symbol.
std::optional<Alignment> align(Symbols from, Symbols to, std::uint32_t max_cost, std::uint32_t any);

}  // namespace pasta::mine
