#include "adapters/sanitizer/api.h"

#include <gtest/gtest.h>

#if __has_include(<sanitizer.h>)
#include <sanitizer.h>
// What the header of calls' parameters wants and no other has any more.
using CUdeviceptr_v1 = unsigned int;
#include <generated_cuda_meta.h>
#define PASTA_SANITIZER_HEADERS 1
#endif

#include <cstddef>

#include "adapters/sanitizer/tensor_maps.h"

namespace pasta::adapters::sanitizer {
namespace {

TEST(SanitizerApi, WhatIsSaidOfItsHeaders) {
#ifndef PASTA_SANITIZER_HEADERS
  GTEST_SKIP() << "the headers of the Compute Sanitizer are not here: scripts/setup gpu";
#endif
}

#ifdef PASTA_SANITIZER_HEADERS

#define SAME(ours, field, theirs, named)                           \
  static_assert(offsetof(ours, field) == offsetof(theirs, named)); \
  static_assert(sizeof(static_cast<ours*>(nullptr)->field) ==      \
                sizeof(static_cast<theirs*>(nullptr)->named))
SAME(ContextData, context, Sanitizer_ResourceContextData, context);
template <class Theirs>
constexpr bool kHasGreenContexts = requires {
  &Theirs::greenContext;
};
using OurStreamData = std::conditional_t<kHasGreenContexts<Sanitizer_ResourceStreamData>,
                                         GreenStreamData, StreamData>;
SAME(OurStreamData, context, Sanitizer_ResourceStreamData, context);
SAME(OurStreamData, stream, Sanitizer_ResourceStreamData, stream);
SAME(OurStreamData, stream_handle, Sanitizer_ResourceStreamData, hStream);
SAME(ModuleData, context, Sanitizer_ResourceModuleData, context);
SAME(ModuleData, module, Sanitizer_ResourceModuleData, module);
SAME(ModuleData, cubin_bytes, Sanitizer_ResourceModuleData, cubinSize);
SAME(ModuleData, cubin, Sanitizer_ResourceModuleData, pCubin);
SAME(MemoryData, address, Sanitizer_ResourceMemoryData, address);
SAME(MemoryData, bytes, Sanitizer_ResourceMemoryData, size);
SAME(MemoryData, context, Sanitizer_ResourceMemoryData, context);
SAME(MemoryData, device, Sanitizer_ResourceMemoryData, device);
SAME(MemoryData, stream_handle, Sanitizer_ResourceMemoryData, hStream);
SAME(MemoryData, pool, Sanitizer_ResourceMemoryData, memoryPool);
SAME(MemoryData, flags, Sanitizer_ResourceMemoryData, flags);
SAME(MemoryData, source_device, Sanitizer_ResourceMemoryData, sourceDevice);
SAME(SynchronizeData, context, Sanitizer_SynchronizeData, context);
SAME(SynchronizeData, stream_handle, Sanitizer_SynchronizeData, hStream);
SAME(LaunchData, context, Sanitizer_LaunchData, context);
SAME(LaunchData, stream_handle, Sanitizer_LaunchData, hStream);
SAME(LaunchData, module, Sanitizer_LaunchData, module);
SAME(LaunchData, function, Sanitizer_LaunchData, function);
SAME(LaunchData, name, Sanitizer_LaunchData, functionName);
SAME(LaunchData, grid[0], Sanitizer_LaunchData, gridDim_x);
SAME(LaunchData, grid[2], Sanitizer_LaunchData, gridDim_z);
SAME(LaunchData, block[0], Sanitizer_LaunchData, blockDim_x);
SAME(LaunchData, block[2], Sanitizer_LaunchData, blockDim_z);
SAME(LaunchData, launch, Sanitizer_LaunchData, hLaunch);
SAME(LaunchData, device, Sanitizer_LaunchData, device);
SAME(LaunchConfig, stream, CUlaunchConfig, hStream);
SAME(LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME(LaunchData, api_stream_handle, Sanitizer_LaunchData, hApiStream);
SAME(GraphNodeData, graph, Sanitizer_GraphNodeLaunchData, graphExec);
SAME(GraphNodeData, type, Sanitizer_GraphNodeLaunchData, nodeType);
SAME(GraphExecData, executable, Sanitizer_GraphExecData, graphExec);
SAME(GraphExecData, is_for_device, Sanitizer_GraphExecData, isDeviceLaunch);
SAME(GraphLaunchData, is_upload, Sanitizer_GraphLaunchData, isGraphUpload);
SAME(GraphLaunchData, stream_handle, Sanitizer_GraphLaunchData, hStream);
SAME(GraphNodeData, freed, Sanitizer_GraphNodeLaunchData, memFreeAddress);
static_assert(offsetof(GraphNodeData, launch) ==
              offsetof(Sanitizer_GraphNodeLaunchData, launchData));  // newer ones are longer
static_assert(offsetof(GraphNodeData, allocation) ==
              offsetof(Sanitizer_GraphNodeLaunchData, memAllocData));
static_assert(kKernelNode == CU_GRAPH_NODE_TYPE_KERNEL);
static_assert(kAllocationNode == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
static_assert(kFreeNode == CU_GRAPH_NODE_TYPE_MEM_FREE);

#define VALUE(type, ours, theirs) static_assert(static_cast<int>(type::ours) == theirs)
VALUE(Domain, kDriver, SANITIZER_CB_DOMAIN_DRIVER_API);
VALUE(Domain, kRuntime, SANITIZER_CB_DOMAIN_RUNTIME_API);
VALUE(Domain, kResource, SANITIZER_CB_DOMAIN_RESOURCE);
VALUE(Domain, kSynchronize, SANITIZER_CB_DOMAIN_SYNCHRONIZE);
VALUE(Domain, kLaunch, SANITIZER_CB_DOMAIN_LAUNCH);
VALUE(Domain, kGraphs, SANITIZER_CB_DOMAIN_GRAPHS);
#define RESOURCE(ours, theirs) VALUE(ResourceCallback, ours, SANITIZER_CBID_RESOURCE_##theirs)
RESOURCE(kContextCreated, CONTEXT_CREATION_FINISHED);
RESOURCE(kContextDestroyStarting, CONTEXT_DESTROY_STARTING);
RESOURCE(kStreamCreated, STREAM_CREATED);
RESOURCE(kStreamDestroyStarting, STREAM_DESTROY_STARTING);
RESOURCE(kModuleLoaded, MODULE_LOADED);
RESOURCE(kModuleUnloadStarting, MODULE_UNLOAD_STARTING);
RESOURCE(kMemoryAllocated, DEVICE_MEMORY_ALLOC);
RESOURCE(kMemoryFreed, DEVICE_MEMORY_FREE);
RESOURCE(kHostAllocated, HOST_MEMORY_ALLOC);
RESOURCE(kHostFreed, HOST_MEMORY_FREE);
RESOURCE(kAllocatedAsync, MEMORY_ALLOC_ASYNC);
RESOURCE(kFreedAsync, MEMORY_FREE_ASYNC);
RESOURCE(kPoolPointerImported, MEMPOOL_IMPORT_POINTER);
VALUE(SynchronizeCallback, kStream, SANITIZER_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED);
VALUE(SynchronizeCallback, kContext, SANITIZER_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED);
VALUE(LaunchCallback, kBegin, SANITIZER_CBID_LAUNCH_BEGIN);
VALUE(LaunchCallback, kEnd, SANITIZER_CBID_LAUNCH_END);
VALUE(GraphCallback, kNodeBegin, SANITIZER_CBID_GRAPHS_NODE_LAUNCH_BEGIN);
VALUE(GraphCallback, kLaunchEnd, SANITIZER_CBID_GRAPHS_LAUNCH_END);
SAME(CallData, ends, Sanitizer_CallbackData, callbackSite);
SAME(CallData, parameters, Sanitizer_CallbackData, functionParams);
SAME(CallData, result, Sanitizer_CallbackData, functionReturnValue);
SAME(LaunchParameters, function, cuLaunchKernel_params, f);
SAME(LaunchParameters, arguments, cuLaunchKernel_params, kernelParams);
SAME(LaunchParameters, extra, cuLaunchKernel_params, extra);
SAME(LaunchParameters, arguments, cuLaunchCooperativeKernel_params, kernelParams);
SAME(LaunchExParameters, function, cuLaunchKernelEx_params, f);
SAME(LaunchExParameters, arguments, cuLaunchKernelEx_params, kernelParams);
SAME(LaunchExParameters, extra, cuLaunchKernelEx_params, extra);
#define DRIVER(ours, theirs) VALUE(DriverCallback, ours, SANITIZER_CBID_DRIVER_API_##theirs)
DRIVER(kLaunch, cuLaunchKernel);
DRIVER(kLaunchOwn, cuLaunchKernel_ptsz);
DRIVER(kLaunchCooperative, cuLaunchCooperativeKernel);
DRIVER(kLaunchCooperativeOwn, cuLaunchCooperativeKernel_ptsz);
DRIVER(kProfilerStart, cuProfilerStart);
DRIVER(kProfilerStop, cuProfilerStop);
DRIVER(kBeginCapture, cuStreamBeginCapture);
DRIVER(kBeginCaptureOwn, cuStreamBeginCapture_ptsz);
DRIVER(kBeginCapture2, cuStreamBeginCapture_v2);
DRIVER(kBeginCapture2Own, cuStreamBeginCapture_v2_ptsz);
DRIVER(kBeginCaptureToGraph, cuStreamBeginCaptureToGraph);
DRIVER(kBeginCaptureToGraphOwn, cuStreamBeginCaptureToGraph_ptsz);
DRIVER(kEndCapture, cuStreamEndCapture);
DRIVER(kEndCaptureOwn, cuStreamEndCapture_ptsz);
DRIVER(kLaunchEx, cuLaunchKernelEx);
DRIVER(kLaunchExOwn, cuLaunchKernelEx_ptsz);
DRIVER(kEncodeTiled, cuTensorMapEncodeTiled);
DRIVER(kEncodeIm2col, cuTensorMapEncodeIm2col);
DRIVER(kEncodeIm2colWide, cuTensorMapEncodeIm2colWide);
static_assert(SANITIZER_API_ENTER == 0 && SANITIZER_API_EXIT == 1);
static_assert(TensorMaps::kBytes == sizeof(CUtensorMap));
#define INSTRUCTION(ours, theirs) VALUE(Instruction, ours, SANITIZER_INSTRUCTION_##theirs)
INSTRUCTION(kGlobal, GLOBAL_MEMORY_ACCESS);
INSTRUCTION(kShared, SHARED_MEMORY_ACCESS);
INSTRUCTION(kLocal, LOCAL_MEMORY_ACCESS);
INSTRUCTION(kCopyAsync, MEMCPY_ASYNC);
INSTRUCTION(kRemoteShared, REMOTE_SHARED_MEMORY_ACCESS);
INSTRUCTION(kMatrix, MATRIX_MEMORY_ACCESS);
INSTRUCTION(kAsyncStore, ASYNC_STORE);
INSTRUCTION(kAsyncReduction, ASYNC_REDUCTION);
INSTRUCTION(kBulkGlobalToShared, BULK_COPY_GLOBAL_TO_SHARED);
INSTRUCTION(kBulkSharedToGlobal, BULK_COPY_SHARED_TO_GLOBAL);
INSTRUCTION(kBulkSharedToShared, BULK_COPY_SHARED_TO_SHARED);
INSTRUCTION(kBulkReductionToGlobal, BULK_REDUCTION_SHARED_TO_GLOBAL);
INSTRUCTION(kBulkReductionToShared, BULK_REDUCTION_SHARED_TO_SHARED);

#endif

}  // namespace
}  // namespace pasta::adapters::sanitizer
