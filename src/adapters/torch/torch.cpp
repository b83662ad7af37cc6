#include "adapters/torch/torch.h"

#include <atomic>
#include <cstring>
#include <string_view>

#include "adapters/common/python/call_places.h"
#include "adapters/common/python/interpreter.h"
#include "adapters/common/python/places.h"
#include "adapters/torch/border.h"
#include "adapters/torch/sources.h"
#include "event/path_nodes.h"
#include "trace/spool_writer.h"

namespace pasta::adapters::torch {
namespace {

namespace python = common::python;
using python::Object;
using trace::Said;
using trace::SpoolPush;
using trace::spool::PythonMode;

constexpr std::uint32_t kModuleStack = 0x70744d6f;  // of ranges of a thread

// Where the program has called for the backward pass that is under way, and how many are. Autograd
// runs it on threads of its own, which know nothing of that.
constinit std::atomic<trace::SharedPath> g_backward = trace::kNoPath;
constinit std::atomic<std::uint32_t> g_backwards = 0;

ScopeDomain domain_of(const PastaOperator& what) {
  if (what.is_user_scope == 0) return ScopeDomain::kOperator;
  const std::string_view name{what.name, what.name_bytes};
  constexpr std::string_view kStep = "ProfilerStep#";
  const bool is_step = name.substr(0, kStep.size()) == kStep && event::is_numbered(name);
  return is_step ? ScopeDomain::kIteration : ScopeDomain::kAnnotation;
}

// Of the operator's arguments; none where it has none.
StringId known_arguments(SpoolPush& push, PastaOperator* what) {
  if (what->arguments_key == 0) return {};
  StringId known = push.known(what->arguments_key);
  if (known.value != 0) return known;
  what->describe(what);
  if (what->arguments_bytes == 0) return {};  // too long
  known = push.string({what->arguments, what->arguments_bytes});
  push.know(what->arguments_key, known);
  return known;
}

PastaOpened open(PastaOperator* what) noexcept {
  const std::string_view name{what->name, what->name_bytes};
  PastaOpened opened{};
  python::Places places;
  // Before the push, which other threads would wait for.
  const PythonMode mode = trace::python_mode();
  if (what->wants_place != 0 && mode != PythonMode::kOff && trace::is_collecting()) {
    places.find(mode == PythonMode::kStacks);
  }
  SpoolPush push = SpoolPush::opening(name);
  if (!push) return opened;
  opened.places = python::open_places(push, places);
  opened.range =
      push.open({.name = name,
                 .domain = domain_of(*what),
                 .arguments = {what->arguments, what->arguments_bytes},
                 .known_arguments = known_arguments(push, what),
                 .sequence = what->sequence,
                 .thread = what->thread,
                 .forward_thread = what->forward_thread,
                 .below = what->is_backward != 0 ? g_backward.load(std::memory_order_relaxed)
                                                 : trace::kNoPath});
  return opened;
}

void close(PastaOpened opened) noexcept {
  if (opened.range == 0) return;
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  // What PyTorch does to begin a range of the program's can be an operator: the range goes on.
  push.close_row(opened.places != 0 ? opened.places : opened.range, opened.range);
}

constinit std::atomic<void (*)(int on)> g_call = nullptr;

// Ranges inside of which the run collects may be the operators' own, so it is only where the
// program has said stop() that nothing has to be known of them.
void change() noexcept {
  const auto call = g_call.load(std::memory_order_acquire);
  if (call == nullptr) return;
  bool stopped = false;
  do {
    stopped = trace::is_stopped();
    call(stopped ? 0 : 1);
  } while (stopped != trace::is_stopped());
}

void started(void (*call)(int on)) noexcept {
  g_call.store(call, std::memory_order_release);
  trace::on_collection_change(change);
  if (trace::is_stopped()) change();
}

constexpr PastaTorch kTorch = {sizeof(PastaTorch), open, close, started};

// --- what the program in start.py calls

enum Kind : std::uint64_t { kForward, kBackward, kUserScope };  // as in start.py

const python::Api& api() { return *python::api(); }

std::string_view text_at(Object* arguments, std::ptrdiff_t i) {
  Object* item = api().item(arguments, i);
  std::ptrdiff_t bytes = 0;
  const char* text = item != nullptr ? api().text(item, &bytes) : nullptr;
  if (text == nullptr) {
    api().clear_error();
    return {};
  }
  return {text, static_cast<std::size_t>(bytes)};
}

std::uint64_t number_at(Object* arguments, std::ptrdiff_t i) {
  Object* item = api().item(arguments, i);
  const std::uint64_t number = item != nullptr ? api().number(item) : 0;
  if (api().error() != nullptr) api().clear_error();
  return number;
}

Object* number(std::uint64_t value) { return api().make_number(value); }

// begin_module(name, arguments)
Object* begin_module(Object*, Object* arguments) noexcept {
  const std::string_view name = text_at(arguments, 0);
  SpoolPush push = SpoolPush::opening(name);
  if (push) {
    push.open({.name = name, .domain = ScopeDomain::kModule, .arguments = text_at(arguments, 1)},
              kModuleStack);
  }
  return number(push ? 1 : 0);
}

// end_module(), of one that begin_module() has said 1 of
Object* end_module(Object*, Object*) noexcept {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.close_innermost(kModuleStack);
  return number(0);
}

// begin_operator(name, arguments, sequence, forward_thread, thread, kind): what end_operator()
// needs
Object* begin_operator(Object*, Object* arguments) noexcept {
  PastaOperator what{};
  const std::string_view name = text_at(arguments, 0), said = text_at(arguments, 1);
  what.name = name.data();
  what.name_bytes = name.size();
  what.arguments = said.data();
  what.arguments_bytes = said.size();
  what.sequence = number_at(arguments, 2);
  what.forward_thread = number_at(arguments, 3);
  what.thread = number_at(arguments, 4);
  const std::uint64_t kind = number_at(arguments, 5);
  what.wants_place = kind == kForward;
  what.is_backward = kind == kBackward;
  what.is_user_scope = kind == kUserScope;
  const PastaOpened opened = open(&what);
  // Whoever ends places ends what is in them. Of those that are not kept it cannot be told how many
  // that is; what is in them is too deep whether they are open or not.
  const std::uint64_t first = opened.places != 0 ? opened.places : opened.range;
  if (!SpoolPush::is_too_deep(first)) return number(first);
  close(opened);
  return number(0);
}

Object* end_operator(Object*, Object* arguments) noexcept {
  const std::uint64_t range = number_at(arguments, 0);
  if (range != 0) {
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.close_from(range);
  }
  return number(0);
}

// begin_backward(): what end_backward() needs. Of several that are under way none can be told.
Object* begin_backward(Object*, Object*) noexcept {
  python::Places places;
  const PythonMode mode = trace::python_mode();
  if (mode != PythonMode::kOff && trace::is_collecting()) places.find(mode == PythonMode::kStacks);
  std::uint64_t first = 0;
  trace::SharedPath path = trace::kNoPath;
  if (SpoolPush push; push) {
    const std::uint32_t depth = push.depth(0);
    first = python::open_places(push, places);
    path = push.path();
    if (SpoolPush::is_too_deep(first)) {  // as in begin_operator()
      while (push.depth(0) > depth) push.close(0);
      first = 0;
    }
  }
  const bool alone = g_backwards.fetch_add(1, std::memory_order_relaxed) == 0;
  g_backward.store(alone ? path : trace::kNoPath, std::memory_order_relaxed);
  return number(first);
}

Object* end_backward(Object*, Object* arguments) noexcept {
  if (g_backwards.fetch_sub(1, std::memory_order_relaxed) == 1) {
    g_backward.store(trace::kNoPath, std::memory_order_relaxed);
  }
  return end_operator(nullptr, arguments);
}

// fact(key, value)
Object* fact(Object*, Object* arguments) noexcept {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.fact(text_at(arguments, 0), text_at(arguments, 1));
  return number(0);
}

// library(folder)
Object* library(Object*, Object* arguments) noexcept {
  python::add_library(text_at(arguments, 0));
  return number(0);
}

// origin(file, first line, last line, place, modules): see python::add_origin()
Object* origin(Object*, Object* arguments) noexcept {
  python::add_origin(text_at(arguments, 0), static_cast<int>(number_at(arguments, 1)),
                     static_cast<int>(number_at(arguments, 2)), text_at(arguments, 3),
                     text_at(arguments, 4));
  return number(0);
}

// end_places()
Object* end_places(Object*, Object*) noexcept {
  python::end_places();
  return number(0);
}

// short_path(path)
Object* short_path(Object*, Object* arguments) noexcept {
  const std::string_view path = python::short_path(text_at(arguments, 0));
  return api().make_text(path.data(), static_cast<std::ptrdiff_t>(path.size()));
}

// table(): the address of what the extension needs
Object* table(Object*, Object*) noexcept {
  return number(reinterpret_cast<std::uintptr_t>(&kTorch));
}

bool is_torch(const char* file) {
  // "/usr/lib/python3/dist-packages/torch/_C.cpython-311-x86_64-linux-gnu.so"
  if (file == nullptr) return false;
  const char* name = std::strrchr(file, '/');
  constexpr std::string_view kFolder = "/torch";
  if (name == nullptr || std::strncmp(name, "/_C.", 4) != 0) return false;
  const std::string_view folder{file, static_cast<std::size_t>(name - file)};
  return folder.size() >= kFolder.size() &&
         folder.substr(folder.size() - kFolder.size()) == kFolder;
}

}  // namespace

void on_library(const char* file) noexcept {
  static constinit std::atomic<bool> g_begun = false;
  if (!trace::wants_torch() || !is_torch(file)) return;
  const python::Api* python = python::api();
  if (python == nullptr || !python::holds_lock(*python)) return;
  if (g_begun.exchange(true)) return;
  trace::share_paths();
  python::operators_have_places();
  const bool reads = python::begin_places();
  static constexpr python::Function kFunctions[] = {{"begin_module", begin_module},
                                                    {"end_module", end_module},
                                                    {"begin_operator", begin_operator},
                                                    {"end_operator", end_operator},
                                                    {"begin_backward", begin_backward},
                                                    {"end_backward", end_backward},
                                                    {"end_places", end_places},
                                                    {"fact", fact},
                                                    {"library", library},
                                                    {"origin", origin},
                                                    {"short_path", short_path},
                                                    {"table", table}};
  const python::Text texts[] = {{"EXTENSION", kExtensionSource},
                                {"FALLBACK", kFallbackSource},
                                {"PLACES", reads ? "" : "; places in Python with its lock"}};
  python::run(kStartSource, python::kOwnProgram, kFunctions,
              sizeof kFunctions / sizeof kFunctions[0], texts, sizeof texts / sizeof texts[0]);
}

}  // namespace pasta::adapters::torch
