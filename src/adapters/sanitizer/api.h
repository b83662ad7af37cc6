// The functions of the Compute Sanitizer API that PASTA calls, and what its callbacks are given, as
// they are in CUDA 12 and 13 up to 13.5. Declared here, so that PASTA builds without CUDA and one
// binary serves all versions; api_test.cpp holds them to the vendor's headers where there are any.
// The library is found at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pasta/result.h"

namespace pasta::adapters::sanitizer {

using Handle = void*;  // of a context, stream, module, function or launch

enum class Domain : std::int32_t {
  kDriver = 1,
  kRuntime = 2,
  kResource = 3,
  kSynchronize = 4,
  kLaunch = 5,
  kGraphs = 10,
};

enum class ResourceCallback : std::uint32_t {
  kContextCreated = 3,
  kContextDestroyStarting = 4,
  kStreamCreated = 6,
  kStreamDestroyStarting = 7,
  kModuleLoaded = 9,
  kModuleUnloadStarting = 10,
  kMemoryAllocated = 11,
  kMemoryFreed = 12,
  kHostAllocated = 13,
  kHostFreed = 14,
  kAllocatedAsync = 15,
  kFreedAsync = 16,
  kPoolPointerImported = 28,
};
enum class SynchronizeCallback : std::uint32_t { kStream = 1, kContext = 2 };
// Of the driver's functions; those for a thread's own default stream as well.
enum class DriverCallback : std::uint32_t {
  kLaunch = 307,
  kProfilerStart = 308,
  kProfilerStop = 309,
  kLaunchOwn = 442,
  kLaunchCooperative = 477,
  kLaunchCooperativeOwn = 478,
  kBeginCapture = 495,
  kBeginCaptureOwn = 496,
  kEndCapture = 497,
  kEndCaptureOwn = 498,
  kGraphLaunch = 514,
  kGraphLaunchOwn = 515,
  kBeginCapture2 = 539,
  kBeginCapture2Own = 540,
  kLaunchEx = 652,
  kLaunchExOwn = 653,
  kEncodeTiled = 697,
  kEncodeIm2col = 698,
  kBeginCaptureToGraph = 720,
  kBeginCaptureToGraphOwn = 721,
  kEncodeIm2colWide = 781,
};
enum class LaunchCallback : std::uint32_t { kBegin = 1, kEnd = 3 };
enum class GraphCallback : std::uint32_t {
  kMade = 2,
  kDestroyed = 3,
  kNodeBegin = 4,
  kLaunchBegin = 6,
  kLaunchEnd = 7,
};

struct ContextData {
  Handle context;  // what comes behind it, other versions have elsewhere
};

struct StreamData {
  Handle context;
  Handle stream;
  Handle stream_handle;
};
// The same since CUDA 13.1.
struct GreenStreamData {
  Handle context;
  Handle green_context;  // none for most
  Handle stream;
  Handle stream_handle;
};
// No version is told. But a stream that comes or goes is never none: where it would be in the older
// form, there is the green context that most streams have not.
inline bool is_since_13_1(const void* data) {
  return static_cast<const StreamData*>(data)->stream == nullptr;
}
inline Handle handle_of(const void* data, bool since_13_1) {
  return since_13_1 ? static_cast<const GreenStreamData*>(data)->stream_handle
                    : static_cast<const StreamData*>(data)->stream_handle;
}

struct ModuleData {
  Handle context;
  Handle module;
  std::size_t cubin_bytes;
  const char* cubin;
  Handle library;
};

struct MemoryData {
  std::uint64_t address;
  std::uint64_t bytes;
  Handle context;
  std::int32_t device;
  Handle stream;
  Handle stream_handle;
  Handle pool;
  std::uint32_t flags;
  std::uint32_t permissions;
  std::int32_t visibility;
  std::int32_t source_device;
};

struct SynchronizeData {
  Handle context;
  Handle stream;
  Handle stream_handle;
};

struct LaunchData {
  Handle context;
  Handle stream;
  Handle stream_handle;
  Handle module;
  Handle function;
  const char* name;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t cluster[3];
  std::uint64_t grid_id;
  Handle launch;
  std::int32_t device;
  Handle api_context;
  Handle api_stream;
  Handle api_stream_handle;
};

// A call of the driver: when it begins, and, with its result, when it ends.
struct CallData {
  std::int32_t ends;
  const char* name;
  const void* parameters;
  const std::int32_t* result;
  const char* symbol;
  Handle context;
};
struct LaunchParameters {
  Handle function;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared_bytes;
  Handle stream;
  void** arguments;  // none when they are in a buffer that `extra` tells of
  void** extra;      // not of cooperative launches
};
struct LaunchConfig {
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared_bytes;
  Handle stream;
};
struct LaunchExParameters {
  const LaunchConfig* config;
  Handle function;
  void** arguments;
  void** extra;
};
// What all functions that encode a map begin with.
struct EncodeParameters {
  const void* map;
  std::int32_t type;
  std::uint32_t rank;
  void* address;
};

struct GraphNodeData {
  Handle graph;
  std::uint32_t launch_id;
  Handle node;
  std::int32_t type;  // CUgraphNodeType
  union {
    LaunchData launch;      // kKernelNode
    MemoryData allocation;  // kAllocationNode
    std::uint64_t freed;    // kFreeNode: an address
  };
};
inline constexpr std::int32_t kKernelNode = 0, kAllocationNode = 10, kFreeNode = 11;

struct GraphExecData {
  Handle graph;
  Handle executable;
  std::uint32_t is_for_device;  // kernels may launch it
};

struct GraphLaunchData {
  Handle context;
  Handle stream;
  Handle stream_handle;
  Handle graph;
  std::uint32_t is_upload;
};

// Sanitizer_InstructionId.
enum class Instruction : std::int32_t {
  kGlobal = 3,
  kShared = 4,
  kLocal = 5,
  kCopyAsync = 14,
  kRemoteShared = 17,
  kMatrix = 19,
  kAsyncStore = 26,
  kAsyncReduction = 27,
  kBulkGlobalToShared = 30,
  kBulkSharedToGlobal = 35,
  kBulkSharedToShared = 36,
  kBulkReductionToGlobal = 37,
  kBulkReductionToShared = 38,
};

struct Api {
  using Error = std::int32_t;  // SanitizerResult, 0: success
  using Callback = void (*)(void* user, Domain domain, std::uint32_t callback, const void* data);

  Error (*subscribe)(Handle* subscriber, Callback callback, void* user);
  Error (*enable_domain)(std::uint32_t enable, Handle subscriber, Domain domain);
  Error (*enable_callback)(std::uint32_t enable, Handle subscriber, Domain domain,
                           std::uint32_t callback);
  Error (*error_text)(Error error, const char** text);

  Error (*add_patches)(const char* path, Handle context);
  Error (*patch_instructions)(Instruction instruction, Handle module, const char* function);
  Error (*patch_module)(Handle module);
  Error (*unpatch_module)(Handle module);
  // Of launches of the function from now on; of one launch alone.
  Error (*set_function_data)(Handle function, const void* data);
  Error (*set_launch_data)(Handle launch, Handle function, Handle stream, const void* data);
  Error (*function_pc)(Handle module, const char* function, std::uint64_t* pc, std::uint64_t* size);

  Error (*allocate)(Handle context, void** address, std::size_t bytes);
  Error (*allocate_host)(Handle context, void** address, std::size_t bytes);
  Error (*free_host)(Handle context, void* address);
  Error (*copy_to_device)(void* to, const void* from, std::size_t bytes, Handle stream);
  Error (*copy_to_host)(void* to, const void* from, std::size_t bytes, Handle stream);
  Error (*fill)(void* address, int value, std::size_t bytes, Handle stream);
  Error (*synchronize)(Handle stream);
  Error (*stream_handle)(Handle context, Handle stream, Handle* handle);
};

// The library that the program has or that a CUDA toolkit or a wheel of PyPI brings; kUnsupported
// when there is none, or one that lacks a function.
struct Loaded {
  Api api;
  std::string path;
};
Result<Loaded> load_api();

// What the driver itself is asked for: a stream that waits for no other, and to wait for a context.
struct Driver {
  std::int32_t (*set_context)(Handle context);
  std::int32_t (*push_context)(Handle context);
  std::int32_t (*pop_context)(Handle* context);
  std::int32_t (*synchronize)();
  std::int32_t (*create_stream)(Handle* stream, std::uint32_t flags);
  std::int32_t (*exchange_capture_mode)(std::int32_t* mode);
  // None where there is no such function.
  std::int32_t (*create_event)(Handle* event, std::uint32_t flags);
  std::int32_t (*record_event)(Handle event, Handle stream);
  std::int32_t (*between_events)(float* ms, Handle begin, Handle end);
  std::int32_t (*find_variable)(std::uint64_t* address, std::size_t* bytes, Handle module,
                                const char* name);
  // Of drivers since CUDA 12.4, else none: where the n-th argument of a kernel lies among all.
  std::int32_t (*argument_place)(Handle function, std::size_t number, std::size_t* offset,
                                 std::size_t* bytes);
};
Result<Driver> load_driver();

}  // namespace pasta::adapters::sanitizer
