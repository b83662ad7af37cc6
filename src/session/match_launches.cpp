#include "session/match_launches.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "mine/align.h"

namespace pasta::session {
namespace {

constexpr std::uint32_t kMostEdits = 1024;
// Beyond it, launches that were left out are not put in between: their numbers may be damaged.
constexpr std::uint64_t kMostLaunches = std::uint64_t{1} << 24;
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
  std::set<std::uint32_t> no_grid_;
  std::map<std::pair<std::uint32_t, std::array<std::uint32_t, 3>>, std::uint32_t> known_;
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

// Of `some`, `numbers` say where they stand among all of their run, from 1.
Aligned align_by_numbers(const Symbols& all, const Symbols& some,
                         const std::vector<std::uint64_t>& numbers) {
  std::vector<std::size_t> places(some.size());
  std::optional<Aligned> best;
  // As if all of `all` had been launched in the other run, and only some told.
  const std::uint64_t last = numbers.empty() ? 0 : numbers.back();
  const bool sound = numbers.empty() || (numbers.front() > 0 && std::ranges::is_sorted(numbers));
  if (sound && last <= kMostLaunches) {
    Symbols spread(std::max<std::size_t>(last, all.size()), kAny);
    for (std::size_t i = 0; i < some.size(); ++i) {
      places[i] = numbers[i] - 1;
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
  return std::move(*best);
}

using Indices = std::vector<std::size_t>;

// What is looked for in what. Indices of all, and of some.
struct Group {
  Indices all, some;
};

class Matcher {
 public:
  Matcher(std::span<const LaunchKey> all, std::span<const NumberedLaunch> some)
      : all_(all), some_(some), matches_(some.size(), kNoMatch) {
    Alphabet alphabet(all);
    for (const LaunchKey& key : all) of_all_.push_back(alphabet.symbol(key));
    for (const NumberedLaunch& launch : some) of_some_.push_back(alphabet.symbol(launch.key));
  }

  Matches match() {
    Group whole{Indices(all_.size()), Indices(some_.size())};
    std::iota(whole.all.begin(), whole.all.end(), std::size_t{0});
    std::iota(whole.some.begin(), whole.some.end(), std::size_t{0});
    const auto iterations = by(
        whole, [](const LaunchKey& key) { return key.iteration; }, LaunchKey::kNoIteration);
    if (!iterations) {
      match(whole, false);
      return std::move(matches_);
    }
    // As if the first that is analysed began the iteration: nobody may have counted before it.
    for (const auto& [iteration, group] : *iterations) match(group, true);
    return std::move(matches_);
  }

 private:
  using Groups = std::map<std::uint32_t, Group>;

  // None where not all say to which they belong, or all of `all` are of one.
  template <class NumberOf>
  std::optional<Groups> by(const Group& group, NumberOf number_of, std::uint32_t unknown) const {
    Groups groups;
    for (const std::size_t i : group.all) {
      const std::uint32_t number = number_of(all_[i]);
      if (number == unknown) return std::nullopt;
      groups[number].all.push_back(i);
    }
    if (groups.size() <= 1) return std::nullopt;
    for (const std::size_t i : group.some) {
      const std::uint32_t number = number_of(some_[i].key);
      if (number == unknown) return std::nullopt;
      groups[number].some.push_back(i);
    }
    return groups;
  }

  template <class NumberOf>
  Aligned align(const Group& group, NumberOf number_of, bool from_first) const {
    std::vector<std::uint64_t> numbers;
    std::uint64_t before = 0;
    for (const std::size_t i : group.some) {
      if (from_first && numbers.empty()) before = number_of(some_[i]) - 1;
      numbers.push_back(number_of(some_[i]) - before);
    }
    return align_by_numbers(symbols(of_all_, group.all), symbols(of_some_, group.some), numbers);
  }

  // Those of each stream with those of the same. Matches are indices in the group.
  std::optional<Aligned> align_streams(const Group& group, bool from_first) const {
    const auto streams = by(
        group, [](const LaunchKey& key) { return key.stream; }, 0);
    if (!streams) return std::nullopt;
    Aligned whole{Matches(group.some.size(), kNoMatch), std::vector<bool>(group.all.size()), 0};
    for (const auto& [stream, part] : *streams) {
      const Aligned aligned = align(
          part, [](const NumberedLaunch& launch) { return launch.in_stream; }, from_first);
      for (std::size_t i = 0; i < part.some.size(); ++i) {
        if (aligned.matches[i] == kNoMatch) continue;
        const std::size_t at = place_in(group.all, part.all[aligned.matches[i]]);
        whole.matches[place_in(group.some, part.some[i])] = at;
        whole.used[at] = true;
      }
      // Whatever stands for one that was left out is nobody else's either.
      for (std::size_t i = 0; i < part.all.size(); ++i) {
        if (aligned.used[i]) whole.used[place_in(group.all, part.all[i])] = true;
      }
      whole.count += aligned.count;
    }
    return whole;
  }

  void match(const Group& group, bool from_first) {
    if (group.some.empty()) return;
    auto best = align_streams(group, from_first);
    if (!best || best->count < group.some.size()) {
      auto other = align(
          group, [](const NumberedLaunch& launch) { return launch.number; }, from_first);
      if (!best || other.count > best->count) best = std::move(other);
    }
    match_what_is_left(symbols(of_all_, group.all), symbols(of_some_, group.some), *best);
    for (std::size_t i = 0; i < group.some.size(); ++i) {
      if (best->matches[i] != kNoMatch) matches_[group.some[i]] = group.all[best->matches[i]];
    }
  }

  // Indices are in their order.
  static std::size_t place_in(const Indices& indices, std::size_t index) {
    return static_cast<std::size_t>(std::ranges::lower_bound(indices, index) - indices.begin());
  }
  static Symbols symbols(const Symbols& symbols, const Indices& indices) {
    Symbols found;
    found.reserve(indices.size());
    for (const std::size_t index : indices) found.push_back(symbols[index]);
    return found;
  }

  std::span<const LaunchKey> all_;
  std::span<const NumberedLaunch> some_;
  Symbols of_all_, of_some_;
  Matches matches_;
};

}  // namespace

std::vector<std::size_t> match_launches(std::span<const LaunchKey> all,
                                        std::span<const NumberedLaunch> some) {
  return Matcher(all, some).match();
}

}  // namespace pasta::session
