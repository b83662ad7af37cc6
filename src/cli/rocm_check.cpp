#include "cli/rocm_check.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/rocprofiler/api.h"
#include "adapters/rocprofiler/decode.h"

namespace pasta::cli {
namespace {

namespace fs = std::filesystem;
namespace rocprofiler = adapters::rocprofiler;
using State = Found::State;
using rocprofiler::Service;

constexpr const char* kDriver = "/dev/kfd";

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// As the driver lists them: nodes that have SIMD units.
std::vector<std::string> gpus() {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& node : fs::directory_iterator("/sys/class/kfd/kfd/topology/nodes", error)) {
    std::ifstream properties(node.path() / "properties");
    std::string key;
    std::uint64_t value = 0, version = 0, simds = 0;
    while (properties >> key >> value) {
      if (key == "simd_count") simds = value;
      if (key == "gfx_target_version") version = value;
    }
    if (simds == 0) continue;
    found.push_back(
        fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100));
  }
  return found;
}

std::string rocm_version() {
  const char* home = std::getenv("ROCM_PATH");
  const fs::path root = home != nullptr && *home != '\0' ? home : "/opt/rocm";
  return first_line(root / ".info" / "version");
}

// Of the packages that pip installs (rocm-sdk-core), for the Python that is first in PATH: a
// program that runs in it finds it by its own libraries.
void* open_of_python() {
  std::error_code error;
  std::string_view path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  while (!path.empty()) {
    const fs::path folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.native().size() + 1, path.size()));
    if (!fs::exists(folder / "python3", error) && !fs::exists(folder / "python", error)) continue;
    for (const auto& python : fs::directory_iterator(folder.parent_path() / "lib", error)) {
      if (!python.path().filename().string().starts_with("python3")) continue;
      for (const auto& package : fs::directory_iterator(python.path() / "site-packages", error)) {
        if (!package.path().filename().string().starts_with("_rocm_sdk_core")) continue;
        const fs::path file = package.path() / "lib" / "librocprofiler-sdk.so.1";
        if (void* library = dlopen(file.c_str(), RTLD_LAZY); library != nullptr) return library;
      }
    }
    break;
  }
  return nullptr;
}

void* open_sdk() {
  void* library = rocprofiler::open_library(nullptr);
  return library != nullptr ? library : open_of_python();
}

using GetVersion = rocprofiler::Status (*)(std::uint32_t*, std::uint32_t*, std::uint32_t*);
GetVersion version_function(void* library) {
  return reinterpret_cast<GetVersion>(dlsym(library, "rocprofiler_get_version"));
}

bool samples_pcs(std::uint32_t major, const rocprofiler::Api& api) {
  return major >= rocprofiler::kVersion1 / 10000 && api.can_sample();
}

// "rocprofiler-sdk 1.0.0 in /opt/rocm/lib/...", and what this version does not tell.
Found sdk_of(void* library) {
  std::uint32_t major = 0, minor = 0, patch = 0;
  const GetVersion get_version = version_function(library);
  if (get_version == nullptr || get_version(&major, &minor, &patch) != 0) {
    return {State::kWarning, "a rocprofiler-sdk that does not tell its version",
            "install the rocprofiler-sdk of ROCm 6.3 or newer"};
  }
  Dl_info info{};
  const bool placed = dladdr(reinterpret_cast<void*>(get_version), &info) != 0;
  std::string text = fmt::format("rocprofiler-sdk {}.{}.{} in {}", major, minor, patch,
                                 placed ? info.dli_fname : "the process");
  const std::uint32_t version = 10000 * major + 100 * minor + patch;
  if (version < rocprofiler::kOldestVersion || major > 1) {
    return {State::kWarning, text + ", which pastaprof does not know",
            "install the rocprofiler-sdk of ROCm 6.3 to 7"};
  }
  rocprofiler::Api api{};
  if (const char* missing = rocprofiler::load_api(api, library); missing != nullptr) {
    return {State::kWarning, fmt::format("{} has no {}", text, missing),
            "install the rocprofiler-sdk of ROCm again"};
  }
  struct Wanted {
    Service service;
    std::string_view what;
    bool found;
  };
  Wanted wanted[] = {{Service::kKernels, "kernels", false},
                     {Service::kCopies, "copies", false},
                     {Service::kAllocations, "allocations", false},
                     {Service::kScratch, "scratch memory", false},
                     {Service::kRuntimeCalls, "calls of HIP", false},
                     {Service::kCommunicationCalls, "calls of RCCL", false},
                     {Service::kMigrations, "page migrations", false}};
  constexpr std::int32_t kMostKinds = 64;
  bool streams = false;
  for (std::int32_t kind = 1; kind < kMostKinds; ++kind) {
    const char* name = nullptr;
    if (api.get_buffered_kind_name(kind, &name, nullptr) != 0 || name == nullptr) continue;
    const Service service = rocprofiler::service_of(name);
    for (Wanted& one : wanted) {
      const bool before_1 = one.service == Service::kMigrations && service == Service::kPages;
      one.found = one.found || one.service == service || before_1;
    }
    streams = streams || std::string_view(name) == "HIP_STREAM";
  }
  std::vector<std::string_view> missing;
  for (const Wanted& one : wanted) {
    if (!one.found) missing.push_back(one.what);
  }
  if (!streams) missing.emplace_back("streams");
  if (!api.can_count()) missing.emplace_back("counters");
  if (!samples_pcs(major, api)) missing.emplace_back("samples of program counters");
  if (missing.empty()) return {.detail = text + ", all services"};
  return {State::kWarning, fmt::format("{}, without {}", text, fmt::join(missing, ", ")),
          "ROCm 7 has them"};
}

}  // namespace

Found check_rocm() {
  void* library = open_sdk();
  Found sdk = library == nullptr ? Found{State::kWarning, "no rocprofiler-sdk",
                                         "install rocprofiler-sdk of your ROCm, or set ROCM_PATH "
                                         "to where ROCm is"}
                                 : sdk_of(library);
  std::error_code error;
  if (!fs::exists(kDriver, error)) {
    const std::string driver = fmt::format("no AMD GPU: {} is not there", kDriver);
    return {State::kMissing,
            library == nullptr ? driver : fmt::format("{}; {}", driver, sdk.detail),
            "for an AMD GPU, load the amdgpu driver"};
  }
  const std::vector<std::string> found = gpus();
  std::string machine =
      found.empty() ? "no GPU in the driver's topology" : fmt::format("{}", fmt::join(found, ", "));
  if (const std::string rocm = rocm_version(); !rocm.empty()) machine += "; ROCm " + rocm;
  // Both are the group's: the driver's device, and one for each GPU.
  std::string refused = ::access(kDriver, R_OK | W_OK) != 0 ? kDriver : "";
  for (const auto& node : fs::directory_iterator("/dev/dri", error)) {
    const bool renders = node.path().filename().string().rfind("renderD", 0) == 0;
    if (refused.empty() && renders && ::access(node.path().c_str(), R_OK | W_OK) != 0) {
      refused = node.path().string();
    }
  }
  if (!refused.empty()) {
    return {State::kMissing, fmt::format("{}; {} is not yours to use", machine, refused),
            "join its group, mostly render: sudo usermod -aG render,video $USER, and log in again"};
  }
  sdk.detail = fmt::format("{}; {}", machine, sdk.detail);
  return sdk;
}

bool can_sample_on_rocm() {
  void* library = open_sdk();
  const GetVersion get_version = library == nullptr ? nullptr : version_function(library);
  std::uint32_t major = 0, minor = 0, patch = 0;
  rocprofiler::Api api{};
  return get_version != nullptr && get_version(&major, &minor, &patch) == 0 &&
         rocprofiler::load_api(api, library) == nullptr && samples_pcs(major, api);
}

bool can_count_on_rocm() {
  void* library = open_sdk();
  rocprofiler::Api api{};
  return library != nullptr && rocprofiler::load_api(api, library) == nullptr && api.can_count();
}

}  // namespace pasta::cli
