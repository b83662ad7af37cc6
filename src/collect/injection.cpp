// What vendors' runtimes call in the library that they are told to load, and what the program's own
// profiler calls.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "adapters/common/python/call_places.h"
#include "adapters/cupti/adapter.h"
#include "adapters/cupti/api.h"
#include "adapters/rocprofiler/adapter.h"
#include "adapters/rocprofiler/records.h"
#include "adapters/torch/torch.h"
#include "trace/spool_writer.h"

extern "C" {
int cuptiActivityRegisterCallbacks(void* request, void* complete);
int cuptiSubscribe(void* subscriber, void* callback, void* user);
int cuptiSubscribe_v2(void* subscriber, void* callback, void* user, void* parameters);
}

namespace cupti = pasta::adapters::cupti;
namespace rocprofiler = pasta::adapters::rocprofiler;

namespace {

constexpr int kNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED

// What a profiler begins with, of whatever arguments: none has more.
using Begin = int(void*, void*, void*, void*);
constexpr char kRegister[] = "cuptiActivityRegisterCallbacks";
constexpr const char* kBegins[] = {"cuptiSubscribe", "cuptiSubscribe_v2", kRegister};

// The driver serves the first CUPTI of a process and no other, even when that has ended. So who has
// found another, as Triton brings its own, gets the functions of the one that we use.
int begin(const char* name, Begin* theirs, void* a, void* b, void* c, void* d) {
  cupti::hand_over();
  if (void* used = cupti::used_function(name); used != nullptr) {
    theirs = reinterpret_cast<Begin*>(used);
  }
  if (theirs == nullptr) return kNotInitialized;
  const int result = theirs(a, b, c, d);
  // Who subscribes is told of by CUPTI itself; who registers need not do that.
  if (result == 0 && std::strcmp(name, kRegister) == 0) cupti::begins_other();
  return result;
}
// Of a program that is linked to it.
int begin_linked(const char* name, void* a, void* b, void* c, void* d) {
  return begin(name, reinterpret_cast<Begin*>(cupti::find_function(name)), a, b, c, d);
}

// Who has asked a library for a function to begin with gets one of these: whether we use a CUPTI is
// known only when it is called.
constexpr std::size_t kMostFound = 12;
struct Found {
  std::atomic<Begin*> theirs;
  std::atomic<const char*> name;
};
constinit Found g_found[kMostFound] = {};
template <std::size_t i>
int begin_found(void* a, void* b, void* c, void* d) {
  return begin(g_found[i].name.load(std::memory_order_acquire),
               g_found[i].theirs.load(std::memory_order_acquire), a, b, c, d);
}
template <std::size_t... i>
Begin* in_front_of(Begin* theirs, const char* name, std::index_sequence<i...>) {
  static constexpr Begin* kInFront[] = {begin_found<i>...};
  for (std::size_t at = 0; at < kMostFound; ++at) {
    Begin* there = nullptr;
    if (!g_found[at].theirs.compare_exchange_strong(there, theirs) && there != theirs) continue;
    g_found[at].name.store(name, std::memory_order_release);
    return kInFront[at];
  }
  cupti::hand_over();
  return theirs;
}

// A function of a CUPTI that the program has found by itself, or what it gets in its place; none:
// what the system says.
void* in_place_of(void* library, const char* name) {
  if (library == RTLD_DEFAULT || library == RTLD_NEXT) return nullptr;
  for (const char* begins : kBegins) {
    if (std::strcmp(name, begins) != 0) continue;
    void* found = cupti::system_dlsym()(library, name);
    // In the scope of the whole program, ours are the first.
    for (const auto ours :
         {reinterpret_cast<void*>(cuptiSubscribe), reinterpret_cast<void*>(cuptiSubscribe_v2),
          reinterpret_cast<void*>(cuptiActivityRegisterCallbacks)}) {
      if (found == ours) return ours;
    }
    if (found == nullptr) return nullptr;
    return reinterpret_cast<void*>(in_front_of(reinterpret_cast<Begin*>(found), begins,
                                               std::make_index_sequence<kMostFound>()));
  }
  return cupti::used_function(name);
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
  pasta::adapters::common::python::begin_call_places();
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
__attribute__((visibility("default"))) int cuptiActivityRegisterCallbacks(void* request,
                                                                          void* complete) {
  return begin_linked(kRegister, request, complete, nullptr, nullptr);
}
__attribute__((visibility("default"))) int cuptiSubscribe(void* subscriber, void* callback,
                                                          void* user) {
  return begin_linked("cuptiSubscribe", subscriber, callback, user, nullptr);
}
__attribute__((visibility("default"))) int cuptiSubscribe_v2(void* subscriber, void* callback,
                                                             void* user, void* parameters) {
  return begin_linked("cuptiSubscribe_v2", subscriber, callback, user, parameters);
}

// A profiler that loads CUPTI by itself. All else is the system's: called as the last thing, so
// that it sees who asks, which RTLD_NEXT depends on.
__attribute__((visibility("default"))) void* dlsym(void* library, const char* name) noexcept {
  if (std::strncmp(name, "cupti", 5) == 0) {
    if (void* found = in_place_of(library, name); found != nullptr) return found;
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
