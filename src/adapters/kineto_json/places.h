// Who and where: the processes, threads, devices and queues of one file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/kineto_json/record.h"
#include "pasta/dictionary.h"

namespace pasta::adapters::kineto_json {

// Names repeat: a direct-mapped table of the last ones spares hashing and locking.
class NameCache {
 public:
  StringId get(Dictionary& dictionary, std::string_view text);

 private:
  struct Entry {
    std::string_view text;
    StringId id{};
  };
  static constexpr unsigned kBits = 11;
  std::array<Entry, std::size_t{1} << kBits> entries_{};
};

class Places {
 public:
  // `path` tells the processes of this file from those of others with the same id.
  Places(Dictionary& dictionary, std::string_view path);

  StringId string(std::string_view text) { return names_.get(dictionary_, text); }

  // Device rows do not say which process they belong to, and a file is the trace of one: its
  // devices and its correlations belong to this process of its own.
  [[nodiscard]] ProcessId file_process() const { return file_process_; }

  DeviceId device(std::uint64_t ordinal);
  // Whether a queue of a device was met.
  [[nodiscard]] bool any_queue() const { return !device_rows_.empty(); }
  LaneId thread_lane(const Record& record);
  LaneId queue_lane(const Record& record);
  // Ranges that are tied to an id, not to a thread, lie on one lane a category.
  LaneId async_lane(const Record& record);
  // The lane of the row that a record names: that of its device work where there is any.
  LaneId row_lane(const Record& record);

  // What "process_name" and "thread_name" records say; applied at the end, when it is known which
  // rows are of processes and which of devices.
  void name_process(const Record& record, std::string_view name);
  void name_row(const Record& record, std::string_view name);
  // `any_events`: the file has other records than these. Kineto names a row for each device it
  // could have seen; such rows without events are no processes.
  void apply_names(bool any_events);
  void set_rank(std::int32_t rank, std::int32_t world_size);

 private:
  // A pid or tid: a number, a number in quotes, or a name ("Spans", "stream 7").
  struct Token {
    bool is_number = false;
    std::uint64_t number = 0;
    std::string_view text;  // when not a number
  };
  struct RowName {
    bool of_process = false;
    std::string pid, tid, name;
  };
  // What tells the lanes of one file apart; numbers, or ids of texts above kText.
  struct LaneKey {
    bool queue = false;
    std::uint64_t pid = 0, tid = 0, device = 0, context = 0;
    bool operator==(const LaneKey&) const = default;
  };

  struct RecentLane {
    LaneKey key;
    LaneId lane{};
  };

  static Token token(std::string_view text);
  std::uint64_t key_of(const Token& token);
  ProcessId process(const Token& pid);
  template <class Make>
  LaneId recent(const LaneKey& key, Make&& make);
  LaneId thread_lane(std::string_view pid, std::string_view tid);

  Dictionary& dictionary_;
  StringId source_;
  ProcessId file_process_;
  NameCache names_;
  std::vector<ProcessId> processes_;  // of the host, that have events
  // The last lanes, newest in front: rows of one thread or queue follow each other.
  std::array<RecentLane, 16> lanes_;
  std::size_t lanes_used_ = 0;
  std::unordered_map<std::string, LaneId> device_rows_;  // by pid and tid
  std::vector<RowName> row_names_;
};

}  // namespace pasta::adapters::kineto_json
