#include "adapters/rocprofiler/decode.h"

#include <cstring>
#include <string_view>

namespace pasta::adapters::rocprofiler {
namespace {

struct NamedService {
  std::string_view name;
  Service service;
};
constexpr NamedService kServices[] = {
    {"HIP_RUNTIME_API", Service::kRuntimeCalls},
    {"HIP_COMPILER_API", Service::kRuntimeCalls},
    {"ROCDECODE_API", Service::kRuntimeCalls},
    {"ROCJPEG_API", Service::kRuntimeCalls},
    {"HSA_CORE_API", Service::kDriverCalls},
    {"HSA_AMD_EXT_API", Service::kDriverCalls},
    {"HSA_IMAGE_EXT_API", Service::kDriverCalls},
    {"HSA_FINALIZE_EXT_API", Service::kDriverCalls},
    {"RCCL_API", Service::kCommunicationCalls},
    {"KERNEL_DISPATCH", Service::kKernels},
    {"MEMORY_COPY", Service::kCopies},
    {"MEMORY_ALLOCATION", Service::kAllocations},
    {"SCRATCH_MEMORY", Service::kScratch},
    {"KFD_PAGE_MIGRATE", Service::kMigrations},
    {"KFD_PAGE_FAULT", Service::kFaults},
    {"PAGE_MIGRATION", Service::kPages},
    {"KFD_EVENT_DROPPED_EVENTS", Service::kDropped},
};

// False when the record is shorter than its fields.
template <class Fields>
bool read(const void* payload, Fields& to) {
  std::uint64_t size = 0;
  std::memcpy(&size, payload, sizeof size);
  // The last field may be followed by padding, which some versions do not count.
  if (size + alignof(Fields) <= sizeof to) return false;
  std::memcpy(static_cast<void*>(&to), payload, sizeof to);
  return true;
}

void set_correlation(Decoded& to, std::uint64_t internal) {
  if (internal > kMaxVendorCorrelation) {
    to.correlation = Reason::kCorrelationRange;
  } else {
    to.event.correlation = internal;
  }
}

template <class Fields>
void set_common(Decoded& to, const Fields& from) {
  to.kind = from.kind;
  to.operation = from.operation;
  set_times(to, from.start, from.end);
}

void set_queue(Place& place, std::uint64_t agent, std::uint64_t external) {
  place.type = Place::Type::kQueue;
  place.agent = agent;
  place.knows_stream = external != 0;
  if (place.knows_stream) place.stream = external - 1;
}

template <class Fields>
Told call(const void* payload, ApiDomain domain, Decoded& to) {
  Fields from;
  if (!read(payload, from)) return Told::kInvalid;
  to.event.kind = Kind::kApi;
  to.event.detail = static_cast<std::uint16_t>(domain);
  to.place.thread = from.thread;
  set_common(to, from);
  set_correlation(to, from.correlation.internal);
  return Told::kEvent;
}

Told kernel(const void* payload, Decoded& to) {
  KernelRecord from;
  if (!read(payload, from)) return Told::kInvalid;
  to.event.kind = Kind::kKernel;
  set_common(to, from);
  set_correlation(to, from.correlation.internal);
  decode(from.dispatch, from.correlation.external, to);
  return Told::kEvent;
}

Told copy(const void* payload, std::uint32_t version, Decoded& to) {
  CopyRecord1 from{};
  const bool whole =
      version >= kVersion1 ? read(payload, from) : read(payload, static_cast<CopyRecord05&>(from));
  if (!whole) return Told::kInvalid;
  constexpr CopyDirection kDirections[] = {
      CopyDirection::kUnknown, CopyDirection::kHostToHost, CopyDirection::kHostToDevice,
      CopyDirection::kDeviceToHost, CopyDirection::kDeviceToDevice};
  const bool known = from.operation >= kHostToHost && from.operation <= kDeviceToDevice;
  to.event.kind = Kind::kCopy;
  to.event.detail = static_cast<std::uint16_t>(kDirections[known ? from.operation : 0]);
  // From one GPU to another it goes between peers.
  if (from.operation == kDeviceToDevice && from.source_agent != from.target_agent) {
    to.event.detail = static_cast<std::uint16_t>(CopyDirection::kPeerToPeer);
  }
  to.event.copy.bytes = from.bytes;
  to.event.copy.src = from.source;
  to.event.copy.dst = from.target;
  to.agent = from.target_agent;
  to.source_agent = from.source_agent;
  set_common(to, from);
  set_correlation(to, from.correlation.internal);
  // A copy to the host lies where it comes from.
  const bool to_host = from.operation == kDeviceToHost;
  set_queue(to.place, to_host ? from.source_agent : from.target_agent, from.correlation.external);
  return Told::kEvent;
}

template <class Fields>
Told allocation(const void* payload, Decoded& to) {
  Fields from;
  if (!read(payload, from)) return Told::kInvalid;
  if (from.operation < kAllocate || from.operation > kVirtualFree) return Told::kInvalid;
  const bool frees = from.operation == kFree || from.operation == kVirtualFree;
  to.event.kind = frees ? Kind::kFree : Kind::kAlloc;
  to.event.memory.address = from.address;
  if (!frees) {
    to.event.memory.bytes = from.bytes;
    to.agent = from.agent;
  }
  to.place.thread = from.thread;
  set_common(to, from);
  set_correlation(to, from.correlation.internal);
  return Told::kEvent;
}

// What the host waits for until a kernel has its scratch memory.
template <class Fields>
Told scratch(const void* payload, Decoded& to) {
  Fields from;
  if (!read(payload, from)) return Told::kInvalid;
  to.event.kind = Kind::kScope;
  to.event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
  to.place.thread = from.thread;
  set_common(to, from);
  return Told::kEvent;
}

bool set_migration(Decoded& to, std::uint64_t first, std::uint64_t end, std::uint64_t source,
                   std::uint64_t target) {
  to.event.kind = Kind::kCopy;
  to.event.detail = static_cast<std::uint16_t>(CopyDirection::kMigration);
  to.event.copy.bytes = end - first;
  to.event.copy.src = to.event.copy.dst = first;
  to.agent = target;
  to.source_agent = source;
  to.place.type = Place::Type::kMemory;
  to.place.agent = target;
  return first <= end;
}

void set_fault(Decoded& to, std::uint64_t agent, std::uint64_t address) {
  to.event.kind = Kind::kFault;
  to.event.memory.bytes = kUnknownBytes;
  to.event.memory.address = address;
  to.agent = agent;
  to.place.type = Place::Type::kMemory;
  to.place.agent = agent;
}

Told migration(const void* payload, Decoded& to) {
  MigrationRecord from;
  if (!read(payload, from) || !set_migration(to, from.first_address, from.end_address,
                                             from.source_agent, from.target_agent)) {
    return Told::kInvalid;
  }
  set_common(to, from);
  return Told::kEvent;
}

Told fault(const void* payload, Decoded& to) {
  FaultRecord from;
  if (!read(payload, from)) return Told::kInvalid;
  set_fault(to, from.agent, from.address);
  set_common(to, from);
  return Told::kEvent;
}

Told pages_05(const void* payload, Decoded& to) {
  PageRecord05 from;
  if (!read(payload, from)) return Told::kInvalid;
  to.by_node = true;
  set_common(to, from);
  if (from.operation == kFault05) {
    set_fault(to, from.fault.node, from.fault.address);
    return Told::kEvent;
  }
  if (from.operation != kMigration05) return Told::kUnknown;
  const PageMigration05& pages = from.migration;
  return set_migration(to, pages.first_address, pages.end_address, pages.source_node,
                       pages.target_node)
             ? Told::kEvent
             : Told::kInvalid;
}

Told pages_06(const void* payload, Decoded& to) {
  PageRecord06 from;
  if (!read(payload, from)) return Told::kInvalid;
  to.kind = from.kind;
  to.operation = from.operation;
  to.time = from.timestamp;
  switch (from.operation) {
    case kMigrationStart:
    case kMigrationEnd: {
      const PageMigration06& pages = from.migration;
      if (!set_migration(to, pages.first_address, pages.end_address, pages.source_agent,
                         pages.target_agent)) {
        return Told::kInvalid;
      }
      to.pair = pages.first_address << 1;
      return from.operation == kMigrationStart ? Told::kBegins : Told::kEvent;
    }
    case kFaultStart:
    case kFaultEnd:
      set_fault(to, from.fault.agent, from.fault.address);
      to.pair = from.fault.address << 1 | 1;
      return from.operation == kFaultStart ? Told::kBegins : Told::kEvent;
    case kPagesDropped:
      to.lost = from.dropped;
      return Told::kLost;
    default:
      return Told::kUnknown;
  }
}

Told dropped(const void* payload, Decoded& to) {
  DroppedRecord from;
  if (!read(payload, from)) return Told::kInvalid;
  to.lost = from.count;
  return Told::kLost;
}

}  // namespace

void set_times(Decoded& to, std::uint64_t start, std::uint64_t end) noexcept {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;  // so that a clock can be added
  if (start == 0 || end == 0) {
    to.times = Reason::kUntimed;
  } else if (start > kMost || end > kMost) {
    to.times = Reason::kTimeOutOfRange;
  } else if (end < start) {
    to.times = Reason::kNegativeDuration;
  } else {
    to.event.start_ns = static_cast<std::int64_t>(start);
    to.event.end_ns = static_cast<std::int64_t>(end);
    return;
  }
  to.event.flags |= kUntimed;
  to.event.start_ns = to.event.end_ns = kNoTime;
}

Service service_of(const char* kind_name) noexcept {
  for (const NamedService& known : kServices) {
    if (known.name == kind_name) return known.service;
  }
  return Service::kOther;
}

Told decode_sample(std::uint32_t kind, const void* payload, PcSample& to) noexcept {
  to = {};
  if (kind == kHostTrapPc) {
    HostTrapSample from;
    if (!read(payload, from)) return Told::kInvalid;
    to.dispatch = from.dispatch;
    to.pc = from.pc;
    return Told::kEvent;
  }
  if (kind == kStochasticPc) {
    StochasticSample from;
    if (!read(payload, from)) return Told::kInvalid;
    to.dispatch = from.dispatch;
    to.pc = from.pc;
    const bool issued = (from.issued & 1) != 0;
    to.state = issued ? device::WaveState::kIssued : device::WaveState::kStalled;
    if (!issued) to.stall = from.snapshot & 15;
    return Told::kEvent;
  }
  return kind == kInvalidPc ? Told::kInvalid : Told::kUnknown;
}

void decode(const Dispatch& dispatch, std::uint64_t external, Decoded& to) noexcept {
  set_queue(to.place, dispatch.agent, external);
  to.place.knows_queue = true;
  to.place.queue = dispatch.queue;
  to.kernel = dispatch.kernel;
  to.dispatch = dispatch.id;
  for (int i = 0; i < 3; ++i) {
    // The grid is in work-items, of which the last group may have fewer than the others.
    const std::uint32_t group = dispatch.workgroup[i];
    to.attributes.block[i] = group;
    if (group != 0) {
      to.event.kernel.grid[i] = dispatch.grid[i] / group + (dispatch.grid[i] % group != 0 ? 1 : 0);
    }
  }
  to.attributes.dynamic_shared_bytes = dispatch.group_bytes;
  to.attributes.local_bytes_per_thread = dispatch.private_bytes;
  // An event has 32 bits for it.
  if (dispatch.id >> 32 == 0) to.event.kernel.ordinal = static_cast<std::uint32_t>(dispatch.id);
}

void split_shared(LaunchAttributes& attributes, std::uint32_t of_kernel) noexcept {
  const std::uint32_t sum = attributes.dynamic_shared_bytes;
  attributes.static_shared_bytes = of_kernel;
  attributes.dynamic_shared_bytes = sum > of_kernel ? sum - of_kernel : 0;
}

Told decode(Service service, std::uint32_t version, const void* payload, Decoded& to) noexcept {
  to = {};
  const bool is_1 = version >= kVersion1;
  const auto calls = [&](ApiDomain domain) {
    return is_1 ? call<CallRecord1>(payload, domain, to) : call<CallRecord05>(payload, domain, to);
  };
  switch (service) {
    case Service::kRuntimeCalls:
      return calls(ApiDomain::kRuntime);
    case Service::kDriverCalls:
      return calls(ApiDomain::kDriver);
    case Service::kCommunicationCalls:
      return calls(ApiDomain::kCommunication);
    case Service::kKernels:
      return kernel(payload, to);
    case Service::kCopies:
      return copy(payload, version, to);
    case Service::kAllocations:
      return is_1 ? allocation<AllocationRecord1>(payload, to)
                  : allocation<AllocationRecord06>(payload, to);
    case Service::kScratch:
      if (is_1) return scratch<ScratchRecord1>(payload, to);
      return version >= kVersion06 ? scratch<ScratchRecord06>(payload, to)
                                   : scratch<ScratchRecord05>(payload, to);
    case Service::kMigrations:
      return migration(payload, to);
    case Service::kFaults:
      return fault(payload, to);
    case Service::kPages:
      return version >= kVersion06 ? pages_06(payload, to) : pages_05(payload, to);
    case Service::kDropped:
      return dropped(payload, to);
    case Service::kOther:
      break;
  }
  return Told::kUnknown;
}

}  // namespace pasta::adapters::rocprofiler
