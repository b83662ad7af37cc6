#include "adapters/common/python/places.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "adapters/common/python/frames.h"
#include "adapters/common/python/interpreter.h"
#include "trace/append_text.h"

namespace pasta::adapters::common::python {
namespace {

using trace::append;

// Whose code it is, the nearer to the user the larger.
enum class Owner : std::uint8_t { kCollector, kLibrary, kPackage, kUser };

// What has been seen, found by where Python has its texts, which may be gone and others lie there:
// so they are compared. Any thread adds, and nothing is taken away. What finds no room is found out
// each time.
// Of lines of a file that a compiler has written: see add_origin().
struct Origin {
  const Origin* next;  // of any file
  std::string_view path;
  int first_line, last_line;
  std::string_view place, modules;
};
struct File {
  const Object* text;
  std::string_view path;
  std::string_view name;  // as it is told
  Owner owner;
  bool has_origins;
};
struct Place {
  const File* file;
  const Object* function;
  int line;
  std::string_view name;  // of the function
  std::string_view text;
  const Origin* origin;
};
constexpr std::uint32_t kFiles = 1u << 12;
constexpr std::uint32_t kPlaces = 1u << 15;
constexpr std::uint32_t kTries = 16;
constexpr std::size_t kBytes = std::size_t{8} << 20;

struct Seen {
  std::atomic<const File*> files[kFiles];
  std::atomic<const Place*> places[kPlaces];
  std::atomic<std::size_t> used;
  alignas(16) char bytes[kBytes];
};
constinit std::atomic<Seen*> g_seen = nullptr;
constexpr std::uint32_t kOriginLists = 256;  // by the hash of their path
constinit std::atomic<const Origin*> g_origins[kOriginLists] = {};

constexpr std::uint32_t kMostLibraries = 4;
constinit char g_libraries[kMostLibraries][PATH_MAX] = {};
constinit std::uint32_t g_library_count = 0;
constinit char g_folder[PATH_MAX] = {};  // that the process began in, with a slash

Seen* seen() {
  Seen* known = g_seen.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* memory = mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Zero is how all that is in it begins.
  if (g_seen.compare_exchange_strong(known, static_cast<Seen*>(memory))) {
    return static_cast<Seen*>(memory);
  }
  munmap(memory, sizeof(Seen));
  return known;
}

std::uint32_t hash_of(const void* text, const void* more = nullptr, int line = 0) {
  const auto address = [](const void* of) { return reinterpret_cast<std::uintptr_t>(of) >> 4; };
  const std::uint64_t mixed =
      (address(text) ^ address(more) << 20 ^ static_cast<std::uint64_t>(line) << 44) *
      0x9fb21c651e98df25u;
  return static_cast<std::uint32_t>(mixed >> 32);
}

void* room_for(Seen& all, std::size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (all.used.load(std::memory_order_relaxed) + bytes > kBytes) return nullptr;
  const std::size_t from = all.used.fetch_add(bytes, std::memory_order_relaxed);
  return from + bytes <= kBytes ? all.bytes + from : nullptr;
}

// A copy, with a zero behind it; none where there is no room.
const char* keep(Seen& all, std::string_view text) {
  auto* to = static_cast<char*>(room_for(all, text.size() + 1));
  if (to == nullptr) return nullptr;
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return to;
}

template <class Value>
const Value* keep(Seen& all, const Value& value) {
  void* to = room_for(all, sizeof value);
  return to != nullptr ? new (to) Value(value) : nullptr;
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

std::atomic<const Origin*>& origins_of(std::string_view path) {
  std::uint32_t hash = 0;
  for (const char letter : path) hash = hash * 31 + static_cast<unsigned char>(letter);
  return g_origins[hash % kOriginLists];
}
// Of any of its lines, if `line` is 0.
const Origin* find_origin(std::string_view path, int line) {
  const Origin* origin = origins_of(path).load(std::memory_order_acquire);
  for (; origin != nullptr; origin = origin->next) {
    const bool is_in = line == 0 || (line >= origin->first_line && line <= origin->last_line);
    if (is_in && origin->path == path) break;
  }
  return origin;
}

// Of a text that has not been seen, in the memory of `path`.
File describe(Object* text, char (&path)[kLongestText]) {
  File file{};
  file.text = text;
  file.path = text_of(text, path, sizeof path);
  file.name = short_path(file.path);
  file.owner = owner_of(file.path);
  file.has_origins = find_origin(file.path, 0) != nullptr;
  return file;
}

// What is known of the file that is called so; where it cannot be kept, in `fresh`.
struct Fresh {
  File file;
  char path[kLongestText];
};
const File* file_of(Object* text, Fresh& fresh) {
  Seen* all = seen();
  const std::uint32_t from = hash_of(text);
  for (std::uint32_t i = 0; all != nullptr && i < kTries; ++i) {
    std::atomic<const File*>& place = all->files[(from + i) % kFiles];
    const File* known = place.load(std::memory_order_acquire);
    if (known != nullptr) {
      if (known->text == text && is_text(text, known->path)) return known;
      continue;
    }
    File file = describe(text, fresh.path);
    const char* path = keep(*all, file.path);
    if (path == nullptr) break;
    file.name = {path + (file.name.data() - file.path.data()), file.name.size()};
    file.path = {path, file.path.size()};
    const File* kept = keep(*all, file);
    if (kept == nullptr) break;
    if (place.compare_exchange_strong(known, kept, std::memory_order_acq_rel)) return kept;
    // Another thread was quicker: perhaps with the same.
    if (known->text == text && is_text(text, known->path)) return known;
  }
  fresh.file = describe(text, fresh.path);
  return &fresh.file;
}

std::string_view write_place(std::string_view file, int line, std::string_view function, char* to) {
  constexpr std::size_t kLongestFile = 700;
  constexpr std::size_t kLongestFunction = 280;
  static_assert(kLongestFile + kLongestFunction + 24 < kLongestPlace);
  const auto add = [](char* at, std::string_view text, std::size_t most) {
    const std::size_t size = text.size() < most ? text.size() : most;
    if (size > 0) std::memcpy(at, text.data(), size);
    return at + size;
  };
  char* end = append(add(to, file, kLongestFile), "(");
  end = append(end, static_cast<std::uint64_t>(line > 0 ? line : 0));
  end = add(append(end, "): "), function, kLongestFunction);
  return {to, static_cast<std::size_t>(end - to)};
}

// Text that stays, or where there is no room lies in `to`.
struct Told {
  std::string_view text;
  bool stays;
  const Origin* origin;
};
Told place_of(const File* file, bool is_kept, Object* function, int line, char* to) {
  Seen* all = is_kept ? seen() : nullptr;
  char name[kLongestText];
  const std::uint32_t from = hash_of(function, file, line);
  for (std::uint32_t i = 0; all != nullptr && i < kTries; ++i) {
    std::atomic<const Place*>& at = all->places[(from + i) % kPlaces];
    const Place* known = at.load(std::memory_order_acquire);
    if (known == nullptr) {
      Place place{file, function, line, text_of(function, name, sizeof name), {}, nullptr};
      place.text = write_place(file->name, line, place.name, to);
      if (file->has_origins) place.origin = find_origin(file->path, line);
      const char* kept_name = keep(*all, place.name);
      const char* kept_text = kept_name != nullptr ? keep(*all, place.text) : nullptr;
      if (kept_text == nullptr) break;
      place.name = {kept_name, place.name.size()};
      place.text = {kept_text, place.text.size()};
      const Place* kept = keep(*all, place);
      if (kept == nullptr) break;
      if (at.compare_exchange_strong(known, kept, std::memory_order_acq_rel)) {
        return {kept->text, true, kept->origin};
      }
    }
    if (known->line == line && known->file == file && known->function == function &&
        is_text(function, known->name)) {
      return {known->text, true, known->origin};
    }
  }
  const std::string_view text =
      write_place(file->name, line, text_of(function, name, sizeof name), to);
  return {text, false, file->has_origins ? find_origin(file->path, line) : nullptr};
}

// The same of the frames that Python's functions tell of, for which they have to have its lock, and
// make an object each.
class LockedFrames {
 public:
  LockedFrames(const Api& python, bool at_once) : python_(python) {
    ThreadState* thread = python.this_thread();
    if (thread == nullptr) return;
    has_lock_ = holds_lock(python);
    if (!has_lock_ && at_once) return;
    // To wait for the lock then would be to wait for ever.
    if (!has_lock_ && python.is_ending != nullptr && python.is_ending() != 0) return;
    if (!has_lock_) state_ = python.take_lock();
    is_in_ = true;
    // Making the objects that stand for frames must not run the program's destructors here.
    paused_ = python.stop_collector != nullptr && python.stop_collector() != 0;
    take(python.frame(thread));
  }
  ~LockedFrames() {
    if (!is_in_) return;
    while (frame_ != nullptr) to_caller();
    if (paused_) python_.start_collector();
    if (!has_lock_) python_.leave_lock(state_);
  }
  LockedFrames(const LockedFrames&) = delete;
  LockedFrames& operator=(const LockedFrames&) = delete;
  explicit operator bool() const { return frame_ != nullptr; }
  void to_caller() {
    Object* caller = python_.caller(frame_);
    python_.release(code_);
    python_.release(frame_);
    take(caller);
  }
  [[nodiscard]] Object* file() const { return member("co_filename"); }
  [[nodiscard]] Object* function() const { return member("co_name"); }
  [[nodiscard]] int line() const { return python_.line(frame_); }

 private:
  void take(Object* frame) {
    frame_ = frame;
    code_ = frame != nullptr ? python_.code(frame) : nullptr;
  }
  // Which the code keeps.
  [[nodiscard]] Object* member(const char* name) const {
    Object* value = python_.member(code_, name);
    python_.release(value);
    return value;
  }

  const Api& python_;
  Object* frame_ = nullptr;
  Object* code_ = nullptr;
  int state_ = 0;
  bool has_lock_ = false, is_in_ = false, paused_ = false;
};

// Whether frames are read without the lock.
constinit std::atomic<bool> g_reads = false;

}  // namespace

void add_library(std::string_view folder) noexcept {
  if (g_library_count == kMostLibraries || folder.size() + 1 >= PATH_MAX) return;
  char* library = g_libraries[g_library_count++];
  std::memcpy(library, folder.data(), folder.size());
  library[folder.size()] = '/';
}

void add_origin(std::string_view file, int first_line, int last_line, std::string_view place,
                std::string_view modules) noexcept {
  Seen* all = seen();
  if (all == nullptr || place.empty()) return;
  const char* kept_file = keep(*all, file);
  const char* kept_place = keep(*all, place);
  const char* kept_modules = keep(*all, modules);
  if (kept_file == nullptr || kept_place == nullptr || kept_modules == nullptr) return;
  std::atomic<const Origin*>& list = origins_of(file);
  const Origin origin{
      list.load(std::memory_order_relaxed), {kept_file, file.size()},      first_line, last_line,
      {kept_place, place.size()},           {kept_modules, modules.size()}};
  void* to = room_for(*all, sizeof origin);
  if (to == nullptr) return;
  auto* kept = new (to) Origin(origin);
  while (!list.compare_exchange_weak(kept->next, kept, std::memory_order_release)) {
  }
}

int nearness(std::string_view file) noexcept { return static_cast<int>(owner_of(file)); }

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

bool begin_places() noexcept {
  static constinit std::atomic<bool> begun = false;
  if (begun.exchange(true)) return reads_places();
  short_path({});  // finds out the folder
  const bool reads = learn_frames();
  g_reads.store(reads, std::memory_order_relaxed);
  return reads;
}

bool reads_places() noexcept { return g_reads.load(std::memory_order_relaxed); }

void end_places() noexcept { end_frames(); }

template <class Stack>
void Places::find_in(Stack& frames, bool all) noexcept {
  Owner best{};
  bool any = false;
  char* free = text_;
  const Origin* origin = nullptr;
  for (; frames; frames.to_caller()) {
    Fresh fresh;
    const File* file = file_of(frames.file(), fresh);
    // A place of the user's own that is nearer says more.
    const bool may_have_origin = file->has_origins && origin == nullptr && best < Owner::kUser;
    const bool wanted = all ? count_ < kMostPlaces : !any || file->owner > best;
    if ((!wanted && !may_have_origin) || file->owner == Owner::kCollector) continue;
    const Told told = place_of(file, file != &fresh.file, frames.function(), frames.line(), free);
    if (may_have_origin) origin = told.origin;
    if (!all && origin != nullptr) break;
    if (!wanted) continue;
    if (all && !told.stays) free += told.text.size();
    places_[all ? count_++ : 0] = {told.text.data(), told.text.size()};
    any = true;
    best = file->owner > best ? file->owner : best;
    if (all ? free + kLongestPlace > text_ + sizeof text_ : best == Owner::kUser) break;
  }
  if (!all) count_ = any && origin == nullptr ? 1 : 0;
  is_library_ = best <= Owner::kLibrary;
  for (std::uint32_t i = 0; i < count_ / 2; ++i) {
    const Place inner = places_[i];
    places_[i] = places_[count_ - 1 - i];
    places_[count_ - 1 - i] = inner;
  }
  modules_ = {};
  if (origin == nullptr) return;
  places_[count_++] = {origin->place.data(), origin->place.size()};
  modules_ = origin->modules;
  is_library_ = false;
}

void Places::find(bool all) noexcept { find(all, false); }
void Places::find_at_once(bool all) noexcept { find(all, true); }

void Places::find(bool all, bool at_once) noexcept {
  count_ = 0;
  const Api* python = api();
  if (python == nullptr) return;
  if (g_reads.load(std::memory_order_relaxed)) {
    Frames frames;
    find_in(frames, all);
  } else {
    LockedFrames frames(*python, at_once);
    find_in(frames, all);
  }
}

}  // namespace pasta::adapters::common::python
