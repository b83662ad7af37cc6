// What rocprofiler-sdk passes to a tool: the numbers and the leading fields that decode.cpp and
// adapter.cpp read, in the layouts of 0.5 to 1.x (ROCm 6.3 to 7.x). Written from the public
// interface (github.com/ROCm/rocprofiler-sdk, source/include/rocprofiler-sdk: fwd.h,
// buffer_tracing.h, callback_tracing.h, agent.h, counters.h, pc_sampling.h, registration.h), so
// that PASTA builds without ROCm and one binary serves all versions; layout_test.cpp holds it to
// the vendor's headers where there are any.
//
// Records begin with their size. Later versions append to them, but some were rebuilt in 0.6 and in
// 1.0: those are here once for each layout, called by the version that made it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pasta::adapters::rocprofiler {

// As rocprofiler_configure() is told: 10000 * major + 100 * minor + patch.
inline constexpr std::uint32_t kOldestVersion = 500;
inline constexpr std::uint32_t kVersion06 = 600;
inline constexpr std::uint32_t kVersion1 = 10000;

struct RecordHeader {
  enum Category : std::uint32_t { kTracing = 1, kPcSampling = 2, kCounters = 3 };
  std::uint32_t category;
  std::uint32_t kind;
  const void* payload;
};

// --- records of buffers

struct Correlation {
  std::uint64_t internal;
  std::uint64_t external;  // what the tool has given
};
struct Correlation1 {
  std::uint64_t internal;
  std::uint64_t external;
  std::uint64_t ancestor;
};

// A call of HIP, HSA, RCCL, rocDecode or rocJPEG.
template <class Ids>
struct BasicCall {
  std::uint64_t size;
  std::int32_t kind, operation;
  Ids correlation;
  std::uint64_t start, end;
  std::uint64_t thread;
};
using CallRecord05 = BasicCall<Correlation>;
using CallRecord1 = BasicCall<Correlation1>;

struct Dispatch {
  std::uint64_t size;
  std::uint64_t agent;
  std::uint64_t queue;
  std::uint64_t kernel;
  std::uint64_t id;
  std::uint32_t private_bytes;
  std::uint32_t group_bytes;
  std::uint32_t workgroup[3];
  std::uint32_t grid[3];  // in work-items
  std::uint8_t reserved[56];
};

struct KernelRecord {
  std::uint64_t size;
  std::int32_t kind, operation;
  Correlation correlation;
  std::uint64_t thread;
  std::uint64_t start, end;
  Dispatch dispatch;
};

struct CopyRecord05 {
  std::uint64_t size;
  std::int32_t kind, operation;
  Correlation correlation;
  std::uint64_t thread;
  std::uint64_t start, end;
  std::uint64_t target_agent, source_agent;
  std::uint64_t bytes;
};
struct CopyRecord1 : CopyRecord05 {
  std::uint64_t target, source;  // addresses
};
enum CopyOperation : std::int32_t {
  kHostToHost = 1,
  kHostToDevice = 2,
  kDeviceToHost = 3,
  kDeviceToDevice = 4
};

template <class Ids>
struct BasicAllocation {
  std::uint64_t size;
  std::int32_t kind, operation;
  Ids correlation;
  std::uint64_t thread;
  std::uint64_t start, end;
  std::uint64_t agent;
  std::uint64_t address;
  std::uint64_t bytes;
};
using AllocationRecord06 = BasicAllocation<Correlation>;
using AllocationRecord1 = BasicAllocation<Correlation1>;
enum AllocationOperation : std::int32_t {
  kAllocate = 1,
  kVirtualAllocate = 2,
  kFree = 3,
  kVirtualFree = 4
};

struct ScratchRecord05 {
  std::uint64_t size;
  std::int32_t kind, operation;
  std::uint64_t agent, queue, thread;
  std::uint64_t start, end;
  Correlation correlation;
  std::int32_t flags;
};
template <class Ids>
struct BasicScratch {
  std::uint64_t size;
  std::int32_t kind, operation;
  Ids correlation;
  std::uint64_t agent, queue, thread;
  std::uint64_t start, end;
  std::int32_t flags;
};
using ScratchRecord06 = BasicScratch<Correlation>;
using ScratchRecord1 = BasicScratch<Correlation1>;

// Of the kernel driver, from 1.0 on.
struct MigrationRecord {
  std::uint64_t size;
  std::int32_t kind, operation;
  std::uint64_t start, end;
  std::uint32_t process;
  std::uint64_t first_address, end_address;
  std::uint64_t source_agent, target_agent, prefetch_agent, preferred_agent;
  std::int32_t error;
};
struct FaultRecord {
  std::uint64_t size;
  std::int32_t kind, operation;
  std::uint64_t start, end;
  std::uint32_t process;
  std::uint64_t agent;
  std::uint64_t address;
};
// The same before 1.0, in one kind: 0.5 tells of each as a whole and of nodes of the topology, 0.6
// of beginnings and ends.
enum PageOperation05 : std::int32_t { kMigration05 = 1, kFault05 = 2 };
struct PageMigration05 {
  std::uint64_t first_address, end_address;
  std::uint32_t source_node, target_node;
};
struct PageFault05 {
  std::uint8_t flags;
  std::uint32_t node;
  std::uint64_t address;
};
struct PageRecord05 {
  std::uint64_t size;
  std::int32_t kind, operation;
  std::uint64_t start, end;
  std::uint32_t process;
  union {
    PageMigration05 migration;
    PageFault05 fault;
    std::uint64_t reserved[12];
  };
};
enum PageOperation06 : std::int32_t {
  kMigrationStart = 1,
  kMigrationEnd = 2,
  kFaultStart = 3,
  kFaultEnd = 4,
  kPagesDropped = 8
};
struct PageMigration06 {
  std::uint64_t first_address, end_address;
  std::uint64_t source_agent, target_agent;
};
struct PageFault06 {
  std::uint32_t flags;
  std::uint64_t agent;
  std::uint64_t address;
};
struct PageRecord06 {
  std::uint64_t size;
  std::int32_t kind, operation;
  std::uint64_t timestamp;
  std::uint32_t process;
  union {
    PageMigration06 migration;
    PageFault06 fault;
    std::uint32_t dropped;
    std::uint64_t reserved[16];
  };
};
struct DroppedRecord {
  std::uint64_t size;
  std::int32_t kind, operation;
  std::uint64_t timestamp;
  std::uint32_t process;
  std::uint32_t count;
};

// --- arguments of callbacks

enum Phase : std::int32_t { kEnter = 1, kLeave = 2 };

template <class Ids>
struct BasicCallback {
  std::uint64_t context;
  std::uint64_t thread;
  Ids correlation;
  std::int32_t kind, operation;
  std::int32_t phase;
  const void* payload;
};
using Callback05 = BasicCallback<Correlation>;
using Callback1 = BasicCallback<Correlation1>;

// Of kind CODE_OBJECT.
inline constexpr std::int32_t kCodeObjectLoad = 1, kKernelSymbolRegister = 2;
struct CodeObject {
  std::uint64_t size;
  std::uint64_t id;
  std::uint64_t agent, hsa_agent;
  const char* uri;
  std::uint64_t load_base;
};
struct KernelSymbol {
  std::uint64_t size;
  std::uint64_t kernel;
  std::uint64_t code_object;
  const char* name;
  std::uint64_t object;
  std::uint32_t kernarg_bytes, kernarg_alignment;
  std::uint32_t group_bytes, private_bytes;
  std::uint32_t sgprs, vgprs, accumulation_vgprs;
};
struct KernelSymbol1 : KernelSymbol {
  std::int64_t entry_offset;
  std::uint64_t entry;  // the address of its first instruction
};

// Of kind MARKER_CORE_API, MARKER_CONTROL_API and MARKER_NAME_API.
enum MarkerCall : std::int32_t {
  kMark = 0,
  kRangePush = 1,
  kRangePop = 2,
  kRangeStart = 3,
  kRangeStop = 4
};
enum MarkerControl : std::int32_t { kPause = 0, kResume = 1 };
inline constexpr std::int32_t kNameThread = 0;
struct Marker {
  std::uint64_t size;
  union {
    const char* text;
    std::uint64_t range;
  };
  std::uint64_t padding;
  std::uint64_t result;  // of roctxRangeStartA, when it returns
};

inline constexpr std::int32_t kStreamSet = 3;  // of kind HIP_STREAM, from 1.0 on
struct StreamChange {
  std::uint64_t size;
  std::uint64_t stream;
  std::uint64_t address;
};

// --- what is asked for

struct MemoryBank {
  std::int32_t heap;
  std::uint32_t flags;
  std::uint32_t width, clock;
  std::uint64_t bytes;
};

struct Agent {
  enum Type : std::int32_t { kCpu = 1, kGpu = 2 };
  std::uint64_t size;
  std::uint64_t id;
  std::int32_t type;
  std::uint32_t cpu_cores, simds, memory_banks, caches, links;
  std::uint32_t first_cpu_core, first_simd;
  std::uint32_t waves_per_simd, lds_kib, gds_kib, gws;
  std::uint32_t wave_size;
  std::uint32_t xccs;
  std::uint32_t compute_units;
  std::uint32_t arrays, shader_banks, arrays_per_engine, units_per_array, simds_per_unit;
  std::uint32_t scratch_slots;
  std::uint32_t gfx_version;  // 90402 is gfx942
  std::uint16_t vendor, device;
  std::uint32_t location, domain, render_minor;
  std::uint32_t sdma_engines, xgmi_engines, queues_per_engine, command_queues;
  std::uint32_t host_clock, device_clock;
  std::uint32_t sdma_firmware, firmware, capability;
  std::uint32_t units_per_engine;
  std::uint32_t waves_per_unit;
  std::uint32_t family;
  std::uint32_t most_workgroup, most_grid;
  std::uint64_t local_bytes, hive, gpu;
  std::uint32_t most_workgroup_dim[3], most_grid_dim[3];
  const MemoryBank* banks;
  const void* cache_list;
  const void* link_list;
  const char* name;
  const char* vendor_name;
  const char* product_name;
  const char* model_name;
  std::uint32_t node;    // of the topology in /sys
  std::int32_t logical;  // without the nodes that may not be used
  std::int32_t of_type;  // among those of its type
  std::uint32_t visible_to;
  std::uint64_t uuid[2];  // from 0.6 on, where the first 8 bytes count
};

struct CounterInfo {
  std::uint64_t id;
  const char* name;
  const char* description;
  const char* block;
  const char* expression;
  std::uint8_t flags;
};
// Of a counter, one for each of its instances.
struct CounterRecord05 {
  std::uint64_t id;
  double value;
  std::uint64_t dispatch;
  std::uint64_t user_data;
};
struct CounterRecord06 : CounterRecord05 {
  std::uint64_t agent;
};
struct CountedDispatch {
  std::uint64_t size;
  Correlation correlation;
  std::uint64_t start, end;
  Dispatch dispatch;
};

// --- samples of program counters, as from 1.0 on

enum PcMethod : std::int32_t { kStochastic = 1, kHostTrap = 2 };
enum PcUnit : std::int32_t { kCycles = 2, kTime = 3 };  // time in microseconds
struct PcConfiguration {
  std::uint64_t size;
  std::int32_t method, unit;
  std::uint64_t least, most;  // of the interval
  std::uint64_t flags;
};

// RecordHeader::kind of category kPcSampling.
enum PcRecord : std::uint32_t { kInvalidPc = 1, kHostTrapPc = 2, kStochasticPc = 3 };
struct Pc {
  std::uint64_t code_object;  // 0: not known
  std::uint64_t offset;       // from its load base, or else an address
};
struct HostTrapSample {
  std::uint64_t size;
  std::uint64_t hardware;
  Pc pc;
  std::uint64_t lanes;
  std::uint64_t timestamp;
  std::uint64_t dispatch;
  Correlation correlation;
  std::uint32_t workgroup[3];
  std::uint32_t wave;
};
struct StochasticSample {
  std::uint64_t size;
  std::uint8_t flags;
  std::uint8_t wave;
  std::uint8_t issued;  // 1 bit, and above it 5 of the type of the instruction
  std::uint64_t hardware;
  Pc pc;
  std::uint64_t lanes;
  std::uint32_t workgroup[3];
  std::uint32_t waves;
  std::uint64_t timestamp;
  std::uint64_t dispatch;
  Correlation correlation;
  std::uint32_t snapshot;  // 4 bits of why nothing was issued
  std::uint32_t memory_counters;
};

// --- registration

struct ClientId05 {
  const char* name;
  std::uint32_t handle;
};
struct ClientId1 {
  std::size_t size;
  const char* name;
  std::uint32_t handle;
};
struct ConfigureResult {
  std::size_t size;
  int (*initialize)(void (*finalize)(), void* data);
  void (*finalize)(void* data);
  void* data;
};

}  // namespace pasta::adapters::rocprofiler
