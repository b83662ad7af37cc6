#include "adapters/cupti/decode.h"

#include <cstring>

#include "trace/append_text.h"

namespace pasta::adapters::cupti {
namespace {

struct CopyKind {
  CopyDirection direction = CopyDirection::kUnknown;
  const char* word = nullptr;
};
using enum CopyDirection;
using trace::append;
// CUpti_ActivityMemcpyKind.
constexpr CopyKind kCopyKinds[] = {{},
                                   {kHostToDevice, "HtoD"},
                                   {kDeviceToHost, "DtoH"},
                                   {kHostToDevice, "HtoA"},
                                   {kDeviceToHost, "AtoH"},
                                   {kDeviceToDevice, "AtoA"},
                                   {kDeviceToDevice, "AtoD"},
                                   {kDeviceToDevice, "DtoA"},
                                   {kDeviceToDevice, "DtoD"},
                                   {kHostToHost, "HtoH"},
                                   {kPeerToPeer, "PtoP"}};
// CUpti_ActivityMemoryKind.
constexpr const char* kMemoryKinds[] = {nullptr, "Pageable", "Pinned",        "Device",
                                        "Array", "Managed",  "Device Static", "Managed Static"};
constexpr std::int32_t kPageable = 1, kPinned = 2, kDevice = 3;

// CUpti_ExternalCorrelationKind.
constexpr const char* kExternalKinds[] = {"external id",          "external id",
                                          "external id OpenACC",  "external id custom 0",
                                          "external id custom 1", "external id custom 2"};

template <class Row, std::size_t n>
const Row& at(const Row (&rows)[n], std::int64_t index) {
  return rows[index >= 0 && index < static_cast<std::int64_t>(n) ? index : 0];
}

// CUpti_ActivityOverheadKind: the driver's own is 1, CUPTI's are multiples of 65536.
const char* overhead_name(std::int32_t kind) {
  constexpr const char* kNames[] = {"CUPTI overhead",
                                    "Activity Buffer Flush",
                                    "Instrumentation",
                                    "Resource",
                                    "Runtime Triggered Module Loading",
                                    "Lazy Function Loading",
                                    "Command Buffer Full",
                                    "Activity Buffer Request",
                                    "UVM Activity Init"};
  return kind == 1 ? "Driver Compiler" : at(kNames, kind >> 16);
}

template <class Fields>
Fields read(const Record* record) {
  Fields fields;
  std::memcpy(&fields, record, sizeof fields);
  return fields;
}

// False when they cannot be an event's. CUPTI says by zeros that it has no times.
bool set_times(Event& event, std::uint64_t start, std::uint64_t end) {
  if (start == 0 && end == 0) {
    event.flags |= kUntimed;
    event.start_ns = event.end_ns = kNoTime;
    return true;
  }
  if (start == 0 || end < start || end >> 63 != 0) return false;
  event.start_ns = static_cast<std::int64_t>(start);
  event.end_ns = static_cast<std::int64_t>(end);
  return true;
}

template <class Fields>
void set_queue(Decoded& to, const Fields& from) {
  to.place.type = Place::Type::kQueue;
  to.place.device = from.device;
  to.place.context = from.context;
  to.place.stream = from.stream;
}

std::uint32_t known(std::int32_t value) {
  return value > 0 ? static_cast<std::uint32_t>(value) : 0;
}

Told kernel(const Record* record, Decoded& to) {
  const auto from = read<KernelRecord>(record);
  to.event.kind = Kind::kKernel;
  to.of_device_clock = true;
  to.event.correlation = from.correlation;
  to.text = from.name;
  set_queue(to, from);
  for (int i = 0; i < 3; ++i) {
    to.event.kernel.grid[i] = known(from.grid[i]);
    to.attributes.block[i] = known(from.block[i]);
    // Without clusters, CUPTI says 0.
    to.attributes.cluster[i] = from.cluster[i];
  }
  to.attributes.registers_per_thread = from.registers_per_thread;
  to.attributes.static_shared_bytes = known(from.static_shared);
  to.attributes.dynamic_shared_bytes = known(from.dynamic_shared);
  to.attributes.local_bytes_per_thread = from.local_per_thread;
  if (from.graph_node != 0) {
    to.graph_node = from.graph_node;
    // The graph's number stands in the upper half.
    const auto lower = static_cast<std::uint32_t>(from.graph_node);
    to.event.kernel.graph_node =
        lower != 0 ? lower : static_cast<std::uint32_t>(from.graph_node >> 32);
  }
  return set_times(to.event, from.start, from.end) ? Told::kEvent : Told::kInvalid;
}

// "Memcpy HtoD (Pinned -> Device)".
void name_copy(Decoded& to, const CopyKind& kind, int source, int target) {
  char* end = append(to.name, "Memcpy");
  if (kind.word != nullptr) end = append(append(end, " "), kind.word);
  const char* from = at(kMemoryKinds, source);
  const char* into = at(kMemoryKinds, target);
  if (from == nullptr || into == nullptr) return;
  append(append(append(append(append(end, " ("), from), " -> "), into), ")");
}

template <class Fields>
Told copy(const Record* record, Decoded& to) {
  const auto from = read<Fields>(record);
  const CopyKind& kind = at(kCopyKinds, from.copy_kind);
  to.event.kind = Kind::kCopy;
  to.of_device_clock = kind.direction != kHostToHost;  // the host does that
  to.event.detail = static_cast<std::uint16_t>(kind.direction);
  to.event.correlation = from.correlation;
  to.event.copy.bytes = from.bytes;
  to.graph_node = from.graph_node;
  set_queue(to, from);
  name_copy(to, kind, from.source_kind, from.target_kind);
  return set_times(to.event, from.start, from.end) ? Told::kEvent : Told::kInvalid;
}

Told fill(const Record* record, Decoded& to) {
  const auto from = read<MemsetRecord>(record);
  to.event.kind = Kind::kFill;
  to.of_device_clock = true;
  to.event.correlation = from.correlation;
  to.event.fill.bytes = from.bytes;
  to.event.fill.pattern = from.value;
  to.graph_node = from.graph_node;
  set_queue(to, from);
  char* end = append(to.name, "Memset");
  if (const char* memory = at(kMemoryKinds, from.memory_kind); memory != nullptr) {
    append(append(append(end, " ("), memory), ")");
  }
  return set_times(to.event, from.start, from.end) ? Told::kEvent : Told::kInvalid;
}

Told api(const Record* record, Decoded& to) {
  const auto from = read<ApiRecord>(record);
  to.event.kind = Kind::kApi;
  to.event.detail = static_cast<std::uint16_t>(
      from.kind == RecordKind::kDriver ? ApiDomain::kDriver : ApiDomain::kRuntime);
  to.event.correlation = from.correlation;
  to.event.api.status = static_cast<std::int32_t>(from.status);
  to.callback = from.callback;
  to.place.type = Place::Type::kThread;
  to.place.thread = from.thread;
  return set_times(to.event, from.start, from.end) ? Told::kEvent : Told::kInvalid;
}

Told memory(const Record* record, Decoded& to) {
  const auto from = read<MemoryRecord>(record);
  if (from.operation != 1 && from.operation != 2) return Told::kInvalid;
  to.event.kind = from.operation == 1 ? Kind::kAlloc : Kind::kFree;
  to.event.correlation = from.correlation;
  to.event.memory.bytes = from.bytes;
  to.event.memory.address = from.address;
  to.event.flags |= kInstant;
  to.of_host = from.memory_kind == kPageable || from.memory_kind == kPinned;
  to.pool = from.pool_address;
  if (from.memory_kind != kDevice) to.memory_kind = at(kMemoryKinds, from.memory_kind);
  to.place.type = Place::Type::kMemory;
  to.place.device = from.device;
  return set_times(to.event, from.timestamp, from.timestamp) ? Told::kEvent : Told::kInvalid;
}

Told pool(const Record* record, Decoded& to) {
  const auto from = read<MemoryPoolRecord>(record);
  to.pool = from.address;
  to.pool_size = from.size;
  to.pool_used = from.used_bytes;
  to.place.type = Place::Type::kMemory;
  to.place.device = from.device;
  // Of an imported pool, others know the size.
  if (from.pool_type != 1 || from.address == 0) return Told::kNothing;
  if (!set_times(to.event, from.timestamp, from.timestamp)) return Told::kInvalid;
  return to.event.untimed() ? Told::kNothing : Told::kCounters;
}

// A whole graph, where its nodes are not recorded.
Told graph(const Record* record, Decoded& to) {
  const auto from = read<GraphTraceRecord>(record);
  to.event.kind = Kind::kKernel;
  to.of_device_clock = true;
  to.event.correlation = from.correlation;
  set_queue(to, from);
  append(append(to.name, "CUDA graph "), from.graph);
  return set_times(to.event, from.start, from.end) ? Told::kEvent : Told::kInvalid;
}

Told overhead(const Record* record, Decoded& to) {
  const auto from = read<OverheadRecord>(record);
  to.event.kind = Kind::kScope;
  to.event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
  to.text = overhead_name(from.overhead);
  if (from.object == 2) {
    to.place.type = Place::Type::kThread;
    to.place.thread = from.ids[1];
  } else if (from.object >= 3 && from.object <= 5) {
    to.event.flags |= kAnnotation;
    to.place.device = from.ids[0];
    to.place.context = from.object >= 4 ? from.ids[1] : 0;
    to.place.stream = from.object == 5 ? from.ids[2] : kNoStream;
  } else {
    return Told::kNothing;
  }
  return set_times(to.event, from.start, from.end) ? Told::kEvent : Told::kInvalid;
}

}  // namespace

Told decode(const Record* record, Decoded& to) noexcept {
  to = {};
  switch (record->kind) {
    case RecordKind::kKernel:
    case RecordKind::kConcurrentKernel:
      return kernel(record, to);
    case RecordKind::kMemcpy:
      return copy<MemcpyRecord>(record, to);
    case RecordKind::kPeerCopy:
      return copy<PeerCopyRecord>(record, to);
    case RecordKind::kMemset:
      return fill(record, to);
    case RecordKind::kDriver:
    case RecordKind::kRuntime:
      return api(record, to);
    case RecordKind::kMemory:
      return memory(record, to);
    case RecordKind::kMemoryPool:
      return pool(record, to);
    case RecordKind::kGraphTrace:
      return graph(record, to);
    case RecordKind::kOverhead:
      return overhead(record, to);
    case RecordKind::kContext: {
      const auto from = read<ContextRecord>(record);
      to.place.context = from.context;
      to.place.device = from.device;
      return Told::kContext;
    }
    case RecordKind::kExternalCorrelation: {
      const auto from = read<ExternalCorrelationRecord>(record);
      to.text = at(kExternalKinds, from.external_kind);
      to.external = from.external;
      to.event.correlation = from.correlation;
      return Told::kExternal;
    }
    case RecordKind::kStream:
      return Told::kNothing;
  }
  return Told::kUnknown;
}

}  // namespace pasta::adapters::cupti
