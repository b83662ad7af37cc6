#include "tools/operators/call_chains.h"

#include <algorithm>
#include <tuple>

namespace pasta::tools::operators {

void CallChains::launch(LaneId lane, std::int64_t start_ns, std::uint64_t correlation) {
  if (lane.value >= lanes_.size()) lanes_.resize(std::size_t{lane.value} + 1);
  lanes_[lane.value].push_back({correlation, start_ns, kNone});
}

void CallChains::call(LaneId lane, std::int64_t start_ns, std::uint32_t row) {
  if (lane.value >= lanes_.size()) return;
  std::vector<Launch>& launches = lanes_[lane.value];
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) {
    if (launch->start_ns < start_ns) break;
    const std::uint64_t key = std::uint64_t{launch->chain} << 32 | row;
    const auto [known, is_new] = known_.try_emplace(key, static_cast<Chain>(links_.size()));
    if (is_new) links_.push_back({launch->chain, row});
    launch->chain = known->second;
  }
}

void CallChains::close() {
  for (std::vector<Launch>& lane : lanes_) {
    launches_.insert(launches_.end(), lane.begin(), lane.end());
    std::vector<Launch>().swap(lane);
  }
  std::ranges::sort(launches_, [](const Launch& a, const Launch& b) {
    return std::tie(a.correlation, a.start_ns) < std::tie(b.correlation, b.start_ns);
  });
}

CallChains::Chain CallChains::chain_of(std::uint64_t correlation) const {
  const auto launch = std::ranges::lower_bound(launches_, correlation, {}, &Launch::correlation);
  return launch != launches_.end() && launch->correlation == correlation ? launch->chain : kNone;
}

std::vector<std::uint32_t> CallChains::rows(Chain chain) const {
  std::vector<std::uint32_t> rows;
  for (; chain != kNone; chain = links_[chain].inner) rows.push_back(links_[chain].row);
  return rows;
}

}  // namespace pasta::tools::operators
