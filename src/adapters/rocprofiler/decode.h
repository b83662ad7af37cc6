// From a record of rocprofiler-sdk to what it tells. Pure: no SDK, no heap, no libstdc++; the
// collector makes ids of what is said here (adapter.cpp).
#pragma once

#include <cstdint>

#include "adapters/rocprofiler/records.h"
#include "device/samples.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"

namespace pasta::adapters::rocprofiler {

// What a record of a buffer is of. The SDK numbers its kinds anew with each version, so they are
// known by their names.
enum class Service : std::uint8_t {
  kOther,
  kRuntimeCalls,
  kDriverCalls,
  kCommunicationCalls,
  kKernels,
  kCopies,
  kAllocations,
  kScratch,
  kMigrations,
  kFaults,
  kPages,  // both, before 1.0
  kDropped,
};
// Of the name that the SDK gives a kind of buffered tracing: "KERNEL_DISPATCH".
Service service_of(const char* kind_name) noexcept;

// What the tool has given a launch as its external correlation: the stream, if it is known.
constexpr std::uint64_t stream_mark(std::uint64_t stream) { return stream + 1; }

// Where an event lies, in the SDK's numbers.
struct Place {
  enum class Type : std::uint8_t {
    kThread,   // `thread`
    kQueue,    // `stream`, `queue`, or neither: copies
    kMemory,   // the driver's work for `agent`
    kSamples,  // of program counters of `agent`
  };
  Type type = Type::kThread;
  bool knows_stream = false;
  bool knows_queue = false;
  std::uint64_t thread = 0;
  std::uint64_t agent = 0;
  std::uint64_t stream = 0;
  std::uint64_t queue = 0;
};

// What becomes of a record.
enum class Told : std::uint8_t {
  kEvent,
  kBegins,   // what `pair` will end, at `time`
  kLost,     // `lost` events of which nothing is known
  kUnknown,  // of a kind that was not asked for
  kInvalid,  // shorter than its version makes it, or contradicting itself
};

struct Decoded {
  Event event{};  // without ids; times in the SDK's clock
  Place place;
  std::int32_t kind = 0, operation = 0;    // name the event, unless it is of a kernel
  std::uint64_t kernel = 0, dispatch = 0;  // numbers of the SDK
  LaunchAttributes attributes;             // of a kernel; shared memory in one sum, as dynamic
  std::uint64_t agent = 0;                 // of memory, or where a copy goes
  std::uint64_t source_agent = 0;          // where a copy comes from
  std::uint64_t lost = 0;
  bool by_node = false;  // agents are nodes of the topology
  // Not 0: this ends at `time` what a record of its own has begun, of the same number.
  std::uint64_t pair = 0;
  std::uint64_t time = 0;
  // What was wrong with its times or its correlation, which it then has none of.
  Reason times = Reason::kNone;
  Reason correlation = Reason::kNone;
};

// `payload` is of `service`, in the layout of `version`.
Told decode(Service service, std::uint32_t version, const void* payload, Decoded& to) noexcept;

// A sample of a program counter.
struct PcSample {
  std::uint64_t dispatch = 0;
  Pc pc{};
  device::WaveState state = device::WaveState::kUnknown;
  std::uint64_t stall = 0;  // why it was stalled, in the SDK's numbers
};
// `kind` is the header's, of category kPcSampling.
Told decode_sample(std::uint32_t kind, const void* payload, PcSample& to) noexcept;

// Of what has them still to come.
void set_times(Decoded& to, std::uint64_t start, std::uint64_t end) noexcept;

// Grid, block and place of a launch.
void decode(const Dispatch& dispatch, std::uint64_t external, Decoded& to) noexcept;

// Of the bytes that the static memory of a kernel takes and its dispatch asked for.
void split_shared(LaunchAttributes& attributes, std::uint32_t of_kernel) noexcept;

}  // namespace pasta::adapters::rocprofiler
