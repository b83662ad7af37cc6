// Who and where: the processes, threads, devices and queues of one export.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "adapters/nsys_sqlite/strings.h"
#include "adapters/nsys_sqlite/vocabulary.h"
#include "base/sqlite.h"
#include "pasta/dictionary.h"
#include "pasta/quality.h"

namespace pasta::adapters::nsys_sqlite {

class Places {
 public:
  // `path` tells the processes of this file from those of others with the same id.
  Places(Dictionary& dictionary, Problems& problems, Strings& strings, std::string_view path);

  // Reads what the tables TARGET_INFO_* know of GPUs, contexts and streams. Before any queue.
  void read_targets(const base::sqlite::Database& database);
  // Names processes and threads, and gives processes their MPI rank. After all rows, since only
  // those that have events are kept.
  void read_names(const base::sqlite::Database& database);
  // The rank, when all ranks of the file are one.
  [[nodiscard]] std::optional<std::int32_t> rank() const;

  // Of a globalPid or globalTid. Rows without one belong to the only process that calls of the
  // runtime were seen of, or else to one that stands for the file.
  ProcessId process(std::optional<std::int64_t> global);
  // Of a call of the runtime: launches come from this process.
  ProcessId launching_process(std::optional<std::int64_t> global);
  LaneId thread(std::optional<std::int64_t> global);
  // A lane of a process for what the file ties to no thread.
  LaneId unbound(std::optional<std::int64_t> global, std::string_view what);
  DeviceId device(std::optional<std::int64_t> global, std::int64_t ordinal);
  // Where work ran. Learns which device the context is of.
  LaneId queue(std::optional<std::int64_t> global, std::int64_t ordinal, std::int64_t context,
               std::int64_t stream);
  // A queue for what is tied to a device but to no stream.
  LaneId device_row(std::optional<std::int64_t> global, std::int64_t ordinal,
                    std::string_view what);
  // Where something waited: of these rows deviceId is 0 on whatever device the context is, so the
  // context decides where it is known.
  LaneId waiting_queue(std::optional<std::int64_t> global, std::int64_t ordinal,
                       std::int64_t context, std::int64_t stream);
  [[nodiscard]] std::int32_t priority(LaneId queue) const;

 private:
  struct Gpu {
    std::int64_t id = 0;
    std::optional<std::int64_t> cuda;
    StringId identity{};  // its UUID, or else what tells it from all others
    Device facts;
  };
  using Key = std::array<std::uint64_t, 5>;
  struct RecentLane {
    Key key{};
    LaneId lane{};
  };
  struct RecentProcess {
    std::uint64_t key = 0;
    ProcessId id{};
  };
  using Context = std::tuple<std::uint64_t, std::int64_t>;  // process of the system, context

  const Gpu* gpu_of(std::uint64_t pid, std::int64_t ordinal, bool& certain) const;
  ProcessId new_process(std::uint64_t key);
  template <class Make>
  LaneId lane(const Key& key, Make&& make);
  static Key queue_key(std::uint64_t kind, std::uint64_t owner, std::int64_t ordinal,
                       std::int64_t context, std::int64_t stream);
  LaneId queue_on(ProcessId owner, DeviceId on, std::int64_t context, std::int64_t stream);
  // No process in the file has this id.
  static constexpr std::uint64_t kNoGlobal = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t known(std::optional<std::int64_t> global) const;

  Dictionary& dictionary_;
  Problems& problems_;
  Strings& strings_;
  StringId source_;
  StringId host_{};
  std::map<std::uint64_t, ProcessId> processes_;  // by globalPid, and kNoGlobal
  std::map<std::uint64_t, LaneId> threads_;       // by globalTid
  std::optional<std::uint64_t> machine_;          // of the first process
  std::optional<std::uint64_t> only_launcher_;    // globalPid
  bool several_launchers_ = false;
  std::vector<Gpu> gpus_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::int64_t> gpu_ids_;  // by pid, ordinal
  std::map<std::pair<std::uint64_t, std::int64_t>, DeviceId> devices_;      // by globalPid, ordinal
  std::map<std::uint32_t, DeviceId> devices_by_identity_;
  std::map<Context, std::int64_t> context_devices_;
  std::set<std::uint64_t> seeing_all_;  // processes that use the last of all GPUs
  // By process of the system, context and stream, where it is not 0; and by lane.
  std::map<std::tuple<std::uint64_t, std::int64_t, std::int64_t>, std::int32_t> stream_priorities_;
  std::vector<std::int32_t> priorities_;
  std::map<Key, LaneId> lanes_;
  // What was met of late, each where its key says; rows of one place follow each other.
  std::array<RecentLane, 64> recent_{};
  std::array<RecentProcess, 16> recent_processes_{};
  std::map<std::uint32_t, std::int32_t> ranks_;  // by process
};

}  // namespace pasta::adapters::nsys_sqlite
