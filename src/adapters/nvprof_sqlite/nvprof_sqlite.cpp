#include "adapters/nvprof_sqlite/nvprof_sqlite.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "adapters/common/database_adapter.h"
#include "adapters/common/lanes.h"
#include "adapters/common/select.h"
#include "adapters/common/string_table.h"
#include "adapters/nvprof_sqlite/call_names.h"

namespace pasta::adapters::nvprof_sqlite {
namespace {

using base::sqlite::Database;
using base::sqlite::Statement;
using common::Lanes;
using common::Select;
using common::StringTable;

constexpr std::string_view kPrefix = "CUPTI_ACTIVITY_KIND_";

std::string table(std::string_view kind) { return fmt::format("{}{}", kPrefix, kind); }

// CUpti_ActivityMemcpyKind.
CopyDirection copy_direction(std::int64_t kind) {
  switch (kind) {
    case 1:
    case 3:  // to an array
      return CopyDirection::kHostToDevice;
    case 2:
    case 4:
      return CopyDirection::kDeviceToHost;
    case 5:
    case 6:
    case 7:
    case 8:
      return CopyDirection::kDeviceToDevice;
    case 9:
      return CopyDirection::kHostToHost;
    case 10:
      return CopyDirection::kPeerToPeer;
    default:
      return CopyDirection::kUnknown;
  }
}

// CUpti_ActivityMemoryKind, as Kineto calls it.
std::string_view memory_name(std::int64_t kind) {
  constexpr std::array<std::string_view, 8> kNames = {
      "", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static"};
  return kind > 0 && kind < static_cast<std::int64_t>(kNames.size())
             ? kNames[static_cast<std::size_t>(kind)]
             : "";
}

// "Memcpy HtoD (Pinned -> Device)".
std::string copy_name(CopyDirection direction, std::int64_t from, std::int64_t to) {
  std::string name = "Memcpy";
  switch (direction) {
    case CopyDirection::kHostToDevice:
      name += " HtoD";
      break;
    case CopyDirection::kDeviceToHost:
      name += " DtoH";
      break;
    case CopyDirection::kDeviceToDevice:
      name += " DtoD";
      break;
    case CopyDirection::kHostToHost:
      name += " HtoH";
      break;
    case CopyDirection::kPeerToPeer:
      name += " PtoP";
      break;
    default:
      break;
  }
  if (memory_name(from).empty() || memory_name(to).empty()) return name;
  return fmt::format("{} ({} -> {})", name, memory_name(from), memory_name(to));
}

// CUpti_ActivityObjectKindId, the bytes of which nvprof writes. A process has no thread.
struct ObjectIds {
  std::uint32_t process, thread;
};
std::optional<ObjectIds> object_ids(std::string_view object) {
  ObjectIds ids{};
  if (object.size() < sizeof ids) return std::nullopt;
  std::memcpy(&ids, object.data(), sizeof ids);
  return ids;
}

class NvprofSqlite final : public common::DatabaseAdapter {
 public:
  explicit NvprofSqlite(Database database) : DatabaseAdapter(kInfo, std::move(database)) {}

 private:
  // Columns of what ran on a device.
  struct WorkColumns {
    int start, end, device, context, stream, correlation;
  };

  Status prepare() override;
  Status complete(SourceInfo&) override;
  Status find_process();
  Status read_devices();

  void read_calls(std::string_view kind, Api api);
  void read_kernels(std::string_view kind);
  void read_copies(std::string_view kind);
  void read_fills();
  void read_syncs();
  void read_unified_memory();
  void read_memory();
  void read_markers();
  void read_overheads();

  static WorkColumns work_columns(Select& select);
  // Device and queue, link and times.
  void place_work(Event& event, const WorkColumns& columns);
  ProcessId process(std::optional<std::int64_t> pid);
  DeviceId device(std::int64_t number);
  LaneId object_lane(std::string_view object);
  StringId text(std::string_view text) { return dictionary().string(text); }
  std::uint64_t number(int column, std::string_view what, std::uint64_t fallback = 0) {
    const auto value = integer(column, what);
    return value ? static_cast<std::uint64_t>(*value) : fallback;
  }

  std::optional<StringTable> strings_;
  std::optional<Lanes> lanes_;
  ProcessId process_{};  // that did what does not say whose it is
  std::unordered_map<std::int64_t, ProcessId> processes_;
  std::unordered_map<std::int64_t, DeviceId> devices_;
};

Status NvprofSqlite::prepare() {
  strings_.emplace(database(), dictionary(), "StringTable", "_id_", "value");
  lanes_.emplace(dictionary(), Lanes::Naming::kByStream);
  PASTA_TRY(find_process());
  PASTA_TRY(read_devices());
  read_calls("RUNTIME", Api::kRuntime);
  read_calls("DRIVER", Api::kDriver);
  // A run in which kernels were made to follow each other has the first, others the second; what
  // kernels launch is in the third.
  for (const char* kind : {"KERNEL", "CONCURRENT_KERNEL", "CDP_KERNEL"}) read_kernels(kind);
  for (const char* kind : {"MEMCPY", "MEMCPY2"}) read_copies(kind);
  read_fills();
  read_syncs();
  read_unified_memory();
  read_memory();
  read_markers();
  read_overheads();
  for (const char* kind : {"METRIC", "METRIC_INSTANCE", "EVENT", "EVENT_INSTANCE"}) {
    PASTA_TRY(leave_out(table(kind), "counters of single kernels, without their names"));
  }
  for (const char* kind : {"GLOBAL_ACCESS", "SHARED_ACCESS", "BRANCH", "INSTRUCTION_EXECUTION",
                           "PC_SAMPLING", "OPENACC_DATA", "OPENACC_LAUNCH", "OPENACC_OTHER"}) {
    PASTA_TRY(leave_out(table(kind), "not read"));
  }
  return {};
}

Status NvprofSqlite::complete(SourceInfo&) {
  if (!strings_->damage().empty()) problems().add(Reason::kRecordSkipped, 1, strings_->damage());
  return {};
}

// --- who and where

// nvprof writes a file for each process, and only its calls say which it was.
Status NvprofSqlite::find_process() {
  for (const char* kind : {"RUNTIME", "DRIVER"}) {
    if (process_ || !database().has(table(kind), "processId")) continue;
    PASTA_TRY(read_now(table(kind), fmt::format("SELECT processId FROM {} LIMIT 1", table(kind)),
                       [&]() -> Status {
                         process_ = process(integer(0, "processId"));
                         return {};
                       }));
  }
  if (!process_ && database().has(table("OVERHEAD"), "objectId")) {
    PASTA_TRY(read_now(table("OVERHEAD"),
                       fmt::format("SELECT objectId FROM {} LIMIT 1", table("OVERHEAD")),
                       [&]() -> Status {
                         if (const auto object = object_ids(text_of(0))) {
                           process_ = process(object->process);
                         }
                         return {};
                       }));
  }
  if (!process_) process_ = dictionary().process({.source = text(database().path())});
  return {};
}

ProcessId NvprofSqlite::process(std::optional<std::int64_t> pid) {
  if (!pid) return process_;
  ProcessId& id = processes_[*pid];
  if (!id) {
    id = dictionary().process(
        {.native_id = static_cast<std::uint64_t>(*pid), .source = text(database().path())});
  }
  return id;
}

Status NvprofSqlite::read_devices() {
  Select select(database(), table("DEVICE"), "D");
  const int id = select.column("D", "id"), name = select.column("D", "name"),
            uuid = select.column("D", "uuid"), memory = select.column("D", "globalMemorySize"),
            multiprocessors = select.column("D", "numMultiprocessors"),
            warps = select.column("D", "maxWarpsPerMultiprocessor"),
            warp = select.column("D", "numThreadsPerWarp"),
            major = select.column("D", "computeCapabilityMajor"),
            minor = select.column("D", "computeCapabilityMinor");
  return read_now(table("DEVICE"), select.sql(), [&]() -> Status {
    const auto number = integer(id, "id");
    if (!number) return {};
    Device facts;
    facts.ordinal = static_cast<std::uint32_t>(*number);
    facts.type = DeviceType::kGpu;
    const std::string_view bytes = text_of(uuid);
    if (bytes.size() == 16 && bytes.find_first_not_of('\0') != bytes.npos) {
      std::string words = "GPU-";
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) words += '-';
        words += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
      }
      facts.uuid = text(words);
    } else {
      facts.process = process_;
    }
    facts.name = strings_->get(integer(name, "name").value_or(0));
    facts.multiprocessors = small(multiprocessors, "numMultiprocessors");
    facts.compute_major = small(major, "computeCapabilityMajor");
    facts.compute_minor = small(minor, "computeCapabilityMinor");
    facts.warp_size = small(warp, "numThreadsPerWarp");
    facts.max_threads_per_multiprocessor =
        small(warps, "maxWarpsPerMultiprocessor") * facts.warp_size;
    facts.memory_bytes = this->number(memory, "globalMemorySize");
    DeviceId& device = devices_[*number];
    device = dictionary().device(facts);
    dictionary().update(device, facts);
    return {};
  });
}

DeviceId NvprofSqlite::device(std::int64_t number) {
  DeviceId& id = devices_[number];
  if (!id) {
    id = dictionary().device({.process = process_,
                              .ordinal = static_cast<std::uint32_t>(number),
                              .type = DeviceType::kGpu});
  }
  return id;
}

LaneId NvprofSqlite::object_lane(std::string_view object) {
  const auto ids = object_ids(object);
  if (!ids || ids->thread == 0) {
    return lanes_->named(ids ? process(ids->process) : process_, "(no thread)");
  }
  return lanes_->thread(process(ids->process), ids->thread);
}

NvprofSqlite::WorkColumns NvprofSqlite::work_columns(Select& select) {
  return {.start = select.column("W", "start"),
          .end = select.column("W", "end"),
          .device = select.column("W", "deviceId"),
          .context = select.column("W", "contextId"),
          .stream = select.column("W", "streamId"),
          .correlation = select.column("W", "correlationId")};
}

void NvprofSqlite::place_work(Event& event, const WorkColumns& columns) {
  const auto known = [&](int column, std::string_view what) -> std::optional<std::uint64_t> {
    const auto value = integer(column, what);
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  };
  event.lane = lanes_->queue({.process = process_,
                              .device = device(integer(columns.device, "deviceId").value_or(0)),
                              .stream = known(columns.stream, "streamId"),
                              .context = known(columns.context, "contextId")});
  event.correlation = correlation(process_, integer(columns.correlation, "correlationId"));
  set_times(event, columns.start, columns.end);
}

// --- what happened

void NvprofSqlite::read_calls(std::string_view kind, Api api) {
  Select select(database(), table(kind), "A");
  const int number = select.column("A", "cbid"), start = select.column("A", "start"),
            end = select.column("A", "end"), pid = select.column("A", "processId"),
            tid = select.column("A", "threadId"), link = select.column("A", "correlationId"),
            status = select.column("A", "returnValue");
  read(table(kind), select,
       [=, this, names = std::unordered_map<std::int64_t, StringId>()]() mutable {
         Event event{};
         event.kind = Kind::kApi;
         event.detail = static_cast<std::uint16_t>(api == Api::kRuntime ? ApiDomain::kRuntime
                                                                        : ApiDomain::kDriver);
         const std::int64_t id = integer(number, "cbid").value_or(0);
         StringId& name = names[id];
         if (!name) name = text(call_name(api, id));
         event.name = name;
         const ProcessId of = process(integer(pid, "processId"));
         // Thread ids are the lower half of a pthread_t, which may have been read as signed.
         event.lane =
             lanes_->thread(of, static_cast<std::uint32_t>(integer(tid, "threadId").value_or(0)));
         event.correlation = correlation(of, integer(link, "correlationId"));
         event.api.status = static_cast<std::int32_t>(integer(status, "returnValue").value_or(0));
         set_times(event, start, end);
         return add(event);
       });
}

void NvprofSqlite::read_kernels(std::string_view kind) {
  Select select(database(), table(kind), "W");
  const WorkColumns work = work_columns(select);
  std::array<int, 3> grid{}, block{};
  for (std::size_t i = 0; i < 3; ++i) {
    grid[i] = select.column("W", fmt::format("grid{}", "XYZ"[i]));
    block[i] = select.column("W", fmt::format("block{}", "XYZ"[i]));
  }
  const int name = select.column("W", "name"), registers = select.column("W", "registersPerThread"),
            static_shared = select.column("W", "staticSharedMemory"),
            dynamic_shared = select.column("W", "dynamicSharedMemory"),
            local = select.column("W", "localMemoryPerThread");
  read(table(kind), select, [=, this]() {
    Event event{};
    event.kind = Kind::kKernel;
    event.name = strings_->get(integer(name, "name").value_or(0));
    LaunchAttributes attributes;
    for (std::size_t i = 0; i < 3; ++i) {
      event.kernel.grid[i] = small(grid[i], "grid");
      attributes.block[i] = small(block[i], "block");
    }
    attributes.registers_per_thread = small(registers, "registersPerThread");
    attributes.static_shared_bytes = small(static_shared, "staticSharedMemory");
    attributes.dynamic_shared_bytes = small(dynamic_shared, "dynamicSharedMemory");
    attributes.local_bytes_per_thread = small(local, "localMemoryPerThread");
    event.kernel.attributes = attributes_id(attributes);
    place_work(event, work);
    return add(event);
  });
}

void NvprofSqlite::read_copies(std::string_view kind) {
  Select select(database(), table(kind), "W");
  const WorkColumns work = work_columns(select);
  const int way = select.column("W", "copyKind"), bytes = select.column("W", "bytes"),
            from = select.column("W", "srcDeviceId"), to = select.column("W", "dstDeviceId"),
            from_kind = select.column("W", "srcKind"), to_kind = select.column("W", "dstKind");
  read(table(kind), select, [=, this]() {
    Event event{};
    event.kind = Kind::kCopy;
    CopyDirection direction = copy_direction(integer(way, "copyKind").value_or(0));
    const auto source = integer(from, "srcDeviceId"), target = integer(to, "dstDeviceId");
    if (direction == CopyDirection::kDeviceToDevice && source && target && *source != *target) {
      direction = CopyDirection::kPeerToPeer;
    }
    event.detail = static_cast<std::uint16_t>(direction);
    event.name = text(copy_name(direction, integer(from_kind, "srcKind").value_or(0),
                                integer(to_kind, "dstKind").value_or(0)));
    event.copy.bytes = number(bytes, "bytes", kUnknownBytes);
    place_work(event, work);
    return add(event);
  });
}

void NvprofSqlite::read_fills() {
  Select select(database(), table("MEMSET"), "W");
  const WorkColumns work = work_columns(select);
  const int bytes = select.column("W", "bytes"), value = select.column("W", "value");
  read(table("MEMSET"), select, [=, this]() {
    Event event{};
    event.kind = Kind::kFill;
    event.name = text("Memset");
    event.fill.bytes = number(bytes, "bytes", kUnknownBytes);
    event.fill.pattern = small(value, "value");
    place_work(event, work);
    return add(event);
  });
}

void NvprofSqlite::read_syncs() {
  struct Wait {
    std::string_view name;
    SyncTarget target;
  };
  static constexpr std::array<Wait, 5> kWaits = {
      {{"Synchronize", SyncTarget::kUnknown},
       {"Event Sync", SyncTarget::kEvent},
       {"Stream Wait Event", SyncTarget::kStreamWaitsEvent},
       {"Stream Sync", SyncTarget::kStream},
       {"Context Sync", SyncTarget::kContext}}};
  Select select(database(), table("SYNCHRONIZATION"), "W");
  select.join(table("CONTEXT"), "C", {{"W", "contextId", "contextId"}});
  WorkColumns work = work_columns(select);
  work.device = select.column("C", "deviceId");
  const int type = select.column("W", "type"), event_id = select.column("W", "cudaEventId");
  read(table("SYNCHRONIZATION"), select, [=, this]() {
    const std::int64_t kind = integer(type, "type").value_or(0);
    const Wait& wait = kWaits[kind > 0 && kind < 5 ? static_cast<std::size_t>(kind) : 0];
    Event event{};
    event.kind = Kind::kSync;
    event.detail = static_cast<std::uint16_t>(wait.target);
    event.name = text(wait.name);
    event.sync.object = number(event_id, "cudaEventId");
    place_work(event, work);
    return add(event);
  });
}

// CUpti_ActivityUnifiedMemoryCounterKind.
void NvprofSqlite::read_unified_memory() {
  constexpr std::int64_t kHostToDevice = 1, kDeviceToHost = 2, kHostFaults = 3, kDeviceFaults = 4,
                         kDeviceToDevice = 8;
  Select select(database(), table("UNIFIED_MEMORY_COUNTER"), "U");
  const int kind = select.column("U", "counterKind"), value = select.column("U", "value"),
            start = select.column("U", "start"), end = select.column("U", "end"),
            from = select.column("U", "srcId"), to = select.column("U", "dstId"),
            pid = select.column("U", "processId"), address = select.column("U", "address");
  read(table("UNIFIED_MEMORY_COUNTER"), select, [=, this]() {
    const std::int64_t what = integer(kind, "counterKind").value_or(0);
    const ProcessId of = process(integer(pid, "processId"));
    const std::int64_t source = integer(from, "srcId").value_or(0);
    const std::int64_t target = integer(to, "dstId").value_or(0);
    const DeviceId on = device(what == kDeviceToHost || what == kDeviceFaults ? source : target);
    Event event{};
    if (what == kHostToDevice || what == kDeviceToHost || what == kDeviceToDevice) {
      event.kind = Kind::kCopy;
      event.detail = static_cast<std::uint16_t>(CopyDirection::kMigration);
      event.name = text(what == kHostToDevice   ? "Unified Memory Memcpy HtoD"
                        : what == kDeviceToHost ? "Unified Memory Memcpy DtoH"
                                                : "Unified Memory Memcpy DtoD");
      event.copy.bytes = number(value, "value", kUnknownBytes);
      (what == kDeviceToHost ? event.copy.src : event.copy.dst) = number(address, "address");
    } else if (what == kHostFaults || what == kDeviceFaults) {
      event.kind = Kind::kFault;
      event.name = text(what == kHostFaults ? "Unified Memory CPU page faults"
                                            : "Unified Memory GPU page faults");
      event.memory.address = number(address, "address");
      if (what == kDeviceFaults) event.memory.device = on;
    } else {
      note(Reason::kNotKept, [&] { return fmt::format("counter of kind {}", what); });
      return Status{};
    }
    event.lane = what == kHostFaults ? lanes_->named(of, "unified memory")
                                     : lanes_->named(of, "unified memory", on);
    set_times(event, start, end);
    return add(event);
  });
}

// A row is the life of an allocation.
void NvprofSqlite::read_memory() {
  constexpr std::int64_t kDeviceMemory = 3;  // CUpti_ActivityMemoryKind
  Select select(database(), table("MEMORY"), "M");
  const int kind = select.column("M", "memoryKind"), address = select.column("M", "address"),
            bytes = select.column("M", "bytes"), start = select.column("M", "start"),
            end = select.column("M", "end"), pid = select.column("M", "processId"),
            on = select.column("M", "deviceId");
  read(table("MEMORY"), select, [=, this]() -> Status {
    Event event{};
    event.kind = Kind::kAlloc;
    event.name = text("memory");
    event.lane = lanes_->named(process(integer(pid, "processId")), "memory");
    event.memory.bytes = number(bytes, "bytes");
    event.memory.address = number(address, "address");
    if (integer(kind, "memoryKind") == kDeviceMemory) {
      event.memory.device = device(integer(on, "deviceId").value_or(0));
    }
    set_instant(event, start);
    PASTA_TRY(add(event));
    // 0 for what was never freed.
    if (integer(end, "end").value_or(0) == 0) return {};
    event.kind = Kind::kFree;
    event.flags = 0;
    set_instant(event, end);
    return add(event);
  });
}

// A range is two rows of one id, the first of which has the name.
void NvprofSqlite::read_markers() {
  constexpr std::int64_t kMoment = 1, kBegin = 2, kEnd = 4;  // CUpti_ActivityFlag
  const std::string markers = table("MARKER");
  for (const std::string_view needed : {"id", "flags", "timestamp"}) {
    if (!database().has(markers, needed)) return;
  }
  Select select(database(), markers, "M");
  const auto next = [&](std::string_view column) {
    return select.expression(fmt::format("lead(M.{}) OVER (ORDER BY M.id, M.timestamp)", column));
  };
  const int id = select.column("M", "id"), at = select.column("M", "timestamp"),
            name = select.column("M", "name"), object = select.column("M", "objectId"),
            flags = select.column("M", "flags"), next_id = next("id"), next_flags = next("flags"),
            end = next("timestamp");
  read(markers, select.sql(), [=, this]() {
    const std::int64_t what = integer(flags, "flags").value_or(0);
    if ((what & (kMoment | kBegin)) == 0) return Status{};
    Event event{};
    event.kind = Kind::kScope;
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    event.name = strings_->get(integer(name, "name").value_or(0));
    event.lane = object_lane(text_of(object));
    const bool ended = plain_integer(next_id) == plain_integer(id) &&
                       (plain_integer(next_flags).value_or(0) & kEnd) != 0;
    if ((what & kMoment) != 0) {
      set_instant(event, at);
    } else if (ended) {
      set_times(event, at, end);
    } else {
      note(Reason::kBeginWithoutEnd, [&] { return dictionary().text(event.name); });
      set_times(event, at, at);
      event.flags |= kUnfinished;
    }
    return add(event);
  });
}

void NvprofSqlite::read_overheads() {
  Select select(database(), table("OVERHEAD"), "O");
  const int kind = select.column("O", "overheadKind"), object = select.column("O", "objectId"),
            start = select.column("O", "start"), end = select.column("O", "end");
  read(table("OVERHEAD"), select, [=, this]() {
    Event event{};
    event.kind = Kind::kScope;
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
    // CUpti_ActivityOverheadKind.
    const std::int64_t what = integer(kind, "overheadKind").value_or(0);
    event.name = text(what == 1         ? "Driver Compiler"
                      : what == 1 << 16 ? "Buffer Flush"
                      : what == 2 << 16 ? "Instrumentation"
                      : what == 3 << 16 ? "Resource"
                                        : "Overhead");
    event.lane = object_lane(text_of(object));
    set_times(event, start, end);
    return add(event);
  });
}

}  // namespace

// Nsight Systems' exports have tables of the same beginnings, but strings of another name.
bool recognise(const Database& database) {
  return database.has("StringTable", "_id_") &&
         (database.has(table("KERNEL")) || database.has(table("CONCURRENT_KERNEL")) ||
          database.has(table("RUNTIME")) || database.has(table("DRIVER")));
}

Result<std::unique_ptr<Adapter>> open(Database database) {
  return std::make_unique<NvprofSqlite>(std::move(database));
}

}  // namespace pasta::adapters::nvprof_sqlite
