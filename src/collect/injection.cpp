// What vendors' runtimes call in the library that they are told to load.
#include "adapters/cupti/adapter.h"
#include "adapters/cupti/api.h"
#include "trace/spool_writer.h"

namespace cupti = pasta::adapters::cupti;

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

}  // extern "C"
