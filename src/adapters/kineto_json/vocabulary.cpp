#include "adapters/kineto_json/vocabulary.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace pasta::adapters::kineto_json {
namespace {

constexpr std::uint16_t api(ApiDomain domain) { return static_cast<std::uint16_t>(domain); }
constexpr std::uint16_t scope(ScopeDomain domain) { return static_cast<std::uint16_t>(domain); }

constexpr auto kCategories = std::to_array<Category>({
    {"cpu_op", Kind::kScope, scope(ScopeDomain::kOperator), false},
    {"python_function", Kind::kScope, scope(ScopeDomain::kPython), false},
    {"cuda_runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"kernel", Kind::kKernel, 0, true},
    {"user_annotation", Kind::kScope, scope(ScopeDomain::kAnnotation), false},
    {"cpu_instant_event", Kind::kScope, scope(ScopeDomain::kUnknown), false},
    {"cuda_driver", Kind::kApi, api(ApiDomain::kDriver), false},
    {"gpu_memcpy", Kind::kCopy, 0, true},
    {"gpu_memset", Kind::kFill, 0, true},
    {"gpu_user_annotation", Kind::kScope, scope(ScopeDomain::kAnnotation), true},
    {"cuda_sync", Kind::kSync, 0, true},
    {"overhead", Kind::kScope, scope(ScopeDomain::kRuntime), false},
    {"trace", Kind::kScope, scope(ScopeDomain::kRuntime), false},
    {"cuda_profiler_range", Kind::kScope, scope(ScopeDomain::kRuntime), false},
    // 2021 and before.
    {"operator", Kind::kScope, scope(ScopeDomain::kOperator), false},
    {"runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"memcpy", Kind::kCopy, 0, true},
    {"memset", Kind::kFill, 0, true},
    // Other accelerators' runtimes.
    {"hip_runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"xpu_runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"xpu_driver", Kind::kApi, api(ApiDomain::kDriver), false},
    {"xpu_sync", Kind::kSync, 0, true},
    {"xpu_scope_profiler", Kind::kScope, scope(ScopeDomain::kRuntime), false},
    {"hpu_op", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"glow_runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"collective_comm", Kind::kApi, api(ApiDomain::kCommunication), false},
    {"mtia_runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"mtia_ccp_events", Kind::kKernel, 0, true},
    {"mtia_insight", Kind::kScope, scope(ScopeDomain::kRuntime), true},
    {"privateuse1_runtime", Kind::kApi, api(ApiDomain::kRuntime), false},
    {"privateuse1_driver", Kind::kApi, api(ApiDomain::kDriver), false},
});

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool equal_ignoring_case(std::string_view text, std::string_view lower_case) {
  return text.size() == lower_case.size() &&
         std::equal(text.begin(), text.end(), lower_case.begin(),
                    [](char a, char b) { return lower(a) == b; });
}

struct ArgName {
  std::string_view name;
  Arg arg;
};
constexpr auto kArgs = std::to_array<ArgName>({
    {"correlation", Arg::kCorrelation},
    {"device", Arg::kDevice},
    {"stream", Arg::kStream},
    {"Physic Stream Id", Arg::kStream},
    {"context", Arg::kContext},
    {"bytes", Arg::kBytes},
    {"size", Arg::kBytes},
    {"grid", Arg::kGrid},
    {"block", Arg::kBlock},
    {"registers per thread", Arg::kRegisters},
    {"shared memory", Arg::kSharedMemory},
    {"graph node id", Arg::kGraphNode},
    {"priority", Arg::kPriority},
    {"Device Type", Arg::kDeviceType},
    {"Device Id", Arg::kDeviceId},
    {"Addr", Arg::kAddress},
    {"Bytes", Arg::kMemoryBytes},
    {"Total Allocated", Arg::kTotalAllocated},
    {"Total Reserved", Arg::kTotalReserved},
    {"Sequence number", Arg::kSequence},
    {"Fwd thread id", Arg::kForwardThread},
    {"Collective name", Arg::kCollective},
    {"In msg nelems", Arg::kInElements},
    {"Out msg nelems", Arg::kOutElements},
    {"dtype", Arg::kElementType},
    {"Group size", Arg::kGroupSize},
    {"Process Group Name", Arg::kGroupName},
    {"Process Group Ranks", Arg::kGroupRanks},
    {"Input Dims", Arg::kInputDims},
    {"Input dims", Arg::kInputDims},
    {"Input type", Arg::kInputTypes},
    {"src", Arg::kSource},
    {"dst", Arg::kDestination},
    {"cuda_sync_kind", Arg::kSyncKind},
    {"wait_on_stream", Arg::kWaitOnStream},
    {"wait_on_cuda_event_id", Arg::kWaitOnEvent},
    {"kind", Arg::kCopyKind},
    {"name", Arg::kMetadataName},
    // XPU.
    {"sycl queue", Arg::kStream},
    {"sycl_queue", Arg::kStream},
    // rocprof and RPD.
    {"BeginNs", Arg::kBeginNs},
    {"EndNs", Arg::kEndNs},
    {"pid", Arg::kNativePid},
    {"tid", Arg::kNativeTid},
    {"dev-id", Arg::kDevice},
    {"gpu-id", Arg::kDevice},
    {"queue-id", Arg::kContext},
    {"stream-id", Arg::kStream},
    {"desc", Arg::kCopyKind},
    {"grd", Arg::kWorkItems},
    {"wgr", Arg::kWorkGroup},
    {"lds", Arg::kSharedMemory},
    {"vgpr", Arg::kRegisters},
    {"arch_vgpr", Arg::kRegisters},
    // TensorFlow and XLA.
    {"kernel", Arg::kKernelName},
    {"correlation_id", Arg::kCorrelation},
    {"context_id", Arg::kContext},
    {"memcpy_details", Arg::kCopyDetails},
    {"hlo_module", Arg::kHloModule},
    {"hlo_op", Arg::kHloOperation},
    {"tf_op", Arg::kFrameworkOperation},
});

// A perfect hash would save little: keys differ in length, and the bucket of one length holds at
// most a few names.
struct ByLength {
  static constexpr std::size_t kLongest = 24;
  std::array<std::array<std::uint8_t, 8>, kLongest> index{};  // 1-based indices into kArgs
  constexpr ByLength() {
    for (std::size_t i = 0; i < kArgs.size(); ++i) {
      auto& bucket = index[kArgs[i].name.size()];
      std::size_t at = 0;
      while (bucket[at] != 0) ++at;  // out of bounds does not compile
      bucket[at] = static_cast<std::uint8_t>(i + 1);
    }
  }
};
constexpr ByLength kArgsByLength;

}  // namespace

const Category* find_category(std::string_view name) {
  for (const Category& category : kCategories) {
    if (equal_ignoring_case(name, category.name)) return &category;
  }
  return nullptr;
}

Field find_field(std::string_view key) {
  switch (key.size()) {
    case 1:
      return key == "s" ? Field::kScope : Field::kOther;
    case 2:
      if (key == "ph") return Field::kPhase;
      if (key == "ts") return Field::kTime;
      if (key == "id") return Field::kId;
      return Field::kOther;
    case 3:
      if (key == "cat") return Field::kCategory;
      if (key == "pid") return Field::kPid;
      if (key == "tid") return Field::kTid;
      if (key == "dur") return Field::kDuration;
      return Field::kOther;
    case 4:
      if (key == "name") return Field::kName;
      if (key == "args") return Field::kArgs;
      return Field::kOther;
    default:
      return Field::kOther;
  }
}

Arg find_arg(std::string_view key) {
  if (key.size() >= ByLength::kLongest) return Arg::kOther;
  for (const std::uint8_t i : kArgsByLength.index[key.size()]) {
    if (i == 0) break;
    if (kArgs[i - 1].name == key) return kArgs[i - 1].arg;
  }
  return Arg::kOther;
}

CopyDirection copy_direction(std::string_view text) {
  struct Spelling {
    std::string_view text;
    CopyDirection direction;
  };
  static constexpr auto kSpellings = std::to_array<Spelling>({
      {"HtoD", CopyDirection::kHostToDevice},
      {"DtoH", CopyDirection::kDeviceToHost},
      {"DtoD", CopyDirection::kDeviceToDevice},
      {"HtoH", CopyDirection::kHostToHost},
      {"PtoP", CopyDirection::kPeerToPeer},
      // XLA.
      {"H2D", CopyDirection::kHostToDevice},
      {"D2H", CopyDirection::kDeviceToHost},
      {"D2D", CopyDirection::kDeviceToDevice},
      {"P2P", CopyDirection::kPeerToPeer},
      // rocprof and RPD.
      {"HostToDevice", CopyDirection::kHostToDevice},
      {"DeviceToHost", CopyDirection::kDeviceToHost},
      {"DeviceToDevice", CopyDirection::kDeviceToDevice},
  });
  for (const Spelling& spelling : kSpellings) {
    if (text.find(spelling.text) != text.npos) return spelling.direction;
  }
  return CopyDirection::kUnknown;
}

SyncTarget sync_target(std::string_view text) {
  if (text.starts_with("Stream Wait")) return SyncTarget::kStreamWaitsEvent;
  if (text.starts_with("Stream")) return SyncTarget::kStream;
  if (text.starts_with("Event")) return SyncTarget::kEvent;
  if (text.starts_with("Context") || text.starts_with("Device")) return SyncTarget::kContext;
  return SyncTarget::kUnknown;
}

bool is_iteration_mark(std::string_view name) {
  constexpr std::string_view kMark = "ProfilerStep#";
  return name.size() > kMark.size() && name.starts_with(kMark) &&
         name.find_first_not_of("0123456789", kMark.size()) == name.npos;
}

FlowKind flow_kind(std::string_view category) {
  if (category == "ac2g" || category.starts_with("async") || category == "cpu_to_cuda") {
    return FlowKind::kLaunch;
  }
  if (category == "fwdbwd" || category == "forward_backward") return FlowKind::kForwardBackward;
  return FlowKind::kNone;
}

}  // namespace pasta::adapters::kineto_json
