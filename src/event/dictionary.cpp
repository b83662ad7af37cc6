#include "pasta/dictionary.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>

#include "event/stable_table.h"

namespace pasta {
namespace {

// Open addressing from a hash to ids of a table; the table itself holds what is compared.
class IdIndex {
 public:
  IdIndex() : slots_(1024) {}

  template <class Equal>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Equal&& equal) const {
    const std::size_t mask = slots_.size() - 1;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t i = hash & mask; slots_[i].id != 0; i = (i + 1) & mask) {
      if (slots_[i].tag == tag && equal(slots_[i].id)) return slots_[i].id;
    }
    return 0;
  }
  template <class HashOf>
  void insert(std::uint64_t hash, std::uint32_t id, HashOf&& hash_of) {
    if ((used_ + 1) * 10 > slots_.size() * 7) {
      std::vector<Slot> old(slots_.size() * 2);
      old.swap(slots_);
      for (const Slot& slot : old) {
        if (slot.id != 0) place(hash_of(slot.id), slot.id);
      }
    }
    place(hash, id);
    ++used_;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t id = 0;
  };
  void place(std::uint64_t hash, std::uint32_t id) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    while (slots_[i].id != 0) i = (i + 1) & mask;
    slots_[i] = {static_cast<std::uint32_t>(hash >> 32), id};
  }
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

// What identifies an entry, as bytes without padding, so that hashing and comparing are one call.
struct ProcessKey {
  std::uint64_t native_id;
  StringId native_text, source;
};
struct DeviceKey {
  ProcessId process;
  std::uint32_t ordinal;
  StringId uuid;
  std::uint32_t type;
};
struct LaneKey {
  std::uint64_t context, native_id;
  ProcessId process;
  DeviceId device;
  StringId native_text;
  std::uint32_t type;
};
struct FrameKey {
  FrameId parent;
  StringId name;
  std::uint32_t domain;
};
struct CollectiveKey {
  std::uint64_t in_elements, out_elements;
  StringId name, element_type, group, ranks;
  std::uint64_t group_size;
};

ProcessKey key_of(const Process& p) { return {p.native_id, p.native_text, p.source}; }
// What is known by name has different ordinals in processes that see different devices.
DeviceKey key_of(const Device& d) {
  return {d.process, d.uuid ? 0 : d.ordinal, d.uuid, static_cast<std::uint32_t>(d.type)};
}
LaneKey key_of(const Lane& l) {
  return {l.context, l.native_id,   l.process,
          l.device,  l.native_text, static_cast<std::uint32_t>(l.type)};
}
FrameKey key_of(const Frame& f) { return {f.parent, f.name, static_cast<std::uint32_t>(f.domain)}; }
CollectiveKey key_of(const Collective& c) {
  return {c.in_elements, c.out_elements, c.name, c.element_type, c.group, c.ranks, c.group_size};
}
const LaunchAttributes& key_of(const LaunchAttributes& a) { return a; }

template <class Key>
std::uint64_t hash_of_key(const Key& key) {
  static_assert(std::has_unique_object_representations_v<Key>);
  return XXH3_64bits(&key, sizeof key);
}
template <class Key>
bool equal_keys(const Key& a, const Key& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Entries that never change after they were made.
template <class T>
class FixedTable {
 public:
  FixedTable() { entries_.append(T{}); }
  std::uint32_t find(const T& entry) const {
    const auto key = key_of(entry);
    return index_.find(hash_of_key(key),
                       [&](std::uint32_t id) { return equal_keys(key_of(entries_[id]), key); });
  }
  std::uint32_t add(const T& entry) {
    const std::uint32_t id = entries_.append(entry);
    index_.insert(hash_of_key(key_of(entry)), id,
                  [&](std::uint32_t other) { return hash_of_key(key_of(entries_[other])); });
    return id;
  }
  [[nodiscard]] T get(std::uint32_t id) const { return id < size() ? entries_[id] : T{}; }
  [[nodiscard]] std::uint32_t size() const { return entries_.size(); }

 private:
  event::StableTable<T> entries_;
  IdIndex index_;
};

// Entries of which a part is filled in later. An update publishes a new version; the old one stays
// until the end, because a reader may be copying it.
template <class T>
class VersionedTable {
 public:
  VersionedTable() { publish(T{}); }
  std::uint32_t intern(const T& entry) {
    const auto key = key_of(entry);
    const std::uint64_t hash = hash_of_key(key);
    if (const std::uint32_t id = index_.find(
            hash, [&](std::uint32_t other) { return equal_keys(key_of(get(other)), key); })) {
      return id;
    }
    const std::uint32_t id = publish(entry);
    index_.insert(hash, id, [&](std::uint32_t other) { return hash_of_key(key_of(get(other))); });
    return id;
  }
  void replace(std::uint32_t id, const T& entry) {
    entries_.at(id).pointer.store(&versions_.emplace_back(entry), std::memory_order_release);
  }
  [[nodiscard]] T get(std::uint32_t id) const {
    return id < size() ? *entries_[id].pointer.load(std::memory_order_acquire) : T{};
  }
  [[nodiscard]] std::uint32_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Entry() = default;
    explicit Entry(const T* p) : pointer(p) {}
    Entry& operator=(Entry&& other) noexcept {
      pointer.store(other.pointer.load(std::memory_order_relaxed), std::memory_order_relaxed);
      return *this;
    }
    std::atomic<const T*> pointer{nullptr};
  };
  std::uint32_t publish(const T& entry) {
    return entries_.append(Entry(&versions_.emplace_back(entry)));
  }
  event::StableTable<Entry> entries_;
  std::deque<T> versions_;
  IdIndex index_;
};

class StringTable {
 public:
  StringTable() { entries_.append({}); }
  StringId intern(std::string_view text, std::uint64_t hash) {
    if (const std::uint32_t id =
            index_.find(hash, [&](std::uint32_t other) { return entries_[other] == text; })) {
      return {id};
    }
    const std::uint32_t id = entries_.append(keep(text));
    index_.insert(hash, id, [&](std::uint32_t other) {
      return XXH3_64bits(entries_[other].data(), entries_[other].size());
    });
    return {id};
  }
  [[nodiscard]] std::string_view get(StringId id) const {
    return id.value < size() ? entries_[id.value] : std::string_view{};
  }
  [[nodiscard]] std::uint32_t size() const { return entries_.size(); }

 private:
  static constexpr std::size_t kArenaBytes = std::size_t{64} << 10;
  std::string_view keep(std::string_view text) {
    if (text.size() > kArenaBytes / 4) {
      large_.push_back(std::make_unique<char[]>(text.size()));
      std::memcpy(large_.back().get(), text.data(), text.size());
      return {large_.back().get(), text.size()};
    }
    if (arenas_.empty() || used_ + text.size() > kArenaBytes) {
      arenas_.push_back(std::make_unique<char[]>(kArenaBytes));
      used_ = 0;
    }
    char* at = arenas_.back().get() + used_;
    std::memcpy(at, text.data(), text.size());
    used_ += text.size();
    return {at, text.size()};
  }
  event::StableTable<std::string_view> entries_;
  IdIndex index_;
  std::vector<std::unique_ptr<char[]>> arenas_, large_;
  std::size_t used_ = 0;
};

}  // namespace

struct Dictionary::Impl {
  mutable std::mutex mutex;  // for writing; reading needs none
  StringTable strings;
  VersionedTable<Process> processes;
  VersionedTable<Device> devices;
  VersionedTable<Lane> lanes;
  FixedTable<Frame> frames;
  FixedTable<LaunchAttributes> attributes;
  FixedTable<Collective> collectives;
  std::uint32_t max_frames = 1u << 22;
  std::uint64_t folded_frames = 0;
  std::uint64_t updates = 0;
  std::vector<std::pair<std::string, std::string>> facts;

  template <class Table, class T>
  std::uint32_t fixed(Table& table, const T& entry) {
    const std::lock_guard lock(mutex);
    const std::uint32_t known = table.find(entry);
    return known != 0 ? known : table.add(entry);
  }
};

Dictionary::Dictionary() : impl_(std::make_unique<Impl>()) {}
Dictionary::~Dictionary() = default;

StringId Dictionary::string(std::string_view text) {
  if (text.empty()) return {};
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  const std::lock_guard lock(impl_->mutex);
  return impl_->strings.intern(text, hash);
}
ProcessId Dictionary::process(const Process& key) {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->processes.intern(key)};
}
DeviceId Dictionary::device(const Device& key) {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->devices.intern(key)};
}
LaneId Dictionary::lane(const Lane& key) {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->lanes.intern(key)};
}
FrameId Dictionary::frame(const Frame& frame) {
  const std::lock_guard lock(impl_->mutex);
  if (const std::uint32_t known = impl_->frames.find(frame)) return {known};
  if (impl_->frames.size() > impl_->max_frames) {
    ++impl_->folded_frames;
    return frame.parent;
  }
  return {impl_->frames.add(frame)};
}
FrameId Dictionary::find_frame(const Frame& frame) const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->frames.find(frame)};
}
AttributesId Dictionary::attributes(const LaunchAttributes& entry) {
  return {impl_->fixed(impl_->attributes, entry)};
}
CollectiveId Dictionary::collective(const Collective& entry) {
  return {impl_->fixed(impl_->collectives, entry)};
}

void Dictionary::update(ProcessId id, const Process& facts) {
  const std::lock_guard lock(impl_->mutex);
  Process entry = impl_->processes.get(id.value);
  entry.name = facts.name;
  entry.host = facts.host;
  entry.rank = facts.rank;
  entry.world_size = facts.world_size;
  impl_->processes.replace(id.value, entry);
  ++impl_->updates;
}
void Dictionary::update(DeviceId id, const Device& facts) {
  const std::lock_guard lock(impl_->mutex);
  Device entry = facts;
  const Device known = impl_->devices.get(id.value);
  entry.process = known.process;
  entry.ordinal = known.ordinal;
  entry.uuid = known.uuid;
  entry.type = known.type;
  impl_->devices.replace(id.value, entry);
  ++impl_->updates;
}
void Dictionary::update(LaneId id, StringId name) {
  const std::lock_guard lock(impl_->mutex);
  Lane entry = impl_->lanes.get(id.value);
  entry.name = name;
  impl_->lanes.replace(id.value, entry);
  ++impl_->updates;
}

std::string_view Dictionary::text(StringId id) const { return impl_->strings.get(id); }
Process Dictionary::process(ProcessId id) const { return impl_->processes.get(id.value); }
Device Dictionary::device(DeviceId id) const { return impl_->devices.get(id.value); }
Lane Dictionary::lane(LaneId id) const { return impl_->lanes.get(id.value); }
Frame Dictionary::frame(FrameId id) const { return impl_->frames.get(id.value); }
LaunchAttributes Dictionary::attributes(AttributesId id) const {
  return impl_->attributes.get(id.value);
}
Collective Dictionary::collective(CollectiveId id) const {
  return impl_->collectives.get(id.value);
}

std::uint32_t Dictionary::string_count() const { return impl_->strings.size(); }
std::uint32_t Dictionary::process_count() const { return impl_->processes.size(); }
std::uint32_t Dictionary::device_count() const { return impl_->devices.size(); }
std::uint32_t Dictionary::lane_count() const { return impl_->lanes.size(); }
std::uint32_t Dictionary::frame_count() const { return impl_->frames.size(); }
std::uint32_t Dictionary::attributes_count() const { return impl_->attributes.size(); }
std::uint32_t Dictionary::collective_count() const { return impl_->collectives.size(); }
std::uint64_t Dictionary::updates() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->updates;
}
std::uint64_t Dictionary::folded_frames() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->folded_frames;
}
void Dictionary::limit_frames(std::uint32_t max_frames) {
  const std::lock_guard lock(impl_->mutex);
  impl_->max_frames = max_frames;
}

void Dictionary::fact(std::string_view key, std::string_view value) {
  const std::lock_guard lock(impl_->mutex);
  impl_->facts.emplace_back(key, value);
}
std::vector<std::pair<std::string, std::string>> Dictionary::facts() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->facts;
}

}  // namespace pasta
