// Bytes that came with events, until the tools have seen them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "pasta/ids.h"

namespace pasta::session {

// Thread-safe.
class Blobs {
 public:
  BlobId add(std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    if (++last_ == 0) ++last_;
    blobs_[last_].assign(bytes.begin(), bytes.end());
    count_ = blobs_.size();
    return {last_};
  }
  // Valid until the blob is removed.
  [[nodiscard]] std::span<const std::byte> get(BlobId id) const {
    const std::lock_guard lock(mutex_);
    const auto it = blobs_.find(id.value);
    return it == blobs_.end() ? std::span<const std::byte>{} : std::span(it->second);
  }
  void remove(BlobId id) {
    const std::lock_guard lock(mutex_);
    blobs_.erase(id.value);
    count_ = blobs_.size();
  }
  // Costs no lock: asked for every run of events.
  [[nodiscard]] bool empty() const { return count_ == 0; }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, std::vector<std::byte>> blobs_;
  std::uint32_t last_ = 0;
  std::atomic<std::size_t> count_ = 0;
};

}  // namespace pasta::session
