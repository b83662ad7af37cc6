#include "tools/common/cycle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "mine/align.h"

namespace pasta::tools {
namespace {

using Symbols = std::span<const std::uint32_t>;

constexpr std::size_t kWindow = std::size_t{1} << 19;
constexpr std::size_t kGramLengths[] = {1, 2, 4, 8, 16};
constexpr std::size_t kMaxAnchors = 64;
constexpr std::size_t kSamples = 31;  // iterations that are looked at in detail

std::uint64_t mixed(std::uint64_t value) {
  value = (value + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  value ^= value >> 31;
  value *= 0x94d049bb133111ebu;
  return value ^ (value >> 29);
}

// Calls take(position, hash) for every run of `length` symbols.
template <class Take>
void for_each_gram(Symbols symbols, std::size_t length, Take&& take) {
  if (symbols.size() < length) return;
  constexpr std::uint64_t kBase = 0x9ddfea08eb382d69u;
  std::uint64_t leading = 1;  // kBase^length
  for (std::size_t i = 0; i < length; ++i) leading *= kBase;
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    hash = hash * kBase + mixed(symbols[i]);
    if (i >= length) hash -= leading * mixed(symbols[i - length]);
    if (i + 1 >= length) take(i + 1 - length, hash ^ mixed(length));
  }
}

// A run of symbols that comes back at regular distances.
struct Gram {
  std::uint64_t hash;
  std::uint32_t length;
  std::uint32_t count;
  std::uint32_t gap;  // median distance of neighbours
  std::uint32_t first;
  std::uint32_t near;  // distances that are like the median
};

// How much device work some launches are.
class Work {
 public:
  explicit Work(const Launches& launches) {
    if (launches.pieces.empty()) return;
    before_.reserve(launches.pieces.size() + 1);
    before_.push_back(0);
    for (const std::uint32_t pieces : launches.pieces) before_.push_back(before_.back() + pieces);
  }
  // Of launches [from, to).
  [[nodiscard]] std::size_t of(std::size_t from, std::size_t to) const {
    return before_.empty() ? to - from : before_[to] - before_[from];
  }

 private:
  std::vector<std::uint64_t> before_;  // each launch; empty: each is one piece
};

std::vector<Gram> regular_grams(Symbols symbols, const Work& work) {
  std::vector<Gram> grams;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
  std::vector<std::uint32_t> gaps;
  for (const std::size_t length : kGramLengths) {
    all.clear();
    for_each_gram(symbols, length, [&](std::size_t at, std::uint64_t hash) {
      all.emplace_back(hash, static_cast<std::uint32_t>(at));
    });
    std::ranges::sort(all);
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      for (end = begin; end < all.size() && all[end].first == all[begin].first;) ++end;
      if (end - begin < 2) continue;
      gaps.clear();
      for (std::size_t i = begin + 1; i < end; ++i) {
        gaps.push_back(all[i].second - all[i - 1].second);
      }
      const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>((gaps.size() - 1) / 2);
      std::ranges::nth_element(gaps, middle);
      const std::uint32_t gap = *middle;
      if (gap < 2) continue;
      const std::uint32_t slack = gap / 8;
      const auto near = static_cast<std::size_t>(std::ranges::count_if(
          gaps, [&](std::uint32_t one) { return one + slack >= gap && one <= gap + slack; }));
      // What occurs once in most of some equal parts, which together are a good part of all.
      if (near * 20 < gaps.size() * 9) continue;
      const std::size_t last = std::min(std::size_t{all[end - 1].second} + gap, symbols.size());
      if (work.of(all[begin].second, last) < work.of(0, symbols.size()) / 2) continue;
      grams.push_back({all[begin].first, static_cast<std::uint32_t>(length),
                       static_cast<std::uint32_t>(end - begin), gap, all[begin].second,
                       static_cast<std::uint32_t>(near)});
    }
  }
  return grams;
}

// Grams of one distance: candidates for what occurs once in each iteration.
struct Level {
  std::size_t period = 0;
  std::vector<Gram> grams;
};

// The best supported distances, largest first.
std::vector<Level> levels_of(std::vector<Gram> grams) {
  constexpr std::size_t kMost = 24, kSupport = 6;
  std::ranges::sort(grams, {},
                    [](const Gram& one) { return std::tuple(one.gap, one.length, one.first); });
  std::vector<Level> levels;
  while (levels.size() < kMost) {
    std::size_t best = 0, best_begin = 0, most = 0, distances = 0;
    for (std::size_t begin = 0, end = 0; begin < grams.size(); ++begin) {
      for (; end < grams.size() && grams[end].gap * 16u <= grams[begin].gap * 17u + 16u; ++end) {
        distances += grams[end].near;
      }
      if (distances > most && end - begin >= kSupport) {
        most = distances, best = end - begin, best_begin = begin;
      }
      distances -= grams[begin].near;
    }
    if (best == 0) break;
    const auto begin = grams.begin() + static_cast<std::ptrdiff_t>(best_begin);
    const auto end = begin + static_cast<std::ptrdiff_t>(best);
    Level level;
    level.grams.assign(begin, end);
    level.period = level.grams[best / 2].gap;
    grams.erase(begin, end);
    levels.push_back(std::move(level));
  }
  std::ranges::sort(levels, std::ranges::greater{}, &Level::period);
  return levels;
}

// The grams of a level that tell its repetitions apart, spread over the period.
std::vector<Gram> choose_anchors(const Level& level) {
  // Those that are hardly ever missing, and are nowhere else: of about the count that explains
  // most.
  std::map<std::uint32_t, double> weights;  // by count
  for (const Gram& one : level.grams) {
    weights[one.count] += static_cast<double>(one.near) * one.near / one.count;
  }
  std::uint32_t usual = 0;
  double most = 0;
  for (const auto& [count, weight] : weights) {
    double sum = 0;
    for (auto at = weights.lower_bound(count - count / 8); at != weights.upper_bound(count); ++at) {
      sum += at->second;
    }
    if (sum >= most) most = sum, usual = count;
  }
  std::vector<Gram> fit;
  for (const Gram& one : level.grams) {
    if (one.count * 5u >= usual * 4u && one.count * 7u <= usual * 8u + 7u) fit.push_back(one);
  }
  std::ranges::sort(fit, {}, [&](const Gram& one) {
    return std::tuple(one.first % level.period * kMaxAnchors / level.period, one.length, one.first);
  });
  std::vector<Gram> anchors;
  std::size_t slot_before = kMaxAnchors;
  for (const Gram& one : fit) {
    const std::size_t slot = one.first % level.period * kMaxAnchors / level.period;
    if (slot != slot_before) anchors.push_back(one);
    slot_before = slot;
  }
  return anchors;
}

struct Anchor {
  std::vector<std::size_t> positions;
  std::size_t offset = 0;  // behind the reference, usually
};

std::vector<Anchor> find_anchors(Symbols symbols, std::span<const Gram> grams) {
  std::vector<Anchor> anchors(grams.size());
  for (const std::size_t length : kGramLengths) {
    std::unordered_map<std::uint64_t, std::size_t> wanted;
    for (std::size_t i = 0; i < grams.size(); ++i) {
      if (grams[i].length == length) wanted.emplace(grams[i].hash, i);
    }
    if (wanted.empty()) continue;
    for_each_gram(symbols, length, [&](std::size_t at, std::uint64_t hash) {
      const auto found = wanted.find(hash);
      if (found != wanted.end()) anchors[found->second].positions.push_back(at);
    });
  }
  return anchors;
}

constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

// How far b is from a, going round, in [-period / 2, period / 2).
std::int64_t around(std::size_t from, std::size_t to, std::size_t period) {
  const std::size_t ahead = (to % period + period - from % period) % period;
  return ahead * 2 < period ? static_cast<std::int64_t>(ahead)
                            : static_cast<std::int64_t>(ahead) - static_cast<std::int64_t>(period);
}

// Sets the offsets from anchors[reference]; kNowhere where there is no usual one.
void measure_offsets(std::vector<Anchor>& anchors, std::size_t reference, std::size_t period) {
  const std::vector<std::size_t>& base = anchors[reference].positions;
  std::vector<std::size_t> offsets;
  for (Anchor& one : anchors) {
    offsets.clear();
    std::size_t before = 0;
    for (const std::size_t at : one.positions) {
      while (before + 1 < base.size() && base[before + 1] <= at) ++before;
      if (base.empty() || base[before] > at || at - base[before] > period + period / 4) continue;
      offsets.push_back(at - base[before]);
    }
    one.offset = kNowhere;
    if (offsets.empty()) continue;
    const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
    std::ranges::nth_element(offsets, middle);
    const std::size_t usual = *middle;
    const auto near = static_cast<std::size_t>(std::ranges::count_if(offsets, [&](std::size_t at) {
      return std::abs(around(usual, at, period)) * 8 <= static_cast<std::int64_t>(period);
    }));
    if (near * 4 >= offsets.size() * 3) one.offset = usual;
  }
}

// Where the repetitions are: about `period` apart, at the reference where it is there. Every anchor
// has a vote, so that one that is missing or was exchanged costs nothing.
std::vector<std::size_t> vote(const std::vector<Anchor>& anchors, std::size_t reference,
                              std::size_t period, std::size_t size) {
  struct Vote {
    std::int64_t at;
    bool reference;
  };
  std::vector<Vote> votes;
  std::size_t voters = 0;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    if (anchors[i].offset == kNowhere) continue;
    ++voters;
    for (const std::size_t at : anchors[i].positions) {
      votes.push_back({static_cast<std::int64_t>(at) - static_cast<std::int64_t>(anchors[i].offset),
                       i == reference});
    }
  }
  std::ranges::sort(votes, {}, [](const Vote& one) { return std::pair(one.at, !one.reference); });
  const auto slack = static_cast<std::int64_t>(period / 6 + 1);
  std::vector<std::size_t> starts;
  std::size_t for_last = 0;
  for (std::size_t begin = 0, end = 0; begin < votes.size(); begin = end) {
    std::optional<std::int64_t> exact;
    for (end = begin; end < votes.size() && votes[end].at - votes[begin].at <= slack; ++end) {
      if (votes[end].reference && !exact) exact = votes[end].at;
    }
    if ((end - begin) * 5 < voters * 2) continue;
    const auto start = static_cast<std::size_t>(
        std::max(exact.value_or(votes[begin + (end - begin) / 2].at), std::int64_t{0}));
    if (start >= size) continue;
    if (!starts.empty() && start < starts.back() + period / 2) {
      if (end - begin <= for_last) continue;
      starts.pop_back();
    }
    for_last = end - begin;
    starts.push_back(start);
  }
  return starts;
}

using Histogram = std::unordered_map<std::uint32_t, std::size_t>;

Histogram histogram_of(Symbols symbols) {
  Histogram counts;
  for (const std::uint32_t symbol : symbols) ++counts[symbol];
  return counts;
}

// What a part has beyond the typical one, whatever the order.
std::vector<std::uint32_t> surplus(Symbols part, const Histogram& typical) {
  Histogram left = typical;
  std::vector<std::uint32_t> more;
  for (const std::uint32_t symbol : part) {
    const auto found = left.find(symbol);
    if (found == left.end() || found->second == 0) {
      more.push_back(symbol);
    } else {
      --found->second;
    }
  }
  return more;
}

// The shortest front of `part` that `typical` turns into with at most `most` insertions and
// deletions, by furthest-reaching paths (Myers, "An O(ND) difference algorithm and its variations",
// 1986); none when there is no such front.
std::optional<std::size_t> matching_front(Symbols typical, Symbols part, std::size_t most) {
  const auto n = static_cast<std::int64_t>(typical.size());
  const auto m = static_cast<std::int64_t>(part.size());
  const auto limit = static_cast<std::int64_t>(most);
  std::vector<std::int64_t> reached(static_cast<std::size_t>(2 * limit + 3), -1);
  const auto at = [&](std::int64_t diagonal) -> std::int64_t& {
    return reached[static_cast<std::size_t>(diagonal + limit + 1)];
  };
  at(1) = 0;
  for (std::int64_t changes = 0; changes <= limit; ++changes) {
    for (std::int64_t k = -changes; k <= changes; k += 2) {
      std::int64_t x =
          k == -changes || (k != changes && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      std::int64_t y = x - k;
      if (x > n || y > m || y < 0) {
        at(k) = std::min(x, n);
        continue;
      }
      while (x < n && y < m &&
             typical[static_cast<std::size_t>(x)] == part[static_cast<std::size_t>(y)]) {
        ++x, ++y;
      }
      at(k) = x;
      if (x == n) return static_cast<std::size_t>(y);
    }
  }
  return std::nullopt;
}

// A sequence cut into repetitions.
struct Parts {
  std::vector<std::size_t> starts;
  std::vector<std::size_t> ends;  // of what is like the typical one; after it, something else
  std::vector<bool> alike;
  std::vector<std::size_t> differs;  // edits from the typical one, of those that are alike
  std::vector<bool> inserted;        // something else stands inside of it: evaluation, try-outs
  std::size_t typical = 0;
  Histogram vocabulary;  // of the typical one
  std::size_t period = 0;
  std::size_t whole = 0;    // how many are alike
  std::size_t covered = 0;  // device work in these
};

Parts cut(Symbols symbols, const Work& work, std::vector<std::size_t> starts, std::size_t period) {
  Parts parts;
  parts.starts = std::move(starts);
  const std::size_t count = parts.starts.size();
  if (count < 2) return parts;
  // The typical one is what occurs most often; if all differ, one of the usual length.
  std::unordered_map<std::uint64_t, std::size_t> seen;
  std::vector<std::uint64_t> signatures(count);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    std::uint64_t signature = 0;
    for (std::size_t at = parts.starts[i]; at < parts.starts[i + 1]; ++at) {
      signature += mixed(symbols[at]);
    }
    signatures[i] = signature;
    ++seen[signature];
  }
  std::size_t most = 0;
  std::size_t nearest = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::size_t length = parts.starts[i + 1] - parts.starts[i];
    const std::size_t off = length > period ? length - period : period - length;
    if (seen[signatures[i]] > most || (seen[signatures[i]] == most && off < nearest)) {
      most = seen[signatures[i]], nearest = off, parts.typical = i;
    }
  }
  const std::size_t begin = parts.starts[parts.typical];
  parts.period = parts.starts[parts.typical + 1] - begin;
  const Symbols typical = symbols.subspan(begin, parts.period);
  parts.vocabulary = histogram_of(typical);
  parts.ends.resize(count);
  parts.alike.resize(count);
  parts.differs.resize(count);
  parts.inserted.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = i + 1 < count ? parts.starts[i + 1] : symbols.size();
    const Symbols part = symbols.subspan(parts.starts[i], end - parts.starts[i]);
    parts.ends[i] = end;
    if (part.size() > parts.period) {
      const auto front = matching_front(typical, part, parts.period / 10 + 1);
      if (front) parts.ends[i] = parts.starts[i] + *front;
    }
    const std::size_t size = parts.ends[i] - parts.starts[i];
    if (size * 5 < parts.period * 4) continue;
    const std::size_t left = surplus(part.first(size), parts.vocabulary).size();
    const std::size_t missing = parts.period + left - size;
    parts.inserted[i] = size * 4 > parts.period * 5;
    const std::size_t differs = parts.inserted[i] ? missing : std::max(missing, left);
    parts.alike[i] = differs * 5 <= parts.period;
    if (!parts.alike[i]) continue;
    parts.differs[i] = differs;
    ++parts.whole;
    const std::size_t pieces = work.of(parts.starts[i], parts.ends[i]);
    parts.covered += parts.inserted[i] ? pieces / size * (size - left) : pieces;
  }
  return parts;
}

std::size_t best_reference(const std::vector<Anchor>& anchors, std::size_t period) {
  std::size_t best = 0, most = 0;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    std::size_t regular = 0;
    const auto& positions = anchors[i].positions;
    for (std::size_t at = 1; at < positions.size(); ++at) {
      const std::size_t gap = positions[at] - positions[at - 1];
      regular += gap * 8 >= period * 7 && gap * 8 <= period * 9 ? 1 : 0;
    }
    if (regular > most) most = regular, best = i;
  }
  return best;
}

// What speaks for a repetition being the iteration of a program and not a layer of its model.
struct Evidence {
  bool input = false;          // something comes from the host in each
  bool output = false;         // something goes to the host in each
  bool pause = false;          // each has one place where the host waits much longer than elsewhere
  bool wait = false;           // each has a few places where the host waits for the device
  std::vector<double> pauses;  // usual pause before each launch of the typical one, ns
  std::vector<bool> waits;     // whether the host usually waits before it
};

Evidence evidence_of(const Launches& launches, const Parts& parts) {
  Evidence evidence;
  std::size_t with_input = 0, with_output = 0;
  std::vector<std::size_t> samples;
  for (std::size_t i = 0; i < parts.starts.size(); ++i) {
    if (!parts.alike[i]) continue;
    bool in = false, out = false;
    for (std::size_t at = parts.starts[i]; at < parts.ends[i]; ++at) {
      in |= sort_of(launches.symbols[at]) == WorkSort::kToDevice;
      out |= sort_of(launches.symbols[at]) == WorkSort::kToHost;
    }
    with_input += in ? 1 : 0;
    with_output += out ? 1 : 0;
    if (parts.ends[i] - parts.starts[i] == parts.period) samples.push_back(parts.starts[i]);
  }
  evidence.input = with_input * 4 >= parts.whole * 3 && with_input > 0;
  evidence.output = with_output * 4 >= parts.whole * 3 && with_output > 0;
  if (samples.size() > kSamples) {
    samples.erase(samples.begin(), samples.end() - static_cast<std::ptrdiff_t>(kSamples));
  }
  std::vector<std::uint16_t> codes;
  evidence.pauses.assign(parts.period, 0);
  evidence.waits.assign(parts.period, false);
  for (std::size_t offset = 0; offset < parts.period; ++offset) {
    codes.clear();
    for (const std::size_t start : samples) codes.push_back(launches.pauses[start + offset]);
    if (codes.empty()) break;
    const auto middle = codes.begin() + static_cast<std::ptrdiff_t>((codes.size() - 1) / 2);
    std::ranges::nth_element(codes, middle);
    evidence.pauses[offset] = pause_ns(*middle);
    evidence.waits[offset] = (*middle & kHostWaited) != 0;
  }
  std::vector<double> usual = evidence.pauses;
  const auto middle = usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 2);
  std::ranges::nth_element(usual, middle);
  const double longest = std::ranges::max(evidence.pauses);
  evidence.pause = parts.period >= 4 && longest >= 8 * std::max(*middle, 1000.0);
  // A program that waits after every launch says nothing by it.
  const auto waits = static_cast<std::size_t>(std::ranges::count(evidence.waits, true));
  evidence.wait = parts.period >= 4 && waits > 0 && waits * 50 <= parts.period + 49;
  return evidence;
}

bool mostly_known(Symbols symbols, const Parts& parts) {
  const auto known = static_cast<std::size_t>(std::ranges::count_if(
      symbols, [&](std::uint32_t symbol) { return parts.vocabulary.contains(symbol); }));
  return known * 5 >= symbols.size() * 4;
}

// How many launches are too much or missing at a position before the first ones of the typical
// repetition have come; at most two are looked for.
std::optional<std::size_t> off_begin(Symbols symbols, std::size_t at, const Parts& parts) {
  const std::size_t size = std::min<std::size_t>({6, parts.period, symbols.size() - at});
  const Symbols begin = symbols.subspan(parts.starts[parts.typical], size);
  const Symbols part = symbols.subspan(at, std::min(size + 2, symbols.size() - at));
  for (std::size_t changes = 0; changes <= 2; ++changes) {
    if (matching_front(begin, part, changes)) return changes;
  }
  return std::nullopt;
}

// Whether they come at a position but for one that is too much, missing or exchanged.
bool begins_alike(Symbols symbols, std::size_t at, const Parts& parts) {
  if (off_begin(symbols, at, parts).value_or(2) < 2) return true;
  const std::size_t size = std::min<std::size_t>({6, parts.period, symbols.size() - at});
  const Symbols begin = symbols.subspan(parts.starts[parts.typical], size);
  return mine::align(begin, symbols.subspan(at, size), 1).has_value();
}

// Where the first iteration begins of which only the end is certain: where the recording does, or
// after what a program does first.
std::size_t begin_of_first(Symbols symbols, std::size_t first, const Parts& parts) {
  if (begins_alike(symbols, first, parts)) return first;
  const std::size_t end = parts.starts.front();
  std::size_t best = first;
  std::pair least{std::size_t{3}, parts.period / 4};  // changes, difference in length
  for (std::size_t at = first; at < end; ++at) {
    const std::size_t size = end - at;
    const std::size_t off = size > parts.period ? size - parts.period : parts.period - size;
    if (off >= parts.period / 4) continue;
    const auto changes = off_begin(symbols, at, parts);
    if (changes && std::pair(*changes, off) < least) best = at, least = {*changes, off};
  }
  return best;
}

// Whether nearly everything that the typical one does is there.
bool contains_typical(Symbols symbols, const Parts& parts) {
  const Histogram there = histogram_of(symbols);
  const auto found = static_cast<std::size_t>(std::ranges::count_if(
      parts.vocabulary, [&](const auto& one) { return there.contains(one.first); }));
  return found * 5 >= parts.vocabulary.size() * 4;
}

// What the repetitions of an inner level leave unexplained of those of an outer one that are alike,
// as a share.
double unexplained(Symbols symbols, const Parts& inner, const Parts& outer) {
  std::size_t left = 0, all = 0, at = 0;
  for (std::size_t i = 0; i + 1 < inner.starts.size(); ++i) {
    const std::size_t start = inner.starts[i];
    while (at + 1 < outer.starts.size() && outer.starts[at + 1] <= start) ++at;
    if (!outer.alike[at] || start < outer.starts[at] || start >= outer.ends[at]) continue;
    const Symbols part = symbols.subspan(start, inner.starts[i + 1] - start);
    all += part.size();
    if (!inner.alike[i]) {
      left += part.size();
    } else if (inner.inserted[i]) {
      left += inner.differs[i] + surplus(part, inner.vocabulary).size();
    } else {
      left += inner.differs[i] + inner.starts[i + 1] - inner.ends[i];
    }
  }
  return all == 0 ? 1 : static_cast<double>(left) / static_cast<double>(all);
}

// By how much repetitions differ from the typical one even where nothing is wrong with the level.
double usual_noise(const Parts& parts) {
  std::size_t differs = 0, all = 0;
  for (std::size_t i = 0; i < parts.starts.size(); ++i) {
    if (!parts.alike[i] || i == parts.typical) continue;
    differs += parts.differs[i];
    all += parts.period;
  }
  return all == 0 ? 0 : static_cast<double>(differs) / static_cast<double>(all);
}

// Whether a little follows always the same of the repetitions of an inner level in each of an outer
// one, and hardly anything the others: the optimizer that ends every fourth micro-batch. However
// little it is, it is no noise.
bool rest_comes_back(const Parts& inner, const Parts& outer) {
  constexpr std::size_t kLittle = 3;
  const std::size_t places = (outer.period + inner.period / 2) / inner.period;
  if (places < 2 || places > 64) return false;
  std::vector<std::vector<std::size_t>> rests(places);
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < inner.starts.size(); ++i) {
    const std::size_t start = inner.starts[i] + inner.period / 2;
    while (at + 1 < outer.starts.size() && outer.starts[at + 1] <= start) ++at;
    if (!outer.alike[at] || !inner.alike[i] || start < outer.starts[at]) continue;
    const std::size_t place = (start - outer.starts[at]) / inner.period;
    if (place < places) rests[place].push_back(inner.starts[i + 1] - inner.ends[i]);
  }
  const auto part = [](std::vector<std::size_t>& of, std::size_t quarters) {
    const auto which = of.begin() + static_cast<std::ptrdiff_t>((of.size() - 1) * quarters / 4);
    std::ranges::nth_element(of, which);
    return *which;
  };
  std::size_t least = kNowhere, most = 0;  // that most have at most, and at least
  for (std::vector<std::size_t>& of : rests) {
    if (of.size() < 2) continue;
    least = std::min(least, part(of, 3));
    most = std::max(most, part(of, 1));
  }
  return least != kNowhere && most >= least + kLittle;
}

// What stands between the repetitions of an inner level: is it a phase of its own beside
// iterations, or the rest of an iteration of which these are only parts?
bool rest_is_a_phase(Symbols symbols, const Parts& parts) {
  Histogram rest;
  std::size_t size = 0, known = 0, to_host = 0;
  for (std::size_t i = 0; i + 1 < parts.starts.size(); ++i) {
    const std::size_t from = parts.alike[i] && !parts.inserted[i] ? parts.ends[i] : parts.starts[i];
    const Symbols between = symbols.subspan(from, parts.starts[i + 1] - from);
    const std::vector<std::uint32_t> more =
        parts.inserted[i] && parts.alike[i]
            ? surplus(between, parts.vocabulary)
            : std::vector<std::uint32_t>(between.begin(), between.end());
    // A repetition that was missed, so this level is none.
    if (more.size() * 4 >= parts.period * 3 && contains_typical(more, parts)) return false;
    for (const std::uint32_t symbol : more) {
      ++rest[symbol];
      ++size;
      known += parts.vocabulary.contains(symbol) ? 1 : 0;
      to_host += sort_of(symbol) == WorkSort::kToHost ? 1 : 0;
    }
  }
  const std::size_t span = parts.starts.back() - parts.starts.front();
  if (to_host * 2 > size) return true;                // a checkpoint
  if (to_host > 0 && size * 50 <= span) return true;  // a line of a log
  std::size_t shared = 0;
  for (const auto& [symbol, count] : rest) shared += parts.vocabulary.contains(symbol) ? 1 : 0;
  // Evaluation runs much of the same model. An optimizer does not, even if it adds and multiplies
  // by the same kernels.
  return known * 5 >= size * 3 && shared * 10 >= parts.vocabulary.size() * 3;
}

Parts parts_of(Symbols symbols, const Work& work, const Level& level) {
  const std::vector<Gram> grams = choose_anchors(level);
  std::vector<Anchor> anchors = find_anchors(symbols, grams);
  if (anchors.empty()) return {};
  const std::size_t reference = best_reference(anchors, level.period);
  measure_offsets(anchors, reference, level.period);
  return cut(symbols, work, vote(anchors, reference, level.period, symbols.size()), level.period);
}

// Whether they are alike in their order, too: over a small alphabet, parts of chance have the same
// counts.
bool in_order(Symbols symbols, const Parts& parts) {
  const Symbols typical = symbols.subspan(parts.starts[parts.typical], parts.period);
  // What two random strings share in order depends on how many symbols there are.
  const double share = parts.period < 8 ? 0 : parts.vocabulary.size() < 8 ? 0.2 : 0.4;
  const auto most = static_cast<std::uint32_t>(share * static_cast<double>(parts.period));
  // Two random parts would differ by twice this. Of many symbols, the same counts are proof enough:
  // several threads that launch have no common order.
  const double by_chance = 0.28 * std::sqrt(static_cast<double>(parts.vocabulary.size()) *
                                            static_cast<double>(parts.period));
  std::size_t asked = 0, alike = 0;
  for (std::size_t i = 0; i < parts.starts.size() && asked < kSamples; ++i) {
    if (!parts.alike[i] || parts.inserted[i] || i == parts.typical) continue;
    const Symbols part = symbols.subspan(parts.starts[i], parts.ends[i] - parts.starts[i]);
    ++asked;
    const bool counts =
        parts.vocabulary.size() >= 32 && static_cast<double>(parts.differs[i]) <= by_chance;
    alike += counts || mine::align(typical, part, most) ? 1 : 0;
  }
  return asked > 0 && alike * 4 >= asked * 3;
}

bool convincing(Symbols symbols, const Work& work, const Parts& parts) {
  if (parts.whole < 2 || parts.covered * 2 < work.of(0, symbols.size())) return false;
  const std::size_t repeated = (parts.whole - 1) * parts.period;
  return repeated >= 16 && (parts.whole > 2 || parts.period >= 32) && in_order(symbols, parts);
}

// Points for and against; see docs/iterations.md.
int weigh(Symbols symbols, const Parts& parts, const Evidence& evidence) {
  int points = evidence.input ? 3 : evidence.output ? 1 : 0;
  points += evidence.pause || evidence.wait ? 1 : 0;
  points += parts.period >= 200 ? 1 : 0;
  points += parts.whole >= 100 ? 1 : 0;
  points += parts.whole >= 200 ? 1 : 0;
  struct Side {
    std::size_t launches = 0, strange = 0;
  } head, tail;
  const auto add = [&](Side& side, std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; ++at, ++side.launches) {
      side.strange += parts.vocabulary.contains(symbols[at]) ? 0 : 1;
    }
  };
  add(head, 0, parts.starts.front());
  if (!parts.alike.back()) add(tail, parts.starts.back(), parts.ends.back());
  add(tail, parts.ends.back(), symbols.size());
  const std::size_t beside = head.launches + tail.launches, strange = head.strange + tail.strange;
  // Layers stand between the beginning and the end of their model; a loop that was watched for a
  // while begins and ends in itself, and one that a program ends with has only what set it up.
  if (strange * 10 <= beside) ++points;
  if (head.strange > 0 && tail.strange > 0 && strange * 4 > beside) --points;
  return points;
}

// The offset of a position in the cycle by the anchor nearest to it, on the given side.
std::size_t phase_of(std::size_t at, bool before, const std::vector<Anchor>& anchors,
                     std::size_t period) {
  std::size_t nearest = kNowhere, phase = 0;
  for (const Anchor& one : anchors) {
    if (one.offset == kNowhere || one.positions.empty()) continue;
    auto next = std::ranges::lower_bound(one.positions, at);
    if (before ? next == one.positions.begin() : next == one.positions.end()) continue;
    if (before) --next;
    const std::size_t distance = before ? at - *next : *next - at;
    if (distance >= nearest) continue;
    nearest = distance;
    phase = before ? one.offset + distance : one.offset + period - distance % period;
  }
  return phase % period;
}

// Where in the cycle an iteration begins. The two differ where the order of launches varies there.
struct Begin {
  std::size_t ahead;   // seen from what comes before
  std::size_t behind;  // seen from what comes after
  bool recorded;       // it is where the recording began
  bool closed;         // ... and where it ended
};

// Where the recording began and ended if these are the same place in the cycle, else where the host
// stood still, which most loops do for their next input.
Begin choose_begin(const Launches& launches, const Parts& parts, const Evidence& evidence,
                   const std::vector<Anchor>& anchors) {
  const std::size_t period = parts.period;
  const std::size_t from = phase_of(launches.first_seen, false, anchors, period);
  const std::size_t to = phase_of(launches.symbols.size(), true, anchors, period);
  const Symbols lead = launches.symbols.subspan(
      launches.first_seen, std::min(std::max<std::size_t>(period / 40, 1),
                                    launches.symbols.size() - launches.first_seen));
  const bool known = mostly_known(lead, parts);  // else it begins before the loop
  if (known && std::abs(around(from, to, period)) * 50 <= static_cast<std::int64_t>(period)) {
    return {to, from, true, true};
  }
  const double longest = std::max(std::ranges::max(evidence.pauses), 1.0);
  const std::size_t typical = parts.starts[parts.typical];
  const auto is_input = [&](std::size_t offset) {
    return sort_of(launches.symbols[typical + offset % period]) == WorkSort::kToDevice;
  };
  std::size_t best = 0;
  double most = -1;
  for (std::size_t offset = 0; offset < period; ++offset) {
    double score = evidence.pauses[offset] / longest * (evidence.pause ? 1 : 0.3);
    if (evidence.wait && evidence.waits[offset]) score += 1;
    if (is_input(offset) && !is_input(offset + period - 1)) score += 0.5;
    if ((known && offset == from) || offset == to) score += 0.6;
    if (score > most) most = score, best = offset;
  }
  // A pause between two inputs is a pause within the input.
  for (std::size_t back = 0; back < period && is_input(best) && is_input(best + period - 1);
       ++back) {
    best = (best + period - 1) % period;
  }
  return {best, best, known && best == from, false};
}

// Moves the repetitions to where iterations begin.
std::vector<std::size_t> place(const Launches& launches, std::span<const std::size_t> starts,
                               const std::vector<Anchor>& anchors, std::size_t period,
                               const Begin& begin) {
  struct Near {
    std::int64_t distance;  // from the begin to the anchor
    const Anchor* anchor;
  };
  std::vector<Near> before, after;
  for (const Anchor& one : anchors) {
    if (one.offset == kNowhere) continue;
    const std::int64_t behind = around(begin.behind, one.offset, period);
    if (behind >= 0) {
      after.push_back({behind, &one});
    } else {
      before.push_back({around(begin.ahead, one.offset, period), &one});
    }
  }
  std::ranges::sort(before, std::ranges::greater{}, &Near::distance);
  std::ranges::sort(after, {}, &Near::distance);
  // Where the iteration begins by the anchors of one side that are nearest and there.
  constexpr std::size_t kAsked = 4;
  std::vector<std::int64_t> said;
  const auto ask = [&](const std::vector<Near>& side, std::int64_t guess) {
    std::size_t asked = 0;
    for (const Near& one : side) {
      const std::int64_t expected = guess + one.distance;
      const auto& positions = one.anchor->positions;
      const auto right = std::ranges::lower_bound(
          positions, static_cast<std::size_t>(std::max<std::int64_t>(expected, 0)));
      std::optional<std::int64_t> best;
      if (right != positions.end()) best = static_cast<std::int64_t>(*right);
      if (right != positions.begin()) {
        const auto left = static_cast<std::int64_t>(*std::prev(right));
        if (!best || expected - left < *best - expected) best = left;
      }
      if (!best || std::abs(*best - expected) * 8 > static_cast<std::int64_t>(period)) continue;
      said.push_back(*best - one.distance);
      if (++asked == kAsked) return;
    }
  };
  std::vector<std::size_t> placed;
  const auto size = static_cast<std::int64_t>(launches.symbols.size());
  const auto first_seen = static_cast<std::int64_t>(launches.first_seen);
  const auto slack = static_cast<std::int64_t>(period / 40);
  // The front of the first and the back of the last may lie in the recording, too.
  for (std::size_t i = 0; i <= starts.size(); ++i) {
    const std::int64_t guess = i < starts.size()
                                   ? static_cast<std::int64_t>(starts[i] + begin.behind) -
                                         static_cast<std::int64_t>(period)
                                   : static_cast<std::int64_t>(starts[i - 1] + begin.behind);
    said.clear();
    ask(after, guess);
    ask(before, guess);
    if (said.empty()) continue;
    std::ranges::sort(said);
    std::int64_t at = said[said.size() / 2];
    if (begin.recorded && placed.empty() &&
        std::abs(at - first_seen) * 2 <= static_cast<std::int64_t>(period)) {
      at = first_seen;
    } else if (said.front() != said.back()) {
      // Something is missing here, or the order varies: the longest pause near by.
      const std::int64_t from = std::max<std::int64_t>(said[said.size() / 4] - slack, 0);
      const std::int64_t to = std::min(said[said.size() * 3 / 4] + slack, size - 1);
      for (std::int64_t k = from; k <= to; ++k) {
        const auto pause = [&](std::int64_t which) {
          return which < 0 || which >= size ? std::uint16_t{0}
                                            : launches.pauses[static_cast<std::size_t>(which)];
        };
        if (pause(k) > pause(at)) at = k;
      }
    }
    if (at < 0 || at >= size) continue;
    if (begin.closed && (size - at) * 16 <= static_cast<std::int64_t>(period)) continue;
    const auto start = static_cast<std::size_t>(at);
    if (placed.empty() || start >= placed.back() + period / 2) placed.push_back(start);
  }
  return placed;
}

}  // namespace

std::uint16_t pause_code(std::int64_t ns) {
  return ns <= 0
             ? std::uint16_t{0}
             : static_cast<std::uint16_t>(std::lround(8 * std::log2(1 + static_cast<double>(ns))));
}

double pause_ns(std::uint16_t code) { return std::exp2((code & ~kHostWaited) / 8.0) - 1; }

Cycle find_cycle(const Launches& launches) {
  Cycle cycle;
  const std::size_t size = launches.symbols.size();
  if (size < 24) {
    cycle.abstained = "too few launches to tell a repetition from chance";
    return cycle;
  }
  const std::size_t window = std::min(size, kWindow);
  const std::size_t from = (size - window) / 2;
  const Launches seen{
      launches.symbols.subspan(from, window), launches.pauses.subspan(from, window),
      launches.first_seen > from ? launches.first_seen - from : 0,
      launches.pieces.empty() ? launches.pieces : launches.pieces.subspan(from, window)};
  const Work work_seen(seen);
  const std::vector<Level> levels = levels_of(regular_grams(seen.symbols, work_seen));
  const Level* level = nullptr;
  Parts parts;
  for (const Level& one : levels) {
    if (level != nullptr && one.period * 3 > parts.period * 2) continue;
    Parts inner = parts_of(seen.symbols, work_seen, one);
    if (level == nullptr) {
      if (!convincing(seen.symbols, work_seen, inner)) continue;
    } else {
      if (inner.whole < 2 * parts.whole || inner.covered * 10 < parts.covered * 4) continue;
      const Evidence evidence = evidence_of(seen, inner);
      if (!evidence.input && !evidence.output && !evidence.pause && !evidence.wait) continue;
      // Longer parts differ less by chance, since what is too much in one place lacks in another.
      const double noise = usual_noise(parts) * (inner.whole >= 6 * parts.whole ? 4 : 2.5);
      const bool as_good = unexplained(seen.symbols, inner, parts) <= noise + 0.005 &&
                           !rest_comes_back(inner, parts);
      if (!as_good && !rest_is_a_phase(seen.symbols, inner)) continue;
    }
    level = &one;
    parts = std::move(inner);
  }
  if (level == nullptr) {
    cycle.abstained = levels.empty() ? "nothing in the device work comes back at regular distances"
                                     : "no repetition covers most of the device work";
    return cycle;
  }
  Evidence evidence = evidence_of(seen, parts);
  const int points = weigh(seen.symbols, parts, evidence);
  if (points < 2) {
    cycle.abstained =
        "what repeats may as well be the layers of one pass: nothing comes from or goes to the "
        "host "
        "in each repetition, and the host never pauses between two";
    return cycle;
  }
  // The whole sequence, with the repetitions cut where iterations begin.
  std::vector<Anchor> anchors = find_anchors(launches.symbols, choose_anchors(*level));
  std::size_t reference = best_reference(anchors, level->period);
  measure_offsets(anchors, reference, level->period);
  const Work work(launches);
  parts = cut(launches.symbols, work, vote(anchors, reference, level->period, size), level->period);
  evidence = evidence_of(launches, parts);
  const Begin begin = choose_begin(launches, parts, evidence, anchors);
  parts = cut(launches.symbols, work, place(launches, parts.starts, anchors, parts.period, begin),
              level->period);
  std::size_t clean = 0;
  for (std::size_t i = 0; i < parts.starts.size(); ++i) {
    clean += parts.alike[i] && !parts.inserted[i] ? 1 : 0;
  }
  if (clean < 2 || clean * 2 < parts.starts.size() || parts.covered * 5 < work.of(0, size) * 2) {
    cycle.abstained = "no repetition covers most of the device work";
    return cycle;
  }
  // What comes before: an iteration that does more than the others, the rest of one that was
  // launched before the recording, or something else.
  std::size_t& front = parts.starts.front();
  const std::size_t first = std::min(launches.first_seen, front);
  if (first > 0) {
    cycle.starts.push_back(0);
    cycle.partial_first = true;
  }
  if (parts.starts[1] - first < parts.period * 9 / 5 &&
      begins_alike(launches.symbols, first, parts)) {
    front = first;  // one iteration, which does more than others near its begin
  }
  const std::size_t ahead = front - first;
  const Symbols lead = launches.symbols.subspan(first, ahead);
  // One that does all of the typical one's work and more is an iteration, whatever the rest is; the
  // first one tries kernels out.
  if (ahead * 2 >= parts.period && (mostly_known(lead, parts) || contains_typical(lead, parts))) {
    cycle.starts.push_back(begin_of_first(launches.symbols, first, parts));
  } else if (first == 0 && ahead > 0 && mostly_known(lead, parts)) {
    cycle.partial_first = true;
    cycle.starts.push_back(0);
  }
  for (std::size_t i = 0; i < parts.starts.size(); ++i) {
    cycle.starts.push_back(parts.starts[i]);
    cycle.end = i + 1 < parts.starts.size() ? parts.starts[i + 1] : size;
    // A rest of some length is something else: evaluation, a checkpoint.
    const Symbols rest = launches.symbols.subspan(parts.ends[i], cycle.end - parts.ends[i]);
    const bool saves = std::ranges::count(rest, WorkSort::kToHost, sort_of) * 2 >
                       static_cast<std::ptrdiff_t>(rest.size());
    const bool known = mostly_known(rest, parts);
    if (!parts.alike[i] || rest.size() * (saves ? 20 : known ? 4 : 2) <= parts.period) continue;
    if (i == 0 && !saves && !known) continue;  // the first one tried kernels out
    cycle.starts.push_back(parts.ends[i]);
  }
  const std::size_t last = cycle.end - cycle.starts.back();
  if (cycle.starts.back() == parts.starts.back() && parts.alike.back()) {
    cycle.end = parts.ends.back();
  } else if (last < parts.period && mostly_known(launches.symbols.last(last), parts)) {
    cycle.partial_last = true;
  }
  cycle.period = parts.period;
  cycle.whole = parts.whole;
  cycle.coverage = static_cast<double>(parts.covered) / static_cast<double>(work.of(0, size));
  cycle.confidence = std::min(1.0, 0.4 + 0.1 * points) * std::min(1.0, cycle.coverage + 0.1);
  return cycle;
}

}  // namespace pasta::tools
