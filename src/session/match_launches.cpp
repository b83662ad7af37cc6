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

}  // namespace

std::vector<std::size_t> match_launches(std::span<const LaunchKey> all,
                                        std::span<const NumberedLaunch> some) {
  Alphabet alphabet(all);
  Symbols symbols_of_all, symbols_of_some;
  for (const LaunchKey& key : all) symbols_of_all.push_back(alphabet.symbol(key));
  for (const NumberedLaunch& launch : some) {
    symbols_of_some.push_back(alphabet.symbol(launch.key));
  }
  std::vector<std::size_t> places(some.size());
  std::optional<Aligned> best;
  // As if all of `all` had been launched in the other run, and only some told.
  const std::uint64_t last = some.empty() ? 0 : some.back().number;
  if (last <= kMostLaunches) {
    Symbols spread(std::max<std::size_t>(last, all.size()), kAny);
    for (std::size_t i = 0; i < some.size(); ++i) {
      places[i] = some[i].number - 1;
      spread[places[i]] = symbols_of_some[i];
    }
    best = align_at(symbols_of_all, spread, places);
  }
  // As if nothing had been left out in between: both runs tell of the same part of them.
  if (!best || best->count < some.size()) {
    for (std::size_t i = 0; i < some.size(); ++i) places[i] = i;
    auto other = align_at(symbols_of_all, symbols_of_some, places);
    if (other && (!best || other->count > best->count)) best = std::move(other);
  }
  if (!best) best = {Matches(some.size(), kNoMatch), std::vector<bool>(all.size()), 0};
  match_what_is_left(symbols_of_all, symbols_of_some, *best);
  return std::move(best->matches);
}

}  // namespace pasta::session
