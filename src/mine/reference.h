// Slow and plain answers to what mine/ answers fast, and the strings to ask about. For the tests,
// the fuzz driver and the benchmark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "mine/align.h"
#include "mine/grammar.h"
#include "mine/periods.h"
#include "mine/repeats.h"
#include "mine/runs.h"

namespace pasta::mine::reference {

using String = std::vector<std::uint32_t>;

inline std::vector<std::uint32_t> suffixes(Symbols text) {
  std::vector<std::uint32_t> sorted(text.size());
  for (std::uint32_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [text](std::uint32_t a, std::uint32_t b) {
    return std::lexicographical_compare(text.begin() + a, text.end(), text.begin() + b, text.end());
  });
  return sorted;
}

inline std::uint32_t shared_prefix(Symbols text, std::uint32_t a, std::uint32_t b) {
  std::uint32_t shared = 0;
  while (std::max(a, b) + shared < text.size() && text[a + shared] == text[b + shared]) ++shared;
  return shared;
}

// Where every substring that occurs twice or more does, ascending. Cubic.
inline std::map<String, std::vector<std::uint32_t>> repeated(Symbols text) {
  std::map<String, std::vector<std::uint32_t>> found;
  for (std::uint32_t length = 1; length < text.size(); ++length) {
    for (std::uint32_t at = 0; at + length <= text.size(); ++at) {
      found[String(text.begin() + at, text.begin() + at + length)].push_back(at);
    }
  }
  std::erase_if(found, [](const auto& entry) { return entry.second.size() < 2; });
  return found;
}

// The longest substrings with given occurrences to the right; whether also to the left.
inline bool extends(Symbols text, const std::vector<std::uint32_t>& at, std::uint32_t length,
                    bool to_the_left) {
  std::set<std::int64_t> beside;
  for (const std::uint32_t position : at) {
    if (to_the_left ? position == 0 : position + length == text.size()) return false;
    beside.insert(text[to_the_left ? position - 1 : position + length]);
  }
  return beside.size() == 1;
}

inline std::uint32_t count_apart(const std::vector<std::uint32_t>& at, std::uint32_t length) {
  // By dynamic programming over the occurrences, not greedily.
  std::vector<std::uint32_t> best(at.size() + 1, 0);
  for (std::size_t i = at.size(); i-- > 0;) {
    std::size_t next = i + 1;
    while (next < at.size() && at[next] < at[i] + length) ++next;
    best[i] = std::max(best[i + 1], best[next] + 1);
  }
  return best[0];
}

inline bool has_period(Symbols text, std::uint32_t begin, std::uint32_t end, std::uint32_t period) {
  for (std::uint32_t i = begin; i + period < end; ++i) {
    if (text[i] != text[i + period]) return false;
  }
  return true;
}

// Every maximal stretch of each period that holds two of them, unless a smaller period holds too.
inline std::vector<Run> runs(Symbols text) {
  std::vector<Run> found;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (std::uint32_t period = 1; 2 * period <= size; ++period) {
    for (std::uint32_t begin = 0; begin + 2 * period <= size;) {
      std::uint32_t end = begin + period;
      while (end < size && text[end] == text[end - period]) ++end;
      if (end - begin >= 2 * period) {
        bool smallest = true;
        for (std::uint32_t less = 1; less < period; ++less) {
          smallest = smallest && !has_period(text, begin, end, less);
        }
        if (smallest) found.push_back({begin, end, period});
      }
      begin = end - period + 1;
    }
  }
  std::sort(found.begin(), found.end(), [](const Run& a, const Run& b) {
    return std::tie(a.begin, a.period) < std::tie(b.begin, b.period);
  });
  return found;
}

inline std::uint32_t edit_distance(Symbols from, Symbols to) {
  std::vector<std::uint32_t> row(to.size() + 1);
  for (std::uint32_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::uint32_t i = 0; i < from.size(); ++i) {
    std::uint32_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::uint32_t substituted = diagonal + (from[i] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Whether the steps turn `from` into `to` and are what the counts say.
inline bool turns_into(const Alignment& alignment, Symbols from, Symbols to) {
  std::size_t i = 0;
  std::size_t j = 0;
  Edits edits;
  for (const EditStep& step : alignment.steps) {
    for (std::uint32_t n = 0; n < step.count; ++n) {
      const bool reads_from = step.edit != Edit::kInsert;
      const bool reads_to = step.edit != Edit::kDelete;
      if ((reads_from && i >= from.size()) || (reads_to && j >= to.size())) return false;
      if (reads_from && reads_to && (from[i] == to[j]) != (step.edit == Edit::kMatch)) return false;
      i += reads_from ? 1 : 0;
      j += reads_to ? 1 : 0;
    }
    (step.edit == Edit::kMatch        ? edits.matches
     : step.edit == Edit::kSubstitute ? edits.substitutions
     : step.edit == Edit::kInsert     ? edits.insertions
                                      : edits.deletions) += step.count;
  }
  return i == from.size() && j == to.size() && edits == alignment.edits;
}

// Fibonacci words, the strings over two symbols that are fullest of repeats among those without a
// long run.
inline String fibonacci(std::size_t size) {
  String a{0};
  String b{0, 1};
  while (b.size() < size) {
    String c = b;
    c.insert(c.end(), a.begin(), a.end());
    a.swap(b);
    b.swap(c);
  }
  b.resize(size);
  return b;
}

// Thue-Morse: no block three times in a row.
inline String thue_morse(std::size_t size) {
  String s(size);
  for (std::size_t i = 0; i < size; ++i) {
    s[i] = static_cast<std::uint32_t>(__builtin_popcountll(i)) & 1U;
  }
  return s;
}

// Period doubling: the differences of Thue-Morse.
inline String period_doubling(std::size_t size) {
  String s(size);
  for (std::size_t i = 0; i < size; ++i) {
    s[i] = static_cast<std::uint32_t>(__builtin_ctzll(i + 1)) & 1U;
  }
  return s;
}

// De Bruijn: every window of `order` symbols once, by "prefer the largest".
inline String de_bruijn(std::uint32_t alphabet, std::uint32_t order) {
  String s(order, 0);
  std::set<String> seen{s};
  for (;;) {
    String window(s.end() - (order - 1), s.end());
    window.push_back(0);
    std::uint32_t symbol = alphabet;
    while (symbol-- > 0) {
      window.back() = symbol;
      if (seen.insert(window).second) break;
    }
    if (symbol == std::numeric_limits<std::uint32_t>::max()) return s;
    s.push_back(symbol);
  }
}

}  // namespace pasta::mine::reference
