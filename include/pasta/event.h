// One thing that happened: the only record that flows from adapters to tools.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "pasta/ids.h"

namespace pasta {

// Says what happened, not who said it.
enum class Kind : std::uint8_t {
  kApi,      // host call into a runtime or driver
  kScope,    // named range: operator, module, Python frame, NVTX range, annotation, iteration mark
  kKernel,   // kernel execution on a device
  kCopy,     // data movement
  kFill,     // memset
  kSync,     // host or device wait
  kAlloc,    // memory became usable
  kFree,     // memory stopped being usable
  kFault,    // page fault of unified memory
  kCounter,  // sampled value
  kDevice,   // found out about one launch on the device: by a patch, by samples (see BlobId)
  kGap,      // records were lost here
};
inline constexpr unsigned kKindCount = 12;

// The stable lower-case name ("api", "kernel", ...), and back; false when there is no such kind.
std::string_view kind_name(Kind kind);
bool kind_from_name(std::string_view name, Kind& kind);

// A set of kinds.
class KindSet {
 public:
  constexpr KindSet() = default;
  // Implicit, so that `Kind::kKernel | Kind::kCopy` and a single kind are both sets.
  constexpr KindSet(Kind kind) : bits_(1u << static_cast<unsigned>(kind)) {}
  static constexpr KindSet all() { return KindSet((1u << kKindCount) - 1); }
  [[nodiscard]] constexpr bool has(Kind kind) const {
    return (bits_ >> static_cast<unsigned>(kind) & 1u) != 0;
  }
  [[nodiscard]] constexpr bool contains(KindSet other) const {
    return (bits_ & other.bits_) == other.bits_;
  }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  friend constexpr KindSet operator|(KindSet a, KindSet b) { return KindSet(a.bits_ | b.bits_); }
  friend constexpr KindSet operator-(KindSet a, KindSet b) { return KindSet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(KindSet, KindSet) = default;

 private:
  constexpr explicit KindSet(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};
constexpr KindSet operator|(Kind a, Kind b) { return KindSet(a) | KindSet(b); }

// Event::flags.
enum Flag : std::uint8_t {
  kUntimed = 1,      // the source gave no usable times: start_ns == end_ns == kNoTime
  kUnfinished = 2,   // still open when the source ended; end_ns is where the source ended
  kLinked = 4,       // device work whose launch call is in the trace
  kSkewed = 8,       // device work that starts before its launch call does (clock skew)
  kAnnotation = 16,  // a range drawn on a device queue that is not device work
  kInstant = 32,     // the source recorded a moment, not a range
};

// Times of an untimed event. Absurd on purpose: a tool that forgets the flag is seen at once.
inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// Event::detail, by kind.
enum class ApiDomain : std::uint16_t { kUnknown, kRuntime, kDriver, kCommunication, kOs };
enum class ScopeDomain : std::uint16_t {
  kUnknown,
  kOperator,    // operator of a framework (aten::mm)
  kModule,      // module of a model
  kPython,      // Python frame
  kAnnotation,  // user annotation, NVTX or ROCTx range
  kIteration,   // iteration mark
  kRuntime,     // the framework's or profiler's own work
};
enum class CopyDirection : std::uint16_t {
  kUnknown,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kHostToHost,
  kPeerToPeer,
  kMigration,  // of unified memory; src or dst says from where
};
enum class SyncTarget : std::uint16_t { kUnknown, kContext, kStream, kEvent, kStreamWaitsEvent };
// Of what the times of a kDevice event are.
enum class DeviceTimes : std::uint16_t {
  kUnknown,    // of whoever wrote it down: they say nothing of the kernel
  kOtherRun,   // of the same launch in a run of the program without patches
  kNotJoined,  // of the launch before it: this one was not found in that run
};

// What each kind carries besides. 24 bytes each; unused bytes are zero.
struct ApiData {
  std::int32_t status;  // the vendor's return value, 0 = success
  std::uint32_t reserved[5];
};
struct ScopeData {
  std::uint64_t sequence;  // autograd sequence number + 1, or 0
  StringId arguments;      // compact JSON object of kept arguments, or none
  // Autograd's number of the thread that ran the forward operator of which this range is the
  // backward; 0 = not a backward range.
  std::uint32_t forward_thread;
  std::uint32_t reserved[2];
};
struct KernelData {
  std::uint32_t grid[3];  // in blocks; 0 = unknown
  AttributesId attributes;
  std::uint32_t graph_node;  // node of the launched graph, 0 = not from a graph
  std::uint32_t ordinal;     // the n-th launch of its process, from 1; 0 = unknown
};
struct CopyData {
  std::uint64_t bytes;  // kUnknownBytes when the source does not say
  std::uint64_t src, dst;
};
struct FillData {
  std::uint64_t bytes;  // kUnknownBytes when the source does not say
  std::uint64_t address;
  std::uint32_t pattern;
  std::uint32_t reserved;
};
struct SyncData {
  LaneId on;  // the queue waited for, or none
  std::uint32_t reserved;
  std::uint64_t object;  // the vendor's event id
  std::uint64_t reserved2;
};
struct MemoryData {
  std::uint64_t bytes;
  std::uint64_t address;
  DeviceId device;  // none = host memory
  StringId pool;
};
struct CounterData {
  double value;
  StringId unit;
  DeviceId device;  // none = of the lane's process
  std::uint64_t reserved;
};
struct DeviceData {
  BlobId blob;
  StringId format;
  std::uint64_t launch;
  std::uint64_t reserved;
};
struct GapData {
  std::uint64_t lost;
  std::uint64_t reserved[2];
};
inline constexpr std::uint64_t kUnknownBytes = ~std::uint64_t{0};

// Trivially copyable and exactly one cache line, so a batch is a span, a file section is a memcpy
// and a NumPy array is a view. Times are nanoseconds on the trace's own axis (see
// Dictionary::origin_ns); an instant has start_ns == end_ns. Events reach a tool in order of
// end_ns, untimed ones first.
struct Event {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint64_t correlation;  // same value on a launch call and on the work it caused; 0 = none
  StringId name;
  LaneId lane;    // host thread or device queue it happened on
  FrameId scope;  // innermost scope open around it; for device work, around its launch
  std::uint16_t detail;
  Kind kind;
  std::uint8_t flags;
  union {
    std::uint64_t raw[3];
    ApiData api;
    ScopeData range;
    KernelData kernel;
    CopyData copy;
    FillData fill;
    SyncData sync;
    MemoryData memory;
    CounterData counter;
    DeviceData device;
    GapData gap;
  };

  [[nodiscard]] bool untimed() const { return (flags & kUntimed) != 0; }
  // 0 for an untimed event: check untimed() where that is not the same as "took no time".
  [[nodiscard]] std::int64_t duration_ns() const { return end_ns - start_ns; }
};
static_assert(sizeof(Event) == 64, "the file format and the NumPy dtype depend on it");
static_assert(std::is_trivially_copyable_v<Event> && std::is_standard_layout_v<Event>);
static_assert(sizeof(ApiData) == 24 && sizeof(ScopeData) == 24 && sizeof(KernelData) == 24);
static_assert(sizeof(CopyData) == 24 && sizeof(FillData) == 24 && sizeof(SyncData) == 24);
static_assert(sizeof(MemoryData) == 24 && sizeof(CounterData) == 24 && sizeof(DeviceData) == 24);
static_assert(sizeof(GapData) == 24);

// Work that occupies a device queue.
inline constexpr KindSet kDeviceWork = Kind::kKernel | Kind::kCopy | KindSet(Kind::kFill);

// Event::correlation. A vendor's id is unique in its process only, so the process is part of the
// value: 16 bits of process, 48 bits of vendor id (with an epoch where the vendor's id wraps).
inline constexpr unsigned kCorrelationBits = 48;
inline constexpr std::uint64_t kMaxVendorCorrelation = (std::uint64_t{1} << kCorrelationBits) - 1;
constexpr std::uint64_t make_correlation(ProcessId process, std::uint64_t vendor_id) {
  return vendor_id == 0 ? 0 : std::uint64_t{process.value} << kCorrelationBits | vendor_id;
}
constexpr ProcessId correlation_process(std::uint64_t correlation) {
  return {static_cast<std::uint32_t>(correlation >> kCorrelationBits)};
}

}  // namespace pasta
