#include "plugins/c_view.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "pasta/quality.h"

namespace pasta::plugins {
namespace {

// ---- An Event is a pasta_event, member by member. ----

#define SAME_MEMBER(cpp_type, cpp_member, c_type, c_member)                    \
  static_assert(offsetof(cpp_type, cpp_member) == offsetof(c_type, c_member)); \
  static_assert(sizeof(cpp_type::cpp_member) == sizeof(c_type::c_member))

static_assert(sizeof(Event) == sizeof(pasta_event) && alignof(Event) == alignof(pasta_event));
static_assert(std::is_standard_layout_v<pasta_event>);
SAME_MEMBER(Event, start_ns, pasta_event, start_ns);
SAME_MEMBER(Event, end_ns, pasta_event, end_ns);
SAME_MEMBER(Event, correlation, pasta_event, correlation);
SAME_MEMBER(Event, name, pasta_event, name);
SAME_MEMBER(Event, lane, pasta_event, lane);
SAME_MEMBER(Event, scope, pasta_event, scope);
SAME_MEMBER(Event, detail, pasta_event, detail);
SAME_MEMBER(Event, kind, pasta_event, kind);
SAME_MEMBER(Event, flags, pasta_event, flags);
SAME_MEMBER(Event, raw, pasta_event, data);

using Data = decltype(pasta_event::data);
using Api = decltype(Data::api);
SAME_MEMBER(ApiData, status, Api, status);
using Range = decltype(Data::range);
SAME_MEMBER(ScopeData, sequence, Range, sequence);
SAME_MEMBER(ScopeData, arguments, Range, arguments);
SAME_MEMBER(ScopeData, forward_thread, Range, forward_thread);
using Kernel = decltype(Data::kernel);
SAME_MEMBER(KernelData, grid, Kernel, grid);
SAME_MEMBER(KernelData, attributes, Kernel, attributes);
SAME_MEMBER(KernelData, graph_node, Kernel, graph_node);
SAME_MEMBER(KernelData, ordinal, Kernel, ordinal);
using Copy = decltype(Data::copy);
SAME_MEMBER(CopyData, bytes, Copy, bytes);
SAME_MEMBER(CopyData, src, Copy, src);
SAME_MEMBER(CopyData, dst, Copy, dst);
using Fill = decltype(Data::fill);
SAME_MEMBER(FillData, bytes, Fill, bytes);
SAME_MEMBER(FillData, address, Fill, address);
SAME_MEMBER(FillData, pattern, Fill, pattern);
using Sync = decltype(Data::sync);
SAME_MEMBER(SyncData, on, Sync, on);
SAME_MEMBER(SyncData, object, Sync, object);
using Memory = decltype(Data::memory);
SAME_MEMBER(MemoryData, bytes, Memory, bytes);
SAME_MEMBER(MemoryData, address, Memory, address);
SAME_MEMBER(MemoryData, device, Memory, device);
SAME_MEMBER(MemoryData, pool, Memory, pool);
using Counter = decltype(Data::counter);
SAME_MEMBER(CounterData, value, Counter, value);
SAME_MEMBER(CounterData, unit, Counter, unit);
SAME_MEMBER(CounterData, device, Counter, device);
using DeviceResult = decltype(Data::device);
SAME_MEMBER(DeviceData, blob, DeviceResult, blob);
SAME_MEMBER(DeviceData, format, DeviceResult, format);
SAME_MEMBER(DeviceData, launch, DeviceResult, launch);
using Gap = decltype(Data::gap);
SAME_MEMBER(GapData, lost, Gap, lost);
#undef SAME_MEMBER

// ---- And so are the numbers that stand for words. ----

template <class A, class B>
constexpr bool same(A a, B b) {
  return static_cast<std::uint64_t>(a) == static_cast<std::uint64_t>(b);
}
static_assert(kKindCount == PASTA_KIND_GAP + 1);
static_assert(same(Kind::kApi, PASTA_KIND_API) && same(Kind::kScope, PASTA_KIND_SCOPE) &&
              same(Kind::kKernel, PASTA_KIND_KERNEL) && same(Kind::kCopy, PASTA_KIND_COPY) &&
              same(Kind::kFill, PASTA_KIND_FILL) && same(Kind::kSync, PASTA_KIND_SYNC) &&
              same(Kind::kAlloc, PASTA_KIND_ALLOC) && same(Kind::kFree, PASTA_KIND_FREE) &&
              same(Kind::kFault, PASTA_KIND_FAULT) && same(Kind::kCounter, PASTA_KIND_COUNTER) &&
              same(Kind::kDevice, PASTA_KIND_DEVICE) && same(Kind::kGap, PASTA_KIND_GAP));
static_assert(same(kUntimed, PASTA_FLAG_UNTIMED) && same(kUnfinished, PASTA_FLAG_UNFINISHED) &&
              same(kLinked, PASTA_FLAG_LINKED) && same(kSkewed, PASTA_FLAG_SKEWED) &&
              same(kAnnotation, PASTA_FLAG_ANNOTATION) && same(kInstant, PASTA_FLAG_INSTANT));
static_assert(kNoTime == PASTA_NO_TIME && kUnknownBytes == PASTA_UNKNOWN_BYTES);
static_assert(same(ApiDomain::kOs, PASTA_API_OS) &&
              same(ApiDomain::kCommunication, PASTA_API_COMMUNICATION));
static_assert(same(ScopeDomain::kOperator, PASTA_SCOPE_OPERATOR) &&
              same(ScopeDomain::kIteration, PASTA_SCOPE_ITERATION) &&
              same(ScopeDomain::kRuntime, PASTA_SCOPE_RUNTIME));
static_assert(same(CopyDirection::kHostToDevice, PASTA_COPY_HOST_TO_DEVICE) &&
              same(CopyDirection::kMigration, PASTA_COPY_MIGRATION));
static_assert(same(SyncTarget::kContext, PASTA_SYNC_CONTEXT) &&
              same(SyncTarget::kStreamWaitsEvent, PASTA_SYNC_STREAM_WAITS_EVENT));
static_assert(same(DeviceType::kGpu, PASTA_DEVICE_GPU) &&
              same(DeviceType::kAccelerator, PASTA_DEVICE_ACCELERATOR));
static_assert(same(LaneType::kQueue, PASTA_LANE_QUEUE));

// ---- Tables ----

// Copies as much of `from` as the caller's struct has room for, and leaves its `size` alone.
template <class Struct>
void hand_over(const Struct& from, Struct* out) {
  constexpr std::size_t kFirst = sizeof(std::size_t);
  const std::size_t end = std::min(out->size, sizeof(Struct));
  if (end <= kFirst) return;
  std::memcpy(reinterpret_cast<char*>(out) + kFirst, reinterpret_cast<const char*>(&from) + kFirst,
              end - kFirst);
}

}  // namespace

const Dictionary& Lookup::dictionary_of(const pasta_lookup* lookup) {
  return *reinterpret_cast<const Table*>(lookup)->dictionary;
}

Lookup::Lookup(const Dictionary& dictionary) : table_{{}, &dictionary} {
  static_assert(std::is_standard_layout_v<Table>);
  // An unknown id is what id 0 is, so that no caller can read beyond a table.
  static constexpr auto known = [](std::uint32_t id, std::uint32_t count) {
    return id < count ? id : 0;
  };
  pasta_lookup& f = table_.functions;
  f.size = sizeof(pasta_lookup);
  f.count = [](const pasta_lookup* lookup, std::uint32_t table) -> std::uint32_t {
    const Dictionary& d = dictionary_of(lookup);
    switch (table) {
      case PASTA_TABLE_STRINGS:
        return d.string_count();
      case PASTA_TABLE_PROCESSES:
        return d.process_count();
      case PASTA_TABLE_DEVICES:
        return d.device_count();
      case PASTA_TABLE_LANES:
        return d.lane_count();
      case PASTA_TABLE_FRAMES:
        return d.frame_count();
      case PASTA_TABLE_ATTRIBUTES:
        return d.attributes_count();
      case PASTA_TABLE_COLLECTIVES:
        return d.collective_count();
      default:
        return 0;
    }
  };
  f.string = [](const pasta_lookup* lookup, std::uint32_t id) {
    const Dictionary& d = dictionary_of(lookup);
    return c_view(d.text(StringId{known(id, d.string_count())}));
  };
  f.process = [](const pasta_lookup* lookup, std::uint32_t id, pasta_process* out) {
    const Dictionary& d = dictionary_of(lookup);
    const Process p = d.process(ProcessId{known(id, d.process_count())});
    hand_over({sizeof(pasta_process), p.native_id, c_view(d.text(p.native_text)),
               c_view(d.text(p.name)), c_view(d.text(p.host)), p.rank, p.world_size},
              out);
  };
  f.device = [](const pasta_lookup* lookup, std::uint32_t id, pasta_device* out) {
    const Dictionary& d = dictionary_of(lookup);
    const Device device = d.device(DeviceId{known(id, d.device_count())});
    hand_over(
        {sizeof(pasta_device), device.process.value, device.ordinal, c_view(d.text(device.uuid)),
         c_view(d.text(device.name)), static_cast<std::uint32_t>(device.type),
         device.multiprocessors, device.compute_major, device.compute_minor,
         device.max_threads_per_multiprocessor, device.warp_size, device.memory_bytes},
        out);
  };
  f.lane = [](const pasta_lookup* lookup, std::uint32_t id, pasta_lane* out) {
    const Dictionary& d = dictionary_of(lookup);
    const Lane lane = d.lane(LaneId{known(id, d.lane_count())});
    hand_over({sizeof(pasta_lane), static_cast<std::uint32_t>(lane.type), lane.process.value,
               lane.device.value, lane.context, lane.native_id, c_view(d.text(lane.native_text)),
               c_view(d.text(lane.name))},
              out);
  };
  f.frame = [](const pasta_lookup* lookup, std::uint32_t id, pasta_frame* out) {
    const Dictionary& d = dictionary_of(lookup);
    const Frame frame = d.frame(FrameId{known(id, d.frame_count())});
    hand_over({sizeof(pasta_frame), frame.parent.value, static_cast<std::uint32_t>(frame.domain),
               c_view(d.text(frame.name))},
              out);
  };
  f.attributes = [](const pasta_lookup* lookup, std::uint32_t id, pasta_attributes* out) {
    const Dictionary& d = dictionary_of(lookup);
    const LaunchAttributes a = d.attributes(AttributesId{known(id, d.attributes_count())});
    hand_over({sizeof(pasta_attributes),
               {a.block[0], a.block[1], a.block[2]},
               {a.cluster[0], a.cluster[1], a.cluster[2]},
               a.registers_per_thread,
               a.static_shared_bytes,
               a.dynamic_shared_bytes,
               a.local_bytes_per_thread,
               a.priority,
               a.collective.value},
              out);
  };
  f.collective = [](const pasta_lookup* lookup, std::uint32_t id, pasta_collective* out) {
    const Dictionary& d = dictionary_of(lookup);
    const Collective c = d.collective(CollectiveId{known(id, d.collective_count())});
    hand_over({sizeof(pasta_collective), c_view(d.text(c.name)), c_view(d.text(c.element_type)),
               c.in_elements, c.out_elements, c_view(d.text(c.group)), c_view(d.text(c.ranks)),
               c.group_size},
              out);
  };
}

}  // namespace pasta::plugins
