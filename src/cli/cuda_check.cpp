#include "cli/cuda_check.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "adapters/cupti/api.h"

namespace pasta::cli {
namespace {

using State = Found::State;
namespace cupti = adapters::cupti;

constexpr const char* kVariable = "CUDA_INJECTION64_PATH";

template <class Function>
Function function(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// Whether programs that are not root's may read hardware counters; activity records need no more
// than the driver.
std::string counters() {
  std::ifstream file("/proc/driver/nvidia/params");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("RmProfilingAdminOnly:", 0) != 0) continue;
    return line.back() == '0' ? "counters for all users" : "counters for root alone";
  }
  return "counters unknown";
}

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

}  // namespace

Found check_cuda() {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) {
    return {State::kMissing, "no NVIDIA driver: libcuda.so.1 is not found",
            "for an NVIDIA GPU, install its driver"};
  }
  const auto initialize = function<int (*)(unsigned)>(cuda, "cuInit");
  const auto driver = function<int (*)(int*)>(cuda, "cuDriverGetVersion");
  const auto devices = function<int (*)(int*)>(cuda, "cuDeviceGetCount");
  int number = 0, count = 0;
  if (initialize == nullptr || driver == nullptr || devices == nullptr || driver(&number) != 0) {
    return {State::kMissing, "libcuda.so.1 is not a driver's", "install the driver again"};
  }
  // In this process nothing is watched, whatever the environment says.
  const char* set = std::getenv(kVariable);
  const std::string other = set == nullptr ? "" : set;
  unsetenv(kVariable);
  if (const int error = initialize(0); error != 0 || devices(&count) != 0 || count == 0) {
    return {State::kMissing,
            fmt::format("CUDA {}, but no GPU that it can use (cuInit gives {})", version(number),
                        error),
            "see nvidia-smi"};
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.emplace_back(cupti::device_facts(static_cast<std::uint32_t>(i)).name);
  }
  const std::string machine = fmt::format("{}; driver for CUDA {}; {}", fmt::join(names, ", "),
                                          version(number), counters());
  if (!other.empty()) {
    return {State::kWarning, fmt::format("{}; {} is set, to {}", machine, kVariable, other),
            fmt::format("unset {}: CUPTI serves one tool", kVariable)};
  }
  cupti::Api api{};
  std::array<char, 512> where{};
  if (!cupti::load_api(api, where.data(), where.size())) {
    return {State::kWarning,
            fmt::format("{}; {}. Programs that bring their own, as PyTorch does, can be watched",
                        machine, where.data()),
            "install nvidia-cuda-cupti from PyPI, or a CUDA toolkit"};
  }
  std::uint32_t of_cupti = 0;
  api.get_version(&of_cupti);
  return {.detail = fmt::format("{}; CUPTI {} in {}", machine, of_cupti, where.data())};
}

}  // namespace pasta::cli
