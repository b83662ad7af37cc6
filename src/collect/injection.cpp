// What vendors' runtimes call in the library that they are told to load, and what the program's own
// profiler calls.
#include <dlfcn.h>

#include <cstring>

#include "adapters/cupti/adapter.h"
#include "adapters/cupti/api.h"
#include "adapters/rocprofiler/adapter.h"
#include "adapters/rocprofiler/records.h"
#include "trace/spool_writer.h"

namespace cupti = pasta::adapters::cupti;
namespace rocprofiler = pasta::adapters::rocprofiler;

namespace {

constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED

template <class Function, class... Arguments>
int take(const char* name, Arguments... arguments) {
  cupti::hand_over();
  const auto theirs = reinterpret_cast<Function*>(cupti::find_function(name));
  return theirs == nullptr ? kNotInitialized : theirs(arguments...);
}

}  // namespace

extern "C" {

// The CUDA driver, in cuInit(), in the library that CUDA_INJECTION64_PATH names.
__attribute__((visibility("default"))) int InitializeInjection() {
  if (pasta::trace::in_run()) cupti::start();
  return 1;
}

// CUPTI tells one profiler in a process what happened. We are loaded before it, so a program whose
// own profiler begins to ask calls these.
__attribute__((visibility("default"))) int cuptiActivityRegisterCallbacks(
    cupti::Api::Request request, cupti::Api::Complete complete) {
  return take<int(cupti::Api::Request, cupti::Api::Complete)>("cuptiActivityRegisterCallbacks",
                                                              request, complete);
}
__attribute__((visibility("default"))) int cuptiSubscribe(cupti::Api::Subscriber* subscriber,
                                                          cupti::Api::Callback callback,
                                                          void* user) {
  return take<int(cupti::Api::Subscriber*, cupti::Api::Callback, void*)>(
      "cuptiSubscribe", subscriber, callback, user);
}

// A profiler that loads CUPTI by itself, as Triton's Proton does, gets the same ones. All else is
// the system's: called as the last thing, so that it sees who asks, which RTLD_NEXT depends on.
__attribute__((visibility("default"))) void* dlsym(void* library, const char* name) noexcept {
  if (std::strncmp(name, "cupti", 5) == 0) {
    if (std::strcmp(name, "cuptiSubscribe") == 0) return reinterpret_cast<void*>(cuptiSubscribe);
    if (std::strcmp(name, "cuptiActivityRegisterCallbacks") == 0) {
      return reinterpret_cast<void*>(cuptiActivityRegisterCallbacks);
    }
  }
  return cupti::system_dlsym()(library, name);
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
