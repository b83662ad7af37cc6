#include "tools/operators/host_calls.h"

#include "tools/common/saturate.h"

namespace pasta::tools::operators {

std::size_t HostCalls::Hash::operator()(const Key& key) const {
  std::uint64_t hash = std::uint64_t{key.scope.value} << 32 | key.name.value;
  hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
  hash ^= std::uint64_t{key.shape} << 8 | key.domain;
  hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

std::uint32_t HostCalls::site(const Event& range, std::uint32_t shape,
                              const Dictionary& dictionary) {
  const Key key{range.scope, range.name, range.detail, shape};
  const auto [known, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) {
    const auto domain = static_cast<ScopeDomain>(range.detail);
    sites_.push_back({.scope = range.scope,
                      .frame = dictionary.find_frame({range.scope, range.name, domain}),
                      .name = range.name,
                      .domain = domain,
                      .shape = shape});
  }
  return known->second;
}

void HostCalls::add_counted(std::uint32_t site, const Event& range) {
  Site& calls = sites_[site];
  ++calls.calls;
  ++calls.timed;
  const std::int64_t duration = distance_saturated(range.start_ns, range.end_ns);
  calls.total_ns = add_saturated(calls.total_ns, duration);
  if (range.lane.value >= lanes_.size()) lanes_.resize(std::size_t{range.lane.value} + 1);
  calls.self_ns =
      add_saturated(calls.self_ns, lanes_[range.lane.value].add(range.start_ns, range.end_ns));
}

HostCalls::Node& HostCalls::node(FrameId frame) {
  if (frame.value >= nodes_.size()) nodes_.resize(std::size_t{frame.value} + 1);
  return nodes_[frame.value];
}

void HostCalls::note_nesting(std::uint32_t site, const Event& range) {
  const Site& place = sites_[site];
  if (!place.frame) return;
  if (place.scope) {
    node(place.frame);  // may move all nodes
    Node& parent = node(place.scope);
    Node& own = nodes_[place.frame.value];
    if (!own.seen) parent.waiting.push_back(place.frame);
    if (!own.nested) {
      own.lane = range.lane;
      own.start_ns = range.start_ns;
      own.end_ns = range.end_ns;
    }
  }
  Node& own = node(place.frame);
  own.seen = true;
  std::erase_if(own.waiting, [&](FrameId id) {
    Node& child = nodes_[id.value];
    child.nested = child.lane == range.lane && child.start_ns >= range.start_ns &&
                   child.end_ns <= range.end_ns;
    return child.nested;
  });
}

HostCalls::Nesting HostCalls::nesting(FrameId frame, FrameId parent) const {
  if (!seen(frame) || !seen(parent)) return Nesting::kUnknown;
  return nodes_[frame.value].nested ? Nesting::kInside : Nesting::kElsewhere;
}

}  // namespace pasta::tools::operators
