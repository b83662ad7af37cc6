// Pieces of one block of memory.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>

namespace pasta::adapters::sanitizer {

class Pool {
 public:
  static constexpr std::size_t kAlign = 256;
  explicit Pool(std::size_t bytes = 0) : bytes_(bytes) {
    if (bytes > 0) free_[0] = bytes;
  }

  // Where a piece begins; none when no room is left for it.
  std::optional<std::size_t> take(std::size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
      const auto [at, size] = *hole;
      if (size < bytes) continue;
      free_.erase(hole);
      if (size > bytes) free_[at + bytes] = size - bytes;
      taken_[at] = bytes;
      return at;
    }
    return std::nullopt;
  }
  // A piece that was taken.
  void give(std::size_t at) {
    const auto piece = taken_.find(at);
    std::size_t begin = at, size = piece->second;
    taken_.erase(piece);
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == begin + size) {
      size += after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == begin) {
        begin = before->first;
        size += before->second;
      }
    }
    free_[begin] = size;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::map<std::size_t, std::size_t> free_, taken_;  // sizes by places
};

}  // namespace pasta::adapters::sanitizer
