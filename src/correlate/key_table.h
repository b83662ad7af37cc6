// A hash table of small entries by a 64-bit key, for tens of millions of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace pasta::correlate {

// Open addressing over 256 tables that grow one at a time and by a quarter, so that a large one
// takes at most 1.45 times its entries (70 % of the places are used after growing) and hardly more
// while it grows. `Entry` is copied as it lies, and its `key` is 0 where it is free.
template <class Entry>
class KeyTable {
 public:
  // Starts to fetch what find() or insert() of `key` will need.
  void prefetch(std::uint64_t key) const {
    const std::uint64_t hash = hash_of(key);
    const Table& table = tables_[table_of(hash)];
    if (table.used != 0) __builtin_prefetch(&table.slots[table.home(hash)], 1);
  }

  // `key` is not 0. The entry is valid until the next insert() or keep_if().
  [[nodiscard]] const Entry* find(std::uint64_t key) const {
    const std::uint64_t hash = hash_of(key);
    const Table& table = tables_[table_of(hash)];
    if (table.used == 0) return nullptr;
    const Entry& entry = table.slot(key, hash);
    return entry.key == 0 ? nullptr : &entry;
  }
  [[nodiscard]] Entry* find(std::uint64_t key) {
    return const_cast<Entry*>(std::as_const(*this).find(key));
  }

  // The entry of `added.key`, and whether it is new (then it is `added`).
  struct Inserted {
    Entry* entry;
    bool fresh;
  };
  Inserted insert(const Entry& added) {
    const std::uint64_t key = added.key;
    const std::uint64_t hash = hash_of(key);
    Table& table = tables_[table_of(hash)];
    if (table.full()) table.resize(table.next_capacity());
    Entry& entry = table.slot(key, hash);
    if (entry.key == key) return {&entry, false};
    entry = added;
    ++table.used;
    ++size_;
    return {&entry, true};
  }

  // Forgets the others, and gives back most of their memory.
  template <class Keep>
  void keep_if(const Keep& keep) {
    for (Table& table : tables_) {
      std::uint32_t kept = 0;
      for (std::uint32_t i = 0; i < table.capacity; ++i) {
        Entry& entry = table.slots[i];
        if (entry.key != 0 && !keep(std::as_const(entry))) entry.key = 0;
        kept += entry.key != 0 ? 1 : 0;
      }
      size_ -= table.used - kept;
      table.used = kept;
      std::uint32_t capacity = kFirstCapacity;
      while (capacity <= kept * 2) capacity *= 2;
      // Entries that were moved on by others stand where they are not looked for any more.
      table.resize(std::min(capacity, table.capacity));
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  static constexpr std::uint32_t kFirstCapacity = 16;
  // Up to here speed counts more than memory: tables double when half full.
  static constexpr std::uint32_t kSmall = 4096;

  // Correlations are small numbers below a process: the multiplication moves what tells them apart
  // to the top, which chooses the table (8 bits) and the place in it (the 32 below).
  static std::uint64_t hash_of(std::uint64_t key) {
    key ^= key >> 32;
    return key * 0x9E3779B97F4A7C15u;
  }
  static std::size_t table_of(std::uint64_t hash) { return hash >> 56; }

  struct Table {
    std::unique_ptr<Entry[]> slots;
    std::uint32_t capacity = 0;
    std::uint32_t used = 0;

    [[nodiscard]] std::size_t home(std::uint64_t hash) const {
      return static_cast<std::size_t>((hash >> 24 & 0xFFFFFFFFu) * capacity >> 32);
    }
    // The slot that holds `key`, or the free one where it belongs; in order of hash, so that
    // growing moves entries front to back.
    [[nodiscard]] Entry& slot(std::uint64_t key, std::uint64_t hash) const {
      for (std::size_t i = home(hash);; i = i + 1 == capacity ? 0 : i + 1) {
        Entry& entry = slots[i];
        if (entry.key == key || entry.key == 0) return entry;
      }
    }
    [[nodiscard]] bool full() const {
      return capacity <= kSmall ? used >= capacity / 2
                                : std::uint64_t{used} * 8 >= std::uint64_t{capacity} * 7;
    }
    [[nodiscard]] std::uint32_t next_capacity() const {
      return std::max(kFirstCapacity, capacity < kSmall ? capacity * 2 : capacity + capacity / 4);
    }
    void resize(std::uint32_t to) {
      Table other;
      other.capacity = to;
      other.slots = std::make_unique<Entry[]>(to);
      other.used = used;
      for (std::uint32_t i = 0; i < capacity; ++i) {
        const Entry& entry = slots[i];
        if (entry.key != 0) other.slot(entry.key, hash_of(entry.key)) = entry;
      }
      *this = std::move(other);
    }
  };
  std::array<Table, 256> tables_;
  std::size_t size_ = 0;
};

}  // namespace pasta::correlate
