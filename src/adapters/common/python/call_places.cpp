#include "adapters/common/python/call_places.h"

#include <atomic>
#include <cstddef>
#include <string_view>

#include "adapters/common/python/interpreter.h"

namespace pasta::adapters::common::python {
namespace {

using trace::SpoolPush;
using trace::spool::PythonMode;

constexpr std::uint32_t kCallStack = 0x63616c6c;  // of ranges of a thread

constinit std::atomic<bool> g_wanted = false;
constinit std::atomic<bool> g_has_operators = false;
constinit std::atomic<bool> g_begun = false;

// What ends the reading of frames when the interpreter does.
constexpr char kAtEnd[] = "import atexit\natexit.register(end_places)\n";

Object* end_places(Object*, Object*) noexcept {
  python::end_places();
  return api()->make_number(0);
}

void tell_version(const Api& python) {
  // "3.13.5 experimental free-threading build (main, ...".
  std::string_view version(python.version());
  const std::size_t end = version.find(" (");
  if (end != version.npos) version.remove_suffix(version.size() - end);
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.fact("python", version);
}

// Of a call without a place, once: whether it has one that cannot be read.
void tell_unread() {
  static constinit std::atomic<bool> told = false;
  if (reads_places() || told.load(std::memory_order_relaxed) || api()->this_thread() == nullptr ||
      told.exchange(true)) {
    return;
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  push.note(Reason::kNotRecorded, 1,
            "where Python calls CUDA and OpenCL without its lock: frames of this Python cannot be "
            "read");
}

}  // namespace

std::uint64_t open_places(SpoolPush& push, const Places& places, std::uint32_t stack) noexcept {
  const std::uint32_t count = places.count();
  if (count == 0 || push.lies_in(places[count - 1], ScopeDomain::kPython)) return 0;
  // That a library runs what is open is known already, and its lines say nothing to the user.
  if (places.are_of_library() && push.scope().value != 0) return 0;
  std::uint64_t first = 0;
  const auto open = [&](const trace::Said& said) {
    const std::uint64_t range = push.open(said, stack);
    if (first == 0) first = range;
  };
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    open({.name = places[i], .domain = ScopeDomain::kPython});
  }
  // Nobody calls these modules: the compiler has left nothing of them but what they were to do.
  for (std::string_view names = places.modules(); !names.empty();) {
    const std::size_t end = names.find('\n');
    open({.name = {names.data(), end}, .domain = ScopeDomain::kModule, .path_only = true});
    names.remove_prefix(end + 1);
  }
  open({.name = places[count - 1], .domain = ScopeDomain::kPython});
  return first;
}

void begin_call_places() noexcept {
  if (g_begun.load(std::memory_order_relaxed)) return;
  if (trace::call_places_mode() == PythonMode::kOff) return;
  const Api* python = api();
  // An error of the program's would be lost where ours runs: then the next time.
  if (python == nullptr || !holds_lock(*python) || python->error() != nullptr) return;
  Object* frame = python->frame(python->this_thread());
  if (frame == nullptr) return;
  python->release(frame);
  if (g_begun.exchange(true)) return;
  begin_places();
  static constexpr Function kFunctions[] = {{"end_places", end_places}};
  tell_version(*python);
  if (!run(kAtEnd, kOwnProgram, kFunctions, 1, nullptr, 0)) {
    // To read frames while the interpreter ends would be the program's failure.
    SpoolPush push = SpoolPush::even_stopped();
    if (push) {
      push.note(Reason::kNotRecorded, 1,
                "where Python calls CUDA and OpenCL: it does not say when it ends");
    }
    return;
  }
  g_wanted.store(true, std::memory_order_release);
}

void operators_have_places() noexcept { g_has_operators.store(true, std::memory_order_relaxed); }

bool wants_call_places() noexcept { return g_wanted.load(std::memory_order_acquire); }

std::uint64_t open_call_place() noexcept {
  {
    SpoolPush push;
    // Of others, as XLA's, it may have been told.
    const bool have_all = g_has_operators.load(std::memory_order_relaxed);
    if (!push || (have_all && push.lies_in(ScopeDomain::kOperator)) || push.has_place()) return 0;
  }
  // Not within a push: the thread may have the interpreter's lock, and then this is code of Python.
  Places places;
  places.find_at_once(trace::call_places_mode() == PythonMode::kStacks);
  if (places.count() == 0) {
    tell_unread();
    return 0;
  }
  SpoolPush push;
  if (!push) return 0;
  if (push.lies_in(places[places.count() - 1], ScopeDomain::kPython)) return 0;
  // Within a call Python does not go on: one that is open in another place has ended, and the
  // vendor has not told us, as when it is asked no more.
  while (push.depth(kCallStack) > 0) push.close_innermost(kCallStack);
  return open_places(push, places, kCallStack);
}

void close_call_place(std::uint64_t place) noexcept {
  if (place == 0) return;
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  // Not by its number: what is given back by a vendor may be no place, where its call began before
  // it was asked for, and of several some may have been too deep. No other's are open within a
  // call.
  while (push.depth(kCallStack) > 0) push.close_innermost(kCallStack);
}

}  // namespace pasta::adapters::common::python
