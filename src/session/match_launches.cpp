#include "session/match_launches.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "mine/align.h"

namespace pasta::session {
namespace {

constexpr std::uint32_t kMostEdits = 1024;
// Beyond it, launches that were left out are not put in between: their numbers may be damaged.
constexpr std::uint64_t kMostLaunches = std::uint64_t{1} << 28;
constexpr std::uint32_t kAny = 0;

using Symbols = std::vector<std::uint32_t>;
using Matches = std::vector<std::size_t>;

class Alphabet {
 public:
  explicit Alphabet(std::span<const LaunchKey> all) {
    for (const LaunchKey& key : all) {
      if (key.grid[0] == 0) no_grid_.insert(key.kernel);
    }
  }
  std::uint32_t symbol(const LaunchKey& key) {
    std::array<std::uint32_t, 3> grid = {key.grid[0], key.grid[1], key.grid[2]};
    if (no_grid_.contains(key.kernel)) grid = {};
    return known_.try_emplace({key.kernel, grid}, static_cast<std::uint32_t>(known_.size()) + 1)
        .first->second;
  }

 private:
  std::set<std::string_view> no_grid_;
  std::map<std::pair<std::string_view, std::array<std::uint32_t, 3>>, std::uint32_t> known_;
};

struct Aligned {
  Matches matches;
  std::vector<bool> used;  // of all
  std::size_t count = 0;
};

// `places`: of each of `some`, where it stands in `to`.
std::optional<Aligned> align_at(const Symbols& all, const Symbols& to,
                                const std::vector<std::size_t>& places) {
  const auto alignment = mine::align(all, to, kMostEdits, kAny);
  if (!alignment) return std::nullopt;
  Aligned aligned{Matches(places.size(), kNoMatch), std::vector<bool>(all.size()), 0};
  std::size_t in_all = 0, in_to = 0, next = 0;
  for (const mine::EditStep& step : alignment->steps) {
    for (std::uint32_t i = 0; i < step.count; ++i) {
      if (step.edit == mine::Edit::kMatch) {
        aligned.used[in_all] = true;
        if (next < places.size() && places[next] == in_to) {
          aligned.matches[next] = in_all;
          ++aligned.count;
        }
      }
      if (step.edit != mine::Edit::kInsert) ++in_all;
      if (step.edit == mine::Edit::kDelete) continue;
      if (next < places.size() && places[next] == in_to) ++next;
      ++in_to;
    }
  }
  return aligned;
}

void match_what_is_left(const Symbols& all, const Symbols& some, Aligned& aligned) {
  struct Left {
    std::vector<std::size_t> all, some;
  };
  std::map<std::uint32_t, Left> left;
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (aligned.matches[i] == kNoMatch) left[some[i]].some.push_back(i);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (aligned.used[i]) continue;
    if (const auto known = left.find(all[i]); known != left.end()) known->second.all.push_back(i);
  }
  for (const auto& [symbol, of] : left) {
    if (of.all.size() != of.some.size()) continue;
    for (std::size_t i = 0; i < of.some.size(); ++i) aligned.matches[of.some[i]] = of.all[i];
  }
}

// With numbers that count from `before`.
Aligned match(const Symbols& all, const Symbols& some, std::span<const NumberedLaunch> launches,
              std::uint64_t before) {
  std::vector<std::size_t> places(some.size());
  std::optional<Aligned> best;
  // As if all of `all` had been launched in the other run, and only some told.
  const std::uint64_t last = launches.empty() ? 0 : launches.back().number - before;
  if (last <= kMostLaunches) {
    Symbols spread(std::max<std::size_t>(last, all.size()), kAny);
    for (std::size_t i = 0; i < some.size(); ++i) {
      places[i] = launches[i].number - before - 1;
      spread[places[i]] = some[i];
    }
    best = align_at(all, spread, places);
  }
  // As if nothing had been left out in between: both runs tell of the same part of them.
  if (!best || best->count < some.size()) {
    for (std::size_t i = 0; i < some.size(); ++i) places[i] = i;
    auto other = align_at(all, some, places);
    if (other && (!best || other->count > best->count)) best = std::move(other);
  }
  if (!best) best = {Matches(some.size(), kNoMatch), std::vector<bool>(all.size()), 0};
  match_what_is_left(all, some, *best);
  return std::move(*best);
}

// By iteration, where all of both say which.
template <class Launches, class KeyOf>
std::optional<std::map<std::uint64_t, std::vector<std::size_t>>> by_iteration(
    const Launches& launches, const KeyOf& key_of) {
  std::map<std::uint64_t, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const auto& iteration = key_of(launches[i]).iteration;
    if (!iteration) return std::nullopt;
    found[*iteration].push_back(i);
  }
  return found;
}

Symbols symbols_at(const Symbols& symbols, const std::vector<std::size_t>& indices) {
  Symbols found;
  for (const std::size_t index : indices) found.push_back(symbols[index]);
  return found;
}

}  // namespace

std::vector<std::size_t> match_launches(std::span<const LaunchKey> all,
                                        std::span<const NumberedLaunch> some) {
  Alphabet alphabet(all);
  Symbols of_all, of_some;
  for (const LaunchKey& key : all) of_all.push_back(alphabet.symbol(key));
  for (const NumberedLaunch& launch : some) of_some.push_back(alphabet.symbol(launch.key));
  const auto iterations = by_iteration(
      all, [](const LaunchKey& key) -> auto& { return key; });
  const auto wanted = by_iteration(
      some, [](const NumberedLaunch& launch) -> auto& { return launch.key; });
  if (!iterations || !wanted || iterations->size() <= 1) {
    return match(of_all, of_some, some, 0).matches;
  }
  Matches matches(some.size(), kNoMatch);
  for (const auto& [iteration, indices] : *wanted) {
    const auto known = iterations->find(iteration);
    if (known == iterations->end()) continue;
    std::vector<NumberedLaunch> launches;
    for (const std::size_t index : indices) launches.push_back(some[index]);
    // As if the first that is analysed began the iteration: nobody may have counted before it.
    const auto aligned = match(symbols_at(of_all, known->second), symbols_at(of_some, indices),
                               launches, launches.front().number - 1);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (aligned.matches[i] != kNoMatch) matches[indices[i]] = known->second[aligned.matches[i]];
    }
  }
  return matches;
}

}  // namespace pasta::session
