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

// Part of the body of a rule.
struct Stretch {
  std::uint32_t rule;
  std::uint32_t offset;  // in launches
  std::uint32_t length;
};

// Calls take(rule, position) for each occurrence of a rule, from front to back. Linear: a sequence
// has fewer of them than symbols, since each rule joins two parts or more.
template <class Take>
void walk(const Grammar& grammar, Take&& take) {
  take(std::uint32_t{0}, std::size_t{0});
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
    take(item.id, at);
    open.push_back({grammar.body(item.id), 0});
  }
}

std::vector<std::int64_t> running_sum(std::span<const std::int64_t> times_ns) {
  std::vector<std::int64_t> before(times_ns.size() + 1);
  for (std::size_t i = 0; i < times_ns.size(); ++i) {
    before[i + 1] = add_saturated(before[i], times_ns[i]);
  }
  return before;
}

// Where each rule occurs first, and the time of all its occurrences.
std::vector<Place> places_of(const Grammar& grammar, const Launches& launches) {
  const std::vector<std::int64_t> before = running_sum(launches.times_ns);
  std::vector<Place> places(grammar.rules.size());
  walk(grammar, [&](std::uint32_t rule, std::size_t at) {
    Place& place = places[rule];
    place.first = std::min(place.first, at);
    place.time_ns =
        add_saturated(place.time_ns, before[at + grammar.rules[rule].length] - before[at]);
  });
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
  std::vector<bool> broken(grammar.rules.size(), false);
  for (std::size_t rule = grammar.rules.size(); rule-- > 0;) {  // parts before wholes
    for (const GrammarItem& item : grammar.body(static_cast<std::uint32_t>(rule))) {
      if (item.is_rule ? broken[item.id] : breaks(item.id)) broken[rule] = true;
    }
  }
  std::vector<Stretch> stretches;
  std::vector<bool> seen(grammar.rules.size(), false);
  std::vector<std::uint32_t> left = {0};
  while (!left.empty()) {
    const std::uint32_t holder = left.back();
    left.pop_back();
    const bool often = grammar.rules[holder].count >= min_count;
    if (often && !broken[holder]) {
      stretches.push_back({holder, 0, grammar.rules[holder].length});
      continue;
    }
    std::uint32_t at = 0, begin = 0;
    const auto close = [&] {
      if (often && at - begin >= min_length) stretches.push_back({holder, begin, at - begin});
    };
    for (const GrammarItem& item : grammar.body(holder)) {
      const std::uint32_t length = (item.is_rule ? grammar.rules[item.id].length : 1) * item.repeat;
      const bool breaks_here = item.is_rule ? broken[item.id] : breaks(item.id);
      // In what occurs too seldom itself, each part is looked at alone.
      const bool look_inside = item.is_rule && (breaks_here || !often) && !seen[item.id];
      if (look_inside) seen[item.id] = true, left.push_back(item.id);
      if (breaks_here) close();
      at += length;
      if (breaks_here) begin = at;
    }
    close();
  }
  std::erase_if(stretches, [&](const Stretch& one) { return one.length < min_length; });
  std::ranges::sort(stretches, {},
                    [](const Stretch& one) { return std::pair(one.rule, one.offset); });
  const std::vector<std::int64_t> before = running_sum(launches.times_ns);
  std::vector<Pattern> found;
  for (const Stretch& one : stretches) {
    found.push_back({.rule = one.rule,
                     .first = std::numeric_limits<std::size_t>::max(),
                     .length = one.length,
                     .count = grammar.rules[one.rule].count,
                     .inner = {}});
  }
  walk(grammar, [&](std::uint32_t rule, std::size_t at) {
    auto one = std::ranges::lower_bound(stretches, rule, {}, &Stretch::rule);
    for (; one != stretches.end() && one->rule == rule; ++one) {
      Pattern& pattern = found[static_cast<std::size_t>(one - stretches.begin())];
      const std::size_t begin = at + one->offset;
      pattern.first = std::min(pattern.first, begin);
      pattern.time_ns = add_saturated(pattern.time_ns, before[begin + one->length] - before[begin]);
    }
  });
  std::ranges::stable_sort(found, std::ranges::greater{}, &Pattern::time_ns);
  return found;
}

}  // namespace pasta::tools::patterns
