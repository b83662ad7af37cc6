// Substrings that occur more than once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mine/suffix_array.h"

namespace pasta::mine {

// A substring that occurs at every position of a range of rows of the suffix array, and nowhere
// else; no longer substring occurs at all of them.
struct Repeat {
  std::uint32_t length = 0;
  std::uint32_t first_row = 0;
  std::uint32_t last_row = 0;  // inclusive
  std::uint32_t leftmost = 0;  // smallest and largest position of an occurrence: two occurrences do
  std::uint32_t rightmost = 0;  // not overlap exactly when rightmost - leftmost >= length
  [[nodiscard]] std::uint32_t count() const { return last_row - first_row + 1; }
  [[nodiscard]] bool occurs_apart() const { return rightmost - leftmost >= length; }
  bool operator==(const Repeat&) const = default;
};

// Where it occurs, in no order.
inline std::span<const std::uint32_t> occurrences(const SuffixArray& index, const Repeat& repeat) {
  return index.positions().subspan(repeat.first_row, repeat.count());
}

// The most occurrences that can be chosen without two overlapping: greedy from the left, which is
// optimal for intervals of one length. O(c log c) for c occurrences. `scratch` is reused between
// calls.
std::uint32_t count_apart(const SuffixArray& index, const Repeat& repeat,
                          std::vector<std::uint32_t>& scratch);
// The same occurrences themselves, ascending.
std::vector<std::uint32_t> occurrences_apart(const SuffixArray& index, const Repeat& repeat);

// Calls visit(const Repeat&, bool left_diverse) for every inner node of the suffix tree except its
// root: every substring that repeats and cannot be extended to the right without losing an
// occurrence, children before parents. `left_diverse`: nor to the left. At most n-1 calls, linear
// time; 20 bytes of stack for each level of nesting. (Abouelhoda et al. 2004, algorithm 4.4; what
// stands left of the occurrences is kept as the last row at which it changed.)
template <class Visit>
void for_each_node(const SuffixArray& index, Visit&& visit);

// Calls visit(const Repeat&) for every maximal repeat (Gusfield, "Algorithms on strings, trees, and
// sequences", 1997, 7.12): a substring that occurs at least `min_count` times, is at least
// `min_length` long, and of which not all occurrences can be extended by the same symbol to the
// left or to the right. Longer ones before their prefixes. Linear time; at most n-1 of them.
template <class Visit>
void for_each_maximal_repeat(const SuffixArray& index, std::uint32_t min_length,
                             std::uint32_t min_count, Visit&& visit);

// Calls visit(const Repeat&) for every super-maximal repeat: a maximal repeat that is part of no
// other. Linear time; 4 bytes a distinct symbol.
template <class Visit>
void for_each_supermaximal_repeat(const SuffixArray& index, std::uint32_t min_length,
                                  std::uint32_t min_count, Visit&& visit);

namespace detail {

// How far ahead of its use a symbol beside a suffix is asked for: such reads miss every cache.
inline constexpr std::uint32_t kAhead = 24;

inline constexpr std::uint32_t kNothingLeft = 0xffff'ffff;  // begins the text: differs from all

inline std::uint32_t left_of(const SuffixArray& index, std::uint32_t position) {
  return position == 0 ? kNothingLeft : index.text().ranks()[position - 1];
}

}  // namespace detail

template <class Visit>
void for_each_node(const SuffixArray& index, Visit&& visit) {
  const auto positions = index.positions();
  const auto lcp = index.lcp();
  const std::uint32_t* ranks = index.text().ranks().data();
  const std::uint32_t size = index.size();
  Pile<Repeat> open;
  open.push({});  // the root, never closed
  std::uint32_t left = size == 0 ? 0 : detail::left_of(index, positions[0]);
  std::uint32_t changed = 0;  // last row whose left symbol is not that of the row before
  for (std::uint32_t row = 1; row <= size; ++row) {
    const std::uint32_t shared = row < size ? lcp[row] : 0;
    const std::uint32_t before = positions[row - 1];
    Repeat node{shared, row - 1, 0, before, before};
    while (shared < open.back().length) {
      Repeat closed = open.back();
      open.pop();
      closed.last_row = row - 1;
      closed.leftmost = std::min(closed.leftmost, node.leftmost);
      closed.rightmost = std::max(closed.rightmost, node.rightmost);
      visit(std::as_const(closed), changed > closed.first_row);
      node.first_row = closed.first_row;
      node.leftmost = closed.leftmost;
      node.rightmost = closed.rightmost;
    }
    if (shared > open.back().length) {
      open.push(node);
    } else {
      open.back().leftmost = std::min(open.back().leftmost, node.leftmost);
      open.back().rightmost = std::max(open.back().rightmost, node.rightmost);
    }
    if (row == size) break;
    if (row + detail::kAhead < size) __builtin_prefetch(ranks + positions[row + detail::kAhead]);
    const std::uint32_t left_here = detail::left_of(index, positions[row]);
    // Separators are unique, and so is the beginning: they differ from everything by themselves.
    if (left_here != left) changed = row;
    left = left_here;
  }
}

template <class Visit>
void for_each_maximal_repeat(const SuffixArray& index, std::uint32_t min_length,
                             std::uint32_t min_count, Visit&& visit) {
  for_each_node(index, [&](const Repeat& repeat, bool left_diverse) {
    if (left_diverse && repeat.length >= min_length && repeat.count() >= min_count) visit(repeat);
  });
}

template <class Visit>
void for_each_supermaximal_repeat(const SuffixArray& index, std::uint32_t min_length,
                                  std::uint32_t min_count, Visit&& visit) {
  // Exactly the nodes without inner children whose left symbols all differ (Abouelhoda et al. 2004,
  // section 5). Such nodes share no row, so looking at all their rows is linear.
  const auto positions = index.positions();
  const auto lcp = index.lcp();
  std::vector<std::uint32_t> seen_in(index.text().alphabet(), 0);  // last row of a node, plus one
  for (std::uint32_t row = 1; row < index.size();) {
    const std::uint32_t length = lcp[row];
    const std::uint32_t first = row - 1;
    if (length <= lcp[first]) {
      ++row;
      continue;
    }
    Repeat repeat{length, first, first, positions[first], positions[first]};
    while (row < index.size() && lcp[row] == length) ++row;
    repeat.last_row = row - 1;
    if (row < index.size() && lcp[row] > length) continue;
    if (length < min_length || repeat.count() < min_count) continue;
    bool all_differ = true;
    for (std::uint32_t at = first; at < row && all_differ; ++at) {
      const std::uint32_t position = positions[at];
      repeat.leftmost = std::min(repeat.leftmost, position);
      repeat.rightmost = std::max(repeat.rightmost, position);
      const std::uint32_t left = detail::left_of(index, position);
      if (left == detail::kNothingLeft) continue;
      all_differ = seen_in[left] != row;
      seen_in[left] = row;
    }
    if (all_differ) visit(std::as_const(repeat));
  }
}

}  // namespace pasta::mine
