#include "trace/shared_paths.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

namespace pasta::trace {
namespace {

constexpr std::uint32_t kPlaces = kPaths * 2;  // of the hash table: at most half full
constexpr std::size_t kTextBytes = std::size_t{8} << 20;
constexpr std::uint32_t kForwards = 1u << 18;

struct Node {
  std::uint64_t key;  // of its name
  const char* name;
  std::uint32_t name_bytes;
  SharedPath parent;
  ScopeDomain domain;
};

// Of `sequence` and `thread` in one word, which is written last, and taken away first.
struct Forward {
  std::atomic<std::uint64_t> key;
  std::atomic<SharedPath> path;
};

struct Tables {
  std::atomic<std::uint32_t> places[kPlaces];  // nodes by hash; 0 = free
  Node nodes[kPaths];
  Forward forwards[kForwards];
  char text[kTextBytes];
};

// One a process by its nature. Pages that are not written take no memory.
constinit std::atomic<Tables*> g_tables = nullptr;
constinit std::atomic<std::uint32_t> g_nodes = kOutside + 1;
constinit std::atomic<std::size_t> g_text = 0;

Tables* tables() {
  Tables* known = g_tables.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* memory = mmap(nullptr, sizeof(Tables), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Zero is how all that is in it begins.
  if (g_tables.compare_exchange_strong(known, static_cast<Tables*>(memory))) {
    return static_cast<Tables*>(memory);
  }
  munmap(memory, sizeof(Tables));
  return known;
}

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9fb21c651e98df25u;
  return value ^ value >> 29;
}

std::uint64_t forward_key(std::uint64_t thread, std::uint64_t sequence) {
  return (thread << 44 | (sequence & ((std::uint64_t{1} << 44) - 1))) + 1;
}

Forward& place_of(Tables& all, std::uint64_t key) {
  // Numbers follow each other, and so do their places.
  return all.forwards[(key + mixed(key >> 44)) % kForwards];
}

}  // namespace

SharedPath shared_path(SharedPath parent, std::string_view name, std::uint64_t key,
                       ScopeDomain domain) noexcept {
  Tables* all = parent == kNoPath ? nullptr : tables();
  if (all == nullptr) return kNoPath;
  const std::uint64_t hash = mixed(key ^ mixed(parent + static_cast<std::uint64_t>(domain) * 977));
  std::uint32_t made = 0;
  for (std::uint32_t i = 0; i < kPlaces; ++i) {
    std::atomic<std::uint32_t>& place = all->places[(hash + i) % kPlaces];
    std::uint32_t known = place.load(std::memory_order_acquire);
    if (known == 0) {
      if (made == 0) {
        if (g_nodes.load(std::memory_order_relaxed) >= kPaths) return kNoPath;
        made = g_nodes.fetch_add(1, std::memory_order_relaxed);
        const std::size_t at = g_text.fetch_add(name.size(), std::memory_order_relaxed);
        if (made >= kPaths || at > kTextBytes || name.size() > kTextBytes - at) return kNoPath;
        if (!name.empty()) std::memcpy(all->text + at, name.data(), name.size());
        all->nodes[made] = {key, all->text + at, static_cast<std::uint32_t>(name.size()), parent,
                            domain};
      }
      if (place.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
    }
    const Node& node = all->nodes[known];
    if (node.key == key && node.parent == parent && node.domain == domain) return known;
  }
  return kNoPath;
}

SharedNode shared_node(SharedPath path) noexcept {
  const Node& node = tables()->nodes[path];
  return {node.parent, node.domain, {node.name, node.name_bytes}};
}

void remember_forward(std::uint64_t thread, std::uint64_t sequence, SharedPath path) noexcept {
  Tables* all = tables();
  if (all == nullptr) return;
  const std::uint64_t key = forward_key(thread, sequence);
  Forward& place = place_of(*all, key);
  place.key.store(0, std::memory_order_relaxed);
  place.path.store(path, std::memory_order_release);
  place.key.store(key, std::memory_order_release);
}

SharedPath forward_path(std::uint64_t thread, std::uint64_t sequence) noexcept {
  Tables* all = tables();
  if (all == nullptr) return kNoPath;
  const std::uint64_t key = forward_key(thread, sequence);
  Forward& place = place_of(*all, key);
  if (place.key.load(std::memory_order_acquire) != key) return kNoPath;
  const SharedPath path = place.path.load(std::memory_order_acquire);
  return place.key.load(std::memory_order_acquire) == key ? path : kNoPath;
}

}  // namespace pasta::trace
