// Any short string through everything in mine/, against brute force.
//
// Byte 0: how many different symbols; byte 1: where the string is cut into two lanes, and into
// pattern and string. The rest are symbols.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "mine/reference.h"

namespace {

using namespace pasta::mine;
using reference::String;

constexpr std::size_t kMost = 32;  // the reference answers are cubic

void check(bool holds) {
  if (!holds) std::abort();
}

void check_repeats(const String& s, const SuffixArray& index) {
  const auto expected = reference::repeated(s);
  std::size_t nodes = 0;
  std::size_t maximal = 0;
  for (const auto& [string, at] : expected) {
    const auto length = static_cast<std::uint32_t>(string.size());
    if (reference::extends(s, at, length, false)) continue;
    ++nodes;
    if (!reference::extends(s, at, length, true)) ++maximal;
  }
  std::vector<std::uint32_t> scratch;
  for_each_node(index, [&](const Repeat& repeat, bool left_diverse) {
    --nodes;
    if (left_diverse) --maximal;
    const auto first = s.begin() + repeat.leftmost;
    const auto found = expected.find(String(first, first + repeat.length));
    check(found != expected.end() && found->second.size() == repeat.count());
    check(!reference::extends(s, found->second, repeat.length, false));
    check(left_diverse == !reference::extends(s, found->second, repeat.length, true));
    check(repeat.leftmost == found->second.front() && repeat.rightmost == found->second.back());
    check(count_apart(index, repeat, scratch) ==
          reference::count_apart(found->second, repeat.length));
  });
  check(nodes == 0 && maximal == 0);
  for_each_supermaximal_repeat(index, 1, 2, [&](const Repeat& repeat) {
    const auto first = s.begin() + repeat.leftmost;
    for (const auto& [string, at] : expected) {
      check(string.size() <= repeat.length || std::search(string.begin(), string.end(), first,
                                                          first + repeat.length) == string.end());
    }
  });
}

void check_grammar(const Text& text, std::span<const Symbols> lanes) {
  const Grammar grammar = reduce(text);
  check(grammar.lanes == lanes.size());
  std::size_t size = 0;
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    const String symbols = expand(grammar, rule);
    check(symbols.size() == grammar.rules[rule].length);
    if (rule < lanes.size()) {
      check(std::equal(symbols.begin(), symbols.end(), lanes[rule].begin(), lanes[rule].end()));
      size += symbols.size();
    } else {
      check(grammar.rules[rule].count > 1 && grammar.rules[rule].items > 1);
    }
    for (const GrammarItem& item : grammar.body(rule)) check(!item.is_rule || item.id > rule);
  }
  check(grammar.size() <= size);
}

void check_alignment(Symbols from, Symbols to) {
  const std::uint32_t cost = reference::edit_distance(from, to);
  const auto found = align(from, to, cost);
  check(found.has_value() && found->edits.cost() == cost);
  check(reference::turns_into(*found, from, to));
  check(cost == 0 || !align(from, to, cost - 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint32_t alphabet = data[0] % 16 + 1U;
  String s(data + 2, data + std::min(size, kMost + 2));
  // Far apart, so that ranks are found by sorting too.
  for (std::uint32_t& symbol : s) symbol = symbol % alphabet * (data[0] < 128 ? 1 : 200'000'000);
  const std::size_t cut = data[1] % (s.size() + 1);
  const Symbols lanes[] = {Symbols(s).first(cut), Symbols(s).subspan(cut)};

  const SuffixArray index(*Text::of(s));
  const auto sorted = reference::suffixes(s);
  check(
      std::equal(sorted.begin(), sorted.end(), index.positions().begin(), index.positions().end()));
  for (std::size_t row = 1; row < s.size(); ++row) {
    check(index.lcp()[row] == reference::shared_prefix(s, sorted[row - 1], sorted[row]));
  }
  check_repeats(s, index);
  check(find_runs(index) == reference::runs(s));
  const auto length = static_cast<std::uint32_t>(s.size());
  const std::uint32_t period = smallest_period(s);
  check(reference::has_period(s, 0, length, period));
  for (std::uint32_t less = 1; less < period; ++less) {
    check(!reference::has_period(s, 0, length, less));
  }
  const SuffixArray joined(*Text::of(lanes));
  for (const Run& run : find_runs(joined)) {
    check(joined.text().lane_of(run.begin) == joined.text().lane_of(run.end - 1));
  }
  for (const PeriodCandidate& candidate : candidate_periods(joined)) {
    check(candidate.low <= candidate.period && candidate.period <= candidate.high);
    check(candidate.support <= 1 && candidate.matches <= 1);
  }
  check_grammar(joined.text(), lanes);
  check_alignment(lanes[0], lanes[1]);
  return 0;
}
