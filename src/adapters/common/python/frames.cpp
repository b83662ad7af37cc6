#include "adapters/common/python/frames.h"

#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace pasta::adapters::common::python {
namespace {

// Distances in bytes.
struct Layout {
  std::ptrdiff_t frame_of_thread;  // where a thread's state names the innermost frame
  std::ptrdiff_t frame_in_named;   // or, at least 0, where it stands in what is named there
  std::ptrdiff_t code, caller, instruction;  // of a frame
  std::ptrdiff_t type;                       // of any object
  std::ptrdiff_t file, function, bytecode;   // of a code
  std::ptrdiff_t ascii;                      // of a string
  const void* code_type;
  int minor;  // Python 3.minor
};
constinit Layout g_layout = {};
constinit std::atomic<bool> g_known = false;
constinit std::atomic<std::uint32_t> g_reading = 0;
constinit std::atomic<bool> g_ended = false;

constexpr int kFramesAreNoObjects = 11;  // since Python 3.11
constexpr int kBytecodeOfThreads = 14;   // each thread has its own, where there is no lock
constexpr int kYields = 10000;
constexpr std::ptrdiff_t kWord = sizeof(void*);

template <class Value = const char*>
Value at(const void* object, std::ptrdiff_t distance) {
  Value value{};
  // NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers it is the pointer that lies there
  std::memcpy(&value, static_cast<const char*>(object) + distance, sizeof value);
  return value;
}

// Some pointers bear marks in their lowest bits.
const char* unmarked(const char* pointer) {
  return pointer - (reinterpret_cast<std::uintptr_t>(pointer) & 7);
}

// A frame that the interpreter has made for itself, as where C calls Python.
bool is_shim(Object* code) { return is_text(at<Object*>(code, g_layout.file), "<shim>"); }

int minor_version(const Api& python) {
  constexpr std::string_view kThree = "3.";
  const char* version = python.version();  // "3.12.1 (main, ..."
  if (std::strncmp(version, kThree.data(), kThree.size()) != 0) return 0;
  return std::atoi(version + kThree.size());
}

// A build without the interpreter's lock: "3.14.0 free-threading build (main, ...".
bool has_no_lock(const Api& python) {
  return std::strstr(python.version(), "free-threading") != nullptr;
}

// Of a member of `object` that is a number; -1: there is none.
std::ptrdiff_t number_of(const Api& python, Object* object, const char* member) {
  Object* value = python.member(object, member);
  std::ptrdiff_t number = -1;
  if (value != nullptr) number = static_cast<std::ptrdiff_t>(python.number(value));
  if (value != nullptr) python.release(value);
  if (python.error() != nullptr) {
    python.clear_error();
    return -1;
  }
  return number;
}

// Where in `object`, of `bytes`, one of its members stands; after what `at_least` says. -1:
// nowhere.
std::ptrdiff_t place_of(const Api& python, Object* object, std::ptrdiff_t bytes,
                        const char* member) {
  Object* value = python.member(object, member);
  if (value == nullptr) {
    python.clear_error();
    return -1;
  }
  python.release(value);  // `object` has it
  for (std::ptrdiff_t distance = 2 * kWord; distance + kWord <= bytes; distance += kWord) {
    if (at<Object*>(object, distance) == value) return distance;
  }
  return -1;
}

std::ptrdiff_t find_word(const void* in, std::ptrdiff_t bytes, const void* word) {
  for (std::ptrdiff_t distance = 0; distance < bytes; distance += kWord) {
    if (at<const void*>(in, distance) == word) return distance;
  }
  return -1;
}

// From the innermost frame of a thread, as a new object.
bool learn_from(const Api& python, ThreadState* thread, Object* frame, Layout& layout) {
  layout.minor = minor_version(python);
  // Where the bytecode of other threads lies, the first one's frames do not show.
  if (layout.minor >= kBytecodeOfThreads && has_no_lock(python)) return false;
  Object* code = python.code(frame);
  Object* kind = python.member(code, "__class__");
  python.release(code);  // the frame has it
  const std::ptrdiff_t bytes = kind != nullptr ? number_of(python, kind, "__basicsize__") : -1;
  if (kind != nullptr) python.release(kind);  // there is always one
  layout.code_type = kind;
  if (bytes < 8 * kWord || bytes > 1024) return false;
  layout.type = find_word(code, 4 * kWord, kind);
  layout.file = place_of(python, code, bytes, "co_filename");
  layout.function = place_of(python, code, bytes, "co_name");
  layout.bytecode = bytes;
  if (layout.type < 0 || layout.file < 0 || layout.function < 0) return false;
  std::ptrdiff_t size = 0;
  Object* file = at<Object*>(code, layout.file);
  const char* text = python.text(file, &size);
  layout.ascii = text != nullptr ? text - reinterpret_cast<const char*>(file) : 0;
  if (text == nullptr) python.clear_error();
  if (layout.ascii <= layout.type || layout.ascii > 16 * kWord) return false;

  constexpr std::ptrdiff_t kThreadBytes = 32 * kWord;  // in which it names its frame
  if (layout.minor < kFramesAreNoObjects) {
    layout.frame_of_thread = find_word(thread, kThreadBytes, frame);
    layout.frame_in_named = -1;
    layout.caller = layout.type + 2 * kWord;
    layout.code = layout.caller + kWord;
    layout.instruction = layout.minor == 9 ? 104 : 96;  // 3.9, 3.10
    return layout.frame_of_thread >= 0;
  }
  const char* inner = at(frame, layout.type + 2 * kWord);
  layout.code = layout.minor == 11 ? 32 : 0;
  layout.caller = layout.minor == 11 ? 48 : 8;
  layout.instruction = 56;
  if (layout.minor >= 13) {
    layout.frame_of_thread = find_word(thread, kThreadBytes, inner);
    layout.frame_in_named = -1;
    return layout.frame_of_thread >= 0;
  }
  layout.frame_of_thread = 56;
  layout.frame_in_named = layout.minor == 11 ? 8 : 0;
  const char* named = at(thread, layout.frame_of_thread);
  return named != nullptr && unmarked(named) == named && at(named, layout.frame_in_named) == inner;
}

bool same_text(const Api& python, Object* text, Object* owner, const char* member) {
  Object* said = python.member(owner, member);
  if (said != nullptr) python.release(said);
  return said == text;
}

// Whether what is read is what Python says, from `frame` on, which is taken over.
bool is_right(const Api& python, Object* frame) {
  Frames frames;
  bool right = true;
  while (right && frame != nullptr) {
    Object* code = python.code(frame);
    right = frames && same_text(python, frames.file(), code, "co_filename") &&
            same_text(python, frames.function(), code, "co_name") &&
            frames.line() == python.line(frame);
    python.release(code);
    if (right) frames.to_caller();
    Object* caller = python.caller(frame);
    python.release(frame);
    frame = caller;
  }
  if (frame != nullptr) python.release(frame);
  return right && !frames;
}

}  // namespace

bool learn_frames() noexcept {
  const Api* python = api();
  ThreadState* thread = python != nullptr ? python->this_thread() : nullptr;
  if (thread == nullptr || python->line_of == nullptr || python->version == nullptr) return false;
  Object* frame = python->frame(thread);
  if (frame == nullptr) return false;
  if (!learn_from(*python, thread, frame, g_layout)) {
    python->release(frame);
    return false;
  }
  g_known.store(true, std::memory_order_release);
  const bool right = is_right(*python, frame);
  if (!right) g_known.store(false, std::memory_order_relaxed);
  return right;
}

Frames::Frames() noexcept {
  g_reading.fetch_add(1, std::memory_order_seq_cst);
  if (!g_known.load(std::memory_order_acquire) || g_ended.load(std::memory_order_seq_cst)) return;
  ThreadState* thread = api()->this_thread();
  if (thread == nullptr) return;
  frame_ = at(thread, g_layout.frame_of_thread);
  if (frame_ != nullptr && g_layout.frame_in_named >= 0) {
    frame_ = at(frame_, g_layout.frame_in_named);
  }
  skip_others();
}

Frames::~Frames() { g_reading.fetch_sub(1, std::memory_order_release); }

void Frames::skip_others() noexcept {
  for (; frame_ != nullptr; frame_ = at(frame_, g_layout.caller)) {
    const char* code = unmarked(at(frame_, g_layout.code));
    if (code == nullptr || at<const void*>(code, g_layout.type) != g_layout.code_type) continue;
    code_ = reinterpret_cast<Object*>(const_cast<char*>(code));
    if (!is_shim(code_)) return;
  }
}

void Frames::to_caller() noexcept {
  frame_ = at(frame_, g_layout.caller);
  skip_others();
}

Object* Frames::file() const noexcept { return at<Object*>(code_, g_layout.file); }
Object* Frames::function() const noexcept { return at<Object*>(code_, g_layout.function); }

int Frames::line() const noexcept {
  constexpr int kCodeUnit = 2;
  std::ptrdiff_t instruction = 0;  // bytes from the first
  if (g_layout.minor >= kFramesAreNoObjects) {
    instruction = at(frame_, g_layout.instruction) -
                  (reinterpret_cast<const char*>(code_) + g_layout.bytecode);
  } else {
    instruction = at<int>(frame_, g_layout.instruction) * (g_layout.minor == 9 ? 1 : kCodeUnit);
  }
  return api()->line_of(code_, static_cast<int>(instruction));
}

void end_frames() noexcept {
  g_ended.store(true, std::memory_order_seq_cst);
  // A child of fork() may have got the number of threads that it has not got.
  for (int i = 0; i < kYields && g_reading.load(std::memory_order_seq_cst) != 0; ++i) sched_yield();
}

std::string_view text_of(Object* text, char* to, std::size_t room) noexcept {
  const std::ptrdiff_t length = api()->length(text);
  char* end = to;
  for (std::ptrdiff_t i = 0; i < length; ++i) {
    const std::uint32_t letter = api()->letter(text, i);
    const int more = letter < 0x80 ? 0 : letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    if (end + more + 1 >= to + room) break;
    constexpr unsigned char kFirst[] = {0, 0xc0, 0xe0, 0xf0};
    *end++ = static_cast<char>(kFirst[more] | letter >> (6 * more));
    for (int left = more - 1; left >= 0; --left) {
      *end++ = static_cast<char>(0x80 | (letter >> (6 * left) & 0x3f));
    }
  }
  *end = '\0';
  return {to, static_cast<std::size_t>(end - to)};
}

bool is_text(Object* text, std::string_view known) noexcept {
  const std::ptrdiff_t length = api()->length(text);
  if (length < 0) return false;
  const auto size = static_cast<std::size_t>(length);
  // Where a string is no plain ASCII, something else stands there that begins with bytes that are
  // in no text, of which there are no fewer than letters.
  const char* bytes = reinterpret_cast<const char*>(text) + g_layout.ascii;
  if (size == known.size() && g_known.load(std::memory_order_relaxed) &&
      std::memcmp(bytes, known.data(), size) == 0 && bytes[size] == '\0') {
    return true;
  }
  char encoded[kLongestText];
  return size <= known.size() && text_of(text, encoded, sizeof encoded) == known;
}

}  // namespace pasta::adapters::common::python
