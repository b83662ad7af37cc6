#include "tools/memory/place.h"

namespace pasta::tools::memory {

bool Counter::add(const Event& event, std::int64_t value) {
  last = value;
  if (!event.untimed()) curve.add(event.end_ns, value);
  if (highest && value <= *highest) return false;
  highest = value;
  return true;
}

std::optional<std::int64_t> Place::reserved_unused() const {
  if (!reserved_at_total || *reserved_at_total < *total.highest) return {};
  return *reserved_at_total - *total.highest;
}

bool Place::count(const Event& event) {
  const bool alloc = event.kind == Kind::kAlloc;
  ++(alloc ? allocs : frees);
  (alloc ? allocated : freed).add(event.memory.bytes);
  if (event.untimed()) ++untimed;
  if (event.memory.address == 0 && event.memory.bytes > 0) ++addressless;
  awaits_total_ = awaits_reserved_ = false;
  if (!peak_known()) return false;
  const auto bytes = static_cast<std::int64_t>(event.memory.bytes);
  running_ += alloc ? bytes : -bytes;
  curve.add(event.end_ns, running_);
  return true;
}

void Place::allocate(const Address& address, const Allocation& allocation) {
  const auto [known, is_new] = live.try_emplace(address, allocation);
  if (!is_new) {
    ++reused;
    add(known->second.owner, -known->second.bytes, -1);
    known->second = allocation;
  }
  add(allocation.owner, allocation.bytes, 1);
}

void Place::free(const Address& address) {
  const auto known = live.find(address);
  if (known == live.end()) {
    ++unmatched;
    return;
  }
  add(known->second.owner, -known->second.bytes, -1);
  live.erase(known);
}

void Place::add(std::size_t owner, std::int64_t bytes, std::int64_t allocations) {
  if (owner >= owners.size()) owners.resize(owner + 1);
  Owner& it = owners[owner];
  it.bytes += bytes;
  it.allocations += allocations;
  if (!it.changed) changed_.push_back(owner);
  it.changed = true;
}

void Place::take_peak(std::int64_t time_ns) {
  peak = running_;
  peak_ns = time_ns;
  for (const std::size_t owner : changed_) {
    Owner& it = owners[owner];
    it.peak_bytes = it.bytes;
    it.peak_allocations = it.allocations;
    it.changed = false;
  }
  changed_.clear();
  total_at_peak.reset();
  awaits_total_ = true;
  awaited_ns_ = time_ns;
}

void Place::count_total(const Event& event, std::int64_t value) {
  if (awaits_total_ && event.end_ns == awaited_ns_) total_at_peak = value;
  awaits_total_ = awaits_reserved_ = false;
  if (!total.add(event, value)) return;
  reserved_at_total = reserved.last;
  awaits_reserved_ = true;
  awaited_ns_ = event.end_ns;
}

void Place::count_reserved(const Event& event, std::int64_t value) {
  reserved.add(event, value);
  if (awaits_reserved_ && event.end_ns == awaited_ns_) reserved_at_total = value;
  awaits_reserved_ = false;
}

}  // namespace pasta::tools::memory
