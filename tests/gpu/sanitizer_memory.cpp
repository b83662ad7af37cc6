// What Compute Sanitizer itself takes of a GPU's memory: a library for CUDA_INJECTION64_PATH that
// goes so far as LEVEL says, each with all before it: load, subscribe, resource, launch (what is
// told of), code (the patches of PATCHES are there), module (those whose names begin with PREFIX
// are put into modules, for global memory or with ALL=1 for shared and local as well), data
// (launches are given some). FINE=1 also writes to the standard error what the device's free memory
// was before and after each of these calls that took any.
#include <cuda.h>
#include <dlfcn.h>
#include <sanitizer.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr const char* kLevels[] = {"load", "subscribe", "resource", "launch",
                                   "code", "module",    "data"};
struct Point {
  Sanitizer_InstructionId instruction;
  const char* function;
};
constexpr Point kPoints[] = {
    {SANITIZER_INSTRUCTION_GLOBAL_MEMORY_ACCESS, "global"},
    {SANITIZER_INSTRUCTION_MEMCPY_ASYNC, "copy"},
    {SANITIZER_INSTRUCTION_BULK_COPY_GLOBAL_TO_SHARED, "bulk_to_shared"},
    {SANITIZER_INSTRUCTION_BULK_COPY_SHARED_TO_GLOBAL, "bulk_to_global"},
    {SANITIZER_INSTRUCTION_BULK_REDUCTION_SHARED_TO_GLOBAL, "bulk_reduce_global"},
    {SANITIZER_INSTRUCTION_SHARED_MEMORY_ACCESS, "shared"},
    {SANITIZER_INSTRUCTION_LOCAL_MEMORY_ACCESS, "local"},
    {SANITIZER_INSTRUCTION_MATRIX_MEMORY_ACCESS, "matrix"}};
constexpr int kGlobalPoints = 5;  // those that come first

struct {
  int level = 0;
  bool fine = false;
  void* library = nullptr;
  void* data = nullptr;
  std::string prefix;
  std::mutex mutex;
  std::map<CUcontext, bool> contexts;
  std::map<std::string, std::pair<long, long>> took;  // by call: how often, MiB
  long modules = 0;
} g;

template <class F>
F* function(const char* name) {
  auto* found = reinterpret_cast<F*>(dlsym(g.library, name));
  if (found == nullptr) std::fprintf(stderr, "sanitizer_memory: no %s\n", name);
  return found;
}
#define OF(name) function<decltype(name)>(#name)

long free_mib() {
  static const auto get = reinterpret_cast<CUresult (*)(std::size_t*, std::size_t*)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemGetInfo_v2"));
  std::size_t free = 0, all = 0;
  return get != nullptr && get(&free, &all) == CUDA_SUCCESS ? static_cast<long>(free >> 20) : -1;
}

template <class Call>
void counted(const char* what, Call call) {
  const long before = g.fine ? free_mib() : 0;
  const int error = call();
  if (error != 0) std::fprintf(stderr, "sanitizer_memory: %s: %d\n", what, error);
  if (!g.fine) return;
  const long taken = before - free_mib();
  auto& [count, mib] = g.took[what];
  ++count;
  mib += taken;
  if (taken != 0)
    std::fprintf(stderr, "sanitizer_memory: %s took %ld MiB of %ld\n", what, taken, before);
}

void loaded(const Sanitizer_ResourceModuleData& module) {
  const std::lock_guard lock(g.mutex);
  ++g.modules;
  if (g.level < 4) return;
  bool& known = g.contexts[module.context];
  if (!known) {
    known = true;
    counted("code", [&] {
      return OF(sanitizerAddPatchesFromFile)(std::getenv("PATCHES"), module.context);
    });
  }
  if (g.level < 5) return;
  const int points =
      std::getenv("ALL") == nullptr ? kGlobalPoints : static_cast<int>(std::size(kPoints));
  for (int i = 0; i < points; ++i) {
    const std::string name = g.prefix + kPoints[i].function;
    const int error =
        OF(sanitizerPatchInstructions)(kPoints[i].instruction, module.module, name.c_str());
    if (error != 0 && g.modules == 1)
      std::fprintf(stderr, "sanitizer_memory: %s: %d\n", name.c_str(), error);
  }
  const std::string what = "module of " + std::to_string(module.cubinSize >> 10) + " KiB";
  counted(what.c_str(), [&] { return OF(sanitizerPatchModule)(module.module); });
}

void callback(void*, Sanitizer_CallbackDomain domain, Sanitizer_CallbackId id, const void* data) {
  if (domain == SANITIZER_CB_DOMAIN_RESOURCE && id == SANITIZER_CBID_RESOURCE_MODULE_LOADED) {
    loaded(*static_cast<const Sanitizer_ResourceModuleData*>(data));
  } else if (domain == SANITIZER_CB_DOMAIN_LAUNCH && id == SANITIZER_CBID_LAUNCH_BEGIN &&
             g.level >= 6) {
    const auto& launch = *static_cast<const Sanitizer_LaunchData*>(data);
    const std::lock_guard lock(g.mutex);
    if (g.data == nullptr)
      counted("data", [&] { return OF(sanitizerAlloc)(launch.context, &g.data, 4096); });
    OF(sanitizerSetLaunchCallbackData)(launch.hLaunch, launch.function, launch.hStream, nullptr);
  }
}

void at_end() {
  for (const auto& [what, taken] : g.took) {
    std::fprintf(stderr, "sanitizer_memory: %s: %ld times, %ld MiB\n", what.c_str(), taken.first,
                 taken.second);
  }
  std::fprintf(stderr, "sanitizer_memory: %ld modules\n", g.modules);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* level = std::getenv("LEVEL");
  for (int i = 0; i < 7; ++i) {
    if (level != nullptr && std::strcmp(level, kLevels[i]) == 0) g.level = i;
  }
  g.fine = std::getenv("FINE") != nullptr;
  g.prefix = std::getenv("PREFIX") == nullptr ? "pasta_empty_" : std::getenv("PREFIX");
  g.library = dlopen("libsanitizer-public.so", RTLD_NOW);
  if (g.library == nullptr)
    g.library = dlopen("/usr/local/cuda/compute-sanitizer/libsanitizer-public.so", RTLD_NOW);
  if (g.library == nullptr) {
    std::fprintf(stderr, "sanitizer_memory: %s\n", dlerror());
    return 1;
  }
  std::atexit(at_end);
  if (g.level < 1) return 1;
  Sanitizer_SubscriberHandle subscriber{};
  const int error = OF(sanitizerSubscribe)(&subscriber, callback, nullptr);
  if (error != 0) std::fprintf(stderr, "sanitizer_memory: subscribe: %d\n", error);
  if (g.level >= 2) OF(sanitizerEnableDomain)(1, subscriber, SANITIZER_CB_DOMAIN_RESOURCE);
  if (g.level >= 3) OF(sanitizerEnableDomain)(1, subscriber, SANITIZER_CB_DOMAIN_LAUNCH);
  return 1;
}
