#include "session/tie_group.h"

#include <algorithm>

namespace pasta::session {
namespace {

// Of a kernel everything but the ordinal counts: two records of one launch get two ordinals.
std::uint64_t last_word(const Event& event) {
  return event.kind == Kind::kKernel ? event.kernel.graph_node : event.raw[2];
}

}  // namespace

std::size_t TieGroup::Hash::operator()(const Event& event) const {
  std::uint64_t hash = 0;
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  mix(static_cast<std::uint64_t>(event.start_ns));
  mix(event.correlation);
  mix(std::uint64_t{event.name.value} << 32 | event.lane.value);
  // Equal ranges lie inside each other, and only their scopes tell them apart.
  mix(std::uint64_t{event.scope.value} << 16 | event.detail);
  mix(event.raw[0]);
  mix(last_word(event));
  return hash;
}

bool TieGroup::Same::operator()(const Event& a, const Event& b) const {
  return a.start_ns == b.start_ns && a.name == b.name && a.lane == b.lane &&
         a.correlation == b.correlation && a.kind == b.kind && a.scope == b.scope &&
         a.detail == b.detail && a.flags == b.flags && a.raw[0] == b.raw[0] &&
         a.raw[1] == b.raw[1] && last_word(a) == last_word(b);
}

bool TieGroup::add(const Event& event) {
  if (event.untimed()) return false;
  if (event.start_ns == event.end_ns && event.correlation == 0) return false;
  if (few_.size() < kFew) {
    const bool known = std::any_of(few_.begin(), few_.end(),
                                   [&](const Event& other) { return Same{}(event, other); });
    if (!known) few_.push_back(event);
    return known;
  }
  if (many_.empty()) many_.insert(few_.begin(), few_.end());
  return !many_.insert(event).second;
}

}  // namespace pasta::session
