// Who and where: what the rows of one set of tables refer to by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pasta/dictionary.h"

namespace pasta::adapters::rocpd {

// Numbers are those of a process, which its guid names: rows of several may lie in one table.
struct Key {
  std::uint32_t guid;  // see Guids
  std::int64_t id;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return static_cast<std::size_t>(
        (static_cast<std::uint64_t>(key.id) ^ key.guid) * 0x9E3779B97F4A7C15u >> 7);
  }
};
template <class T>
using ByKey = std::unordered_map<Key, T, KeyHash>;

// Small numbers for guids.
class Guids {
 public:
  // Rows of one process follow each other, so that mostly one comparison finds it.
  std::uint32_t number(std::string_view guid);
  [[nodiscard]] const std::vector<std::string>& all() const { return known_; }

 private:
  std::vector<std::string> known_;
  std::uint32_t last_ = 0;
};

struct Agent {
  DeviceId device{};  // of a CPU too
  bool gpu = false;
};

struct Symbol {
  std::string text;
  StringId name{};  // of text, once it is needed
  std::uint32_t registers = 0;
  std::uint32_t group_bytes = 0;  // of shared memory, that every launch has
};

struct Track {
  std::optional<std::int64_t> pid, tid, agent, queue, stream, name;
};

// What a counter counts.
struct Counter {
  StringId name{};
  StringId unit{};
  std::optional<std::int64_t> agent;
};

}  // namespace pasta::adapters::rocpd
