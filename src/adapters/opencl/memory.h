// What the layer remembers, in memory of its own: the program's heap may be anything, and may be in
// the middle of something. Nothing here is given back; what it holds is bounded by the handles that
// a runtime has in use at the same time.
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace pasta::adapters::opencl {

// Zeroed; none when there is no more.
inline void* map_memory(std::size_t bytes) noexcept {
  const int kept = errno;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = kept;
  return mapped == MAP_FAILED ? nullptr : mapped;
}

// Held for a few instructions at a time, never around a call of the runtime.
class Lock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_acquire); }

 private:
  std::atomic<bool> held_ = false;
};

class Held {
 public:
  explicit Held(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~Held() { lock_.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  Lock& lock_;
};

// Hands out zeroed memory, in pieces of less than 64 KiB.
class Arena {
 public:
  void* take(std::size_t bytes) noexcept {
    bytes = (bytes + 15) & ~std::size_t{15};
    const Held held(lock_);
    if (left_ < bytes) {
      auto* more = static_cast<std::byte*>(map_memory(kPiece));
      if (more == nullptr || bytes > kPiece) return nullptr;
      at_ = more;
      left_ = kPiece;
    }
    void* taken = at_;
    at_ += bytes;
    left_ -= bytes;
    return taken;
  }
  template <class T>
  T* make() noexcept {
    void* memory = take(sizeof(T));
    return memory == nullptr ? nullptr : new (memory) T{};
  }
  void after_fork() noexcept { lock_.unlock(); }

 private:
  static constexpr std::size_t kPiece = std::size_t{64} << 10;
  Lock lock_;
  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
};

// Texts that stay; equal ones once.
class Texts {
 public:
  explicit constexpr Texts(Arena& arena) : arena_(arena) {}
  std::string_view keep(std::string_view text) noexcept {
    std::size_t hash = text.size();
    for (const char letter : text)
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    const Held held(lock_);
    Node*& first = nodes_[(hash ^ hash >> 32) % kBuckets];
    for (Node* node = first; node != nullptr; node = node->next) {
      if (node->view() == text) return node->view();
    }
    void* memory = arena_.take(sizeof(Node) + text.size());
    if (memory == nullptr) return {};
    auto* node = new (memory) Node{first, text.size()};
    std::memcpy(static_cast<void*>(node + 1), text.data(), text.size());
    first = node;
    return node->view();
  }
  void after_fork() noexcept { lock_.unlock(); }

 private:
  static constexpr std::size_t kBuckets = 512;
  struct Node {
    Node* next;
    std::size_t size;
    [[nodiscard]] std::string_view view() const {
      return {reinterpret_cast<const char*>(this + 1), size};
    }
  };
  Arena& arena_;
  Lock lock_;
  Node* nodes_[kBuckets] = {};
};

inline constexpr std::size_t kFirstHandles = 256;

// What is known of each handle of the runtime. Looking up takes no lock. Handles are not forgotten:
// a runtime gives out the same ones again. A Record of zeros is one that nothing is known of.
template <class Record>
class Handles {
 public:
  // None: never seen.
  Record* find(const void* handle) noexcept {
    if (handle == nullptr) return nullptr;
    for (Level* level = newest_.load(std::memory_order_acquire); level != nullptr;
         level = level->older) {
      for (std::size_t at = home(handle, level->mask);; at = (at + 1) & level->mask) {
        const void* key = level->slots[at].key.load(std::memory_order_acquire);
        if (key == handle) return &level->slots[at].record;
        if (key == nullptr) break;
      }
    }
    return nullptr;
  }
  // The record of `handle`, made when it is new; none when there is no memory.
  Record* make(const void* handle) noexcept {
    if (Record* known = find(handle)) return known;
    if (handle == nullptr) return nullptr;
    const Held held(lock_);
    if (Record* known = find(handle)) return known;
    Level* level = newest_.load(std::memory_order_relaxed);
    if (level == nullptr || level->used * 2 > level->mask) {
      const std::size_t count = level == nullptr ? kFirstHandles : (level->mask + 1) * 2;
      void* memory = map_memory(sizeof(Level) + count * sizeof(Slot));
      if (memory == nullptr) return nullptr;
      auto* more = new (memory) Level{level, count - 1, 0, nullptr};
      more->slots = reinterpret_cast<Slot*>(more + 1);
      newest_.store(more, std::memory_order_release);
      level = more;
    }
    std::size_t at = home(handle, level->mask);
    while (level->slots[at].key.load(std::memory_order_relaxed) != nullptr) {
      at = (at + 1) & level->mask;
    }
    ++level->used;
    level->slots[at].key.store(handle, std::memory_order_release);
    return &level->slots[at].record;
  }
  // Each record until one gives true.
  template <class Visit>
  Record* any(Visit visit) noexcept {
    for (Level* level = newest_.load(std::memory_order_acquire); level != nullptr;
         level = level->older) {
      for (std::size_t at = 0; at <= level->mask; ++at) {
        Slot& slot = level->slots[at];
        const void* key = slot.key.load(std::memory_order_acquire);
        if (key != nullptr && visit(key, slot.record)) return &slot.record;
      }
    }
    return nullptr;
  }
  void after_fork() noexcept { lock_.unlock(); }

 private:
  struct Slot {
    std::atomic<const void*> key;
    Record record;
  };
  struct Level {
    Level* older;
    std::size_t mask, used;
    Slot* slots;
  };
  static std::size_t home(const void* handle, std::size_t mask) {
    const auto bits = reinterpret_cast<std::uintptr_t>(handle);
    return (bits * 0x9e3779b97f4a7c15u >> 20) & mask;
  }
  std::atomic<Level*> newest_ = nullptr;
  Lock lock_;
};

}  // namespace pasta::adapters::opencl
