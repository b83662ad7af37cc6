#include "adapters/sanitizer/api.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace pasta::adapters::sanitizer {
namespace {

constexpr const char* kLibrary = "libsanitizer-public.so";

// Folders of libraries in the process: where one of CUDA's comes from a wheel or a toolkit, the
// Sanitizer lies near it.
int collect_folder(dl_phdr_info* info, std::size_t, void* data) {
  const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return 0;
  for (const char* name : {"/libcudart.so", "/libcublas.so", "/libnvrtc.so", "/libcudnn.so"}) {
    if (path.compare(slash, std::char_traits<char>::length(name), name) != 0) continue;
    static_cast<std::vector<std::string>*>(data)->push_back(path.substr(0, slash));
  }
  return 0;
}

std::vector<std::string> places() {
  std::vector<std::string> found = {kLibrary};
  std::vector<std::string> folders;
  dl_iterate_phdr(collect_folder, &folders);
  for (const std::string& folder : folders) {
    for (const char* below : {"", "/../compute-sanitizer", "/../../../compute-sanitizer",
                              "/../../cu13/lib", "/../../sanitizer_api/lib"}) {
      found.push_back(folder + below + "/" + kLibrary);
    }
  }
  std::vector<std::string> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr) toolkits.emplace_back(home);
  }
  for (const char* folder : {"/usr/local/cuda", "/usr/local/cuda-13", "/usr/local/cuda-12"}) {
    toolkits.emplace_back(folder);
  }
  for (const std::string& toolkit : toolkits) {
    for (const char* below : {"/compute-sanitizer/", "/extras/Sanitizer/", "/lib/"}) {
      found.push_back(toolkit + below + kLibrary);
    }
  }
  return found;
}

template <class Function>
bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

}  // namespace

Result<Loaded> load_api() {
  void* library = nullptr;
  for (const std::string& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return fail(ErrorCode::kUnsupported,
                "libsanitizer-public.so is found neither near the program's CUDA libraries nor in "
                "a CUDA toolkit: set CUDA_HOME, or install nvidia-cuda-sanitizer-api from PyPI");
  }
  Loaded loaded{};
  link_map* map = nullptr;
  loaded.path = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : kLibrary;
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& to) {
    if (!find(library, name, to) && missing == nullptr) missing = name;
  };
  Api& api = loaded.api;
  need("sanitizerSubscribe", api.subscribe);
  need("sanitizerEnableDomain", api.enable_domain);
  need("sanitizerEnableCallback", api.enable_callback);
  need("sanitizerGetResultString", api.error_text);
  need("sanitizerAddPatchesFromFile", api.add_patches);
  need("sanitizerPatchInstructions", api.patch_instructions);
  need("sanitizerPatchModule", api.patch_module);
  need("sanitizerUnpatchModule", api.unpatch_module);
  need("sanitizerSetCallbackData", api.set_function_data);
  need("sanitizerSetLaunchCallbackData", api.set_launch_data);
  need("sanitizerGetFunctionPcAndSize", api.function_pc);
  need("sanitizerAlloc", api.allocate);
  need("sanitizerAllocHost", api.allocate_host);
  need("sanitizerFreeHost", api.free_host);
  need("sanitizerMemcpyHostToDeviceAsync", api.copy_to_device);
  need("sanitizerMemcpyDeviceToHost", api.copy_to_host);
  need("sanitizerMemset", api.fill);
  need("sanitizerStreamSynchronize", api.synchronize);
  need("sanitizerGetStreamHandle", api.stream_handle);
  if (missing != nullptr) {
    return fail(ErrorCode::kUnsupported, fmt::format("there is no {} in {}", missing, loaded.path));
  }
  return loaded;
}

Result<Driver> load_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  Driver driver{};
  if (library == nullptr || !find(library, "cuCtxSetCurrent", driver.set_context) ||
      !find(library, "cuCtxPushCurrent_v2", driver.push_context) ||
      !find(library, "cuCtxPopCurrent_v2", driver.pop_context) ||
      !find(library, "cuCtxSynchronize", driver.synchronize) ||
      !find(library, "cuStreamCreate", driver.create_stream) ||
      !find(library, "cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode)) {
    return fail(ErrorCode::kUnsupported, "libcuda.so.1 is no driver that can be watched");
  }
  find(library, "cuFuncGetParamInfo", driver.argument_place);
  find(library, "cuModuleGetGlobal_v2", driver.find_variable);
  find(library, "cuEventCreate", driver.create_event);
  find(library, "cuEventRecord", driver.record_event);
  find(library, "cuEventElapsedTime", driver.between_events);
  return driver;
}

}  // namespace pasta::adapters::sanitizer
