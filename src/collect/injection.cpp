// What vendors' runtimes call in the library that they are told to load, and what the program's own
// profiler calls.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "adapters/cupti/adapter.h"
#include "adapters/cupti/api.h"
#include "adapters/rocprofiler/adapter.h"
#include "adapters/rocprofiler/records.h"
#include "adapters/torch/torch.h"
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

using OpenLibrary = void*(const char*, int);

// Whose dlopen() we stand in front of: another preloaded library's, or the system's.
OpenLibrary* next_dlopen() {
  static constinit std::atomic<OpenLibrary*> g_next = nullptr;
  OpenLibrary* next = g_next.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<OpenLibrary*>(dlsym(RTLD_NEXT, "dlopen"));
    g_next.store(next, std::memory_order_relaxed);
  }
  return next;
}

[[gnu::noinline]] OpenLibrary* before_library(const char* file) {
  pasta::adapters::torch::on_library(file);
  return next_dlopen();
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

// Where a library is looked for depends on who asks. So this must be a jump to the real one, not a
// call: then who has called us has called that. The compiler makes it one because nothing is left
// to do; the test of PyTorch holds it to that.
__attribute__((visibility("default"))) void* dlopen(const char* file, int mode) noexcept {
  return before_library(file)(file, mode);
}

}  // extern "C"
