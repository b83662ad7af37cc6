#include "mine/grammar.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

namespace pasta::mine {
namespace {

constexpr std::uint32_t kNone = 0xffff'ffff;

// The pairs that occur, found by their two symbols. Open addressing with linear probing; removing
// closes the gap, so that a table that lives long does not fill with the dead.
class PairTable {
 public:
  struct Pair {
    std::uint64_t key = 0;
    std::uint32_t first = kNone;  // node at which the newest occurrence begins
    std::uint32_t count = 0;
    std::uint32_t before = kNone;  // neighbours in the list of pairs of this count
    std::uint32_t after = kNone;
  };

  explicit PairTable(std::size_t expected) {
    slots_.assign(std::bit_ceil(std::max<std::size_t>(16, expected)), kNone);
  }
  [[nodiscard]] Pair& operator[](std::uint32_t id) { return pairs_[id]; }

  std::uint32_t find_or_add(std::uint64_t key) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    std::size_t slot = home(key);
    for (; slots_[slot] != kNone; slot = next(slot)) {
      if (pairs_[slots_[slot]].key == key) return slots_[slot];
    }
    std::uint32_t id = free_;
    if (id != kNone) {
      free_ = pairs_[id].after;
      pairs_[id] = {};
    } else {
      id = static_cast<std::uint32_t>(pairs_.size());
      pairs_.emplace_back();
    }
    pairs_[id].key = key;
    slots_[slot] = id;
    ++used_;
    return id;
  }

  [[nodiscard]] std::uint32_t find(std::uint64_t key) const {
    std::size_t slot = home(key);
    while (pairs_[slots_[slot]].key != key) slot = next(slot);
    return slots_[slot];
  }

  void remove(std::uint32_t id) {
    std::size_t gap = home(pairs_[id].key);
    while (slots_[gap] != id) gap = next(gap);
    for (std::size_t slot = next(gap); slots_[slot] != kNone; slot = next(slot)) {
      // May move into the gap unless its home lies after it.
      const std::size_t from_home = (slot - home(pairs_[slots_[slot]].key)) & (slots_.size() - 1);
      if (from_home < ((slot - gap) & (slots_.size() - 1))) continue;
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = kNone;
    --used_;
    pairs_[id].after = free_;
    free_ = id;
  }

 private:
  [[nodiscard]] std::size_t home(std::uint64_t key) const {
    const auto bits = static_cast<unsigned>(std::countr_zero(slots_.size()));
    return static_cast<std::size_t>((key * 0x9e37'79b9'7f4a'7c15ULL) >> (64U - bits));
  }
  [[nodiscard]] std::size_t next(std::size_t slot) const {
    return (slot + 1) & (slots_.size() - 1);
  }
  void grow() {
    LargeVector<std::uint32_t> old(2 * slots_.size(), kNone);
    old.swap(slots_);
    for (const std::uint32_t id : old) {
      if (id == kNone) continue;
      std::size_t slot = home(pairs_[id].key);
      while (slots_[slot] != kNone) slot = next(slot);
      slots_[slot] = id;
    }
  }

  LargeVector<Pair> pairs_;
  LargeVector<std::uint32_t> slots_;
  std::size_t used_ = 0;
  std::uint32_t free_ = kNone;
};

// What a symbol that was made stands for: two symbols, or one several times.
struct Made {
  std::uint32_t left = 0;
  std::uint32_t right = 0;  // of a loop: how many times
  bool is_loop = false;
};

class Reducer {
 public:
  explicit Reducer(const Text& text)
      : text_(text), first_made_(text.alphabet()), table_(text.size() / 8) {}

  Grammar run() {
    load();
    for (std::uint32_t at = head(); at != kNone && next_[at] != kNone; at = next_[at]) {
      add_pair(at);
    }
    while (most_ >= 2) {
      const std::uint32_t id = by_count_[most_];
      if (id == kNone) {
        --most_;
      } else {
        replace(id);
      }
    }
    return write();
  }

 private:
  std::uint32_t make(const Made& made) {
    made_.push_back(made);
    return first_made_ + static_cast<std::uint32_t>(made_.size() - 1);
  }

  // One node for each symbol, or for each stretch of equal ones.
  void load() {
    const Symbols ranks = text_.ranks();
    std::unordered_map<std::uint64_t, std::uint32_t> loops;
    for (std::size_t at = 0; at < ranks.size();) {
      std::size_t end = at + 1;
      while (end < ranks.size() && ranks[end] == ranks[at]) ++end;
      std::uint32_t symbol = ranks[at];
      if (const auto count = static_cast<std::uint32_t>(end - at); count > 1) {
        const auto [loop, is_new] = loops.try_emplace(std::uint64_t{symbol} << 32U | count);
        if (is_new) loop->second = make({symbol, count, true});
        symbol = loop->second;
      }
      symbol_.push_back(symbol);
      at = end;
    }
    const auto size = static_cast<std::uint32_t>(symbol_.size());
    next_.resize(size);
    previous_.resize(size);
    for (std::uint32_t at = 0; at < size; ++at) {
      next_[at] = at + 1 < size ? at + 1 : kNone;
      previous_[at] = at > 0 ? at - 1 : kNone;
    }
    newer_.assign(size, kNotListed);
    older_.assign(size, kNone);
    by_count_.assign(std::size_t{size} / 2 + 2, kNone);
  }

  // The first node is never the second of a pair, so it stays.
  [[nodiscard]] std::uint32_t head() const { return symbol_.empty() ? kNone : 0; }

  [[nodiscard]] std::uint64_t key_at(std::uint32_t at) const {
    return std::uint64_t{symbol_[at]} << 32U | symbol_[next_[at]];
  }

  // Pairs that occur once are in no list: nothing will be done with them.
  void enlist(std::uint32_t id) {
    PairTable::Pair& pair = table_[id];
    if (pair.count < 2) return;
    pair.before = kNone;
    pair.after = by_count_[pair.count];
    if (pair.after != kNone) table_[pair.after].before = id;
    by_count_[pair.count] = id;
    most_ = std::max(most_, pair.count);
  }
  void delist(std::uint32_t id) {
    PairTable::Pair& pair = table_[id];
    if (pair.count < 2) return;
    if (pair.before != kNone) table_[pair.before].after = pair.after;
    if (pair.before == kNone) by_count_[pair.count] = pair.after;
    if (pair.after != kNone) table_[pair.after].before = pair.before;
  }

  // The pair that begins at node `at`. newer_ of the newest occurrence is kNone.
  void add_pair(std::uint32_t at) {
    const std::uint32_t id = table_.find_or_add(key_at(at));
    delist(id);
    PairTable::Pair& pair = table_[id];
    newer_[at] = kNone;
    older_[at] = pair.first;
    if (pair.first != kNone) newer_[pair.first] = at;
    pair.first = at;
    ++pair.count;
    enlist(id);
  }
  void drop_pair(std::uint32_t at) {
    if (newer_[at] == kNotListed) return;
    const std::uint32_t id = table_.find(key_at(at));
    delist(id);
    PairTable::Pair& pair = table_[id];
    if (newer_[at] == kNone) {
      pair.first = older_[at];
    } else {
      older_[newer_[at]] = older_[at];
    }
    if (older_[at] != kNone) newer_[older_[at]] = newer_[at];
    newer_[at] = kNotListed;
    if (--pair.count == 0) {
      table_.remove(id);
    } else {
      enlist(id);
    }
  }
  void unlink(std::uint32_t at) {
    if (next_[at] != kNone) previous_[next_[at]] = previous_[at];
    if (previous_[at] != kNone) next_[previous_[at]] = next_[at];
  }

  void replace(std::uint32_t id) {
    delist(id);
    const std::uint64_t key = table_[id].key;
    const std::uint32_t made =
        make({static_cast<std::uint32_t>(key >> 32U), static_cast<std::uint32_t>(key), false});
    replaced_.clear();
    for (std::uint32_t at = table_[id].first; at != kNone; at = older_[at]) {
      replaced_.push_back(at);
    }
    table_.remove(id);
    for (const std::uint32_t at : replaced_) newer_[at] = kNotListed;
    // A symbol is never its own neighbour, so occurrences do not overlap and any order will do.
    for (const std::uint32_t at : replaced_) {
      const std::uint32_t right = next_[at];
      if (previous_[at] != kNone) drop_pair(previous_[at]);
      if (next_[right] != kNone) drop_pair(right);
      unlink(right);
      symbol_[at] = made;
    }
    std::unordered_map<std::uint32_t, std::uint32_t> loops;  // by count
    std::size_t kept = 0;
    for (const std::uint32_t at : replaced_) {
      if (previous_[at] != kNone && symbol_[previous_[at]] == made) continue;
      std::uint32_t count = 1;
      for (std::uint32_t end = next_[at]; end != kNone && symbol_[end] == made; end = next_[end]) {
        ++count;
      }
      if (count > 1) loops.try_emplace(count, kNone);
      replaced_[kept++] = at;
    }
    replaced_.resize(kept);
    for (const std::uint32_t at : replaced_) {
      std::uint32_t count = 1;
      for (; next_[at] != kNone && symbol_[next_[at]] == made; ++count) unlink(next_[at]);
      if (count == 1) continue;
      std::uint32_t& loop = loops[count];
      if (loop == kNone) loop = make({made, count, true});
      symbol_[at] = loop;
    }
    for (const std::uint32_t at : replaced_) {
      if (previous_[at] != kNone) add_pair(previous_[at]);
      if (next_[at] != kNone) add_pair(at);
    }
  }

  [[nodiscard]] bool is_made(std::uint32_t symbol) const { return symbol >= first_made_; }
  [[nodiscard]] Made& made(std::uint32_t symbol) { return made_[symbol - first_made_]; }

  struct Factor {
    std::uint32_t symbol;  // no loop
    std::uint32_t repeat;
  };
  [[nodiscard]] Factor factor(std::uint32_t symbol) const {
    if (is_made(symbol) && made_[symbol - first_made_].is_loop) {
      const Made& loop = made_[symbol - first_made_];
      return {loop.left, loop.right};
    }
    return {symbol, 1};
  }

  Grammar write();
  void write_body(Grammar& grammar, std::uint32_t symbol);

  static constexpr std::uint32_t kNotListed = 0xffff'fffe;

  const Text& text_;
  std::uint32_t first_made_;
  std::vector<Made> made_;
  // The text as a list of nodes. A node that begins a pair is in the list of its occurrences.
  LargeVector<std::uint32_t> symbol_;
  LargeVector<std::uint32_t> next_;
  LargeVector<std::uint32_t> previous_;
  LargeVector<std::uint32_t> newer_;
  LargeVector<std::uint32_t> older_;
  PairTable table_;
  std::vector<std::uint32_t> by_count_;  // first pair of each count
  std::uint32_t most_ = 0;
  std::vector<std::uint32_t> replaced_;

  std::vector<std::uint32_t> rule_of_;  // of each made symbol, kNone if it is put in its place
  std::vector<std::uint32_t> pending_;
};

// Appends the items of `symbol`, going into those that are no rules of their own.
void Reducer::write_body(Grammar& grammar, std::uint32_t symbol) {
  pending_.push_back(symbol);
  while (!pending_.empty()) {
    const Factor item = factor(pending_.back());
    pending_.pop_back();
    if (!is_made(item.symbol)) {
      grammar.items.push_back({text_.value(item.symbol), false, item.repeat});
    } else if (const std::uint32_t rule = rule_of_[item.symbol - first_made_]; rule != kNone) {
      grammar.items.push_back({rule, true, item.repeat});
    } else {
      pending_.push_back(made(item.symbol).right);
      pending_.push_back(made(item.symbol).left);
    }
  }
}

Grammar Reducer::write() {
  std::vector<std::uint32_t> uses(made_.size(), 0);
  const auto use = [&](std::uint32_t symbol) {
    const Factor item = factor(symbol);
    // A loop is reason enough for a rule.
    if (is_made(item.symbol)) uses[item.symbol - first_made_] += item.repeat > 1 ? 2 : 1;
  };
  for (std::uint32_t at = head(); at != kNone; at = next_[at]) {
    use(symbol_[at]);
  }
  for (const Made& made : made_) {
    if (made.is_loop) continue;
    use(made.left);
    use(made.right);
  }
  Grammar grammar;
  grammar.lanes = text_.lanes();
  rule_of_.assign(made_.size(), kNone);
  std::uint32_t rules = grammar.lanes;
  for (std::size_t i = made_.size(); i-- > 0;) {
    if (!made_[i].is_loop && uses[i] > 1) rule_of_[i] = rules++;
  }
  grammar.rules.resize(rules);

  const auto end_rule = [&](std::uint32_t rule) {
    grammar.rules[rule].items =
        static_cast<std::uint32_t>(grammar.items.size()) - grammar.rules[rule].first_item;
  };
  std::uint32_t lane = 0;
  for (std::uint32_t at = head(); at != kNone; at = next_[at]) {
    if (text_.is_separator(symbol_[at])) {
      end_rule(lane++);
      grammar.rules[lane].first_item = static_cast<std::uint32_t>(grammar.items.size());
    } else {
      write_body(grammar, symbol_[at]);
    }
  }
  if (grammar.lanes > 0) end_rule(lane);
  for (std::size_t i = made_.size(); i-- > 0;) {
    const std::uint32_t rule = rule_of_[i];
    if (rule == kNone) continue;
    grammar.rules[rule].first_item = static_cast<std::uint32_t>(grammar.items.size());
    write_body(grammar, made_[i].left);
    write_body(grammar, made_[i].right);
    end_rule(rule);
  }

  for (std::uint32_t rule = rules; rule-- > 0;) {
    for (const GrammarItem& item : grammar.body(rule)) {
      grammar.rules[rule].length +=
          item.repeat * (item.is_rule ? grammar.rules[item.id].length : 1);
    }
  }
  for (std::uint32_t rule = 0; rule < rules; ++rule) {
    if (rule < grammar.lanes) grammar.rules[rule].count = 1;
    for (const GrammarItem& item : grammar.body(rule)) {
      if (!item.is_rule) continue;
      ++grammar.rules[item.id].uses;
      grammar.rules[item.id].count += item.repeat * grammar.rules[rule].count;
    }
  }
  return grammar;
}

}  // namespace

Grammar reduce(const Text& text) { return Reducer(text).run(); }

std::vector<std::uint32_t> expand(const Grammar& grammar, std::uint32_t rule) {
  struct Place {
    std::uint32_t item;
    std::uint32_t end;
    std::uint32_t repeated;
  };
  std::vector<std::uint32_t> symbols;
  symbols.reserve(grammar.rules[rule].length);
  const auto enter = [&](std::uint32_t entered) {
    const GrammarRule& of = grammar.rules[entered];
    return Place{of.first_item, of.first_item + of.items, 0};
  };
  std::vector<Place> stack{enter(rule)};
  while (!stack.empty()) {
    Place& place = stack.back();
    if (place.item == place.end) {
      stack.pop_back();
      continue;
    }
    const GrammarItem& item = grammar.items[place.item];
    if (!item.is_rule) {
      symbols.insert(symbols.end(), item.repeat, item.id);
      ++place.item;
    } else if (place.repeated == item.repeat) {
      ++place.item;
      place.repeated = 0;
    } else {
      ++place.repeated;
      stack.push_back(enter(item.id));
    }
  }
  return symbols;
}

}  // namespace pasta::mine
