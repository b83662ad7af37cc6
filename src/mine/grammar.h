// A text told as rules: what repeats is said once and then named.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mine/text.h"

namespace pasta::mine {

// One symbol or rule, `repeat` times in a row.
struct GrammarItem {
  std::uint32_t id = 0;  // a symbol's value as it was given, or the index of a rule
  bool is_rule = false;
  std::uint32_t repeat = 1;
  bool operator==(const GrammarItem&) const = default;
};

struct GrammarRule {
  std::uint32_t first_item = 0;
  std::uint32_t items = 0;
  std::uint32_t length = 0;  // symbols that it stands for
  std::uint32_t count = 0;   // times that it stands in the text, through whatever rules
  std::uint32_t uses = 0;    // items that name it
};

// Rules 0 to lanes-1 are the lanes of the text, the others what they are made of. A rule is named
// only by rules before it, by at least two items or by one that repeats it. So the rules are a tree
// when read from the lanes, and read from back to front, parts come before wholes.
struct Grammar {
  std::vector<GrammarRule> rules;
  std::vector<GrammarItem> items;
  std::uint32_t lanes = 0;

  [[nodiscard]] std::span<const GrammarItem> body(std::uint32_t rule) const {
    return std::span(items).subspan(rules[rule].first_item, rules[rule].items);
  }
  // How many items describe the text: the size of the grammar.
  [[nodiscard]] std::size_t size() const { return items.size(); }
};

// Re-Pair (Larsson and Moffat, "Offline dictionary-based compression", 1999): the commonest pair of
// neighbours becomes a rule, until no pair occurs twice; with one change that makes loops readable
// and spares the care for overlapping pairs: neighbours that are equal are one item with a repeat
// count before they are paired with others. A rule that is named once is then put in its place.
// Expected linear time; up to about 70 bytes a symbol while it works, on a text where nothing
// repeats.
Grammar reduce(const Text& text);

// The symbols that a rule stands for.
std::vector<std::uint32_t> expand(const Grammar& grammar, std::uint32_t rule);

}  // namespace pasta::mine
