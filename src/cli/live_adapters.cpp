#include "cli/live_adapters.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "adapters/oclgrind/runtime.h"
#include "adapters/sanitizer/api.h"
#include "cli/console.h"
#include "cli/cuda_check.h"
#include "cli/opencl_runtime.h"
#include "cli/rocm_check.h"

namespace pasta::cli {
namespace {

constexpr const char* kPreload = "LD_PRELOAD";
constexpr const char* kNvtxVariable = "NVTX_INJECTION64_PATH";
// What the collector has when it was built with the headers of these.
constexpr const char* kNvtxEntry = "InitializeInjectionNvtx2";
constexpr const char* kOpenClEntry = "clInitLayer";
constexpr const char* kCudaVariable = "CUDA_INJECTION64_PATH";
// What analyses accesses on GPUs, one of the patches that run there, and where they are instead.
constexpr const char* kSanitizerLibrary = "libpastasanitizer.so";
constexpr const char* kGpuCode = "pastapatches_access.fatbin";
constexpr const char* kGpuCodeVariable = "PASTA_GPU_CODE";

// Whether the library was built with this entry point. It does nothing where no run is joined.
bool has_entry(const std::string& library, const char* function) {
  void* opened = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const bool has = opened != nullptr && dlsym(opened, function) != nullptr;
  if (opened != nullptr) dlclose(opened);
  return has;
}

Found annotations() {
  const auto collector = find_collector();
  if (collector) return {.detail = *collector};
  return {Found::State::kMissing, "libpastacollect.so is not where it was installed",
          "install pastaprof again"};
}

Found nvtx() {
  const auto collector = find_collector();
  if (!collector) return annotations();
  if (!has_entry(*collector, kNvtxEntry)) {
    return {Found::State::kMissing, "pastaprof was built without the headers of NVTX 3",
            "run scripts/setup and build again"};
  }
  if (const char* other = std::getenv(kNvtxVariable); other != nullptr && *other != '\0') {
    return {Found::State::kWarning, fmt::format("{} is set, to {}", kNvtxVariable, other),
            fmt::format("unset {}", kNvtxVariable)};
  }
  return {.detail = "NVTX 3, of any program that calls it"};
}

Found opencl() {
  const auto collector = find_collector();
  if (!collector) return annotations();
  if (!has_entry(*collector, kOpenClEntry)) {
    return {Found::State::kMissing, "pastaprof was built without the headers of OpenCL",
            "run scripts/setup and build again"};
  }
  return opencl_runtime();
}

Found torch() {
  const auto collector = find_collector();
  if (!collector) return annotations();
  return {.detail =
              "operators, modules and lines of PyTorch 1.13 and newer, of any program that loads "
              "it into Python 3.9 or newer"};
}

Found python() {
  const auto collector = find_collector();
  if (!collector) return annotations();
  return {.detail = "lines of Python 3.9 and newer at launches, copies, fills and waits"};
}

// Oclgrind as it is installed: beside its program.
std::optional<std::string> oclgrind_runtime() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string_view path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    const fs::path program = fs::canonical(fs::path(folder) / "oclgrind", error);
    if (error) continue;
    const fs::path runtime =
        program.parent_path().parent_path() / "lib" / "oclgrind" / "liboclgrind-rt-icd.so";
    if (fs::exists(runtime, error)) return runtime.string();
  }
  return std::nullopt;
}

std::optional<std::string> oclgrind_plugin() {
  const auto collector = find_collector();
  std::error_code error;
  if (!collector) return std::nullopt;
  const auto plugin = std::filesystem::path(*collector).parent_path() / "libpastaoclgrind.so";
  return std::filesystem::exists(plugin, error) ? std::optional(plugin.string()) : std::nullopt;
}

Found oclgrind() {
  if (!oclgrind_runtime()) {
    return {Found::State::kMissing, "the simulator Oclgrind is not installed",
            "install Oclgrind (Debian: apt-get install oclgrind)"};
  }
  if (!oclgrind_plugin()) {
    return {Found::State::kMissing, "pastaprof was built without the headers of Oclgrind",
            "run scripts/setup and build again"};
  }
  return {.detail = "for tools such as access: programs run in the simulator then"};
}

Status add_oclgrind(WatchEnvironment& environment) {
  const auto runtime = oclgrind_runtime();
  const auto plugin = oclgrind_plugin();
  if (!runtime || !plugin) {
    const Found found = oclgrind();
    return fail(ErrorCode::kUnsupported,
                fmt::format("--adapter oclgrind: {}; {}", found.detail, found.remedy));
  }
  // One loader takes the file from here, the other from there.
  environment.variables.emplace_back("OCL_ICD_VENDORS", *plugin);
  environment.variables.emplace_back("OCL_ICD_FILENAMES", *plugin);
  environment.variables.emplace_back(adapters::oclgrind::kRuntimeVariable, *runtime);
  const char* others = std::getenv("OCLGRIND_PLUGINS");
  environment.variables.emplace_back(
      "OCLGRIND_PLUGINS",
      others == nullptr || *others == '\0' ? *plugin : fmt::format("{}:{}", others, *plugin));
  environment.provides = KindSet::all();
  return {};
}

std::optional<std::string> beside_collector(const char* name) {
  const auto collector = find_collector();
  std::error_code error;
  if (!collector) return std::nullopt;
  const auto file = std::filesystem::path(*collector).parent_path() / name;
  return std::filesystem::exists(file, error) ? std::optional(file.string()) : std::nullopt;
}

Found sanitizer() {
  if (!beside_collector(kSanitizerLibrary)) {
    return {Found::State::kMissing,
            fmt::format("{} is not where it was installed", kSanitizerLibrary),
            "install pastaprof again"};
  }
  if (!beside_collector(kGpuCode) && std::getenv(kGpuCodeVariable) == nullptr) {
    return {Found::State::kMissing, "pastaprof was built without nvcc",
            "run scripts/setup gpu and build again"};
  }
  void* cuda = dlopen("libcuda.so.1", RTLD_LAZY);
  if (cuda == nullptr) {
    return {Found::State::kMissing, "no NVIDIA driver: libcuda.so.1 is not found",
            "for an NVIDIA GPU, install its driver"};
  }
  dlclose(cuda);
  const auto loaded = adapters::sanitizer::load_api();
  if (!loaded) {
    return {Found::State::kWarning, loaded.error().message,
            "install nvidia-cuda-sanitizer-api from PyPI, or a CUDA toolkit"};
  }
  return {.detail = fmt::format("for tools such as access, instead of cupti: {}", loaded->path)};
}

Status add_sanitizer(const std::vector<std::string>& names, WatchEnvironment& environment) {
  if (std::find(names.begin(), names.end(), "cupti") != names.end()) {
    return fail(ErrorCode::kUsage,
                "--adapter: cupti and sanitizer exclude each other in a process; run the program "
                "twice (--passes 2)");
  }
  const Found found = sanitizer();
  if (found.state == Found::State::kMissing) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("--adapter sanitizer: {}; {}", found.detail, found.remedy));
  }
  if (const char* other = std::getenv(kCudaVariable); other != nullptr && *other != '\0') {
    return fail(ErrorCode::kUnsupported,
                fmt::format("--adapter sanitizer: {} is set already, to {}; unset it",
                            kCudaVariable, other));
  }
  environment.variables.emplace_back(kCudaVariable, *beside_collector(kSanitizerLibrary));
  environment.provides = KindSet::all();
  return {};
}

constexpr std::array kLiveAdapters = {
    LiveAdapter{"annotations", "what programs say by pasta.h", nullptr, false, annotations},
    LiveAdapter{"nvtx", "ranges and marks of NVTX", kNvtxVariable, false, nvtx},
    LiveAdapter{"cupti", "CUDA: kernels, copies, memory, waits and calls", kCudaVariable, false,
                check_cuda},
    LiveAdapter{"rocprofiler", "ROCm: kernels, copies, memory, calls of HIP and RCCL, ROCTx",
                "ROCP_TOOL_LIBRARIES", true, check_rocm},
    LiveAdapter{"torch", "operators, modules and lines of PyTorch", nullptr, false, torch},
    LiveAdapter{"python", "where Python calls CUDA and OpenCL", nullptr, false, python},
    LiveAdapter{"opencl", "calls, kernels and copies of OpenCL", "OPENCL_LAYERS", true, opencl},
    LiveAdapter{"oclgrind", "memory accesses of OpenCL kernels, in a simulator", nullptr, false,
                oclgrind, true},
    LiveAdapter{"sanitizer", "memory accesses of CUDA kernels, analysed on the GPU", nullptr, false,
                sanitizer, true},
};

// The value that `variable` is to have; none when it is taken.
std::optional<std::string> joined(const char* variable, bool list, bool before,
                                  const std::string& library) {
  const char* others = std::getenv(variable);
  if (others == nullptr || *others == '\0') return library;
  if (!list) return std::nullopt;
  return before ? fmt::format("{}:{}", library, others) : fmt::format("{}:{}", others, library);
}

}  // namespace

std::span<const LiveAdapter> live_adapters() { return kLiveAdapters; }

std::vector<std::string_view> live_adapter_names() {
  std::vector<std::string_view> names = {"auto"};
  for (const LiveAdapter& adapter : kLiveAdapters) names.push_back(adapter.name);
  return names;
}

std::optional<std::string> find_collector() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"../" PASTA_LIBDIR, "../collect"}) {
    const fs::path library = here / place / "libpastacollect.so";
    if (fs::exists(library, error)) return fs::canonical(library, error).string();
  }
  return std::nullopt;
}

namespace {

bool is_pc_sampling(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view method = text.substr(0, colon);
  if (method != "auto" && method != "host-trap" && method != "stochastic") return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view interval = text.substr(colon + 1);
  return method != "auto" && !interval.empty() && interval.size() <= 18 && interval[0] != '0' &&
         interval.find_first_not_of("0123456789") == std::string_view::npos;
}

Status add_of_rocm(const OfRocm& asked, bool is_watched, WatchEnvironment& result) {
  if (!asked.pc_sampling.empty() && !is_pc_sampling(asked.pc_sampling)) {
    return fail(
        ErrorCode::kUsage,
        fmt::format("--pc-sampling: \"{}\" is none; give auto, host-trap or stochastic, and "
                    "for an interval of one's own host-trap:1000 (microseconds) or "
                    "stochastic:1048576 (cycles)",
                    asked.pc_sampling));
  }
  if (!asked.counters.empty() && !asked.pc_sampling.empty()) {
    return fail(ErrorCode::kUsage,
                "--counters and --pc-sampling: an AMD GPU does not do both at once; run twice");
  }
  for (const auto& [option, variable, value, can] :
       {std::tuple("--counters", "PASTA_COUNTERS", &asked.counters, &can_count_on_rocm),
        std::tuple("--pc-sampling", "PASTA_PC_SAMPLING", &asked.pc_sampling,
                   &can_sample_on_rocm)}) {
    if (value->empty()) continue;
    if (!is_watched) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{} is of AMD GPUs: give --adapter rocprofiler as well", option));
    }
    if (!can()) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{} needs the rocprofiler-sdk of ROCm{}, which is not found; set "
                              "ROCM_PATH to where ROCm is",
                              option, can == &can_count_on_rocm ? "" : " 7 or later"));
    }
    result.variables.emplace_back(variable, *value);
  }
  if (!asked.pc_sampling.empty()) result.provides = result.provides | Kind::kDevice;
  return {};
}

}  // namespace

Result<WatchEnvironment> watch_environment(const AdapterNames& adapters, const OfRocm& of_rocm,
                                           const std::string& collector) {
  const std::vector<std::string>& names = adapters.names;
  const bool all = names.empty() || (names.size() == 1 && names[0] == "auto");
  for (const std::string& name : names) {
    const auto known = live_adapter_names();
    if (all || std::find(known.begin() + 1, known.end(), name) != known.end()) continue;
    return fail(ErrorCode::kUsage, fmt::format("--adapter: there is no adapter \"{}\"; give {}",
                                               name, fmt::join(known, ", ")));
  }
  for (const auto& [name, entry, check] :
       {std::tuple("nvtx", kNvtxEntry, &nvtx), std::tuple("opencl", kOpenClEntry, &opencl)}) {
    if (all || !adapters.asked) continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (has_entry(collector, entry)) continue;
    const Found found = check();
    return fail(ErrorCode::kUnsupported,
                fmt::format("--adapter {}: {}; {}", name, found.detail, found.remedy));
  }
  WatchEnvironment result;
  // Ours is first, so that it is asked before others about what it shares with them.
  result.variables.emplace_back(kPreload, *joined(kPreload, true, true, collector));
  for (const LiveAdapter& adapter : kLiveAdapters) {
    if (adapter.variable == nullptr) continue;
    if (!all && std::find(names.begin(), names.end(), adapter.name) == names.end()) continue;
    auto value = joined(adapter.variable, adapter.list, false, collector);
    if (value) {
      result.variables.emplace_back(adapter.variable, std::move(*value));
    } else {
      result.warnings.push_back(fmt::format("{} is not watched: {} is set already, to {}",
                                            adapter.name, adapter.variable,
                                            std::getenv(adapter.variable)));
    }
  }
  const auto is_wanted = [&](std::string_view name) {
    return all || std::find(names.begin(), names.end(), name) != names.end();
  };
  result.torch = is_wanted("torch");
  result.call_places = is_wanted("python");
  const bool rocm = is_wanted("rocprofiler");
  PASTA_TRY(add_of_rocm(of_rocm, rocm, result));
  if (std::find(names.begin(), names.end(), "oclgrind") != names.end()) {
    PASTA_TRY(add_oclgrind(result));
  }
  if (std::find(names.begin(), names.end(), "sanitizer") != names.end()) {
    PASTA_TRY(add_sanitizer(names, result));
  }
  return result;
}

}  // namespace pasta::cli
