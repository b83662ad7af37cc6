#include "tools/common/cycle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

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
};

std::vector<Gram> regular_grams(Symbols symbols) {
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
      if (std::size_t{all[end - 1].second - all[begin].second} + gap < symbols.size() / 2) continue;
      grams.push_back({all[begin].first, static_cast<std::uint32_t>(length),
                       static_cast<std::uint32_t>(end - begin), gap, all[begin].second});
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
    std::size_t best = 0, best_begin = 0;
    for (std::size_t begin = 0, end = 0; begin < grams.size(); ++begin) {
      while (end < grams.size() && grams[end].gap * 16u <= grams[begin].gap * 17u + 16u) ++end;
      if (end - begin > best) best = end - begin, best_begin = begin;
      while (begin + 1 < grams.size() && grams[begin + 1].gap == grams[begin].gap) ++begin;
    }
    if (best < kSupport) break;
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
  std::unordered_map<std::uint32_t, std::size_t> counts;
  for (const Gram& one : level.grams) ++counts[one.count];
  std::uint32_t usual = 0;
  std::size_t most = 0;
  for (const auto& [count, grams] : counts) {
    if (grams > most || (grams == most && count > usual)) most = grams, usual = count;
  }
  std::vector<Gram> fit;
  for (const Gram& one : level.grams) {
    if (one.count * 5u >= usual * 4u && one.count * 4u <= usual * 5u + 4u) fit.push_back(one);
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

// Sets the offsets from anchors[reference].
void measure_offsets(std::vector<Anchor>& anchors, std::size_t reference, std::size_t period) {
  const std::vector<std::size_t>& base = anchors[reference].positions;
  for (Anchor& one : anchors) {
    std::vector<std::size_t> offsets;
    std::size_t before = 0;
    for (const std::size_t at : one.positions) {
      while (before + 1 < base.size() && base[before + 1] <= at) ++before;
      if (base.empty() || base[before] > at || at - base[before] > period + period / 4) continue;
      offsets.push_back(at - base[before]);
    }
    if (offsets.empty()) {
      one.offset = std::numeric_limits<std::size_t>::max();
      continue;
    }
    const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
    std::ranges::nth_element(offsets, middle);
    one.offset = *middle;
  }
}

// Where the repetitions begin, `shift` symbols behind the reference. Every anchor has a vote, so
// that one that is missing or was exchanged costs nothing.
std::vector<std::size_t> vote(const std::vector<Anchor>& anchors, std::size_t reference,
                              std::size_t period, std::size_t shift, std::size_t size) {
  struct Vote {
    std::int64_t at;
    bool reference;
  };
  std::vector<Vote> votes;
  std::size_t voters = 0;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    if (anchors[i].offset == std::numeric_limits<std::size_t>::max()) continue;
    ++voters;
    for (const std::size_t at : anchors[i].positions) {
      votes.push_back(
          {static_cast<std::int64_t>(at + shift) - static_cast<std::int64_t>(anchors[i].offset),
           i == reference});
    }
  }
  std::ranges::sort(votes, {}, [](const Vote& one) { return std::pair(one.at, !one.reference); });
  const auto slack = static_cast<std::int64_t>(period / 6 + 1);
  std::vector<std::size_t> starts;
  for (std::size_t begin = 0, end = 0; begin < votes.size(); begin = end) {
    std::optional<std::int64_t> exact;
    for (end = begin; end < votes.size() && votes[end].at - votes[begin].at <= slack; ++end) {
      if (votes[end].reference && !exact) exact = votes[end].at;
    }
    if ((end - begin) * 6 < voters) continue;
    const std::int64_t at = std::clamp(exact.value_or(votes[begin + (end - begin) / 2].at),
                                       std::int64_t{0}, static_cast<std::int64_t>(size));
    const auto start = static_cast<std::size_t>(at);
    if (start >= size || (!starts.empty() && start < starts.back() + period / 2)) continue;
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

// Symbols of a part that are left out of, added to or exchanged in the typical one, whatever their
// order.
std::size_t edits(Symbols part, const Histogram& typical, std::size_t typical_size) {
  Histogram left = typical;
  std::size_t added = 0;
  for (const std::uint32_t symbol : part) {
    const auto found = left.find(symbol);
    if (found == left.end() || found->second == 0) {
      ++added;
    } else {
      --found->second;
    }
  }
  const std::size_t missing = typical_size + added - part.size();
  return std::max(added, missing);
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
  std::size_t typical = 0;
  Histogram vocabulary;  // of the typical one
  std::size_t period = 0;
  std::size_t whole = 0;    // how many are alike
  std::size_t covered = 0;  // symbols in these
};

Parts cut(Symbols symbols, std::vector<std::size_t> starts, std::size_t period) {
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
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = i + 1 < count ? parts.starts[i + 1] : symbols.size();
    const Symbols part = symbols.subspan(parts.starts[i], end - parts.starts[i]);
    parts.ends[i] = end;
    if (part.size() > parts.period) {
      const auto front = matching_front(typical, part, parts.period / 10 + 1);
      if (front) parts.ends[i] = parts.starts[i] + *front;
    }
    const std::size_t size = parts.ends[i] - parts.starts[i];
    if (size * 4 > parts.period * 5 || size * 5 < parts.period * 4) continue;
    parts.alike[i] =
        edits(symbols.subspan(parts.starts[i], size), parts.vocabulary, parts.period) * 5 <=
        parts.period;
    if (!parts.alike[i]) continue;
    ++parts.whole;
    parts.covered += size;
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
  std::vector<double> pauses;  // usual pause before each launch of the typical one, ns
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
  std::vector<double> usual;
  evidence.pauses.assign(parts.period, 0);
  for (std::size_t offset = 0; offset < parts.period; ++offset) {
    codes.clear();
    for (const std::size_t start : samples) codes.push_back(launches.pauses[start + offset]);
    if (codes.empty()) break;
    const auto middle = codes.begin() + static_cast<std::ptrdiff_t>((codes.size() - 1) / 2);
    std::ranges::nth_element(codes, middle);
    evidence.pauses[offset] = pause_ns(*middle);
  }
  usual = evidence.pauses;
  const auto middle = usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 2);
  std::ranges::nth_element(usual, middle);
  const double longest = std::ranges::max(evidence.pauses);
  evidence.pause = parts.period >= 4 && longest >= 8 * std::max(*middle, 1000.0);
  return evidence;
}

// What stands between the repetitions of an inner level: is it a phase of its own beside
// iterations, or the rest of an iteration of which these are only parts?
bool rest_is_a_phase(Symbols symbols, const Parts& parts) {
  Histogram rest;
  std::size_t size = 0, known = 0, to_host = 0;
  for (std::size_t i = 0; i + 1 < parts.starts.size(); ++i) {
    const std::size_t from = parts.alike[i] ? parts.ends[i] : parts.starts[i];
    for (std::size_t at = from; at < parts.starts[i + 1]; ++at) {
      ++rest[symbols[at]];
      ++size;
      known += parts.vocabulary.contains(symbols[at]) ? 1 : 0;
      to_host += sort_of(symbols[at]) == WorkSort::kToHost ? 1 : 0;
    }
  }
  const std::size_t span = parts.starts.back() - parts.starts.front();
  if (size * 200 <= span) return true;                // next to nothing
  if (to_host * 2 > size) return true;                // a checkpoint
  if (to_host > 0 && size * 50 <= span) return true;  // a line of a log
  std::size_t shared = 0;
  for (const auto& [symbol, count] : rest) shared += parts.vocabulary.contains(symbol) ? 1 : 0;
  // Evaluation runs much of the same model. An optimizer does not, even if it adds and multiplies
  // by the same kernels.
  return known * 5 >= size * 3 && shared * 10 >= parts.vocabulary.size() * 3;
}

bool mostly_known(Symbols symbols, const Parts& parts) {
  const auto known = static_cast<std::size_t>(std::ranges::count_if(
      symbols, [&](std::uint32_t symbol) { return parts.vocabulary.contains(symbol); }));
  return known * 5 >= symbols.size() * 4;
}

Parts parts_of(Symbols symbols, const Level& level) {
  const std::vector<Gram> grams = choose_anchors(level);
  std::vector<Anchor> anchors = find_anchors(symbols, grams);
  if (anchors.empty()) return {};
  const std::size_t reference = best_reference(anchors, level.period);
  measure_offsets(anchors, reference, level.period);
  return cut(symbols, vote(anchors, reference, level.period, 0, symbols.size()), level.period);
}

bool convincing(const Parts& parts, std::size_t size) {
  if (parts.whole < 2 || parts.covered * 10 < size * 6) return false;
  const std::size_t repeated = (parts.whole - 1) * parts.period;
  return repeated >= 16 && (parts.whole > 2 || parts.period >= 32);
}

// Points for and against; see docs/iterations.md.
int weigh(Symbols symbols, const Parts& parts, const Evidence& evidence) {
  int points = evidence.input ? 2 : evidence.output ? 1 : 0;
  points += evidence.pause ? 1 : 0;
  points += parts.period >= 200 ? 1 : 0;
  points += parts.whole >= 100 ? 1 : 0;
  points += parts.whole >= 200 ? 1 : 0;
  std::size_t head = 0, tail = 0, strange = 0;
  for (std::size_t at = 0; at < parts.starts.front(); ++at, ++head) {
    strange += parts.vocabulary.contains(symbols[at]) ? 0 : 1;
  }
  for (std::size_t at = parts.ends.back(); at < symbols.size(); ++at, ++tail) {
    strange += parts.vocabulary.contains(symbols[at]) ? 0 : 1;
  }
  if (!parts.alike.back()) {
    for (std::size_t at = parts.starts.back(); at < parts.ends.back(); ++at, ++tail) {
      strange += parts.vocabulary.contains(symbols[at]) ? 0 : 1;
    }
  }
  // Layers stand between the beginning and the end of their model; a loop that was watched for a
  // while begins and ends in itself.
  if (strange * 10 <= head + tail) ++points;
  if (head > 0 && tail > 0 && strange * 4 > head + tail) --points;
  return points;
}

// The offset in the typical iteration at which it begins: where the recording began and ended if
// that fits, and where the host stood still, which most loops do for their next input.
std::size_t choose_begin(const Launches& launches, const Parts& parts, const Evidence& evidence) {
  const std::size_t period = parts.period;
  const std::size_t size = launches.symbols.size();
  const auto phase = [&](std::size_t at) {
    const std::size_t first = parts.starts.front();
    return at >= first ? (at - first) % period : (period - (first - at) % period) % period;
  };
  const std::size_t recorded_from = phase(launches.first_seen);
  const std::size_t recorded_to = (size - parts.starts.back()) % period;
  const double longest = std::max(std::ranges::max(evidence.pauses), 1.0);
  const auto near = [&](std::size_t a, std::size_t b) {
    const std::size_t apart = a > b ? a - b : b - a;
    return std::min(apart, period - apart) * 50 <= period;
  };
  const bool both = near(recorded_from, recorded_to);
  const std::size_t typical = parts.starts[parts.typical];
  const auto sort_at = [&](std::size_t offset) {
    return sort_of(launches.symbols[typical + offset % period]);
  };
  std::size_t best = 0;
  double most = -1;
  for (std::size_t offset = 0; offset < period; ++offset) {
    const bool input = sort_at(offset) == WorkSort::kToDevice &&
                       sort_at(offset + period - 1) != WorkSort::kToDevice;
    double score = evidence.pauses[offset] / longest + (input ? 0.5 : 0);
    if (offset == recorded_from) score += both ? 2 : 0.6;
    if (offset == recorded_to) score += both ? 0.5 : 0.6;
    if (score > most) most = score, best = offset;
  }
  // A pause between two inputs is a pause within the input.
  for (std::size_t back = 0; back < period && sort_at(best) == WorkSort::kToDevice &&
                             sort_at(best + period - 1) == WorkSort::kToDevice;
       ++back) {
    best = (best + period - 1) % period;
  }
  return best;
}

}  // namespace

std::uint16_t pause_code(std::int64_t ns) {
  return ns <= 0
             ? std::uint16_t{0}
             : static_cast<std::uint16_t>(std::lround(8 * std::log2(1 + static_cast<double>(ns))));
}

double pause_ns(std::uint16_t code) { return std::exp2(code / 8.0) - 1; }

Cycle find_cycle(const Launches& launches) {
  Cycle cycle;
  const std::size_t size = launches.symbols.size();
  if (size < 24) {
    cycle.abstained = "too little device work to tell a repetition from chance";
    return cycle;
  }
  const std::size_t window = std::min(size, kWindow);
  const std::size_t from = (size - window) / 2;
  const Launches seen{launches.symbols.subspan(from, window), launches.pauses.subspan(from, window),
                      launches.first_seen > from ? launches.first_seen - from : 0};
  const std::vector<Level> levels = levels_of(regular_grams(seen.symbols));
  const Level* level = nullptr;
  Parts parts;
  for (const Level& one : levels) {
    if (level != nullptr && one.period * 3 > parts.period * 2) continue;
    Parts inner = parts_of(seen.symbols, one);
    if (level == nullptr) {
      if (!convincing(inner, window)) continue;
    } else {
      if (inner.whole < 2 * parts.whole || inner.covered * 10 < parts.covered * 4) continue;
      const Evidence evidence = evidence_of(seen, inner);
      if (!evidence.input && !evidence.output && !evidence.pause) continue;
      if (!rest_is_a_phase(seen.symbols, inner)) continue;
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
  parts = cut(launches.symbols, vote(anchors, reference, level->period, 0, size), level->period);
  evidence = evidence_of(launches, parts);
  const std::size_t begin = choose_begin(launches, parts, evidence);
  for (std::size_t i = 0; i < anchors.size(); ++i) {  // the last anchor that is not behind it
    if (anchors[i].offset <= begin && anchors[i].offset > anchors[reference].offset) reference = i;
  }
  const std::size_t shift = begin - anchors[reference].offset;
  measure_offsets(anchors, reference, level->period);
  parts =
      cut(launches.symbols, vote(anchors, reference, level->period, shift, size), level->period);
  if (parts.starts.size() < 2) {
    cycle.abstained = "no repetition covers most of the device work";
    return cycle;
  }
  // What comes before: an iteration that does more than the others, the rest of one that was
  // launched before the recording, or something else.
  const std::size_t front = parts.starts.front();
  const std::size_t first = std::min(launches.first_seen, front);
  if (first > 0 && first < parts.period && mostly_known(launches.symbols.first(first), parts)) {
    cycle.starts.push_back(0);
    cycle.partial_first = true;
  }
  const std::size_t ahead = front - first;
  if (ahead > 0 && mostly_known(launches.symbols.subspan(first, ahead), parts)) {
    if (cycle.starts.empty() && ahead * 2 < parts.period) cycle.partial_first = true;
    if (!cycle.partial_first || ahead * 2 >= parts.period) cycle.starts.push_back(first);
  }
  for (std::size_t i = 0; i < parts.starts.size(); ++i) {
    cycle.starts.push_back(parts.starts[i]);
    cycle.end = i + 1 < parts.starts.size() ? parts.starts[i + 1] : size;
    if (!parts.alike[i] || (cycle.end - parts.ends[i]) * 10 <= parts.period) continue;
    // A rest of some length is something else: evaluation, a checkpoint.
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
  cycle.coverage = static_cast<double>(parts.covered) / static_cast<double>(size);
  cycle.confidence = std::min(1.0, 0.4 + 0.12 * points) * std::min(1.0, cycle.coverage + 0.1);
  return cycle;
}

}  // namespace pasta::tools
