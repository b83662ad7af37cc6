#include "adapters/rocprofv3_json/process_taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace pasta::adapters::rocprofv3_json {
namespace {

constexpr std::uint32_t bit(Table table) { return 1u << static_cast<unsigned>(table); }

std::uint32_t narrow(std::uint64_t value) {
  return value <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(value) : 0;
}

CopyDirection direction(std::string_view operation) {
  if (operation.ends_with("HOST_TO_DEVICE")) return CopyDirection::kHostToDevice;
  if (operation.ends_with("DEVICE_TO_HOST")) return CopyDirection::kDeviceToHost;
  if (operation.ends_with("DEVICE_TO_DEVICE")) return CopyDirection::kDeviceToDevice;
  if (operation.ends_with("HOST_TO_HOST")) return CopyDirection::kHostToHost;
  return CopyDirection::kUnknown;
}

}  // namespace

ProcessTaker::ProcessTaker(const Shared& shared, std::uint64_t number)
    : shared_(shared), pid_(number), waiting_(shared.scratch) {}

template <class Detail>
Status ProcessTaker::note(const Record& record, Reason reason, Detail&& detail) {
  const auto at = [&] { return fmt::format("byte {}: {}", record.offset, detail()); };
  shared_.problems.add(reason, at);
  if (shared_.strict && reason_info(reason).severity > Severity::kNote) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", at(), reason_info(reason).help));
  }
  return {};
}

// --- what records refer to

void ProcessTaker::add(const Metadata& metadata) {
  metadata_met_ = true;
  if (metadata.has_pid) pid_ = metadata.pid;
  name_ = text(metadata.command);
  host_ = text(metadata.host);
}

void ProcessTaker::add(Table table, const Name& name) {
  switch (table) {
    case Table::kAgents: {
      DeviceId& agent = agents_[name.id];
      if (name.device.type != DeviceType::kGpu) return;
      Device facts = name.device;
      facts.name = text(name.text);
      if (name.uuid.empty()) {
        facts.process = process();
      } else {
        facts.uuid = text(name.uuid);
      }
      agent = shared_.dictionary.device(facts);
      shared_.dictionary.update(agent, facts);
      return;
    }
    case Table::kCounterNames:
      counters_[name.id] = text(name.text);
      return;
    case Table::kOperationNames: {
      std::vector<StringId>& operations = operations_.emplace_back();
      for (const std::string& operation : name.operations) operations.push_back(text(operation));
      return;
    }
    case Table::kMarkerTexts:
      markers_[name.id] = text(name.text);
      return;
    case Table::kKernelSymbols:
      symbols_[name.id] = {text(name.text), name.vector_registers, name.group_bytes};
      return;
    default:
      return;
  }
}

bool ProcessTaker::names_known() const {
  constexpr std::uint32_t kNeeded = bit(Table::kAgents) | bit(Table::kOperationNames) |
                                    bit(Table::kMarkerTexts) | bit(Table::kKernelSymbols) |
                                    bit(Table::kCounterNames);
  return metadata_met_ && (met_ & kNeeded) == kNeeded;
}

// --- who and where

ProcessId ProcessTaker::process() {
  if (!process_) {
    Process facts;
    facts.native_id = pid_;
    facts.source = shared_.source;
    facts.name = name_;
    facts.host = host_;
    process_ = shared_.dictionary.process(facts);
    shared_.dictionary.update(process_, facts);
  }
  return process_;
}

LaneId ProcessTaker::thread_lane(const Record& record) {
  LaneId& lane = threads_[record.get(Field::kThread)];
  if (!lane) {
    Lane key;
    key.process = process();
    key.native_id = record.get(Field::kThread);
    lane = shared_.dictionary.lane(key);
  }
  return lane;
}

// A queue of HIP's, the stream, is served by some hardware queue, which the program did not choose:
// both are kept, the stream as the lane's number and the hardware queue as its context.
LaneId ProcessTaker::queue_lane(const Record& record, DeviceId device) {
  Lane key;
  key.type = LaneType::kQueue;
  key.process = process();
  key.device = device;
  std::string name;
  if (record.has(Field::kStream)) {
    key.native_id = record.get(Field::kStream);
    key.context = record.get(Field::kQueue);
    name = fmt::format("stream {}", key.native_id);
    if (record.has(Field::kQueue)) name += fmt::format(", queue {}", key.context);
  } else if (record.has(Field::kQueue)) {
    key.native_id = record.get(Field::kQueue);
    name = fmt::format("queue {}", key.native_id);
  } else {
    name = "copies";
    key.native_text = text(name);
  }
  const LaneId lane = shared_.dictionary.lane(key);
  if (!shared_.dictionary.lane(lane).name) shared_.dictionary.update(lane, text(name));
  return lane;
}

DeviceId ProcessTaker::device(std::uint64_t agent) {
  const auto known = agents_.find(agent);
  if (known != agents_.end()) return known->second;
  Device key;
  key.process = process();
  key.ordinal = narrow(agent);
  key.type = DeviceType::kGpu;
  return shared_.dictionary.device(key);
}

StringId ProcessTaker::operation_name(const Record& record) {
  const std::uint64_t kind = record.get(Field::kKind);
  const std::uint64_t operation = record.get(Field::kOperation);
  if (kind < operations_.size() && operation < operations_[kind].size()) {
    return operations_[kind][operation];
  }
  return text(fmt::format("kind {} operation {}", kind, operation));
}

// --- records

Status ProcessTaker::take(const Record& record, const std::vector<CounterSum>& counters) {
  if (record.unreadable) {
    PASTA_TRY(note(record, Reason::kUnreadableNumber, [] { return "a field is no number"; }));
  }
  const auto add = [&](const Record& one) {
    return names_known() ? take_now(one) : waiting_.add(one);
  };
  if (record.table != Table::kCounters) return add(record);
  // What was counted during a dispatch comes with the dispatch.
  if (counted_dispatches_.insert(record.get(Field::kDispatch)).second) {
    Record kernel = record;
    kernel.table = Table::kKernels;
    PASTA_TRY(add(kernel));
  }
  Record counter = record;
  for (const CounterSum& sum : counters) {
    counter.set(Field::kCounter, sum.counter);
    counter.counter_value = sum.value;
    PASTA_TRY(add(counter));
  }
  return {};
}

Status ProcessTaker::finish() {
  process();  // also when it did nothing
  return waiting_.drain([this](const Record& record) { return take_now(record); });
}

Status ProcessTaker::take_now(const Record& record) {
  switch (record.table) {
    case Table::kKernels:
      return take_kernel(record);
    case Table::kRuntimeCalls:
      return take_call(record, ApiDomain::kRuntime);
    case Table::kDriverCalls:
      return take_call(record, ApiDomain::kDriver);
    case Table::kCommunicationCalls:
      return take_call(record, ApiDomain::kCommunication);
    case Table::kMarkers:
      return take_marker(record);
    case Table::kCopies:
      return take_copy(record);
    case Table::kAllocations:
      return take_allocation(record);
    case Table::kCounters:
      return take_counter(record);
    case Table::kScratch: {
      // What the host waits for until a kernel has its scratch memory; how much is not told.
      Event event{};
      event.kind = Kind::kScope;
      event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
      event.name = operation_name(record);
      event.lane = thread_lane(record);
      PASTA_TRY(place(event, record));
      return shared_.assembler.add(event);
    }
    default:
      return {};
  }
}

Status ProcessTaker::place(Event& event, const Record& record) {
  const auto untimed = [&] {
    event.start_ns = event.end_ns = kNoTime;
    event.flags |= kUntimed;
  };
  const std::uint64_t start = record.get(Field::kStart);
  const std::uint64_t end = record.get(Field::kEnd);
  const auto detail = [&] {
    return fmt::format("\"{}\" from {} to {}", shared_.dictionary.text(event.name), start, end);
  };
  if (end == 0) {  // not there, or never taken
    untimed();
    return note(record, Reason::kUntimed, detail);
  }
  if (std::max(start, end) > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    untimed();
    return note(record, Reason::kTimeOutOfRange, detail);
  }
  if (end < start) {
    untimed();
    return note(record, Reason::kNegativeDuration, detail);
  }
  event.start_ns = static_cast<std::int64_t>(start);
  event.end_ns = static_cast<std::int64_t>(end);
  return {};
}

Status ProcessTaker::correlate(Event& event, const Record& record) {
  const std::uint64_t id = record.get(Field::kCorrelation);
  if (id > kMaxVendorCorrelation) {
    return note(record, Reason::kCorrelationRange,
                [&] { return fmt::format("correlation {}", id); });
  }
  event.correlation = make_correlation(process(), id);
  return {};
}

Status ProcessTaker::take_kernel(const Record& record) {
  // The one from kCounters has no stream, but both tell of the same dispatch.
  if (record.has(Field::kStream) && counted_dispatches_.contains(record.get(Field::kDispatch))) {
    return {};
  }
  Event event{};
  event.kind = Kind::kKernel;
  const auto known = symbols_.find(record.get(Field::kKernel));
  const Symbol symbol = known != symbols_.end() ? known->second : Symbol{};
  event.name =
      symbol.name ? symbol.name : text(fmt::format("kernel {}", record.get(Field::kKernel)));
  event.lane = queue_lane(record, device(record.get(Field::kAgent)));
  PASTA_TRY(place(event, record));
  PASTA_TRY(correlate(event, record));

  // Grids are given in work-items; a last group may be smaller than the others.
  constexpr std::array<std::pair<Field, Field>, 3> kAxes = {{{Field::kGridX, Field::kGroupX},
                                                             {Field::kGridY, Field::kGroupY},
                                                             {Field::kGridZ, Field::kGroupZ}}};
  LaunchAttributes attributes;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    const std::uint64_t items = record.get(kAxes[i].first);
    const std::uint64_t group = record.get(kAxes[i].second);
    attributes.block[i] = narrow(group);
    if (group != 0) event.kernel.grid[i] = narrow(items / group + (items % group != 0 ? 1 : 0));
  }
  attributes.registers_per_thread = symbol.vector_registers;
  attributes.static_shared_bytes = symbol.group_bytes;
  const std::uint64_t shared_bytes = record.get(Field::kGroupBytes);
  if (shared_bytes > symbol.group_bytes) {
    attributes.dynamic_shared_bytes = narrow(shared_bytes - symbol.group_bytes);
  }
  attributes.local_bytes_per_thread = narrow(record.get(Field::kPrivateBytes));
  event.kernel.attributes = shared_.dictionary.attributes(attributes);
  event.kernel.ordinal = narrow(record.get(Field::kDispatch));
  return shared_.assembler.add(event);
}

Status ProcessTaker::take_call(const Record& record, ApiDomain domain) {
  Event event{};
  event.kind = Kind::kApi;
  event.detail = static_cast<std::uint16_t>(domain);
  event.name = operation_name(record);
  event.lane = thread_lane(record);
  PASTA_TRY(place(event, record));
  PASTA_TRY(correlate(event, record));
  return shared_.assembler.add(event);
}

Status ProcessTaker::take_marker(const Record& record) {
  const std::string_view operation = shared_.dictionary.text(operation_name(record));
  const auto said = markers_.find(record.get(Field::kCorrelation));
  const bool moment = operation.starts_with("roctxMark");
  const bool range = operation == "roctxRangePushA" || operation == "roctxThreadRangeA";
  const bool process_range = operation == "roctxRangeStartA" || operation == "roctxProcessRangeA";
  if (said == markers_.end() || (!moment && !range && !process_range)) {
    return take_call(record, ApiDomain::kRuntime);
  }
  Event event{};
  event.kind = Kind::kScope;
  event.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
  event.name = said->second;
  event.lane = thread_lane(record);
  if (moment) event.flags |= kInstant;
  // Such a range may end on another thread, and need not nest.
  if (process_range) event.flags |= kAnnotation;
  PASTA_TRY(place(event, record));
  return shared_.assembler.add(event);
}

Status ProcessTaker::take_copy(const Record& record) {
  const auto agent = [&](Field field) {
    const auto it = agents_.find(record.get(field));
    return it != agents_.end() ? it->second : DeviceId{};
  };
  const DeviceId source = agent(Field::kSource);
  const DeviceId destination = agent(Field::kDestination);
  Event event{};
  event.kind = Kind::kCopy;
  event.name = operation_name(record);
  CopyDirection way = direction(shared_.dictionary.text(event.name));
  if (way == CopyDirection::kDeviceToDevice && source && destination && source != destination) {
    way = CopyDirection::kPeerToPeer;
  }
  event.detail = static_cast<std::uint16_t>(way);
  const Field at = destination || !source ? Field::kDestination : Field::kSource;
  event.lane = queue_lane(record, device(record.get(at)));
  PASTA_TRY(place(event, record));
  PASTA_TRY(correlate(event, record));
  event.copy = {.bytes = record.has(Field::kBytes) ? record.get(Field::kBytes) : kUnknownBytes,
                .src = record.get(Field::kSourceAddress),
                .dst = record.get(Field::kDestinationAddress)};
  return shared_.assembler.add(event);
}

Status ProcessTaker::take_allocation(const Record& record) {
  const std::uint64_t address = record.get(Field::kAddress);
  Event event{};
  event.name = operation_name(record);
  event.lane = thread_lane(record);
  event.memory.address = address;
  if (shared_.dictionary.text(event.name).ends_with("FREE")) {
    // A record of freeing tells the address only.
    event.kind = Kind::kFree;
    const auto allocated = live_.find(address);
    if (allocated == live_.end()) {
      return note(record, Reason::kRecordSkipped,
                  [&] { return fmt::format("freed {:#x}, of which no size is known", address); });
    }
    event.memory.bytes = allocated->second.bytes;
    event.memory.device = allocated->second.device;
    live_.erase(allocated);
  } else {
    event.kind = Kind::kAlloc;
    const auto agent = agents_.find(record.get(Field::kAgent));
    event.memory.bytes = record.get(Field::kAllocated);
    event.memory.device = agent != agents_.end() ? agent->second : DeviceId{};
    live_[address] = {event.memory.bytes, event.memory.device};
  }
  PASTA_TRY(place(event, record));
  return shared_.assembler.add(event);
}

Status ProcessTaker::take_counter(const Record& record) {
  Event event{};
  event.kind = Kind::kCounter;
  const auto known = counters_.find(record.get(Field::kCounter));
  event.name = known != counters_.end()
                   ? known->second
                   : text(fmt::format("counter {}", record.get(Field::kCounter)));
  const DeviceId of = device(record.get(Field::kAgent));
  event.lane = queue_lane(record, of);
  event.counter.value = record.counter_value;
  event.counter.device = of;
  PASTA_TRY(place(event, record));
  event.start_ns = event.end_ns;
  return shared_.assembler.add(event);
}

}  // namespace pasta::adapters::rocprofv3_json
