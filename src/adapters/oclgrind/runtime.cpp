// What the OpenCL loader takes for Oclgrind's runtime: that one, loaded so that it finds its own
// functions first. Oclgrind 21.10 leaves those of OpenCL 2.0 and newer the names that the loader's
// have, which a program that is linked to the loader would find before them; there, the loader's
// clCreateCommandQueueWithProperties would call itself for ever.
#include "adapters/oclgrind/runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace pasta::adapters::oclgrind {
namespace {

template <class Function>
Function* find(const char* name) {
  static void* const runtime = [] {
    const char* file = std::getenv(kRuntimeVariable);
    // A sanitizer in the program ends it when a library is to find its own functions first.
    const bool may = dlsym(RTLD_DEFAULT, "__sanitizer_set_report_path") == nullptr;
    return file == nullptr ? nullptr
                           : dlopen(file, RTLD_NOW | RTLD_LOCAL | (may ? RTLD_DEEPBIND : 0));
  }();
  void* symbol = runtime == nullptr ? nullptr : dlsym(runtime, name);
  Function* function = nullptr;
  std::memcpy(&function, &symbol, sizeof function);
  return function;
}

}  // namespace
}  // namespace pasta::adapters::oclgrind

extern "C" {

// The loader asks for all others by this one.
__attribute__((visibility("default"))) void* clGetExtensionFunctionAddress(const char* name) {
  static auto* const ask = pasta::adapters::oclgrind::find<void*(const char*)>(__func__);
  return ask == nullptr ? nullptr : ask(name);
}

}  // extern "C"
