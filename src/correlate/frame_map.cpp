#include "correlate/frame_map.h"

#include <algorithm>
#include <utility>

namespace pasta::correlate {
namespace {

// Correlations are small numbers below a process: the multiplication moves what tells them apart
// to the top, which chooses the table (8 bits) and the place in it (the 32 below).
std::uint64_t hash_of(std::uint64_t key) {
  key ^= key >> 32;
  return key * 0x9E3779B97F4A7C15u;
}
std::size_t table_of(std::uint64_t hash) { return hash >> 56; }

constexpr std::uint32_t kFirstCapacity = 16;
// Up to here (20 MiB for all tables) speed counts more than memory: tables double when half full.
constexpr std::uint32_t kSmall = 4096;

}  // namespace

std::size_t FrameMap::Table::home(std::uint64_t hash) const {
  return static_cast<std::size_t>((hash >> 24 & 0xFFFFFFFFu) * capacity >> 32);
}

FrameMap::Entry& FrameMap::Table::slot(std::uint64_t key, std::uint64_t hash) const {
  for (std::size_t i = home(hash);; i = i + 1 == capacity ? 0 : i + 1) {
    Entry& entry = slots[i];
    if (entry.key == key || entry.key == 0) return entry;
  }
}

bool FrameMap::Table::full() const {
  return capacity <= kSmall ? used >= capacity / 2
                            : std::uint64_t{used} * 8 >= std::uint64_t{capacity} * 7;
}

void FrameMap::Table::grow() {
  Table bigger;
  bigger.capacity =
      std::max(kFirstCapacity, capacity < kSmall ? capacity * 2 : capacity + capacity / 4);
  bigger.slots = std::make_unique<Entry[]>(bigger.capacity);
  bigger.used = used;
  for (std::uint32_t i = 0; i < capacity; ++i) {
    const Entry& entry = slots[i];
    if (entry.key != 0) bigger.slot(entry.key, hash_of(entry.key)) = entry;
  }
  *this = std::move(bigger);
}

void FrameMap::prefetch(std::uint64_t key) const {
  const std::uint64_t hash = hash_of(key);
  const Table& table = tables_[table_of(hash)];
  if (table.used != 0) __builtin_prefetch(&table.slots[table.home(hash)], 1);
}

const FrameMap::Entry* FrameMap::find(std::uint64_t key) const {
  const std::uint64_t hash = hash_of(key);
  const Table& table = tables_[table_of(hash)];
  if (table.used == 0) return nullptr;
  const Entry& entry = table.slot(key, hash);
  return entry.key == 0 ? nullptr : &entry;
}

FrameMap::Inserted FrameMap::insert(std::uint64_t key, FrameId frame, std::int64_t at_ns) {
  const std::uint64_t hash = hash_of(key);
  Table& table = tables_[table_of(hash)];
  if (table.full()) table.grow();
  Entry& entry = table.slot(key, hash);
  if (entry.key == key) return {&entry, false};
  entry = {key, at_ns, frame};
  ++table.used;
  ++size_;
  return {&entry, true};
}

}  // namespace pasta::correlate
