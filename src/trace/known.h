// What a spool's file has defined already, for its thread to find again. Zero is how all of this
// begins, memory that is not used is not touched, and nothing needs libstdc++: it is for the
// collector.
#pragma once

#include <cstdint>
#include <cstring>

namespace pasta::trace {

// Values by key, kMost of them at most; with one more it forgets them all, so that what is still in
// use is defined anew, once. `Key` has key_hash(), found by its namespace, of which the lower bits
// are used. The table grows with what is in it: a small one stays in the processor's cache.
template <class Key, class Value, std::uint32_t kMost>
class Known {
 public:
  struct Entry {
    Key key;
    Value value;
  };

  // None where there is none. Stays until the next add() or clear().
  [[nodiscard]] Entry* find(const Key& key) {
    if (size_ == 0) return nullptr;
    for (std::uint32_t at = place_of(key); slots_[at] != 0; at = (at + 1) & (size_ - 1)) {
      Entry& entry = entries_[slots_[at] - 1];
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }
  // Of a key that is not there.
  Entry* add(const Key& key, const Value& value) {
    if (count_ == kMost) clear();
    if (count_ * 2 >= size_) grow();
    entries_[count_] = {key, value};
    put(count_);
    return &entries_[count_++];
  }
  // By the order in which they were added.
  [[nodiscard]] Entry* at(std::uint32_t index) {
    return index < count_ ? &entries_[index] : nullptr;
  }
  [[nodiscard]] std::uint32_t index_of(const Entry* entry) const {
    return static_cast<std::uint32_t>(entry - entries_);
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  void clear() { count_ = size_ = 0; }

 private:
  static constexpr std::uint32_t kFirstSize = 512;
  static_assert((kMost & (kMost - 1)) == 0 && kMost * 2 >= kFirstSize);

  std::uint32_t place_of(const Key& key) const {
    return static_cast<std::uint32_t>(key_hash(key)) & (size_ - 1);
  }
  void put(std::uint32_t index) {
    std::uint32_t at = place_of(entries_[index].key);
    while (slots_[at] != 0) at = (at + 1) & (size_ - 1);
    slots_[at] = index + 1;
  }
  void grow() {
    size_ = size_ == 0 ? kFirstSize : size_ * 2;
    std::memset(slots_, 0, size_ * sizeof slots_[0]);
    for (std::uint32_t i = 0; i < count_; ++i) put(i);
  }

  std::uint32_t count_, size_;      // `size_`: of the slots in use, a power of two
  std::uint32_t slots_[kMost * 2];  // index + 1 of an entry; at most half are taken
  Entry entries_[kMost];
};

}  // namespace pasta::trace
