#include "adapters/common/python/places.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "adapters/common/python/interpreter.h"
#include "trace/append_text.h"

namespace pasta::adapters::common::python {
namespace {

using trace::append;

// Whose code it is, the nearer to the user the larger.
enum class Owner : std::uint8_t { kCollector, kLibrary, kPackage, kUser };

struct Code {
  Object* code;  // a reference that is kept, so that the address stays this code's
  Owner owner;
  const char* file;
  const char* function;
};
struct Place {
  Object* code;
  int line;
  std::uint32_t bytes;
  const char* text;
};

constexpr std::uint32_t kCodes = 1u << 13;
constexpr std::uint32_t kPlaces = 1u << 15;
constexpr std::size_t kTextBytes = std::size_t{4} << 20;

// What has been seen. At most three quarters full: what comes later is found out each time. Behind
// the interpreter's lock, and where there is none any more behind `busy`.
struct Seen {
  Code codes[kCodes];
  Place places[kPlaces];
  std::uint32_t code_count, place_count;
  std::size_t text_bytes;
  char text[kTextBytes];
};
constinit Seen* g_seen = nullptr;
constinit std::atomic<bool> g_busy = false;

constexpr std::uint32_t kMostLibraries = 4;
constinit char g_libraries[kMostLibraries][PATH_MAX] = {};
constinit std::uint32_t g_library_count = 0;
constinit char g_folder[PATH_MAX] = {};  // that the process began in, with a slash

Seen* seen() {
  if (g_seen == nullptr) {
    void* memory = mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) g_seen = static_cast<Seen*>(memory);
  }
  return g_seen;
}

std::uint32_t hash_of(const Object* code, int line) {
  const auto address = reinterpret_cast<std::uintptr_t>(code) >> 4;
  std::uint64_t mixed = (address ^ static_cast<std::uint64_t>(line) << 40) * 0x9fb21c651e98df25u;
  return static_cast<std::uint32_t>(mixed >> 32);
}

const char* keep(Seen& all, std::string_view text) {
  if (text.size() >= kTextBytes - all.text_bytes) return nullptr;
  char* to = all.text + all.text_bytes;
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  all.text_bytes += text.size() + 1;
  return to;
}

bool begins(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(0, with.size()) == with;
}

// substr() would bring libstdc++ with it, to throw.
std::string_view from(std::string_view text, std::size_t at) {
  text.remove_prefix(at);
  return text;
}

// What stands behind the first of these folders; "" where it is in none.
std::string_view behind(std::string_view path, std::string_view folder) {
  const std::size_t at = path.find(folder);
  return at == std::string_view::npos ? std::string_view() : from(path, at + folder.size());
}
std::string_view in_packages(std::string_view path) {
  const std::string_view site = behind(path, "/site-packages/");
  return site.empty() ? behind(path, "/dist-packages/") : site;
}
// Of Python's own library, "lib/python3.11/".
std::string_view in_library(std::string_view path) {
  const std::string_view rest = behind(path, "/python3");
  const std::size_t slash = rest.find('/');
  if (rest.empty() || slash == std::string_view::npos) return {};
  const bool is_library = path.find("/lib/python3") != std::string_view::npos ||
                          path.find("/lib64/python3") != std::string_view::npos;
  return is_library ? from(rest, slash + 1) : std::string_view();
}

Owner owner_of(std::string_view file) {
  for (std::uint32_t i = 0; i < g_library_count; ++i) {
    if (begins(file, g_libraries[i])) return Owner::kLibrary;
  }
  if (file == kOwnProgram) return Owner::kCollector;
  if (begins(file, "<")) {
    const bool typed =
        begins(file, "<string>") || begins(file, "<stdin>") || begins(file, "<ipython");
    return typed ? Owner::kUser : Owner::kLibrary;
  }
  constexpr std::string_view kOurs = "/pastaprof/_watched.py";
  if (file.size() >= kOurs.size() && from(file, file.size() - kOurs.size()) == kOurs) {
    return Owner::kLibrary;
  }
  // What PyTorch's compiler has written.
  if (!behind(file, "/torchinductor_").empty()) return Owner::kLibrary;
  if (!in_packages(file).empty()) return Owner::kPackage;
  return in_library(file).empty() ? Owner::kUser : Owner::kLibrary;
}

// A copy of a member that is text, in `to`.
std::string_view text_of(const Api& python, Object* object, const char* member, char* to,
                         std::size_t room) {
  Object* value = python.member(object, member);
  std::ptrdiff_t bytes = 0;
  const char* text = value != nullptr ? python.text(value, &bytes) : nullptr;
  std::size_t kept = 0;
  if (text != nullptr) {
    kept = static_cast<std::size_t>(bytes) < room ? static_cast<std::size_t>(bytes) : room - 1;
    std::memcpy(to, text, kept);
  }
  to[kept] = '\0';
  if (text == nullptr) python.clear_error();
  if (value != nullptr) python.release(value);
  return {to, kept};
}

constexpr std::size_t kLongestFile = 700;
constexpr std::size_t kLongestFunction = 280;

enum class Sight : std::uint8_t { kFirst, kKnown, kNotKept };

// What is known of a code; `fresh` holds it when it cannot be kept. On first sight a reference of
// the caller's is taken over.
struct Fresh {
  char file[kLongestFile + 1];
  char function[kLongestFunction + 1];
};
Code code_of(const Api& python, Object* code, Fresh& fresh, Sight& sight) {
  Seen* all = seen();
  std::uint32_t at = 0;
  sight = Sight::kKnown;
  if (all != nullptr) {
    for (at = hash_of(code, 0) % kCodes; all->codes[at].code != nullptr; at = (at + 1) % kCodes) {
      if (all->codes[at].code == code) return all->codes[at];
    }
  }
  const std::string_view path = text_of(python, code, "co_filename", fresh.file, sizeof fresh.file);
  const Owner owner = owner_of(path);
  const std::string_view file = short_path(path);
  const std::string_view function =
      text_of(python, code, "co_name", fresh.function, sizeof fresh.function);
  sight = Sight::kNotKept;
  if (all == nullptr || all->code_count >= kCodes / 4 * 3) {
    return {code, owner, file.data(), function.data()};
  }
  const char* kept_file = keep(*all, file);
  const char* kept_function = kept_file != nullptr ? keep(*all, function) : nullptr;
  if (kept_function == nullptr) return {code, owner, file.data(), function.data()};
  sight = Sight::kFirst;
  ++all->code_count;
  all->codes[at] = {code, owner, kept_file, kept_function};
  return all->codes[at];
}

std::string_view write_place(const Code& code, int line, char* to) {
  char* end = append(append(to, code.file), "(");
  end = append(end, static_cast<std::uint64_t>(line > 0 ? line : 0));
  end = append(append(end, "): "), code.function);
  return {to, static_cast<std::size_t>(end - to)};
}

// Text that stays; "" when there is no room for it.
std::string_view place_of(const Code& code, int line, char* scratch) {
  Seen* all = seen();
  if (all == nullptr) return {};
  std::uint32_t at = hash_of(code.code, line) % kPlaces;
  for (; all->places[at].code != nullptr; at = (at + 1) % kPlaces) {
    const Place& place = all->places[at];
    if (place.code == code.code && place.line == line) return {place.text, place.bytes};
  }
  if (all->place_count >= kPlaces / 4 * 3) return {};
  const std::string_view text = write_place(code, line, scratch);
  const char* kept = keep(*all, text);
  if (kept == nullptr) return {};
  ++all->place_count;
  all->places[at] = {code.code, line, static_cast<std::uint32_t>(text.size()), kept};
  return {kept, text.size()};
}

}  // namespace

void add_library(std::string_view folder) noexcept {
  if (g_library_count == kMostLibraries || folder.size() + 1 >= PATH_MAX) return;
  char* library = g_libraries[g_library_count++];
  std::memcpy(library, folder.data(), folder.size());
  library[folder.size()] = '/';
}

std::string_view short_path(std::string_view path) noexcept {
  if (g_folder[0] == '\0') {
    if (getcwd(g_folder, sizeof g_folder - 1) == nullptr) g_folder[0] = '\0';
    const std::size_t size = std::strlen(g_folder);
    if (size > 0 && g_folder[size - 1] != '/') std::strcpy(g_folder + size, "/");
  }
  const std::string_view folder(g_folder);
  if (folder.size() > 1 && begins(path, folder)) return from(path, folder.size());
  if (const std::string_view package = in_packages(path); !package.empty()) return package;
  if (const std::string_view library = in_library(path); !library.empty()) return library;
  return path;
}

void Places::find(bool all) noexcept {
  static_assert(kLongestFile + kLongestFunction + 24 < kLongestPlace);
  count_ = 0;
  const Api* python = api();
  if (python == nullptr) return;
  ThreadState* thread = python->this_thread();
  if (thread == nullptr) return;
  const bool has_lock = python->has_lock() != 0;
  // To wait for the lock then would be to wait for ever.
  if (!has_lock && python->is_ending != nullptr && python->is_ending() != 0) return;
  const int state = has_lock ? 0 : python->take_lock();
  // Making the objects that stand for frames must not run the program's destructors here.
  const bool paused = python->stop_collector != nullptr && python->stop_collector() != 0;
  Object* frame = python->frame(thread);
  bool free = false;
  if (frame != nullptr && g_busy.compare_exchange_strong(free, true, std::memory_order_acquire)) {
    Owner best{};
    bool any = false;
    Fresh fresh;
    while (frame != nullptr) {
      Object* object = python->code(frame);
      Sight sight{};
      const Code code = code_of(*python, object, fresh, sight);
      const bool kept = sight != Sight::kNotKept;
      const bool wanted = all ? kept && count_ < kMostPlaces : !any || code.owner > best;
      if (wanted && code.owner != Owner::kCollector) {
        const int line = python->line(frame);
        std::string_view text = kept ? place_of(code, line, text_) : std::string_view();
        if (text.empty() && !all) text = write_place(code, line, text_);
        if (!text.empty()) places_[all ? count_++ : 0] = text;
        any = true;
        best = code.owner > best ? code.owner : best;
      }
      if (sight != Sight::kFirst) python->release(object);
      Object* caller = !all && any && best == Owner::kUser ? nullptr : python->caller(frame);
      python->release(frame);
      frame = caller;
    }
    if (!all) count_ = any ? 1 : 0;
    is_library_ = best <= Owner::kLibrary;
    for (std::uint32_t i = 0; i < count_ / 2; ++i) {
      const std::string_view inner = places_[i];
      places_[i] = places_[count_ - 1 - i];
      places_[count_ - 1 - i] = inner;
    }
    g_busy.store(false, std::memory_order_release);
  } else if (frame != nullptr) {
    python->release(frame);
  }
  if (paused) python->start_collector();
  if (!has_lock) python->leave_lock(state);
}

}  // namespace pasta::adapters::common::python
