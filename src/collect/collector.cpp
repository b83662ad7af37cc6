// The library that `pastaprof run` loads into the programs it watches: joins the run that the
// environment names, and gives pasta.h what it looks for. See trace/spool_writer.h for how to add
// a source of events.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "adapters/cupti/adapter.h"
#ifdef PASTA_OPENCL
#include "adapters/opencl/layer.h"
#endif
#include "adapters/rocprofiler/adapter.h"
#include "pasta/pasta.h"
#include "trace/append_text.h"
#include "trace/device_result.h"
#include "trace/job_rank.h"
#include "trace/spool_writer.h"

namespace pasta::collect {
namespace {

using trace::append;
using trace::SpoolPush;

std::uint64_t begin(const char* name, std::size_t bytes) noexcept {
  SpoolPush push = SpoolPush::opening({name, bytes});
  return push ? push.open({.name = {name, bytes}}) : 0;
}

void end(std::uint64_t range) noexcept {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.close(range);
}

void mark(const char* name, std::size_t bytes) noexcept {
  SpoolPush push;
  if (push) push.mark({.name = {name, bytes}});
}

void step() noexcept {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.step();
}

void start() noexcept { trace::start_collection(); }
void stop() noexcept { trace::stop_collection(); }

constinit std::atomic<void (*)(std::uint64_t, std::uint64_t)> g_on_tag = nullptr;

void tag(const void* address, std::size_t size, const char* name, std::size_t bytes) noexcept {
  const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  {
    SpoolPush push;
    if (!push) return;
    char arguments[96];
    char* at = append(arguments, R"({"address":)");
    at = append(at, begin);
    at = append(append(append(at, R"(,"bytes":)"), std::uint64_t{size}), "}");
    push.mark({.name = {name, bytes},
               .arguments = {arguments, static_cast<std::size_t>(at - arguments)}});
  }
  if (auto* function = g_on_tag.load(); function != nullptr) function(begin, size);
}

constexpr pasta_collector kCollector = {
    sizeof(pasta_collector), begin, end, mark, step, start, stop, tag};

void after_fork() noexcept {
  trace::after_fork();
  adapters::cupti::after_fork();
  adapters::rocprofiler::after_fork();
#ifdef PASTA_OPENCL
  adapters::opencl::child_after_fork();
#endif
}

void on_end(int status, void*) { trace::leave_run(status); }

using ExitFunction = void(int);
// Whose functions we stand in front of: another preloaded library's, or the system's.
constinit ExitFunction* g_next_exit = nullptr;
constinit ExitFunction* g_next_quick_exit = nullptr;

enum class Joined : int { kNotTried, kTrying, kNo, kYes };
constinit std::atomic<Joined> g_joined = Joined::kNotTried;

// Others' constructors may run before ours and annotate, so that who comes first does it.
bool join() noexcept {
  Joined before = Joined::kNotTried;
  if (!g_joined.compare_exchange_strong(before, Joined::kTrying)) return before == Joined::kYes;
  // Also where there is no run: they end the process, and its own handlers with it.
  g_next_exit = reinterpret_cast<ExitFunction*>(dlsym(RTLD_NEXT, "_exit"));
  g_next_quick_exit = reinterpret_cast<ExitFunction*>(dlsym(RTLD_NEXT, "quick_exit"));
  const char* folder = std::getenv(trace::spool::kFolderVariable);
  const bool joined =
      folder != nullptr && trace::join_run(folder, trace::job_rank_of_environment());
  if (joined) {
    pthread_atfork(nullptr, nullptr, after_fork);
    on_exit(on_end, nullptr);
  }
  g_joined.store(joined ? Joined::kYes : Joined::kNo);
  return joined;
}

__attribute__((constructor)) void load() { join(); }

// --- for libraries beside this one

void note_of_device(std::uint32_t reason, std::uint64_t count, const char* text) {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.note(static_cast<Reason>(reason), count, text);
}
void push_memory(const trace::DeviceMemory* memory) {
  if (memory == nullptr || memory->size < sizeof *memory) return;
  SpoolPush push;
  if (!push) return;
  Event event{};
  event.kind = memory->freed ? Kind::kFree : Kind::kAlloc;
  event.lane = push.lane();
  event.scope = push.scope();
  event.memory.address = memory->address;
  event.memory.bytes = memory->bytes;
  if (memory->device >= 0) {
    Device device;
    device.ordinal = static_cast<std::uint32_t>(memory->device);
    device.type = DeviceType::kGpu;
    event.memory.device = push.device(device);
  }
  event.flags = kInstant;
  event.start_ns = event.end_ns = push.now();
  push.add(event);
}
std::uint64_t iterations() { return trace::iterations_ended(); }

constinit std::atomic<void (*)()> g_before_end = nullptr;
void before_end(void (*function)()) { g_before_end.store(function); }
void on_iteration(void (*function)(std::uint64_t)) { trace::on_iteration(function); }
void on_tag(void (*function)(std::uint64_t, std::uint64_t)) { g_on_tag.store(function); }
void switch_capture(bool on) { trace::switch_capture(on); }

// Of a process that ends without running its handlers.
void end_at_once(int status) {
  if (auto* function = g_before_end.load(); function != nullptr) function();
  adapters::cupti::flush();
  adapters::rocprofiler::flush();
  trace::leave_run(status);
}

}  // namespace
}  // namespace pasta::collect

extern "C" {

__attribute__((visibility("default"))) const pasta_collector* pasta_collector_v1() {
  return pasta::collect::join() ? &pasta::collect::kCollector : nullptr;
}

__attribute__((visibility("default"))) void pasta_push_device_result_v1(
    const pasta::trace::DeviceResult* result) {
  using pasta::trace::SpoolPush;
  if (result == nullptr || result->size < sizeof *result) return;
  SpoolPush push = SpoolPush::even_stopped();
  if (!push || (!result->even_stopped && !pasta::trace::is_collecting())) return;
  pasta::Event event{};
  event.kind = pasta::Kind::kDevice;
  event.name = push.string({result->kernel, result->kernel_bytes});
  event.lane = push.lane();
  event.scope = push.scope();
  event.device.format = push.string({result->format, result->format_bytes});
  event.device.launch = result->launch;
  event.end_ns = SpoolPush::now();
  // Ours may be a little behind the clock that the start was read from.
  event.start_ns = std::min(result->start_ns, event.end_ns);
  push.add(event, {static_cast<const char*>(result->blob), result->blob_bytes});
}

__attribute__((visibility("default"))) const pasta::trace::DeviceCollector*
pasta_device_collector_v1() {
  static constexpr pasta::trace::DeviceCollector kCollector = {
      sizeof(pasta::trace::DeviceCollector),
      pasta_push_device_result_v1,
      pasta::collect::note_of_device,
      [] { return pasta::trace::is_collecting(); },
      pasta::collect::iterations,
      pasta::collect::before_end,
      pasta::collect::on_iteration,
      pasta::collect::switch_capture,
      [] { return pasta::trace::is_wanted(); },
      [](void (*function)() noexcept) { pasta::trace::on_collection_change(function); },
      pasta::collect::push_memory,
      pasta::collect::on_tag};
  if (!pasta::collect::join()) return nullptr;
  pasta::trace::count_iterations();
  return &kCollector;
}

__attribute__((noreturn, visibility("default"))) void _exit(int status) {
  pasta::collect::end_at_once(status);
  if (pasta::collect::g_next_exit != nullptr) pasta::collect::g_next_exit(status);
  for (;;) syscall(SYS_exit_group, status);
}
__attribute__((noreturn, visibility("default"))) void _Exit(int status) noexcept { _exit(status); }
// Runs handlers of its own, and then what the C library has for _exit().
__attribute__((noreturn, visibility("default"))) void quick_exit(int status) noexcept {
  pasta::collect::end_at_once(status);
  if (pasta::collect::g_next_quick_exit != nullptr) pasta::collect::g_next_quick_exit(status);
  for (;;) syscall(SYS_exit_group, status);
}

}  // extern "C"
