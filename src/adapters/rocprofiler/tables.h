// What the adapter must remember between two records. No heap, no libstdc++.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "pasta/ids.h"

namespace pasta::adapters::rocprofiler {

class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(&mutex) { pthread_mutex_lock(mutex_); }
  ~Locked() { pthread_mutex_unlock(mutex_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

inline void* map_memory(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Texts that stay: the SDK's own may go with a code object.
class Texts {
 public:
  // None when there is no memory.
  char* keep(const char* text) {
    if (text == nullptr) return nullptr;
    const std::size_t size = std::strlen(text) + 1;
    const Locked locked(mutex_);
    if (size > left_) {
      const std::size_t bytes = size > kChunk ? size : kChunk;
      auto* chunk = static_cast<char*>(map_memory(bytes));
      if (chunk == nullptr) return nullptr;
      at_ = chunk;
      left_ = bytes;
    }
    char* kept = at_;
    std::memcpy(kept, text, size);
    at_ += size;
    left_ -= size;
    return kept;
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{256} << 10;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  char* at_ = nullptr;
  std::size_t left_ = 0;
};

// What is known of kernels, which the SDK numbers from 1 on. Read without a lock.
struct Symbol {
  std::atomic<const char*> name;  // none: not known
  std::uint64_t code_object;
  std::uint64_t entry;  // an address; 0: not known
  std::uint32_t registers;
  std::uint32_t group_bytes;
};
class Symbols {
 public:
  Symbol* find(std::uint64_t kernel) {
    Symbol* part = kernel / kOfPart < kParts ? parts_[kernel / kOfPart].load() : nullptr;
    return part == nullptr ? nullptr : part + kernel % kOfPart;
  }
  // None when there is no room.
  Symbol* make(std::uint64_t kernel) {
    if (kernel / kOfPart >= kParts) return nullptr;
    std::atomic<Symbol*>& part = parts_[kernel / kOfPart];
    if (part.load() == nullptr) {
      auto* memory = static_cast<Symbol*>(map_memory(kOfPart * sizeof(Symbol)));
      Symbol* expected = nullptr;
      if (memory == nullptr) return nullptr;
      if (!part.compare_exchange_strong(expected, memory)) {
        munmap(memory, kOfPart * sizeof(Symbol));
      }
    }
    return part.load() + kernel % kOfPart;
  }

 private:
  static constexpr std::uint64_t kOfPart = 4096, kParts = 1024;
  std::atomic<Symbol*> parts_[kParts] = {};
};

// What is known of code objects, which the SDK numbers from 1 on, and which kernels are in them.
class CodeObjects {
 public:
  struct Known {
    std::uint64_t base;
    std::uint64_t first_kernel, end_kernel;  // all of its own lie between
  };
  void load(std::uint64_t object, std::uint64_t base) {
    const Locked locked(mutex_);
    if (object < kMost) all_[object].base = base;
  }
  void add_kernel(std::uint64_t object, std::uint64_t kernel) {
    const Locked locked(mutex_);
    if (object >= kMost) return;
    Known& known = all_[object];
    if (known.end_kernel == 0 || kernel < known.first_kernel) known.first_kernel = kernel;
    if (kernel >= known.end_kernel) known.end_kernel = kernel + 1;
  }
  // Zeros of one that is not known.
  Known find(std::uint64_t object) {
    const Locked locked(mutex_);
    return object < kMost ? all_[object] : Known{};
  }

 private:
  static constexpr std::uint64_t kMost = 1u << 16;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Known all_[kMost] = {};
};

// What was allocated where: a record of freeing tells the address alone.
class Allocations {
 public:
  struct Allocation {
    std::uint64_t address, bytes, agent;
  };
  bool add(const Allocation& allocation) {
    const Locked locked(mutex_);
    if (count_ >= kMost / 4 * 3 || allocation.address == 0) return false;
    std::uint32_t at = place_of(allocation.address);
    while (slots_[at].address != 0 && slots_[at].address != allocation.address) at = next(at);
    if (slots_[at].address == 0) ++count_;
    slots_[at] = allocation;
    return true;
  }
  bool take(std::uint64_t address, Allocation& to) {
    const Locked locked(mutex_);
    std::uint32_t at = place_of(address);
    while (slots_[at].address != 0 && slots_[at].address != address) at = next(at);
    if (address == 0 || slots_[at].address == 0) return false;
    to = slots_[at];
    --count_;
    // What lies behind it moves up, so that it is still found.
    for (std::uint32_t from = next(at); slots_[from].address != 0; from = next(from)) {
      const std::uint32_t home = place_of(slots_[from].address);
      if (((from - home) & (kMost - 1)) < ((from - at) & (kMost - 1))) continue;
      slots_[at] = slots_[from];
      at = from;
    }
    slots_[at] = {};
    return true;
  }

 private:
  static constexpr std::uint32_t kMost = 1u << 16;
  static std::uint32_t next(std::uint32_t at) { return (at + 1) & (kMost - 1); }
  static std::uint32_t place_of(std::uint64_t address) {
    return static_cast<std::uint32_t>((address * 0x9e3779b97f4a7c15u) >> 48);
  }
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::uint32_t count_ = 0;
  Allocation slots_[kMost] = {};
};

// Whether a dispatch was told of already, among the last kMost.
class Dispatches {
 public:
  bool is_new(std::uint64_t dispatch) {
    return last_[dispatch % kMost].exchange(dispatch, std::memory_order_relaxed) != dispatch;
  }

 private:
  static constexpr std::uint32_t kMost = 1u << 14;
  std::atomic<std::uint64_t> last_[kMost] = {};  // the SDK numbers from 1 on
};

// From ROCTx's number of a range to the spool's.
class Ranges {
 public:
  void add(std::uint64_t range, std::uint64_t token) {
    const Locked locked(mutex_);
    slots_[range % kMost] = {range, token};
  }
  std::uint64_t take(std::uint64_t range) {
    const Locked locked(mutex_);
    Slot& slot = slots_[range % kMost];
    if (slot.range != range) return 0;
    const std::uint64_t token = slot.token;
    slot = {};
    return token;
  }

 private:
  struct Slot {
    std::uint64_t range, token;
  };
  static constexpr std::uint32_t kMost = 4096;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  Slot slots_[kMost] = {};
};

}  // namespace pasta::adapters::rocprofiler
