// Which calls of CUDA are recorded: shared with the collector that does nothing, which PASTA's cost
// is compared with (tests/gpu/collect_nothing.cpp).
#pragma once

#include <string_view>

namespace pasta::adapters::cupti {

// Calls that only ask for something and come in thousands: their records would cost more than all
// others together.
inline constexpr std::string_view kQueries[] = {"cudaGetDevice",
                                                "cudaSetDevice",
                                                "cudaGetLastError",
                                                "cudaPeekAtLastError",
                                                "cudaGetErrorString",
                                                "cudaGetErrorName",
                                                "cudaStreamIsCapturing",
                                                "cudaStreamGetCaptureInfo",
                                                "cudaThreadExchangeStreamCaptureMode",
                                                "cudaStreamQuery",
                                                "cudaEventQuery",
                                                "cudaStreamGetPriority",
                                                "cudaStreamGetFlags",
                                                "cudaDeviceGetAttribute",
                                                "cudaDeviceGetStreamPriorityRange",
                                                "cudaGetDeviceProperties",
                                                "cudaGetDeviceCount",
                                                "cudaPointerGetAttributes",
                                                "cudaFuncGetAttributes",
                                                "cudaFuncSetAttribute",
                                                "cudaOccupancy",
                                                "cudaGetDriverEntryPoint",
                                                "cudaDriverGetVersion",
                                                "cudaRuntimeGetVersion",
                                                "__cuda",
                                                "cudaConfigureCall",
                                                "cudaCreateChannelDesc",
                                                "cudaGetSymbol",
                                                "cudaGetFuncBySymbol"};
// Of the driver only what starts work: programs that use it without the runtime.
inline constexpr std::string_view kDriverLaunches[] = {"cuLaunch", "cuGraphLaunch", "cuMemcpy",
                                                       "cuMemset"};
// What starts work by the runtime.
inline constexpr std::string_view kRuntimeLaunches[] = {
    "cudaLaunch", "__cudaLaunch", "cudaGraphLaunch", "cudaMemcpy", "cudaMemset"};

// What no program calls any more: since CUDA 12 the runtime has it no longer, and the driver's does
// nothing.
inline constexpr std::string_view kNeverMade[] = {"cuProfilerInitialize", "cudaProfilerInitialize"};

template <class Texts>
constexpr bool begins_with_one(std::string_view name, const Texts& beginnings) {
  for (const std::string_view beginning : beginnings) {
    if (name.substr(0, beginning.size()) == beginning) return true;
  }
  return false;
}

}  // namespace pasta::adapters::cupti
