#include "cli/opencl_runtime.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace pasta::cli {
namespace {

using State = Found::State;

// Of CL/cl.h, which this program can be built without.
constexpr std::uint32_t kPlatformName = 0x0902;
constexpr std::uint64_t kAllDevices = 0xFFFFFFFF;
using GetPlatforms = std::int32_t (*)(std::uint32_t, void**, std::uint32_t*);
using GetPlatformInfo = std::int32_t (*)(void*, std::uint32_t, std::size_t, void*, std::size_t*);
using GetDevices = std::int32_t (*)(void*, std::uint64_t, std::uint32_t, void**, std::uint32_t*);

constexpr int kPatienceMs = 20'000;

// "Portable Computing Language (1 device)", one a line.
std::string platforms(void* loader) {
  const auto get_platforms = reinterpret_cast<GetPlatforms>(dlsym(loader, "clGetPlatformIDs"));
  const auto get_info = reinterpret_cast<GetPlatformInfo>(dlsym(loader, "clGetPlatformInfo"));
  const auto get_devices = reinterpret_cast<GetDevices>(dlsym(loader, "clGetDeviceIDs"));
  if (get_platforms == nullptr || get_info == nullptr || get_devices == nullptr) return "";
  std::array<void*, 16> found{};
  std::uint32_t count = 0;
  if (get_platforms(found.size(), found.data(), &count) != 0) return "";
  std::string text;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, found.size()); ++i) {
    std::array<char, 256> name{};
    std::uint32_t devices = 0;
    get_info(found[i], kPlatformName, name.size() - 1, name.data(), nullptr);
    get_devices(found[i], kAllDevices, 0, nullptr, &devices);
    text += fmt::format("{} ({} device{})\n", name.data(), devices, devices == 1 ? "" : "s");
  }
  return text;
}

// Vendors' drivers are loaded by asking: in a process of its own, which may crash or hang.
std::pair<bool, std::string> ask_for_platforms() {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {false, ""};
  const pid_t child = fork();
  if (child == 0) {
    void* loader = dlopen("libOpenCL.so.1", RTLD_NOW);
    const std::string text = loader == nullptr ? "" : platforms(loader);
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  bool answered = false;
  std::array<char, 4096> part{};
  pollfd from{ends[0], POLLIN, 0};
  while (child > 0 && poll(&from, 1, kPatienceMs) > 0) {
    const ssize_t got = read(ends[0], part.data(), part.size());
    answered = got == 0;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  if (child > 0) {
    if (!answered) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    answered = answered && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return {answered, std::move(text)};
}

// A loader that knows layers reads their variable.
bool knows_layers(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return content.find("OPENCL_LAYERS") != std::string::npos;
}

}  // namespace

Found opencl_runtime() {
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (loader == nullptr) {
    return {State::kMissing, "no ICD loader: there is no libOpenCL.so.1",
            "install ocl-icd-libopencl1 and a runtime, such as pocl-opencl-icd"};
  }
  link_map* map = nullptr;
  const bool mapped = dlinfo(loader, RTLD_DI_LINKMAP, &map) == 0;
  const std::string path = mapped && map->l_name != nullptr ? map->l_name : "libOpenCL.so.1";
  if (!knows_layers(path)) {
    return {State::kMissing, fmt::format("{} knows no layers", path),
            "install an ICD loader that does: ocl-icd 2.3.0 or newer, or the one of Khronos"};
  }
  const auto [answered, names] = ask_for_platforms();
  if (!answered) {
    return {State::kWarning, fmt::format("{}; asking it for platforms crashed or hung", path),
            "see whether clinfo works; a driver in /etc/OpenCL/vendors may be broken"};
  }
  if (names.empty()) {
    return {State::kWarning, fmt::format("{}; no platform", path),
            "install a runtime, such as pocl-opencl-icd"};
  }
  std::string line = names.substr(0, names.size() - 1);
  for (std::size_t at = 0; (at = line.find('\n', at)) != std::string::npos;) {
    line.replace(at, 1, ", ");
  }
  return {.detail = fmt::format("{}; {}", path, line)};
}

}  // namespace pasta::cli
