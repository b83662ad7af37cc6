// From a 64-bit key to a call path and a time, for tens of millions of keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "pasta/event.h"
#include "pasta/ids.h"

namespace pasta::correlate {

// Open addressing over 256 tables that grow one at a time and by a quarter, so that a large map
// takes at most 29 bytes an entry (20 bytes, of which 70 % are used after growing) and hardly more
// while it grows. Entries are not removed.
class FrameMap {
 public:
#pragma pack(push, 4)
  struct Entry {
    std::uint64_t key;  // 0 = free
    std::int64_t at_ns;
    FrameId frame;
  };
#pragma pack(pop)
  static_assert(sizeof(Entry) == 20);

  // Starts to fetch what find() or insert() of `key` will need.
  void prefetch(std::uint64_t key) const;
  // `key` is not 0. The entry is valid until the next insert().
  [[nodiscard]] const Entry* find(std::uint64_t key) const;
  // The entry of `key`, and whether it is new (then with the given values).
  struct Inserted {
    Entry* entry;
    bool fresh;
  };
  Inserted insert(std::uint64_t key, FrameId frame, std::int64_t at_ns);
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct Table {
    std::unique_ptr<Entry[]> slots;
    std::uint32_t capacity = 0;
    std::uint32_t used = 0;
    [[nodiscard]] std::size_t home(std::uint64_t hash) const;
    // The slot that holds `key`, or the free one where it belongs; in order of hash, so that
    // growing moves entries front to back.
    [[nodiscard]] Entry& slot(std::uint64_t key, std::uint64_t hash) const;
    [[nodiscard]] bool full() const;
    void grow();
  };
  std::array<Table, 256> tables_;
  std::size_t size_ = 0;
};

}  // namespace pasta::correlate
