#include "adapters/sanitizer/objects.h"

#include <algorithm>

namespace pasta::adapters::sanitizer {

MemoryKind kind_of_flags(std::uint32_t flags) {
  constexpr std::uint32_t kModule = 0x1, kManaged = 0x2, kPinned = 0x8, kPeer = 0x10;
  return (flags & kModule) != 0    ? MemoryKind::kModule
         : (flags & kManaged) != 0 ? MemoryKind::kManaged
         : (flags & kPinned) != 0  ? MemoryKind::kHost
         : (flags & kPeer) != 0    ? MemoryKind::kPeer
                                   : MemoryKind::kDevice;
}

std::string_view kind_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kModule:
      return "variable of a module";
    case MemoryKind::kManaged:
      return "managed";
    case MemoryKind::kHost:
      return "pinned host memory";
    case MemoryKind::kPeer:
      return "of a peer";
    default:
      return "";
  }
}

void Objects::allocated(std::uint64_t address, std::uint64_t bytes, MemoryKind kind) {
  if (bytes == 0) return;
  snapshot_.reset();
  const std::uint64_t end = address + bytes < address ? ~std::uint64_t{0} : address + bytes;
  for (auto split = split_.begin(); split != split_.end();) {
    const auto next = std::next(split);
    if (split->first < end && address < split->second) put_away(split);
    split = next;
  }
  auto first = live_.upper_bound(address);
  if (first != live_.begin()) {
    const auto before = std::prev(first);
    if (address - before->first < before->second.bytes) first = before;
  }
  live_.erase(first, live_.lower_bound(end));
  live_[address] = {bytes, ++allocations_, kind, {}};
}

void Objects::found_variable(std::uint64_t address, std::uint64_t bytes, std::string name) {
  const auto next = live_.upper_bound(address);
  if (next != live_.end() && next->first - address < bytes) return;
  if (next != live_.begin()) {
    const auto before = std::prev(next);
    if (address - before->first < before->second.bytes) return;
  }
  allocated(address, bytes, MemoryKind::kModule);
  live_[address].name = std::move(name);
}

void Objects::freed(std::uint64_t address) {
  if (const auto split = split_.find(address); split != split_.end()) {
    put_away(split);
  } else if (live_.erase(address) > 0) {
    snapshot_.reset();
  }
}

void Objects::put_away(std::map<std::uint64_t, std::uint64_t>::iterator split) {
  live_.erase(live_.lower_bound(split->first), live_.lower_bound(split->second));
  split_.erase(split);
  snapshot_.reset();
}

void Objects::tagged(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kWidest = 16;  // of plain accesses
  const auto behind = live_.upper_bound(address);
  if (bytes == 0 || address % kWidest != 0 || behind == live_.begin()) return;
  const auto around = std::prev(behind);
  const std::uint64_t begin = around->first, left = around->second.bytes - (address - begin);
  if (address - begin >= around->second.bytes || bytes > left) return;
  bytes += std::min((kWidest - bytes % kWidest) % kWidest, left - bytes);
  if (bytes == around->second.bytes) return;
  snapshot_.reset();
  const Object whole = around->second;
  const auto known = split_.upper_bound(address);
  if (known == split_.begin() || std::prev(known)->second <= address) {
    split_[begin] = begin + whole.bytes;
  }
  around->second.bytes = address - begin;
  if (address == begin) live_.erase(around);
  live_[address] = {bytes, ++allocations_, whole.kind, whole.name};
  if (bytes == left) return;
  live_[address + bytes] = {left - bytes, ++allocations_, whole.kind, whole.name};
}

std::shared_ptr<const Snapshot> Objects::snapshot() {
  if (snapshot_) return snapshot_;
  auto made = std::make_shared<Snapshot>();
  std::uint64_t least_bytes = 0;
  if (live_.size() > kMost) {
    std::vector<std::uint64_t> sizes;
    for (const auto& [address, object] : live_) sizes.push_back(object.bytes);
    std::nth_element(sizes.begin(), sizes.begin() + (kMost - 1), sizes.end(), std::greater<>());
    least_bytes = sizes[kMost - 1];
  }
  for (const auto& [address, object] : live_) {
    if (object.bytes < least_bytes || made->objects.size() == kMost) {
      ++made->left_out;
      continue;
    }
    made->objects.push_back({address, object.bytes, object.number});
    made->kinds.push_back(object.kind);
    if (!object.name.empty()) made->names.emplace(object.number, object.name);
  }
  snapshot_ = std::move(made);
  return snapshot_;
}

}  // namespace pasta::adapters::sanitizer
