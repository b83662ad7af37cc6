// Everything events refer to by id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pasta/event.h"
#include "pasta/ids.h"

namespace pasta {

inline constexpr std::int32_t kUnknownRank = -1;

struct Process {
  std::uint64_t native_id = 0;  // the operating system's id, when the source gave a number
  StringId native_text{};       // the source's id, when it was not a number
  StringId source{};            // tells processes of different sources apart; none in a live trace
  // Not part of the identity:
  StringId name{};
  StringId host{};
  std::int32_t rank = kUnknownRank;
  std::int32_t world_size = 0;  // 0 = unknown
};

enum class DeviceType : std::uint8_t { kUnknown, kGpu, kCpu, kAccelerator };

struct Device {
  ProcessId process{};  // whose numbering `ordinal` belongs to; none when uuid is known
  std::uint32_t ordinal = 0;
  StringId uuid{};  // UUID, or host and PCI bus id: then the ordinal does not identify
  DeviceType type = DeviceType::kUnknown;
  // Not part of the identity; 0 = unknown:
  StringId name{};
  std::uint32_t multiprocessors = 0;
  std::uint32_t compute_major = 0, compute_minor = 0;
  std::uint32_t max_threads_per_multiprocessor = 0;
  std::uint32_t warp_size = 0;
  std::uint64_t memory_bytes = 0;
};

enum class LaneType : std::uint8_t { kThread, kQueue };

struct Lane {
  LaneType type = LaneType::kThread;
  ProcessId process{};
  DeviceId device{};            // of a queue
  std::uint64_t context = 0;    // of a queue, where the source gives it
  std::uint64_t native_id = 0;  // thread id or stream number
  StringId native_text{};       // the source's id, when it was not a number
  // Not part of the identity:
  StringId name{};
};

struct Frame {
  FrameId parent{};
  StringId name{};
  ScopeDomain domain = ScopeDomain::kUnknown;
  bool operator==(const Frame&) const = default;
};

// How a kernel was launched. 0 = unknown or none.
struct LaunchAttributes {
  std::uint32_t block[3] = {0, 0, 0};
  std::uint32_t cluster[3] = {0, 0, 0};
  std::uint32_t registers_per_thread = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t local_bytes_per_thread = 0;
  std::int32_t priority = 0;
  CollectiveId collective{};
  bool operator==(const LaunchAttributes&) const = default;
};

// What a communication kernel exchanges with whom. 0 or none = unknown.
struct Collective {
  StringId name{};  // allreduce, all_to_all, ...
  StringId element_type{};
  std::uint64_t in_elements = 0;
  std::uint64_t out_elements = 0;
  StringId group{};  // name of the process group
  StringId ranks{};  // of the group, as the source wrote them
  std::uint32_t group_size = 0;
  bool operator==(const Collective&) const = default;
};

// The tables of one trace. Append-only: an id stays valid for the life of the trace, and what
// identifies an entry never changes; names, ranks and the like may be filled in later.
// Thread-safe. Looking an id up never locks, so tools may do it once per event. Entries are
// returned by value; text stays valid for the life of the dictionary. Id 0 gives "" or an empty
// entry.
class Dictionary {
 public:
  Dictionary();
  ~Dictionary();
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  // The id of equal text or of an equal entry, made on first sight.
  StringId string(std::string_view text);
  ProcessId process(const Process& key);  // identity fields only
  DeviceId device(const Device& key);     // identity fields only
  LaneId lane(const Lane& key);           // identity fields only
  // A call path: `name` inside `parent`. At most `max_frames()` distinct paths are kept; beyond
  // that the parent is returned and the fold is counted.
  FrameId frame(const Frame& frame);
  // The id of a known path, or none: the node that a kScope event opens is the frame of its scope,
  // name and detail, where it opens one at all (docs/correlation.md).
  [[nodiscard]] FrameId find_frame(const Frame& frame) const;
  AttributesId attributes(const LaunchAttributes&);
  CollectiveId collective(const Collective&);

  // Fill in what is not part of the identity.
  void update(ProcessId id, const Process& facts);
  void update(DeviceId id, const Device& facts);
  void update(LaneId id, StringId name);

  [[nodiscard]] std::string_view text(StringId id) const;
  [[nodiscard]] Process process(ProcessId id) const;
  [[nodiscard]] Device device(DeviceId id) const;
  [[nodiscard]] Lane lane(LaneId id) const;
  [[nodiscard]] Frame frame(FrameId id) const;
  [[nodiscard]] LaunchAttributes attributes(AttributesId id) const;
  [[nodiscard]] Collective collective(CollectiveId id) const;

  // Number of ids in use, id 0 included: valid ids are 1 .. count - 1.
  [[nodiscard]] std::uint32_t string_count() const;
  [[nodiscard]] std::uint32_t process_count() const;
  [[nodiscard]] std::uint32_t device_count() const;
  [[nodiscard]] std::uint32_t lane_count() const;
  [[nodiscard]] std::uint32_t frame_count() const;
  [[nodiscard]] std::uint32_t attributes_count() const;
  [[nodiscard]] std::uint32_t collective_count() const;
  // Grows with every update(): a writer that has written a table up to a count writes the table
  // again when this has changed.
  [[nodiscard]] std::uint64_t updates() const;

  [[nodiscard]] std::uint64_t folded_frames() const;
  void limit_frames(std::uint32_t max_frames);

  // Facts of the trace as a whole that no other table holds (driver version, profiler options).
  void fact(std::string_view key, std::string_view value);
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> facts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta
