#include "adapters/nsys_sqlite/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "adapters/common/database_adapter.h"

namespace pasta::adapters::nsys_sqlite {

using base::sqlite::Database;
using base::sqlite::Row;

namespace {

GlobalId global_id(std::int64_t value) { return {static_cast<std::uint64_t>(value)}; }

std::uint32_t small(const Row& row, int column) {
  const auto value = row.integer(column);
  return value && *value > 0 && *value <= 0xffff'ffff ? static_cast<std::uint32_t>(*value) : 0;
}

}  // namespace

Places::Places(Dictionary& dictionary, Problems& problems, Strings& strings, std::string_view path)
    : dictionary_(dictionary),
      problems_(problems),
      strings_(strings),
      source_(dictionary.string(path)) {}

void Places::read_targets(const Database& database) {
  static constexpr std::string_view kEnvironment[] = {"name", "value"};
  common::each_row(
      database, problems_, "TARGET_INFO_SYSTEM_ENV", kEnvironment, [&](const Row& row) {
        const std::string_view name = row.text(0);
        const std::string_view value = row.text(1);
        if (value.empty()) return;
        if (name == "Hostname") host_ = dictionary_.string(value);
        if (name == "CudaVersion" || name == "NvDriverVersion" || name == "OsVersion") {
          dictionary_.fact(name, value);
        }
      });
  enum Gpus { kId, kName, kUuid, kBus, kCuda, kSms, kMemory, kMajor, kMinor, kWarps, kWarpSize };
  static constexpr std::string_view kGpus[] = {
      "id",          "name",         "uuid",         "busLocation",   "cuDevice",      "smCount",
      "totalMemory", "computeMajor", "computeMinor", "maxWarpsPerSm", "threadsPerWarp"};
  common::each_row(database, problems_, "TARGET_INFO_GPU", kGpus, [&](const Row& row) {
    Gpu gpu;
    gpu.id = row.integer(kId).value_or(static_cast<std::int64_t>(gpus_.size()));
    gpu.cuda = row.integer(kCuda);
    const std::string_view uuid = row.text(kUuid);
    const std::string_view bus = row.text(kBus);
    const std::string_view where = dictionary_.text(host_ ? host_ : source_);
    gpu.identity = dictionary_.string(!uuid.empty()  ? std::string(uuid)
                                      : !bus.empty() ? fmt::format("{} {}", where, bus)
                                                     : fmt::format("{} GPU {}", where, gpu.id));
    gpu.facts.name = dictionary_.string(row.text(kName));
    gpu.facts.multiprocessors = small(row, kSms);
    gpu.facts.memory_bytes = static_cast<std::uint64_t>(row.integer(kMemory).value_or(0));
    gpu.facts.compute_major = small(row, kMajor);
    gpu.facts.compute_minor = small(row, kMinor);
    gpu.facts.warp_size = small(row, kWarpSize);
    gpu.facts.max_threads_per_multiprocessor = small(row, kWarps) * gpu.facts.warp_size;
    gpus_.push_back(gpu);
  });
  static constexpr std::string_view kDevices[] = {"gpuId", "cudaId", "pid"};
  common::each_row(database, problems_, "TARGET_INFO_CUDA_DEVICE", kDevices, [&](const Row& row) {
    const auto gpu = row.integer(0);
    const auto cuda = row.integer(1);
    const auto pid = row.integer(2);
    if (gpu && cuda && pid) gpu_ids_[{static_cast<std::uint64_t>(*pid), *cuda}] = *gpu;
  });
  static constexpr std::string_view kContexts[] = {"processId", "contextId", "deviceId"};
  common::each_row(database, problems_, "TARGET_INFO_CUDA_CONTEXT_INFO", kContexts,
                   [&](const Row& row) {
                     const auto pid = row.integer(0);
                     const auto context = row.integer(1);
                     const auto ordinal = row.integer(2);
                     if (pid && context && ordinal) {
                       context_devices_[{static_cast<std::uint64_t>(*pid), *context}] = *ordinal;
                       if (static_cast<std::size_t>(*ordinal) + 1 == gpus_.size()) {
                         seeing_all_.insert(static_cast<std::uint64_t>(*pid));
                       }
                     }
                   });
  static constexpr std::string_view kStreams[] = {"processId", "contextId", "streamId", "priority"};
  common::each_row(database, problems_, "TARGET_INFO_CUDA_STREAM", kStreams, [&](const Row& row) {
    const auto pid = row.integer(0);
    const auto context = row.integer(1);
    const auto stream = row.integer(2);
    const auto priority = row.integer(3);
    if (!pid || !context || !stream || !priority || *priority == 0) return;
    // Written as unsigned 32 bits: 4294967291 is -5.
    stream_priorities_[{static_cast<std::uint64_t>(*pid), *context, *stream}] =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(*priority));
  });
}

void Places::read_names(const Database& database) {
  static constexpr std::string_view kProcesses[] = {"globalPid", "name"};
  common::each_row(database, problems_, "PROCESSES", kProcesses, [&](const Row& row) {
    const auto global = row.integer(0);
    if (!global || row.text(1).empty()) return;
    const auto it = processes_.find(global_id(*global).of_process());
    if (it == processes_.end()) return;
    Process facts = dictionary_.process(it->second);
    facts.name = dictionary_.string(row.text(1));
    dictionary_.update(it->second, facts);
  });
  static constexpr std::string_view kThreads[] = {"globalTid", "nameId"};
  common::each_row(database, problems_, "ThreadNames", kThreads, [&](const Row& row) {
    const auto global = row.integer(0);
    if (!global) return;
    const auto it = threads_.find(static_cast<std::uint64_t>(*global));
    if (it == threads_.end()) return;
    if (const StringId name = strings_.name(row, 1)) dictionary_.update(it->second, name);
  });
  static constexpr std::string_view kRanks[] = {"globalTid", "rank"};
  common::each_row(database, problems_, "MPI_RANKS", kRanks, [&](const Row& row) {
    const auto global = row.integer(0);
    const auto rank = row.integer(1);
    if (!global || !rank || *rank < 0 || *rank > 0x7fff'ffff) return;
    const ProcessId id = process(global);
    Process facts = dictionary_.process(id);
    facts.rank = static_cast<std::int32_t>(*rank);
    dictionary_.update(id, facts);
    ranks_[id.value] = facts.rank;
  });
}

std::optional<std::int32_t> Places::rank() const {
  if (ranks_.size() != 1) return std::nullopt;
  return ranks_.begin()->second;
}

std::uint64_t Places::known(std::optional<std::int64_t> global) const {
  if (global && *global != 0) return global_id(*global).of_process();
  return only_launcher_ && !several_launchers_ ? *only_launcher_ : kNoGlobal;
}

ProcessId Places::process(std::optional<std::int64_t> global) {
  const std::uint64_t key = known(global);
  RecentProcess& recent = recent_processes_[GlobalId{key}.process() % recent_processes_.size()];
  if (!recent.id || recent.key != key) {
    const auto it = processes_.find(key);
    recent = {key, it != processes_.end() ? it->second : new_process(key)};
  }
  return recent.id;
}

ProcessId Places::new_process(std::uint64_t key) {
  Process process;
  process.source = source_;
  if (key != kNoGlobal) {
    const GlobalId id{key};
    if (!machine_) machine_ = id.machine();
    process.native_id = id.process();
    // Of another host, container or virtual machine, which counts its processes anew.
    if (id.machine() != *machine_) {
      process.native_text =
          dictionary_.string(fmt::format("{} on machine {:#x}", id.process(), id.machine()));
      process.native_id = 0;
    }
  }
  const ProcessId made = dictionary_.process(process);
  if (host_) {
    process.host = host_;
    dictionary_.update(made, process);
  }
  processes_.emplace(key, made);
  return made;
}

ProcessId Places::launching_process(std::optional<std::int64_t> global) {
  if (global && *global != 0) {
    const std::uint64_t key = global_id(*global).of_process();
    several_launchers_ |= only_launcher_.value_or(key) != key;
    only_launcher_ = key;
  }
  return process(global);
}

template <class Make>
LaneId Places::lane(const Key& key, Make&& make) {
  std::uint64_t mixed = 0;
  for (const std::uint64_t part : key) mixed = (mixed ^ part) * 0x9E3779B97F4A7C15u;
  static_assert(std::tuple_size_v<decltype(recent_)> == 64);
  RecentLane& recent = recent_[mixed >> 58];
  if (!recent.lane || recent.key != key) {
    auto it = lanes_.find(key);
    if (it == lanes_.end()) it = lanes_.emplace(key, make()).first;
    recent = {key, it->second};
  }
  return recent.lane;
}

// First word of a key: which of the functions made it.
enum LaneKind : std::uint64_t { kThreadLane, kUnboundLane, kQueueLane, kDeviceLane, kWaitLane };

Places::Key Places::queue_key(std::uint64_t kind, std::uint64_t owner, std::int64_t ordinal,
                              std::int64_t context, std::int64_t stream) {
  return {kind, owner, static_cast<std::uint64_t>(ordinal), static_cast<std::uint64_t>(context),
          static_cast<std::uint64_t>(stream)};
}

LaneId Places::thread(std::optional<std::int64_t> global) {
  const std::uint64_t id = global ? static_cast<std::uint64_t>(*global) : 0;
  return lane({kThreadLane, id}, [&] {
    Lane row;
    row.process = process(global);
    row.native_id = GlobalId{id}.thread();
    if (id == 0) row.native_text = dictionary_.string("(no thread)");
    const LaneId made = dictionary_.lane(row);
    if (id != 0) threads_.emplace(id, made);
    return made;
  });
}

LaneId Places::unbound(std::optional<std::int64_t> global, std::string_view what) {
  const StringId text = dictionary_.string(what);
  return lane({kUnboundLane, known(global), text.value}, [&] {
    Lane row;
    row.process = process(global);
    row.native_text = text;
    return dictionary_.lane(row);
  });
}

// The GPU that a process calls number `ordinal`. Certain where the file says so of this process, or
// where none is hidden from it, as when there is only one; otherwise only what GPUs of one number
// have in common is to be used.
const Places::Gpu* Places::gpu_of(std::uint64_t pid, std::int64_t ordinal, bool& certain) const {
  const auto find = [&](auto&& is) -> const Gpu* {
    const auto it = std::find_if(gpus_.begin(), gpus_.end(), is);
    return it == gpus_.end() ? nullptr : &*it;
  };
  if (const auto it = gpu_ids_.find({pid, ordinal}); it != gpu_ids_.end()) {
    certain = true;
    return find([&](const Gpu& gpu) { return gpu.id == it->second; });
  }
  certain = gpus_.size() == 1 || seeing_all_.contains(pid);
  if (const Gpu* gpu = find([&](const Gpu& g) { return g.cuda == ordinal; })) return gpu;
  return find([&](const Gpu& gpu) { return !gpu.cuda && gpu.id == ordinal; });
}

DeviceId Places::device(std::optional<std::int64_t> global, std::int64_t ordinal) {
  const std::uint64_t owner = known(global);
  const auto [it, fresh] = devices_.try_emplace({owner, ordinal});
  if (!fresh) return it->second;
  bool certain = false;
  const Gpu* const gpu = gpu_of(GlobalId{owner}.process(), ordinal, certain);
  const bool identified = gpu != nullptr && certain;
  if (identified) {
    // Another process may number it otherwise.
    const auto same = devices_by_identity_.find(gpu->identity.value);
    if (same != devices_by_identity_.end()) {
      return it->second = same->second;
    }
  }
  Device key;
  key.ordinal = static_cast<std::uint32_t>(ordinal);
  key.type = DeviceType::kGpu;
  if (identified) {
    key.uuid = gpu->identity;
  } else {
    key.process = process(global);
  }
  it->second = dictionary_.device(key);
  if (identified) devices_by_identity_.emplace(gpu->identity.value, it->second);
  if (gpu != nullptr) {
    Device facts = gpu->facts;
    facts.process = key.process;
    facts.ordinal = key.ordinal;
    facts.uuid = key.uuid;
    facts.type = key.type;
    dictionary_.update(it->second, facts);
  }
  return it->second;
}

LaneId Places::queue_on(ProcessId owner, DeviceId on, std::int64_t context, std::int64_t stream) {
  Lane queue;
  queue.type = LaneType::kQueue;
  queue.process = owner;
  queue.device = on;
  queue.context = static_cast<std::uint64_t>(context);
  queue.native_id = static_cast<std::uint64_t>(stream);
  return dictionary_.lane(queue);
}

LaneId Places::queue(std::optional<std::int64_t> global, std::int64_t ordinal, std::int64_t context,
                     std::int64_t stream) {
  const std::uint64_t owner = known(global);
  const std::uint64_t pid = GlobalId{owner}.process();
  return lane(queue_key(kQueueLane, owner, ordinal, context, stream), [&] {
    context_devices_.try_emplace({pid, context}, ordinal);
    const LaneId made = queue_on(process(global), device(global, ordinal), context, stream);
    if (const auto it = stream_priorities_.find({pid, context, stream});
        it != stream_priorities_.end()) {
      priorities_.resize(std::max<std::size_t>(priorities_.size(), made.value + 1));
      priorities_[made.value] = it->second;
    }
    return made;
  });
}

LaneId Places::device_row(std::optional<std::int64_t> global, std::int64_t ordinal,
                          std::string_view what) {
  const StringId text = dictionary_.string(what);
  const Key key = {kDeviceLane, known(global), static_cast<std::uint64_t>(ordinal), text.value};
  return lane(key, [&] {
    Lane row;
    row.type = LaneType::kQueue;
    row.process = process(global);
    row.device = device(global, ordinal);
    row.native_text = text;
    return dictionary_.lane(row);
  });
}

LaneId Places::waiting_queue(std::optional<std::int64_t> global, std::int64_t ordinal,
                             std::int64_t context, std::int64_t stream) {
  const std::uint64_t owner = known(global);
  return lane(queue_key(kWaitLane, owner, ordinal, context, stream), [&] {
    const auto it = context_devices_.find({GlobalId{owner}.process(), context});
    const std::int64_t on = it == context_devices_.end() ? ordinal : it->second;
    return queue_on(process(global), device(global, on), context, stream);
  });
}

std::int32_t Places::priority(LaneId queue) const {
  return queue.value < priorities_.size() ? priorities_[queue.value] : 0;
}

}  // namespace pasta::adapters::nsys_sqlite
