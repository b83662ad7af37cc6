// How often the work of one device queue overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cold_bytes.h"

namespace pasta::session {

// In order of start, a slice overlaps when it starts before the latest end of those before it. The
// stream is in order of end, so the count is made from the other side: slices that hang together
// are one component, and overlaps = slices - components. A slice that touches another, or an empty
// one at another's edge, hangs together with nothing.
class OverlapCounter {
 public:
  // `end_ns` is not below that of any earlier call. Returns by how much the number of overlaps
  // grew.
  std::uint32_t add(std::int64_t start_ns, std::int64_t end_ns) {
    // An empty slice at the end of this one lies behind it, whichever came first.
    std::uint32_t behind = 0;
    if (end_ns == last_end_ns_ && start_ns < end_ns) {
      for (; empties_ > 0; --empties_, ++behind) pop();
    }
    std::uint32_t swallowed = 0;
    while (!ends_.empty() && last_end_ns_ > start_ns) {
      pop();
      ++swallowed;
    }
    if (start_ns < end_ns) {
      empties_ = behind;
    } else {
      empties_ = end_ns == last_end_ns_ ? empties_ + 1 : 1;
    }
    push(end_ns);
    for (; behind > 0; --behind) push(end_ns);
    if (ends_.size() >= 2 * kBlock) put_by();
    return swallowed;
  }
  // In memory of our own.
  [[nodiscard]] std::size_t held_bytes() const {
    return ends_.capacity() + (cold_ ? cold_->held_bytes() : 0);
  }

 private:
  // Only the ends of components are needed, and a late slice may reach back over any number of
  // them. Each is kept as its distance to the one before (2 or 3 bytes for kernels): groups of 7
  // bits, lowest first, the first marked, so that it can be read from the back. What is far back is
  // put by.
  void push(std::int64_t end_ns) {
    auto distance = static_cast<std::uint64_t>(end_ns) - static_cast<std::uint64_t>(last_end_ns_);
    ends_.push_back(static_cast<std::uint8_t>(distance | kFirst));
    while ((distance >>= 7) != 0) ends_.push_back(static_cast<std::uint8_t>(distance & 0x7f));
    last_end_ns_ = end_ns;
  }
  void pop() {
    std::uint64_t distance = 0;
    std::uint8_t group = 0;
    do {
      group = ends_.back();
      ends_.pop_back();
      if (ends_.empty() && !blocks_.empty()) take_back();
      distance = distance << 7 | (group & 0x7fu);
    } while ((group & kFirst) == 0);
    last_end_ns_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(last_end_ns_) - distance);
  }

  void put_by() {
    if (!cold_) cold_ = std::make_shared<base::ColdBytes>();
    blocks_.push_back(cold_->put(std::span(ends_).first(kBlock)));
    ends_.erase(ends_.begin(), ends_.begin() + kBlock);
  }
  void take_back() {
    const std::uint8_t* const block = cold_->at(blocks_.back());
    ends_.assign(block, block + kBlock);
    blocks_.pop_back();
  }

  static constexpr std::uint64_t kFirst = 0x80;
  static constexpr std::size_t kBlock = std::size_t{1} << 15;
  std::vector<std::uint8_t> ends_;
  std::vector<base::ColdBytes::Place> blocks_;
  std::shared_ptr<base::ColdBytes> cold_;
  std::int64_t last_end_ns_ = 0;
  std::uint32_t empties_ = 0;  // empty slices at last_end_ns_, on top of all others
};

}  // namespace pasta::session
