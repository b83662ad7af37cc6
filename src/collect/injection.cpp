// What vendors' runtimes call in the library that they are told to load.
#include "adapters/cupti/adapter.h"
#include "adapters/cupti/api.h"
#include "adapters/rocprofiler/adapter.h"
#include "adapters/rocprofiler/records.h"
#include "trace/spool_writer.h"

namespace cupti = pasta::adapters::cupti;
namespace rocprofiler = pasta::adapters::rocprofiler;

extern "C" {

// The CUDA driver, in cuInit(), in the library that CUDA_INJECTION64_PATH names.
__attribute__((visibility("default"))) int InitializeInjection() {
  if (pasta::trace::in_run()) cupti::start();
  return 1;
}

// CUPTI tells one profiler in a process what happened. We are loaded before it, so a program whose
// own profiler begins to ask calls this one.
__attribute__((visibility("default"))) int cuptiActivityRegisterCallbacks(
    cupti::Api::Request request, cupti::Api::Complete complete) {
  constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED
  cupti::hand_over();
  const auto theirs = reinterpret_cast<int (*)(cupti::Api::Request, cupti::Api::Complete)>(
      cupti::find_function("cuptiActivityRegisterCallbacks"));
  return theirs == nullptr ? kNotInitialized : theirs(request, complete);
}

// rocprofiler-sdk, when ROCm is loaded, in each library that ROCP_TOOL_LIBRARIES names.
__attribute__((visibility("default"))) rocprofiler::ConfigureResult* rocprofiler_configure(
    std::uint32_t version, const char* version_text, std::uint32_t, void* client) {
  return rocprofiler::configure(version, version_text, client);
}

// rocprofiler-register, for each library of ROCm, in the place of rocprofiler-sdk's.
__attribute__((visibility("default"))) int rocprofiler_set_api_table(const char* name,
                                                                     std::uint64_t version,
                                                                     std::uint64_t instance,
                                                                     void** tables,
                                                                     std::uint64_t count) {
  return rocprofiler::set_api_table(name, version, instance, tables, count,
                                    __builtin_return_address(0));
}

}  // extern "C"
