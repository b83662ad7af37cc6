// A libsanitizer-public.so without a GPU: memory of the device is memory of the host, and a kernel
// the patch over the warps that a program says it has. FAKE_MEMORY is the most bytes that it has at
// once, FAKE_ADDRESS where they lie; FAKE_PATCHES when alone patches can be had: `early`, before
// there is a module, `late`, after that, or `never`.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "adapters/sanitizer/api.h"
#include "device/access.h"
#include "device/gpu_patch.h"
#include "device/reuse.h"
#include "fake.h"

namespace {

using namespace pasta::adapters::sanitizer;
namespace device = pasta::device;

Api::Callback callback = nullptr;
bool enabled[16] = {};
bool patched = false, has_patches = false, has_modules = false, lacks = false;
std::atomic<bool> faulty{false};
constexpr int kFault = 999;

std::mutex mutex;
bool held = false;
std::set<void*> gone_streams;
std::map<void*, std::vector<std::function<void()>>> waiting;  // what each stream holds back

// In the order of one stream; one after the other is as good as side by side.
void enqueue(void* stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  if (held) {
    waiting[stream].push_back(std::move(work));
  } else {
    work();
  }
}

void tell(Domain domain, std::uint32_t id, const void* data) {
  if (callback != nullptr && enabled[static_cast<int>(domain)]) {
    callback(nullptr, domain, id, data);
  }
}
template <class Id>
void tell(Domain domain, Id id, const void* data) {
  tell(domain, static_cast<std::uint32_t>(id), data);
}

std::map<Handle, void*> function_data;
thread_local void* launch_data = nullptr;
thread_local bool launch_data_set = false;

// Code with a patch reads what its launch was given: nothing at all is what it must not find, nor
// an address that a patch takes for none.
void* take_launch_data() {
  if (patched && !launch_data_set) std::abort();
  const auto address = reinterpret_cast<std::uintptr_t>(launch_data);
  if (address != 0 && static_cast<std::uint32_t>(address) == 0) std::abort();
  launch_data_set = false;
  return std::exchange(launch_data, nullptr);
}

template <class Patch>
void count(void* data, const std::vector<device::Warp>& warps) {
  auto& launch = *static_cast<device::GpuLaunch<Patch>*>(data);
  for (device::Warp warp : warps) {
    warp.site -= launch.code;
    Patch::on_access(launch.state, launch.launch, warp);
  }
}
// By the function for global memory. Of others the device has no code.
const std::map<std::string, void (*)(void*, const std::vector<device::Warp>&)> patches = {
    {"pasta_access_global", count<device::AccessPatch>},
    {"pasta_reuse_global", count<device::ReusePatch>},
    {"pasta_empty_global", nullptr}};
void (*counts)(void*, const std::vector<device::Warp>&) = nullptr;

void run(void* data, void* stream, std::vector<device::Warp> warps) {
  if (data == nullptr || !patched || counts == nullptr) return;
  enqueue(stream, [data, warps = std::move(warps)] { counts(data, warps); });
}

constexpr std::uint64_t kCode = 0x7f0000001000;

LaunchData data_of(void* context, void* module, void* stream, const FakeKernel& kernel) {
  LaunchData data{};
  data.context = context;
  data.module = module;
  data.stream_handle = stream;
  // One function for each name.
  data.function = const_cast<char*>(kernel.name);
  data.name = kernel.name;
  for (int i = 0; i < 3; ++i) {
    data.grid[i] = kernel.grid[i];
    data.block[i] = kernel.block[i];
  }
  return data;
}

std::vector<device::Warp> warps_of(const FakeKernel& kernel) {
  std::vector<device::Warp> warps(kernel.warps, kernel.warps + kernel.warp_count);
  for (device::Warp& warp : warps) warp.site += kCode;
  return warps;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int sanitizerSubscribe(Handle* subscriber, Api::Callback function, void*) {
  callback = function;
  *subscriber = &callback;
  return 0;
}
EXPORT int sanitizerEnableDomain(std::uint32_t enable, Handle, Domain domain) {
  enabled[static_cast<int>(domain)] = enable != 0;
  return 0;
}
bool launches_called = false;
std::set<std::uint32_t> calls_enabled;
EXPORT int sanitizerEnableCallback(std::uint32_t enable, Handle, Domain, std::uint32_t id) {
  if (enable != 0) calls_enabled.insert(id);
  if (enable == 0) calls_enabled.erase(id);
  if (id == static_cast<std::uint32_t>(DriverCallback::kLaunch)) launches_called = enable != 0;
  return 0;
}
EXPORT int sanitizerGetResultString(int error, const char** text) {
  *text = error == kFault ? "unknown error" : "refused";
  return 0;
}
EXPORT int sanitizerAddPatchesFromFile(const char*, Handle) {
  const char* when = std::getenv("FAKE_PATCHES");
  has_patches = when == nullptr || std::strcmp(when, has_modules ? "late" : "early") == 0;
  return has_patches ? 0 : 1;
}
EXPORT int sanitizerPatchInstructions(Instruction instruction, Handle, const char* function) {
  if (!has_patches) return 1;
  if (instruction != Instruction::kGlobal) return 0;
  const auto patch = patches.find(function);
  lacks = patch == patches.end();
  counts = lacks ? nullptr : patch->second;
  return lacks ? 1 : 0;
}
EXPORT int sanitizerPatchModule(Handle) {
  if (lacks) std::abort();  // nobody is to ask for what was refused
  patched = true;
  return 0;
}
EXPORT int sanitizerUnpatchModule(Handle) {
  patched = false;
  return 0;
}
EXPORT int sanitizerSetCallbackData(Handle function, const void* data) {
  const std::lock_guard lock(mutex);
  function_data[function] = const_cast<void*>(data);
  return 0;
}
bool refuses = false;
EXPORT void fake_refuse() { refuses = true; }
EXPORT int sanitizerSetLaunchCallbackData(Handle, Handle, Handle, const void* data) {
  launch_data_set = true;
  if (std::exchange(refuses, false)) return 1;
  launch_data = const_cast<void*>(data);
  return 0;
}
EXPORT int sanitizerGetFunctionPcAndSize(Handle, const char*, std::uint64_t* pc,
                                         std::uint64_t* size) {
  *pc = kCode;
  *size = 0x800;
  return 0;
}
EXPORT int sanitizerAlloc(Handle, void** address, std::size_t bytes) {
  const auto given = [](const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 0);
  };
  if (const std::uint64_t most = given("FAKE_MEMORY"); most > 0 && bytes > most) return 7;
  *address = mmap(reinterpret_cast<void*>(given("FAKE_ADDRESS")), bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return *address == MAP_FAILED ? 7 : 0;
}
EXPORT int sanitizerAllocHost(Handle, void** address, std::size_t bytes) {
  *address = std::malloc(bytes);
  return *address == nullptr ? 7 : 0;
}
EXPORT int sanitizerFreeHost(Handle, void* address) {
  std::free(address);
  return 0;
}
EXPORT int sanitizerMemcpyHostToDeviceAsync(void* to, const void* from, std::size_t bytes,
                                            Handle stream) {
  if (faulty || gone_streams.contains(stream)) return kFault;
  const auto* first = static_cast<const char*>(from);
  enqueue(stream, [to, copy = std::vector<char>(first, first + bytes)] {
    std::memcpy(to, copy.data(), copy.size());
  });
  return 0;
}
EXPORT int sanitizerMemcpyDeviceToHost(void* to, const void* from, std::size_t bytes, Handle) {
  if (faulty) return kFault;
  const std::lock_guard lock(mutex);
  std::memcpy(to, from, bytes);
  return 0;
}
EXPORT int sanitizerMemset(void* address, int value, std::size_t bytes, Handle) {
  if (faulty) return kFault;
  const std::lock_guard lock(mutex);
  std::memset(address, value, bytes);
  return 0;
}
EXPORT int sanitizerStreamSynchronize(Handle) { return faulty ? kFault : 0; }
EXPORT int sanitizerGetStreamHandle(Handle, Handle stream, Handle* handle) {
  *handle = stream;
  return 0;
}

EXPORT void fake_context(void* context) {
  const ContextData data{context};
  tell(Domain::kResource, ResourceCallback::kContextCreated, &data);
}
EXPORT void fake_destroy_context(void* context) {
  const ContextData data{context};
  tell(Domain::kResource, ResourceCallback::kContextDestroyStarting, &data);
}
EXPORT void fake_create_stream(void* context, void* stream) {
  const GreenStreamData data{context, nullptr, &held, stream};
  tell(Domain::kResource, ResourceCallback::kStreamCreated, &data);
}
EXPORT void fake_destroy_stream(void* context, void* green, void* stream) {
  void* const program_side = &held;  // any other than the handle
  const StreamData old{context, program_side, stream};
  const GreenStreamData since_13_1{context, green, program_side, stream};
  tell(Domain::kResource, ResourceCallback::kStreamDestroyStarting,
       green == nullptr ? static_cast<const void*>(&old) : &since_13_1);
  gone_streams.insert(stream);
}
EXPORT void fake_module(void* context, void* module, const void* cubin, std::size_t bytes) {
  has_modules = true;
  const ModuleData data{context, module, bytes, static_cast<const char*>(cubin), nullptr};
  tell(Domain::kResource, ResourceCallback::kModuleLoaded, &data);
}
EXPORT void fake_unload_module(void* module) {
  ModuleData data{};
  data.module = module;
  tell(Domain::kResource, ResourceCallback::kModuleUnloadStarting, &data);
}
EXPORT void fake_allocate(std::uint64_t address, std::uint64_t bytes, std::uint32_t flags) {
  MemoryData data{};
  data.address = address;
  data.bytes = bytes;
  data.flags = flags;
  tell(Domain::kResource, ResourceCallback::kMemoryAllocated, &data);
}
EXPORT void fake_free(std::uint64_t address) {
  MemoryData data{};
  data.address = address;
  tell(Domain::kResource, ResourceCallback::kMemoryFreed, &data);
}
EXPORT void fake_encode(const void* map, std::uint64_t address) {
  const EncodeParameters parameters{map, 0, 2, reinterpret_cast<void*>(address)};
  const std::int32_t result = 0;
  CallData call{};
  call.parameters = &parameters;
  callback(nullptr, Domain::kDriver, static_cast<std::uint32_t>(DriverCallback::kEncodeTiled),
           &call);
  call.ends = 1;
  call.result = &result;
  callback(nullptr, Domain::kDriver, static_cast<std::uint32_t>(DriverCallback::kEncodeTiled),
           &call);
}
EXPORT void fake_call(std::uint32_t id) {
  if (!calls_enabled.contains(id)) return;
  const std::int32_t result = 0;
  CallData call{};
  callback(nullptr, Domain::kDriver, id, &call);
  call.ends = 1;
  call.result = &result;
  callback(nullptr, Domain::kDriver, id, &call);
}
EXPORT void fake_launch(void* context, void* module, void* stream, const FakeKernel* kernel) {
  const LaunchData data = data_of(context, module, stream, *kernel);
  void* arguments[] = {const_cast<void*>(kernel->map)};
  LaunchParameters parameters{};
  parameters.arguments = arguments;
  CallData call{};
  call.parameters = &parameters;
  call.context = context;
  const auto tell_call = [&] {
    if (!launches_called) return;
    callback(nullptr, Domain::kDriver, static_cast<std::uint32_t>(DriverCallback::kLaunch), &call);
  };
  tell_call();
  tell(Domain::kLaunch, LaunchCallback::kBegin, &data);
  // Where its function has some, too, this device takes that.
  void* const given = take_launch_data();
  const auto of_function = function_data.find(data.function);
  const bool has_other = of_function != function_data.end() && of_function->second != nullptr;
  run(has_other ? of_function->second : given, stream, warps_of(*kernel));
  tell(Domain::kLaunch, LaunchCallback::kEnd, &data);
  call.ends = 1;
  tell_call();
}
void* graph = nullptr;
EXPORT void fake_make_graph_for_device() {
  graph = &graph;
  const GraphExecData data{nullptr, graph, 1};
  tell(Domain::kGraphs, GraphCallback::kMade, &data);
}
void launch_graph(void* context, void* module, void* stream, const FakeKernel* kernels,
                  std::size_t count, bool is_upload) {
  CallData call{};
  call.context = context;
  if (calls_enabled.contains(static_cast<std::uint32_t>(DriverCallback::kGraphLaunch))) {
    callback(nullptr, Domain::kDriver, static_cast<std::uint32_t>(DriverCallback::kGraphLaunch),
             &call);
  }
  GraphLaunchData whole{};
  whole.context = context;
  whole.stream_handle = stream;
  whole.graph = graph;
  whole.is_upload = is_upload ? 1 : 0;
  tell(Domain::kGraphs, GraphCallback::kLaunchBegin, &whole);
  std::vector<GraphNodeData> nodes(count);
  for (std::size_t i = 0; i < count; ++i) {
    GraphNodeData& node = nodes[i];
    std::memset(static_cast<void*>(&node), 0, sizeof node);
    node.graph = graph;
    node.type = kKernelNode;
    node.launch = data_of(context, module, nullptr, kernels[i]);
    node.launch.api_stream_handle = stream;
    tell(Domain::kGraphs, GraphCallback::kNodeBegin, &node);
  }
  // Of data of single nodes all have that of the last; else they have that of their functions, and
  // there must be one.
  const bool of_node = std::exchange(launch_data_set, false);
  for (std::size_t i = 0; i < count; ++i) {
    const auto of_function = function_data.find(nodes[i].launch.function);
    if (patched && !of_node && of_function == function_data.end()) std::abort();
    run(of_node                              ? launch_data
        : of_function == function_data.end() ? nullptr
                                             : of_function->second,
        stream, warps_of(kernels[i]));
  }
  tell(Domain::kGraphs, GraphCallback::kLaunchEnd, &whole);
}
EXPORT void fake_launch_graph(void* context, void* module, void* stream, const FakeKernel* kernels,
                              std::size_t count) {
  launch_graph(context, module, stream, kernels, count, false);
}
EXPORT void fake_upload_graph(void* context, void* module, void* stream, const FakeKernel* kernels,
                              std::size_t count) {
  launch_graph(context, module, stream, kernels, count, true);
}
EXPORT void fake_hold() {
  const std::lock_guard lock(mutex);
  held = true;
}
EXPORT void fake_go_on() {
  const std::lock_guard lock(mutex);
  held = false;
  // Streams wait for nothing but what is their own, so that of each may be as late as it likes.
  const auto all = std::exchange(waiting, {});
  for (auto of_stream = all.rbegin(); of_stream != all.rend(); ++of_stream) {
    for (const auto& one : of_stream->second) one();
  }
}
EXPORT void fake_synchronize(void* context, void* stream) {
  const SynchronizeData data{context, nullptr, stream};
  tell(Domain::kSynchronize, SynchronizeCallback::kStream, &data);
}
EXPORT void fake_fault() { faulty = true; }
