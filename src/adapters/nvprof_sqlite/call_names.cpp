#include "adapters/nvprof_sqlite/call_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace pasta::adapters::nvprof_sqlite {
namespace {

struct Call {
  std::int64_t number;
  std::string_view name;
};

// In order of number. The variants of a call for the default stream of a thread bear its name.
constexpr Call kRuntime[] = {
    {1, "cudaDriverGetVersion"},
    {2, "cudaRuntimeGetVersion"},
    {3, "cudaGetDeviceCount"},
    {4, "cudaGetDeviceProperties"},
    {5, "cudaChooseDevice"},
    {8, "cudaConfigureCall"},
    {9, "cudaSetupArgument"},
    {10, "cudaGetLastError"},
    {11, "cudaPeekAtLastError"},
    {12, "cudaGetErrorString"},
    {13, "cudaLaunch"},
    {14, "cudaFuncSetCacheConfig"},
    {15, "cudaFuncGetAttributes"},
    {16, "cudaSetDevice"},
    {17, "cudaGetDevice"},
    {19, "cudaSetDeviceFlags"},
    {20, "cudaMalloc"},
    {21, "cudaMallocPitch"},
    {22, "cudaFree"},
    {23, "cudaMallocArray"},
    {24, "cudaFreeArray"},
    {25, "cudaMallocHost"},
    {26, "cudaFreeHost"},
    {27, "cudaHostAlloc"},
    {28, "cudaHostGetDevicePointer"},
    {30, "cudaMemGetInfo"},
    {31, "cudaMemcpy"},
    {32, "cudaMemcpy2D"},
    {33, "cudaMemcpyToArray"},
    {35, "cudaMemcpyFromArray"},
    {39, "cudaMemcpyToSymbol"},
    {40, "cudaMemcpyFromSymbol"},
    {41, "cudaMemcpyAsync"},
    {44, "cudaMemcpy2DAsync"},
    {47, "cudaMemcpyToSymbolAsync"},
    {48, "cudaMemcpyFromSymbolAsync"},
    {49, "cudaMemset"},
    {50, "cudaMemset2D"},
    {51, "cudaMemsetAsync"},
    {52, "cudaMemset2DAsync"},
    {53, "cudaGetSymbolAddress"},
    {55, "cudaBindTexture"},
    {58, "cudaUnbindTexture"},
    {123, "cudaThreadExit"},
    {126, "cudaThreadSynchronize"},
    {129, "cudaStreamCreate"},
    {130, "cudaStreamDestroy"},
    {131, "cudaStreamSynchronize"},
    {132, "cudaStreamQuery"},
    {133, "cudaEventCreate"},
    {134, "cudaEventCreateWithFlags"},
    {135, "cudaEventRecord"},
    {136, "cudaEventDestroy"},
    {137, "cudaEventSynchronize"},
    {138, "cudaEventQuery"},
    {139, "cudaEventElapsedTime"},
    {140, "cudaMalloc3D"},
    {141, "cudaMalloc3DArray"},
    {142, "cudaMemset3D"},
    {144, "cudaMemcpy3D"},
    {145, "cudaMemcpy3DAsync"},
    {147, "cudaStreamWaitEvent"},
    {151, "cudaPointerGetAttributes"},
    {152, "cudaHostRegister"},
    {153, "cudaHostUnregister"},
    {154, "cudaDeviceCanAccessPeer"},
    {155, "cudaDeviceEnablePeerAccess"},
    {160, "cudaMemcpyPeer"},
    {161, "cudaMemcpyPeerAsync"},
    {164, "cudaDeviceReset"},
    {165, "cudaDeviceSynchronize"},
    {166, "cudaDeviceGetLimit"},
    {167, "cudaDeviceSetLimit"},
    {171, "cudaProfilerStart"},
    {172, "cudaProfilerStop"},
    {178, "cudaIpcGetMemHandle"},
    {179, "cudaIpcOpenMemHandle"},
    {197, "cudaStreamAddCallback"},
    {198, "cudaStreamCreateWithFlags"},
    {200, "cudaDeviceGetAttribute"},
    {201, "cudaStreamDestroy"},
    {202, "cudaStreamCreateWithPriority"},
    {205, "cudaDeviceGetStreamPriorityRange"},
    {206, "cudaMallocManaged"},
    {208, "cudaStreamAttachMemAsync"},
    {210, "cudaOccupancyMaxActiveBlocksPerMultiprocessor"},
    {211, "cudaLaunchKernel"},
    {213, "cudaLaunch"},
    {214, "cudaLaunchKernel"},
    {215, "cudaMemcpy"},
    {225, "cudaMemcpyAsync"},
    {233, "cudaMemset"},
    {235, "cudaMemsetAsync"},
    {239, "cudaStreamSynchronize"},
    {242, "cudaEventRecord"},
    {247, "cudaStreamWaitEvent"},
    {251, "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"},
    {252, "cudaMemPrefetchAsync"},
    {253, "cudaMemPrefetchAsync"},
    {254, "cudaMemAdvise"},
    {269, "cudaLaunchCooperativeKernel"},
    {270, "cudaLaunchCooperativeKernel"},
    {273, "cudaFuncSetAttribute"},
    {310, "cudaGraphInstantiate"},
    {311, "cudaGraphLaunch"},
    {312, "cudaGraphLaunch"},
    {317, "cudaStreamIsCapturing"},
};
constexpr Call kDriver[] = {
    {17, "cuCtxSynchronize"},
    {115, "cuLaunch"},
    {116, "cuLaunchGrid"},
    {117, "cuLaunchGridAsync"},
    {121, "cuEventSynchronize"},
    {126, "cuStreamSynchronize"},
    {216, "cuMemsetD8Async"},
    {218, "cuMemsetD16Async"},
    {220, "cuMemsetD32Async"},
    {249, "cuMemsetD8"},
    {250, "cuMemsetD16"},
    {251, "cuMemsetD32"},
    {276, "cuMemcpyHtoD"},
    {277, "cuMemcpyHtoDAsync"},
    {278, "cuMemcpyDtoH"},
    {279, "cuMemcpyDtoHAsync"},
    {280, "cuMemcpyDtoD"},
    {281, "cuMemcpyDtoDAsync"},
    {295, "cuStreamWaitEvent"},
    {304, "cuCtxGetCurrent"},
    {305, "cuMemcpy"},
    {306, "cuMemcpyAsync"},
    {307, "cuLaunchKernel"},
    {310, "cuPointerGetAttribute"},
    {318, "cuMemcpyPeer"},
    {319, "cuMemcpyPeerAsync"},
    {392, "cuDevicePrimaryCtxGetState"},
    {442, "cuLaunchKernel"},
    {477, "cuLaunchCooperativeKernel"},
    {514, "cuGraphLaunch"},
};
static_assert(std::ranges::is_sorted(kRuntime, {}, &Call::number));
static_assert(std::ranges::is_sorted(kDriver, {}, &Call::number));

}  // namespace

std::string call_name(Api api, std::int64_t number) {
  const auto find = [&](const auto& calls) -> std::string_view {
    const auto it = std::ranges::lower_bound(calls, number, {}, &Call::number);
    return it != std::end(calls) && it->number == number ? it->name : std::string_view();
  };
  const std::string_view name = api == Api::kRuntime ? find(kRuntime) : find(kDriver);
  if (!name.empty()) return std::string(name);
  return fmt::format("{} call {}", api == Api::kRuntime ? "runtime" : "driver", number);
}

}  // namespace pasta::adapters::nvprof_sqlite
