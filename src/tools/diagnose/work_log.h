// All device work of one device, in a few bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "pasta/event.h"

namespace pasta::tools::diagnose {

// What makes two pieces of work the same, but for their times and sizes.
struct WorkKey {
  Kind kind = Kind::kKernel;
  std::uint16_t detail = 0;  // direction of a copy
  StringId name{};
  LaneId lane{};
  FrameId scope{};
  AttributesId attributes{};
  std::uint64_t blocks = 0;  // of a kernel's grid, 0 = unknown
  bool operator==(const WorkKey&) const = default;
};

struct WorkRecord {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t key = 0;    // index into WorkLog::keys()
  std::uint64_t bytes = 0;  // of a copy, kUnknownBytes when the source does not say
};

// Records are differences of variable length: about 6 bytes for a kernel. An iteration repeats, so
// there are few keys.
class WorkLog {
 public:
  // Timed work, in order of end.
  void add(const Event& work);
  [[nodiscard]] const std::vector<WorkKey>& keys() const { return keys_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  // Walks the log from its first record. The log must outlive it and not change meanwhile.
  class Reader {
   public:
    explicit Reader(const WorkLog& log) : log_(&log) {}
    bool next(WorkRecord& record);

   private:
    const WorkLog* log_;
    std::size_t byte_ = 0;
    std::int64_t end_ns_ = 0;
  };

 private:
  struct Hash {
    std::size_t operator()(const WorkKey& key) const;
  };
  std::unordered_map<WorkKey, std::uint32_t, Hash> index_;
  std::vector<WorkKey> keys_;
  std::vector<std::uint8_t> bytes_;
  std::int64_t last_end_ns_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace pasta::tools::diagnose
