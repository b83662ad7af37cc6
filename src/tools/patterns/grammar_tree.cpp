#include "tools/patterns/grammar_tree.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tools/common/saturate.h"

namespace pasta::tools::patterns {
namespace {

using mine::Grammar;
using mine::GrammarItem;

struct Place {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::int64_t time_ns = 0;
};

// Where each rule occurs first, and the time of all its occurrences. Linear: a sequence has fewer
// occurrences of rules than symbols, since each rule joins two parts or more.
std::vector<Place> places_of(const Grammar& grammar, const Launches& launches) {
  std::vector<std::int64_t> before(launches.times_ns.size() + 1);
  for (std::size_t i = 0; i < launches.times_ns.size(); ++i) {
    before[i + 1] = add_saturated(before[i], launches.times_ns[i]);
  }
  std::vector<Place> places(grammar.rules.size());
  struct Open {
    std::span<const GrammarItem> left;
    std::uint32_t repeats;  // of the first item of `left` that were already seen
  };
  std::vector<Open> open = {{grammar.body(0), 0}};
  std::size_t at = 0;
  while (!open.empty()) {
    Open& top = open.back();
    if (top.left.empty()) {
      open.pop_back();
      continue;
    }
    const GrammarItem item = top.left.front();
    if (!item.is_rule) {
      at += item.repeat;
      top.left = top.left.subspan(1);
      continue;
    }
    if (top.repeats == item.repeat) {
      top = {top.left.subspan(1), 0};
      continue;
    }
    ++top.repeats;
    Place& place = places[item.id];
    place.first = std::min(place.first, at);
    place.time_ns =
        add_saturated(place.time_ns, before[at + grammar.rules[item.id].length] - before[at]);
    open.push_back({grammar.body(item.id), 0});
  }
  return places;
}

Pattern pattern_of(const Grammar& grammar, std::uint32_t rule, const Place& place) {
  return {.rule = rule,
          .first = place.first,
          .length = grammar.rules[rule].length,
          .count = grammar.rules[rule].count,
          .time_ns = place.time_ns,
          .inner = {}};
}

}  // namespace

std::vector<Pattern> patterns_of(const Grammar& grammar, const Launches& launches,
                                 std::int64_t least_ns) {
  if (grammar.rules.empty()) return {};
  const std::vector<Place> places = places_of(grammar, launches);
  std::vector<bool> seen(grammar.rules.size(), false);
  std::vector<Pattern> patterns;
  // Breadth first, so that a pattern stands at the outermost level that holds it.
  for (std::size_t next = 0, at = 0;; ++next) {
    const bool top = next == 0;
    const std::uint32_t holder = top ? 0 : patterns[at].rule;
    std::vector<std::uint32_t> found;
    std::vector<std::uint32_t> left = {holder};
    while (!left.empty()) {
      const std::uint32_t rule = left.back();
      left.pop_back();
      for (const GrammarItem& item : grammar.body(rule)) {
        if (!item.is_rule || seen[item.id] || places[item.id].time_ns < least_ns) continue;
        seen[item.id] = true;
        const bool own = grammar.rules[item.id].count > grammar.rules[holder].count;
        (own ? found : left).push_back(item.id);
      }
    }
    std::ranges::sort(found, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(places[b].time_ns, a) < std::pair(places[a].time_ns, b);
    });
    for (const std::uint32_t rule : found) {
      Pattern pattern = pattern_of(grammar, rule, places[rule]);
      if (!top) {
        pattern.level = patterns[at].level + 1;
        patterns[at].inner.push_back(patterns.size());
      }
      patterns.push_back(std::move(pattern));
    }
    if (!top) ++at;
    if (at == patterns.size()) return patterns;
  }
}

std::vector<Pattern> unbroken(const Grammar& grammar, const Launches& launches,
                              std::uint32_t min_length, std::uint64_t min_count,
                              bool (*breaks)(std::uint32_t symbol)) {
  if (grammar.rules.empty()) return {};
  const std::vector<Place> places = places_of(grammar, launches);
  std::vector<bool> broken(grammar.rules.size(), false);
  for (std::size_t rule = grammar.rules.size(); rule-- > 0;) {  // parts before wholes
    for (const GrammarItem& item : grammar.body(static_cast<std::uint32_t>(rule))) {
      if (item.is_rule ? broken[item.id] : breaks(item.id)) broken[rule] = true;
    }
  }
  std::vector<Pattern> found;
  std::vector<bool> seen(grammar.rules.size(), false);
  std::vector<std::uint32_t> left = {0};
  while (!left.empty()) {
    const std::uint32_t rule = left.back();
    left.pop_back();
    for (const GrammarItem& item : grammar.body(rule)) {
      if (!item.is_rule || seen[item.id]) continue;
      seen[item.id] = true;
      const mine::GrammarRule& one = grammar.rules[item.id];
      if (!broken[item.id] && one.length >= min_length && one.count >= min_count) {
        found.push_back(pattern_of(grammar, item.id, places[item.id]));
      } else if (one.length > min_length) {
        left.push_back(item.id);
      }
    }
  }
  std::ranges::sort(found, [](const Pattern& a, const Pattern& b) {
    return std::pair(b.time_ns, a.rule) < std::pair(a.time_ns, b.rule);
  });
  return found;
}

}  // namespace pasta::tools::patterns
