#include "adapters/pasta_file/importer.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace pasta::adapters::pasta_file {
namespace {

using trace::ChunkType;

// Takes `bytes` and the padding after them off the front of `payload`; false when there are fewer.
bool take(std::span<const std::byte>& payload, std::uint64_t bytes,
          std::span<const std::byte>& taken) {
  if (bytes > payload.size() || trace::padded(bytes) > payload.size()) return false;
  taken = payload.first(bytes);
  payload = payload.subspan(trace::padded(bytes));
  return true;
}

template <class Record>
bool take(std::span<const std::byte>& payload, Record& record) {
  if (payload.size() < sizeof record) return false;
  std::memcpy(&record, payload.data(), sizeof record);
  payload = payload.subspan(sizeof record);
  return true;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Importer::Importer(Dictionary& dictionary, trace::ProcessImport& processes, bool later_part)
    : dictionary_(dictionary), process_import_(processes), later_part_(later_part) {}

bool Importer::strings(std::uint32_t records, std::span<const std::byte> payload) {
  for (; records > 0; --records) {
    trace::StringRecord record;
    std::span<const std::byte> text;
    if (!take(payload, record) || !take(payload, record.bytes, text)) return false;
    if (!strings_.set(record.id, dictionary_.string(as_text(text)).value)) return false;
  }
  return payload.empty();
}

bool Importer::facts(std::uint32_t records, std::span<const std::byte> payload) {
  for (; records > 0; --records) {
    trace::FactRecord record;
    std::span<const std::byte> both;
    if (!take(payload, record) ||
        !take(payload, std::uint64_t{record.key_bytes} + record.value_bytes, both)) {
      return false;
    }
    std::pair fact(std::string(as_text(both.first(record.key_bytes))),
                   std::string(as_text(both.subspan(record.key_bytes))));
    if (later_part_) {
      const auto known = dictionary_.facts();
      if (std::find(known.begin(), known.end(), fact) != known.end()) continue;
    }
    dictionary_.fact(fact.first, fact.second);
  }
  return payload.empty();
}

bool Importer::add(const trace::ProcessRecord& r) {
  for (const std::uint32_t text : {r.native_text, r.source, r.name, r.host}) {
    if (!strings_.has(text)) return false;
  }
  return processes_.set(r.id, process_import_
                                  .import({.native_id = r.native_id,
                                           .native_text = {strings_[r.native_text]},
                                           .source = {strings_[r.source]},
                                           .name = {strings_[r.name]},
                                           .host = {strings_[r.host]},
                                           .rank = r.rank,
                                           .world_size = r.world_size})
                                  .value);
}

bool Importer::add(const trace::DeviceRecord& r) {
  if (!processes_.has(r.process) || !strings_.has(r.uuid) || !strings_.has(r.name)) return false;
  if (r.type > static_cast<std::uint32_t>(DeviceType::kAccelerator)) return false;
  const Device device{.process = {processes_[r.process]},
                      .ordinal = r.ordinal,
                      .uuid = {strings_[r.uuid]},
                      .type = static_cast<DeviceType>(r.type),
                      .name = {strings_[r.name]},
                      .multiprocessors = r.multiprocessors,
                      .compute_major = r.compute_major,
                      .compute_minor = r.compute_minor,
                      .max_threads_per_multiprocessor = r.max_threads_per_multiprocessor,
                      .warp_size = r.warp_size,
                      .memory_bytes = r.memory_bytes};
  return devices_.set(r.id, trace::import_device(dictionary_, device).value);
}

bool Importer::add(const trace::LaneRecord& r) {
  if (!processes_.has(r.process) || !devices_.has(r.device) || !strings_.has(r.native_text) ||
      !strings_.has(r.name) || r.type > static_cast<std::uint32_t>(LaneType::kQueue)) {
    return false;
  }
  const Lane lane{.type = static_cast<LaneType>(r.type),
                  .process = {processes_[r.process]},
                  .device = {devices_[r.device]},
                  .context = r.context,
                  .native_id = r.native_id,
                  .native_text = {strings_[r.native_text]},
                  .name = {strings_[r.name]}};
  return lanes_.set(r.id, trace::import_lane(dictionary_, lane).value);
}

bool Importer::add(const trace::FrameRecord& r) {
  // A parent has been set before its children, so the tree has no cycles.
  if (!frames_.has(r.parent) || r.parent == r.id || !strings_.has(r.name)) return false;
  if (r.domain > static_cast<std::uint32_t>(ScopeDomain::kRuntime)) return false;
  return frames_.set(r.id, dictionary_
                               .frame({.parent = {frames_[r.parent]},
                                       .name = {strings_[r.name]},
                                       .domain = static_cast<ScopeDomain>(r.domain)})
                               .value);
}

bool Importer::add(const trace::CollectiveRecord& r) {
  for (const std::uint32_t text : {r.name, r.element_type, r.group, r.ranks}) {
    if (!strings_.has(text)) return false;
  }
  return collectives_.set(r.id, dictionary_
                                    .collective({.name = {strings_[r.name]},
                                                 .element_type = {strings_[r.element_type]},
                                                 .in_elements = r.in_elements,
                                                 .out_elements = r.out_elements,
                                                 .group = {strings_[r.group]},
                                                 .ranks = {strings_[r.ranks]},
                                                 .group_size = r.group_size})
                                    .value);
}

bool Importer::add(const trace::AttributesRecord& r) {
  if (!collectives_.has(r.collective)) return false;
  return attributes_.set(r.id,
                         dictionary_
                             .attributes({.block = {r.block[0], r.block[1], r.block[2]},
                                          .cluster = {r.cluster[0], r.cluster[1], r.cluster[2]},
                                          .registers_per_thread = r.registers_per_thread,
                                          .static_shared_bytes = r.static_shared_bytes,
                                          .dynamic_shared_bytes = r.dynamic_shared_bytes,
                                          .local_bytes_per_thread = r.local_bytes_per_thread,
                                          .priority = r.priority,
                                          .collective = {collectives_[r.collective]}})
                             .value);
}

template <class Record>
static bool add_each(std::uint32_t records, std::span<const std::byte> payload, auto&& add) {
  if (payload.size() != std::uint64_t{records} * sizeof(Record)) return false;
  for (Record record; take(payload, record);) {
    if (!add(record)) return false;
  }
  return true;
}

bool Importer::table(ChunkType type, std::uint32_t records, std::span<const std::byte> payload) {
  const auto add_record = [this](const auto& record) { return add(record); };
  switch (type) {
    case ChunkType::kStrings:
      return strings(records, payload);
    case ChunkType::kFacts:
      return facts(records, payload);
    case ChunkType::kProcesses:
      return add_each<trace::ProcessRecord>(records, payload, add_record);
    case ChunkType::kDevices:
      return add_each<trace::DeviceRecord>(records, payload, add_record);
    case ChunkType::kLanes:
      return add_each<trace::LaneRecord>(records, payload, add_record);
    case ChunkType::kFrames:
      return add_each<trace::FrameRecord>(records, payload, add_record);
    case ChunkType::kCollectives:
      return add_each<trace::CollectiveRecord>(records, payload, add_record);
    case ChunkType::kAttributes:
      return add_each<trace::AttributesRecord>(records, payload, add_record);
    default:
      return false;
  }
}

bool Importer::valid(const Event& e) const {
  if (!strings_.has(e.name.value) || !lanes_.has(e.lane.value) || !frames_.has(e.scope.value) ||
      !processes_.has(correlation_process(e.correlation).value)) {
    return false;
  }
  if (e.untimed() ? e.start_ns != kNoTime || e.end_ns != kNoTime
                  : e.start_ns == kNoTime || e.end_ns < e.start_ns) {
    return false;
  }
  switch (e.kind) {
    case Kind::kScope:
      return strings_.has(e.range.arguments.value);
    case Kind::kKernel:
      return attributes_.has(e.kernel.attributes.value);
    case Kind::kSync:
      return lanes_.has(e.sync.on.value);
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kFault:
      return devices_.has(e.memory.device.value) && strings_.has(e.memory.pool.value);
    case Kind::kCounter:
      return strings_.has(e.counter.unit.value) && devices_.has(e.counter.device.value);
    case Kind::kDevice:
      return strings_.has(e.device.format.value);
    case Kind::kApi:
    case Kind::kCopy:
    case Kind::kFill:
    case Kind::kGap:
      return true;
  }
  return false;
}

bool Importer::identity() const {
  return strings_.identity() && processes_.identity() && devices_.identity() && lanes_.identity() &&
         frames_.identity() && attributes_.identity();
}

void Importer::map(Event& e) const {
  e.name = {strings_[e.name.value]};
  e.lane = {lanes_[e.lane.value]};
  e.scope = {frames_[e.scope.value]};
  // Not make_correlation(): what a file has is kept, also when it is odd.
  e.correlation = std::uint64_t{processes_[correlation_process(e.correlation).value]}
                      << kCorrelationBits |
                  (e.correlation & kMaxVendorCorrelation);
  switch (e.kind) {
    case Kind::kScope:
      e.range.arguments = {strings_[e.range.arguments.value]};
      break;
    case Kind::kKernel:
      e.kernel.attributes = {attributes_[e.kernel.attributes.value]};
      break;
    case Kind::kSync:
      e.sync.on = {lanes_[e.sync.on.value]};
      break;
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kFault:
      e.memory.device = {devices_[e.memory.device.value]};
      e.memory.pool = {strings_[e.memory.pool.value]};
      break;
    case Kind::kCounter:
      e.counter.unit = {strings_[e.counter.unit.value]};
      e.counter.device = {devices_[e.counter.device.value]};
      break;
    case Kind::kDevice:
      e.device.format = {strings_[e.device.format.value]};
      break;
    case Kind::kApi:
    case Kind::kCopy:
    case Kind::kFill:
    case Kind::kGap:
      break;
  }
}

}  // namespace pasta::adapters::pasta_file
