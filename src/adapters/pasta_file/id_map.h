// From the ids of a file to those of a session.
#pragma once

#include <cstdint>
#include <vector>

namespace pasta::adapters::pasta_file {

// Ids of a file are dense, so that a table of them is a vector whatever the file claims.
class IdMap {
 public:
  // `id` is the next new id, or one set before. False for another.
  bool set(std::uint32_t id, std::uint32_t session_id) {
    if (id == 0 || id > to_.size()) return false;
    if (id == to_.size()) {
      to_.push_back(session_id);
    } else {
      to_[id] = session_id;
    }
    identity_ = identity_ && id == session_id;
    return true;
  }
  [[nodiscard]] bool has(std::uint32_t id) const { return id < to_.size(); }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(to_.size()); }
  // has(id) must hold.
  [[nodiscard]] std::uint32_t operator[](std::uint32_t id) const { return to_[id]; }
  // Every id is mapped to itself.
  [[nodiscard]] bool identity() const { return identity_; }

 private:
  std::vector<std::uint32_t> to_{0};
  bool identity_ = true;
};

}  // namespace pasta::adapters::pasta_file
