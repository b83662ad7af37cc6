#include "mine/periods.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pasta::mine {
namespace {

constexpr std::uint32_t kNever = 0xffff'ffff;

struct Matches {
  std::uint64_t equal = 0;
  std::uint64_t pairs = 0;
  void add(Symbols string, std::uint32_t period) {
    if (period == 0 || string.size() <= period) return;
    const std::size_t count = string.size() - period;
    pairs += count;
    for (std::size_t i = 0; i < count; ++i) equal += string[i] == string[i + period] ? 1 : 0;
  }
  [[nodiscard]] double share() const {
    return pairs == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(pairs);
  }
};

// Counts of distances, of which only those that occur are visited.
struct Histogram {
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> distances;
  void add(std::uint32_t distance) {
    if (counts[distance]++ == 0) distances.push_back(distance);
  }
  void clear() {
    for (const std::uint32_t distance : distances) counts[distance] = 0;
    distances.clear();
  }
};

// The heaviest clusters that share no distance, heaviest first.
void cluster(Histogram& histogram, std::uint64_t windows, const PeriodOptions& options,
             std::uint32_t context, std::vector<PeriodCandidate>& found) {
  auto& distances = histogram.distances;
  std::sort(distances.begin(), distances.end());
  struct Range {
    std::uint64_t weight;
    std::size_t first;
    std::size_t last;
  };
  std::vector<Range> ranges;
  std::uint64_t weight = 0;
  std::size_t first = 0;
  const auto least = options.min_support * static_cast<double>(windows);
  for (std::size_t last = 0; last < distances.size(); ++last) {
    weight += histogram.counts[distances[last]];
    const auto too_wide = [&] {
      const std::uint32_t low = distances[first];
      const auto width = std::max(1.0, std::floor(options.tolerance * low));
      return distances[last] - low > static_cast<std::uint32_t>(width);
    };
    while (too_wide()) weight -= histogram.counts[distances[first++]];
    if (static_cast<double>(weight) >= least) ranges.push_back({weight, first, last});
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range& a, const Range& b) { return a.weight > b.weight; });
  std::vector<Range> taken;
  for (const Range& range : ranges) {
    if (taken.size() >= options.max_candidates) break;
    if (std::any_of(taken.begin(), taken.end(), [&](const Range& other) {
          return range.first <= other.last && other.first <= range.last;
        })) {
      continue;
    }
    taken.push_back(range);
    PeriodCandidate candidate;
    candidate.low = distances[range.first];
    candidate.high = distances[range.last];
    candidate.context = context;
    candidate.support = static_cast<double>(range.weight) / static_cast<double>(windows);
    std::uint32_t most = 0;
    for (std::size_t i = range.first; i <= range.last; ++i) {
      const std::uint32_t count = histogram.counts[distances[i]];
      if (count > most) {
        most = count;
        candidate.period = distances[i];
      }
    }
    found.push_back(candidate);
  }
}

}  // namespace

std::uint32_t smallest_period(Symbols string) {
  const auto size = static_cast<std::uint32_t>(string.size());
  if (size == 0) return 0;
  std::vector<std::uint32_t> border(size, 0);  // of each prefix, its longest proper one
  std::uint32_t length = 0;
  for (std::uint32_t i = 1; i < size; ++i) {
    while (length > 0 && string[i] != string[length]) length = border[length - 1];
    if (string[i] == string[length]) ++length;
    border[i] = length;
  }
  return size - length;
}

double match_share(Symbols string, std::uint32_t period) {
  Matches matches;
  matches.add(string, period);
  return matches.share();
}

std::vector<PeriodCandidate> candidate_periods(const SuffixArray& index,
                                               const PeriodOptions& options) {
  const Text& text = index.text();
  const auto positions = index.positions();
  const auto lcp = index.lcp();
  const std::uint32_t size = index.size();
  LargeVector<std::uint32_t> name(size);       // of the window that begins at a position
  LargeVector<std::uint32_t> last_seen(size);  // by name
  Histogram histogram{std::vector<std::uint32_t>(std::size_t{size} + 1), {}};
  std::vector<PeriodCandidate> found;
  for (std::uint32_t context = 1; context != 0 && context <= options.max_context; context *= 2) {
    std::uint32_t names = 0;
    for (std::uint32_t row = 0; row < size; ++row) {
      if (row > 0 && lcp[row] < context) ++names;
      name[positions[row]] = names;
    }
    std::fill(last_seen.begin(), last_seen.end(), kNever);
    std::uint64_t windows = 0;
    std::uint64_t back = 0;
    for (std::uint32_t lane = 0; lane < text.lanes(); ++lane) {
      const std::uint32_t begin = text.lane_begin(lane);
      const std::uint32_t end = text.lane_end(lane);
      if (end - begin < context) continue;
      windows += end - begin - context + 1;
      for (std::uint32_t at = begin; at + context <= end; ++at) {
        const std::uint32_t before = std::exchange(last_seen[name[at]], at);
        if (before == kNever || before < begin) continue;
        ++back;
        if (at - before >= options.min_period) histogram.add(at - before);
      }
    }
    if (windows == 0) break;
    if (!histogram.distances.empty()) cluster(histogram, windows, options, context, found);
    histogram.clear();
    if (static_cast<double>(back) < options.min_support * static_cast<double>(windows)) break;
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.support > b.support; });
  std::vector<PeriodCandidate> candidates;
  for (PeriodCandidate& candidate : found) {
    if (candidates.size() >= options.max_candidates) break;
    const auto known = [&](const PeriodCandidate& other) {
      return candidate.low <= other.high && other.low <= candidate.high;
    };
    if (std::any_of(candidates.begin(), candidates.end(), known)) continue;
    Matches matches;
    for (std::uint32_t lane = 0; lane < text.lanes(); ++lane) {
      const std::uint32_t begin = text.lane_begin(lane);
      matches.add(text.ranks().subspan(begin, text.lane_end(lane) - begin), candidate.period);
    }
    candidate.matches = matches.share();
    candidates.push_back(candidate);
  }
  return candidates;
}

}  // namespace pasta::mine
