// CUPTI's activity records as they lie in its buffers: the leading fields that decode.cpp reads,
// which are the same in every CUPTI of CUDA 12.0 to 13.x; what later versions add follows after
// them. Declared here, so that PASTA builds without CUDA and one binary serves all versions;
// decode_test.cpp holds them to the vendor's headers where there are any.
#pragma once

#include <cstdint>

namespace pasta::adapters::cupti {

// CUpti_ActivityKind.
enum class RecordKind : std::int32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kContext = 9,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kPeerCopy = 22,
  kStream = 37,
  kExternalCorrelation = 39,
  kMemory = 49,      // MEMORY2
  kMemoryPool = 50,  // MEMORY_POOL
  kGraphTrace = 51,
};

#pragma pack(push, 1)
struct Record {
  RecordKind kind;
};

struct KernelRecord {
  RecordKind kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers_per_thread;
  std::int32_t partitioned_cache[2];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::int32_t grid[3];
  std::int32_t block[3];
  std::int32_t static_shared;
  std::int32_t dynamic_shared;
  std::uint32_t local_per_thread;
  std::uint32_t local_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
  void* reserved;
  std::uint64_t queued;
  std::uint64_t submitted;
  std::uint8_t launch_type;
  std::uint8_t carveout[2];
  std::uint8_t padding;
  std::uint32_t shared_executed;
  std::uint64_t graph_node;
  std::int32_t shared_limit;
  std::uint32_t graph;
  void* access_policy;
  std::uint32_t channel;
  std::int32_t channel_type;
  std::uint32_t cluster[3];
};

struct MemcpyRecord {
  RecordKind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t target_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
  std::uint32_t runtime_correlation;
  std::uint32_t padding;
  void* reserved;
  std::uint64_t graph_node;
};

struct PeerCopyRecord {
  RecordKind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t target_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t source_device, source_context, target_device, target_context;
  std::uint32_t correlation;
  void* reserved;
  std::uint64_t graph_node;
};

struct MemsetRecord {
  RecordKind kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
  std::uint16_t flags;
  std::uint16_t memory_kind;
  std::uint32_t padding;
  void* reserved;
  std::uint64_t graph_node;
};

struct ApiRecord {
  RecordKind kind;
  std::uint32_t callback;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t status;
};

struct MemoryRecord {
  RecordKind kind;
  std::int32_t operation;
  std::int32_t memory_kind;
  std::uint32_t correlation;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t timestamp;
  std::uint64_t counter;  // of the program
  std::uint32_t process;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  const char* name;
  std::uint32_t is_async;
  std::uint32_t padding;
  std::int32_t pool_type;
  std::uint32_t padding2;
  std::uint64_t pool_address;
};

struct MemoryPoolRecord {
  RecordKind kind;
  std::int32_t operation;
  std::int32_t pool_type;
  std::uint32_t correlation;
  std::uint32_t process;
  std::uint32_t device;
  std::uint64_t kept_bytes;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t release_threshold;
  std::uint64_t timestamp;
  std::uint64_t used_bytes;
};

struct GraphTraceRecord {
  RecordKind kind;
  std::uint32_t correlation;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t graph;
  std::uint32_t context;
  std::uint32_t stream;
};

struct OverheadRecord {
  RecordKind kind;
  std::int32_t overhead;
  std::int32_t object;   // 1 process, 2 thread, 3 device, 4 context, 5 stream
  std::uint32_t ids[3];  // process, thread; or device, context, stream
  std::uint64_t start;
  std::uint64_t end;
};

// A number that the program has given to what it does, and a call of CUDA that it made meanwhile.
struct ExternalCorrelationRecord {
  RecordKind kind;
  std::int32_t external_kind;
  std::uint64_t external;
  std::uint32_t correlation;
};

struct ContextRecord {
  RecordKind kind;
  std::uint32_t context;
  std::uint32_t device;
};

struct StreamRecord {
  RecordKind kind;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t priority;
};
#pragma pack(pop)

// --- callbacks, in CUPTI's numbers

enum class CallbackDomain : std::int32_t { kDriver = 1, kRuntime = 2, kResource = 3, kState = 6 };
// The ones that are asked for. None is of a call that comes often.
inline constexpr std::uint32_t kProfilerStart[] = {308, 171};  // of the driver, of the runtime
inline constexpr std::uint32_t kProfilerStop[] = {309, 172};
inline constexpr std::uint32_t kContextCreated = 1;
inline constexpr std::uint32_t kGraphNodeCreated = 13;
inline constexpr std::uint32_t kGraphNodeCloned = 20;
inline constexpr std::uint32_t kFatalError = 1;  // CUPTI takes itself out of the process

// Leading fields of what a callback is given: of a call, of a resource, and what `what` points to:
// of a graph's node.
struct CallData {
  std::int32_t site;  // 0: entering
  const char* name;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  std::uint32_t context_number;
  std::uint64_t* kept;
  std::uint32_t correlation;
};
struct ResourceData {
  void *context, *resource;
  const void* what;
};
struct GraphData {
  void *graph, *original_graph, *node, *original_node;
};
struct StateData {
  std::int32_t result;
  const char* message;  // may be none
};

}  // namespace pasta::adapters::cupti
