#include "mine/align.h"

#include <algorithm>
#include <functional>

namespace pasta::mine {
namespace {

constexpr std::int64_t kUnreached = -2;

// Row d holds, for each diagonal k (position in `to` minus position in `from`) from -d to d, how
// far into `from` d edits come.
class Fronts {
 public:
  [[nodiscard]] std::int64_t at(std::int64_t cost, std::int64_t diagonal) const {
    if (cost < 0 || diagonal < -cost || diagonal > cost) return kUnreached;
    return reach_[static_cast<std::size_t>(cost * cost + cost + diagonal)];
  }
  void push(std::int64_t reach) { reach_.push_back(static_cast<std::int32_t>(reach)); }

 private:
  std::vector<std::int32_t> reach_;  // row d begins at d * d
};

struct Step {
  std::int64_t reach;  // into `from`, after the edit and before the matches that follow it
  Edit edit;
};

// `end`: how far a step may come without leaving either string.
Step furthest(const Fronts& fronts, std::int64_t cost, std::int64_t diagonal, std::int64_t end) {
  Step best{kUnreached, Edit::kMatch};
  const auto offer = [&best, end](std::int64_t before, std::int64_t advance, Edit edit) {
    const std::int64_t reach = before + advance;
    if (before != kUnreached && reach <= end && reach > best.reach) best = {reach, edit};
  };
  offer(fronts.at(cost - 1, diagonal), 1, Edit::kSubstitute);
  offer(fronts.at(cost - 1, diagonal + 1), 1, Edit::kDelete);
  offer(fronts.at(cost - 1, diagonal - 1), 0, Edit::kInsert);
  return best;
}

void prepend(std::vector<EditStep>& reversed, Edit edit, std::int64_t count) {
  if (count == 0) return;
  if (!reversed.empty() && reversed.back().edit == edit) {
    reversed.back().count += static_cast<std::uint32_t>(count);
  } else {
    reversed.push_back({edit, static_cast<std::uint32_t>(count)});
  }
}

template <class Same>
std::optional<Alignment> align_where(Symbols from, Symbols to, std::uint32_t max_cost,
                                     const Same& same) {
  const auto from_size = static_cast<std::int64_t>(from.size());
  const auto to_size = static_cast<std::int64_t>(to.size());
  const std::int64_t goal = to_size - from_size;
  const auto end_of = [&](std::int64_t diagonal) {
    return std::min(from_size, to_size - diagonal);
  };
  Fronts fronts;
  std::int64_t cost = 0;
  const std::int64_t most = std::min<std::int64_t>(max_cost, std::max(from_size, to_size));
  for (;; ++cost) {
    if (cost > most) return std::nullopt;
    for (std::int64_t diagonal = -cost; diagonal <= cost; ++diagonal) {
      const std::int64_t end = end_of(diagonal);
      std::int64_t reach = cost == 0 ? 0 : furthest(fronts, cost, diagonal, end).reach;
      while (reach != kUnreached && reach < end &&
             same(from[static_cast<std::size_t>(reach)],
                  to[static_cast<std::size_t>(reach + diagonal)])) {
        ++reach;
      }
      fronts.push(reach);
    }
    if (fronts.at(cost, goal) == from_size) break;
  }

  Alignment alignment;
  std::int64_t diagonal = goal;
  std::int64_t reach = from_size;
  for (; cost > 0; --cost) {
    const Step step = furthest(fronts, cost, diagonal, end_of(diagonal));
    prepend(alignment.steps, Edit::kMatch, reach - step.reach);
    prepend(alignment.steps, step.edit, 1);
    reach = step.reach;
    if (step.edit == Edit::kSubstitute) --reach;
    if (step.edit == Edit::kDelete) {
      --reach;
      ++diagonal;
    }
    if (step.edit == Edit::kInsert) --diagonal;
  }
  prepend(alignment.steps, Edit::kMatch, reach);
  std::reverse(alignment.steps.begin(), alignment.steps.end());
  for (const EditStep& step : alignment.steps) {
    switch (step.edit) {
      case Edit::kMatch:
        alignment.edits.matches += step.count;
        break;
      case Edit::kSubstitute:
        alignment.edits.substitutions += step.count;
        break;
      case Edit::kInsert:
        alignment.edits.insertions += step.count;
        break;
      case Edit::kDelete:
        alignment.edits.deletions += step.count;
        break;
    }
  }
  return alignment;
}

}  // namespace

std::optional<Alignment> align(Symbols from, Symbols to, std::uint32_t max_cost) {
  return align_where(from, to, max_cost, std::equal_to<>());
}

std::optional<Alignment> align(Symbols from, Symbols to, std::uint32_t max_cost,
                               std::uint32_t any) {
  return align_where(from, to, max_cost,
                     [any](std::uint32_t a, std::uint32_t b) { return a == b || b == any; });
}

}  // namespace pasta::mine
