// Everything in mine/ against brute force, on strings that are hard for one part or another.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mine/common_prefix.h"
#include "mine/reference.h"

namespace pasta::mine {
namespace {

using reference::String;

String random_string(std::mt19937& random, std::size_t size, std::uint32_t alphabet) {
  String s(size);
  for (std::uint32_t& symbol : s) symbol = static_cast<std::uint32_t>(random() % alphabet);
  return s;
}

String repeated(const String& block, std::size_t times) {
  String s;
  for (std::size_t i = 0; i < times; ++i) s.insert(s.end(), block.begin(), block.end());
  return s;
}

// Small enough for cubic reference answers.
std::vector<String> strings() {
  std::vector<String> all{{},
                          {7},
                          {7, 7},
                          {7, 8},
                          {8, 7},
                          {0xffff'ffff, 0, 0xffff'ffff, 0, 5},
                          String(40, 3),
                          reference::fibonacci(60),
                          reference::thue_morse(64),
                          reference::period_doubling(63),
                          reference::de_bruijn(2, 5),
                          reference::de_bruijn(3, 3)};
  String counting(30);
  std::iota(counting.begin(), counting.end(), 100'000'000);
  all.push_back(counting);
  std::reverse(counting.begin(), counting.end());
  all.push_back(counting);
  std::mt19937 random(1);
  for (const std::uint32_t alphabet : {2U, 3U, 4U, 16U, 4'000'000'000U}) {
    for (std::size_t size = 1; size < 60; size += 4) {
      all.push_back(random_string(random, size, alphabet));
    }
    String block = repeated(random_string(random, 7, alphabet), 6);
    all.push_back(block);
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(random() % block.size());
      if (i == 0) block[static_cast<std::size_t>(at)] = 1;
      if (i == 1) block.erase(block.begin() + at);
      if (i == 2) block.insert(block.begin() + at, 2);
      all.push_back(block);
    }
  }
  return all;
}

SuffixArray index_of(const String& s) { return SuffixArray(*Text::of(s)); }

std::string shown(const String& s) {
  std::string text;
  for (const std::uint32_t symbol : s) text += std::to_string(symbol) + " ";
  return text;
}

TEST(Text, RanksKeepOrderAndValues) {
  for (const String& s : strings()) {
    SCOPED_TRACE(shown(s));
    const Text text = *Text::of(s);
    ASSERT_EQ(text.size(), s.size());
    for (std::uint32_t i = 0; i < s.size(); ++i) {
      ASSERT_LT(text.ranks()[i], text.alphabet());
      EXPECT_EQ(text.value(text.ranks()[i]), s[i]);
      if (i > 0) {
        EXPECT_EQ(text.ranks()[i - 1] < text.ranks()[i], s[i - 1] < s[i]);
      }
    }
  }
}

TEST(Text, LanesAreKeptApart) {
  const String a{5, 6, 5, 6};
  const String b;
  const String c{5, 6};
  const std::vector<Symbols> lanes{a, b, c};
  const Text text = *Text::of(lanes);
  EXPECT_EQ(text.size(), 8U);
  EXPECT_EQ(text.separators(), 2U);
  EXPECT_EQ(String(text.ranks().begin(), text.ranks().end()), (String{2, 3, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(text.lane_begin(1), 5U);
  EXPECT_EQ(text.lane_end(1), 5U);
  EXPECT_EQ(text.lane_end(0), 4U);
  EXPECT_EQ(text.lane_of(3), 0U);
  EXPECT_EQ(text.lane_of(7), 2U);
  EXPECT_EQ(Text::of(std::span<const Symbols>())->lanes(), 0U);

  const SuffixArray index(text);
  std::vector<Repeat> found;
  for_each_maximal_repeat(index, 1, 2, [&](const Repeat& repeat) { found.push_back(repeat); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].length, 2U);
  EXPECT_EQ(found[0].count(), 3U);
  EXPECT_EQ(find_runs(index), (std::vector<mine::Run>{{0, 4, 2}}));
}

TEST(SuffixArray, SortsAndShares) {
  for (const String& s : strings()) {
    SCOPED_TRACE(shown(s));
    const SuffixArray index = index_of(s);
    const auto sorted = reference::suffixes(s);
    ASSERT_EQ(String(index.positions().begin(), index.positions().end()), sorted);
    for (std::size_t row = 0; row < s.size(); ++row) {
      EXPECT_EQ(index.lcp()[row],
                row == 0 ? 0 : reference::shared_prefix(s, sorted[row - 1], sorted[row]));
    }
  }
}

TEST(Repeats, AreThoseOfBruteForce) {
  std::vector<std::uint32_t> scratch;
  for (const String& s : strings()) {
    SCOPED_TRACE(shown(s));
    const auto expected = reference::repeated(s);
    const SuffixArray index = index_of(s);
    const auto check = [&](const Repeat& repeat) {
      const auto first = s.begin() + repeat.leftmost;
      const auto found = expected.find(String(first, first + repeat.length));
      EXPECT_NE(found, expected.end());
      if (found == expected.end()) return found;
      auto at = occurrences(index, repeat);
      std::vector<std::uint32_t> sorted(at.begin(), at.end());
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(sorted, found->second);
      EXPECT_EQ(repeat.leftmost, sorted.front());
      EXPECT_EQ(repeat.rightmost, sorted.back());
      const std::uint32_t apart = reference::count_apart(sorted, repeat.length);
      EXPECT_EQ(count_apart(index, repeat, scratch), apart);
      EXPECT_EQ(occurrences_apart(index, repeat).size(), apart);
      EXPECT_EQ(repeat.occurs_apart(), apart > 1);
      return found;
    };
    std::size_t nodes = 0;
    std::size_t maximal = 0;
    std::size_t supermaximal = 0;
    for (const auto& entry : expected) {
      const String& string = entry.first;
      const auto& at = entry.second;
      const auto length = static_cast<std::uint32_t>(string.size());
      const bool right_maximal = !reference::extends(s, at, length, false);
      const bool left_maximal = !reference::extends(s, at, length, true);
      nodes += right_maximal ? 1 : 0;
      maximal += right_maximal && left_maximal ? 1 : 0;
      supermaximal += std::none_of(expected.begin(), expected.end(), [&](const auto& other) {
        return other.first.size() > string.size() &&
               std::search(other.first.begin(), other.first.end(), string.begin(), string.end()) !=
                   other.first.end();
      });
    }
    for_each_node(index, [&](const Repeat& repeat, bool left_diverse) {
      --nodes;
      const auto found = check(repeat);
      if (found == expected.end()) return;
      EXPECT_FALSE(reference::extends(s, found->second, repeat.length, false));
      EXPECT_EQ(left_diverse, !reference::extends(s, found->second, repeat.length, true));
    });
    for_each_maximal_repeat(index, 1, 2, [&](const Repeat&) { --maximal; });
    for_each_supermaximal_repeat(index, 1, 2, [&](const Repeat& repeat) {
      --supermaximal;
      check(repeat);
    });
    EXPECT_EQ(nodes, 0U);
    EXPECT_EQ(maximal, 0U);
    EXPECT_EQ(supermaximal, 0U);
    for_each_maximal_repeat(index, 3, 4, [&](const Repeat& repeat) {
      EXPECT_GE(repeat.length, 3U);
      EXPECT_GE(repeat.count(), 4U);
    });
  }
}

TEST(Runs, AreThoseOfBruteForce) {
  for (const String& s : strings()) {
    SCOPED_TRACE(shown(s));
    EXPECT_EQ(find_runs(index_of(s)), reference::runs(s));
  }
}

// Every string of up to so many symbols, since few strings at random have unusual runs.
TEST(Runs, OfAllShortStrings) {
  for (const auto& [alphabet, most] : {std::pair(2U, 12U), std::pair(3U, 7U)}) {
    for (std::uint32_t size = 1; size <= most; ++size) {
      String s(size, 0);
      for (;;) {
        ASSERT_EQ(find_runs(index_of(s)), reference::runs(s)) << shown(s);
        std::size_t digit = 0;
        while (digit < size && s[digit] == alphabet - 1) s[digit++] = 0;
        if (digit == size) break;
        ++s[digit];
      }
    }
  }
}

// Long enough that symbols are no longer compared one by one.
TEST(Runs, OfLongStrings) {
  std::mt19937 random(13);
  String staircase;  // 1 0 1 1 0 1 1 1 0 ...
  for (std::size_t i = 0; i < 70; ++i) {
    staircase.insert(staircase.end(), i, 1);
    staircase.push_back(0);
  }
  String noisy = repeated(random_string(random, 150, 50), 12);
  for (int i = 0; i < 5; ++i) noisy[random() % noisy.size()] = 60;
  String nested = repeated(random_string(random, 90, 3), 4);
  nested.push_back(1);
  for (const String& s :
       {staircase, noisy, repeated(nested, 4), reference::fibonacci(1500), String(1500, 4)}) {
    EXPECT_EQ(find_runs(index_of(s)), reference::runs(s));
  }
}

TEST(RangeMinimum, OfAllRanges) {
  std::mt19937 random(17);
  for (const std::size_t size : {1U, 31U, 32U, 33U, 100U, 1200U}) {
    const String values = random_string(random, size, 4'000'000'000U);
    const RangeMinimum minimum(values);
    for (std::uint32_t first = 0; first < size; first += 7) {
      std::uint32_t least = values[first];
      for (std::uint32_t last = first; last < size; ++last) {
        least = std::min(least, values[last]);
        ASSERT_EQ(minimum(first, last), least) << first << " " << last;
      }
    }
  }
}

TEST(Periods, SmallestIsTheSmallest) {
  for (const String& s : strings()) {
    SCOPED_TRACE(shown(s));
    const auto size = static_cast<std::uint32_t>(s.size());
    std::uint32_t period = size == 0 ? 0 : 1;
    while (period < size && !reference::has_period(s, 0, size, period)) ++period;
    EXPECT_EQ(smallest_period(s), period);
    if (size > period) {
      EXPECT_EQ(match_share(s, period), 1);
    }
  }
  EXPECT_EQ(match_share(String{1, 2, 1, 3}, 2), 0.5);
  EXPECT_EQ(match_share(String{1, 2}, 2), 0);
}

TEST(Periods, LoopsWithinLoopsAreBothFound) {
  // 8 layers of 9 kernels between a head of 5 and a tail of 14: 91 symbols an iteration.
  std::mt19937 random(3);
  String step = random_string(random, 5, 1000);
  const String layers = repeated(random_string(random, 9, 1000), 8);
  step.insert(step.end(), layers.begin(), layers.end());
  const String tail = random_string(random, 14, 1000);
  step.insert(step.end(), tail.begin(), tail.end());
  ASSERT_EQ(step.size(), 91U);
  String all;
  for (int i = 0; i < 40; ++i) {
    String once = step;
    once[random() % once.size()] = 5000;  // autotuned
    if (i % 3 == 0) once.erase(once.begin() + static_cast<std::ptrdiff_t>(random() % once.size()));
    if (i % 7 == 0) once.insert(once.begin(), {6000, 6001});
    all.insert(all.end(), once.begin(), once.end());
  }
  const auto candidates = candidate_periods(index_of(all));
  const auto finds = [&](std::uint32_t period) {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const auto& c) { return c.low <= period && period <= c.high; });
  };
  EXPECT_TRUE(finds(91));
  EXPECT_TRUE(finds(9));
  const auto none = candidate_periods(index_of(random_string(random, 3000, 100'000)));
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(candidate_periods(index_of({})).empty());
}

TEST(Align, NeedsAsFewEditsAsPossible) {
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    const String from = random_string(random, random() % 30, 1 + random() % 4);
    String to = from;
    if (i % 2 == 0) {
      to = random_string(random, random() % 30, 1 + random() % 4);
    } else if (!to.empty()) {
      to.erase(to.begin() + static_cast<std::ptrdiff_t>(random() % to.size()));
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(random() % (to.size() + 1)), 9);
    }
    SCOPED_TRACE(shown(from) + "| " + shown(to));
    const std::uint32_t cost = reference::edit_distance(from, to);
    const auto found = align(from, to, 1000);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->edits.cost(), cost);
    EXPECT_TRUE(reference::turns_into(*found, from, to));
    EXPECT_TRUE(align(from, to, cost).has_value());
    if (cost > 0) {
      EXPECT_FALSE(align(from, to, cost - 1).has_value());
    }
  }
}

TEST(Align, StepsAreMerged) {
  const auto found = align(String{1, 2, 3, 4, 5}, String{1, 2, 9, 4, 5, 6, 7}, 9);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->steps,
            (std::vector<EditStep>{
                {Edit::kMatch, 2}, {Edit::kSubstitute, 1}, {Edit::kMatch, 2}, {Edit::kInsert, 2}}));
}

void expect_sound(const Grammar& grammar, const std::vector<String>& lanes) {
  ASSERT_EQ(grammar.lanes, lanes.size());
  std::size_t items = 0;
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    const GrammarRule& of = grammar.rules[rule];
    items += of.items;
    const String symbols = expand(grammar, rule);
    EXPECT_EQ(symbols.size(), of.length);
    if (rule < lanes.size()) {
      EXPECT_EQ(symbols, lanes[rule]);
    } else {
      EXPECT_GE(of.items, 2U);
      EXPECT_GE(of.count, 2U);
      EXPECT_GE(of.uses, 1U);
    }
    for (const GrammarItem& item : grammar.body(rule)) {
      EXPECT_GE(item.repeat, 1U);
      if (item.is_rule) {
        EXPECT_GT(item.id, rule);
      }
    }
  }
  EXPECT_EQ(items, grammar.size());
}

TEST(Grammar, SaysTheSameText) {
  for (const String& s : strings()) {
    SCOPED_TRACE(shown(s));
    const Grammar grammar = reduce(*Text::of(s));
    expect_sound(grammar, {s});
    EXPECT_LE(grammar.size(), s.size());
  }
  const std::vector<String> lanes{{1, 2, 3, 1, 2, 3}, {}, {1, 2, 3}};
  const std::vector<Symbols> views(lanes.begin(), lanes.end());
  expect_sound(reduce(*Text::of(views)), lanes);
}

TEST(Grammar, ReadsLikeTheLoops) {
  // (a b c (d e){3} f){4} g
  String s = repeated({1, 2, 3, 4, 5, 4, 5, 4, 5, 6}, 4);
  s.push_back(7);
  const Grammar grammar = reduce(*Text::of(s));
  ASSERT_EQ(grammar.rules.size(), 3U);
  const auto body = [&](std::uint32_t rule) {
    const auto items = grammar.body(rule);
    return std::vector<GrammarItem>(items.begin(), items.end());
  };
  using Items = std::vector<GrammarItem>;
  EXPECT_EQ(body(0), (Items{{1, true, 4}, {7, false, 1}}));
  EXPECT_EQ(body(1),
            (Items{{1, false, 1}, {2, false, 1}, {3, false, 1}, {2, true, 3}, {6, false, 1}}));
  EXPECT_EQ(body(2), (Items{{4, false, 1}, {5, false, 1}}));
  EXPECT_EQ(grammar.rules[1].length, 10U);
  EXPECT_EQ(grammar.rules[1].count, 4U);
  EXPECT_EQ(grammar.rules[2].count, 12U);
  EXPECT_EQ(grammar.rules[2].uses, 1U);
}

}  // namespace
}  // namespace pasta::mine
