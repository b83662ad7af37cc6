#include "trace/spool_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/iteration_counter.h"
#include "base/iteration_name.h"
#include "event/path_nodes.h"
#include "trace/append_text.h"
#include "trace/barrier.h"
#include "trace/known.h"
#include "trace/quick_hash.h"
#include "trace/shared_paths.h"
#include "trace/tick_clock.h"

namespace pasta::trace {
namespace {

using namespace spool;

constexpr std::size_t kMapping = kLanePageBytes + kWindowBytes;
// How much of what a file has defined its thread knows again.
constexpr std::uint32_t kKnownFrames = 1u << 15;
constexpr std::uint32_t kKnownStrings = 1u << 14;
constexpr std::uint32_t kKnownOthers = 1u << 12;
// How often what found no room is tried again: on a full disk each try takes long.
constexpr std::uint32_t kBetweenTries = 1024;
// A thread is asked for its number again when its stack is not where it was, by so much.
constexpr std::uintptr_t kStackBytes = std::uintptr_t{1} << 20;
// Of tokens: a range that is nested too deeply to be kept.
constexpr std::uint64_t kDeep = std::uint64_t{1} << 63;
constexpr int kTokenBits = 40;

constexpr std::size_t cells_of(std::uint32_t text_bytes) {
  return 1 + (text_bytes + kCellBytes - 1) / kCellBytes;
}
static_assert((cells_of(kMaxTextBytes) + 1) * kCellBytes < kWindowBytes);

// 128 bits, so that two texts never share one: a name cannot be wrong.
struct Hash {
  std::uint64_t a = 0, b = 0;
  bool operator==(const Hash&) const = default;
};

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9fb21c651e98df25u;
  value ^= value >> 29;
  value *= 0xd6e8feb86659fd93u;
  return value ^ value >> 32;
}

// Both halves of a product, as one.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  const Product product = Product{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Word>
std::uint64_t word_at(const unsigned char* bytes) {
  Word word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

Hash hash(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  Hash sum{0x9e3779b97f4a7c15u ^ size, 0xc2b2ae3d27d4eb4fu + size};
  const auto add = [&sum](std::uint64_t first, std::uint64_t second) {
    sum.a = fold(sum.a ^ first, 0xd6e8feb86659fd93u ^ second);
    sum.b = fold(sum.b ^ second, 0x9fb21c651e98df25u ^ first);
  };
  for (; size > 16; bytes += 16, size -= 16) {
    add(word_at<std::uint64_t>(bytes), word_at<std::uint64_t>(bytes + 8));
  }
  // The rest, by words that may share bytes.
  if (size >= 8) {
    add(word_at<std::uint64_t>(bytes), word_at<std::uint64_t>(bytes + size - 8));
  } else if (size >= 4) {
    add(word_at<std::uint32_t>(bytes), word_at<std::uint32_t>(bytes + size - 4));
  } else if (size > 0) {
    add(bytes[0], std::uint64_t{bytes[size / 2]} << 8 | bytes[size - 1]);
  }
  sum.a = mix(sum.a);
  return sum;
}

std::uint64_t key_hash(const Hash& key) { return key.a; }

struct FrameKey {
  std::uint32_t parent, name;
  ScopeDomain domain;
  bool operator==(const FrameKey&) const = default;
};
std::uint64_t key_hash(const FrameKey& key) {
  return fold(std::uint64_t{key.parent} << 32 | key.name,
              0x9fb21c651e98df25u + static_cast<std::uint64_t>(key.domain));
}

struct KnownFrame {
  std::uint32_t id;
  SharedPath path;     // of the process; kNoPath: not asked for yet
  std::uint32_t next;  // index of the one that was asked for after it the last time
};

// Texts that were asked for not long ago, found by what they say and not by where they lie:
// programs may make the same one again elsewhere. A copy is compared.
class Recent {
 public:
  [[nodiscard]] std::uint32_t find(std::string_view text) const {
    if (text.size() > sizeof Entry::text) return 0;
    for (const Entry& entry : sets_[place_of(text)]) {
      if (entry.bytes == text.size() && same(entry.text, text)) return entry.id;
    }
    return 0;
  }
  void add(std::string_view text, std::uint32_t id) {
    if (text.empty() || text.size() > sizeof Entry::text) return;
    used_ = true;
    auto& set = sets_[place_of(text)];
    Entry& entry = set[set[0].bytes == 0 ? 0 : 1];
    entry.id = id;
    entry.bytes = static_cast<std::uint32_t>(text.size());
    std::memcpy(entry.text, text.data(), text.size());
  }
  // Of a thread that pushes little most of it is never touched, and takes no memory.
  void clear() {
    if (used_) std::memset(static_cast<void*>(sets_), 0, sizeof sets_);
    used_ = false;
  }

 private:
  struct Entry {
    std::uint32_t id, bytes;  // 0 = empty
    char text[120];
  };
  static_assert(sizeof(Entry) == 128);
  static constexpr std::size_t kSets = 256;  // as many as place_of() gives

  static std::size_t place_of(std::string_view text) { return quick_hash(text) >> 56; }
  // By words, the last of which may share bytes with the one before.
  static bool same(const char* kept, std::string_view text) {
    const auto* a = reinterpret_cast<const unsigned char*>(kept);
    const auto* b = reinterpret_cast<const unsigned char*>(text.data());
    const std::size_t size = text.size();
    if (size >= 8) return differ<std::uint64_t>(a, b, size) == 0;
    if (size >= 4) return differ<std::uint32_t>(a, b, size) == 0;
    return differ<unsigned char>(a, b, size) == 0;
  }
  template <class Word>
  static std::uint64_t differ(const unsigned char* a, const unsigned char* b, std::size_t size) {
    if (size == 0) return 1;  // an empty one is not kept
    const std::size_t last = size - sizeof(Word);
    std::uint64_t sum = word_at<Word>(a + last) ^ word_at<Word>(b + last);
    for (std::size_t i = 0; i < last; i += sizeof(Word)) {
      sum |= word_at<Word>(a + i) ^ word_at<Word>(b + i);
    }
    return sum;
  }

  Entry sets_[kSets][2];
  bool used_;
};

// A file to which nothing more comes, of a thread of this process that goes on in another one.
struct Retired {
  std::atomic<std::uint64_t> name = 0;  // number + 1; 0 = none, or somebody takes it away
  std::atomic<std::uint64_t> bytes = 0, events = 0;
  std::atomic<std::int64_t> last_ns = 0;
};
constexpr std::uint32_t kRetired = 512;

// Ranges that were nested too deep to be kept, by their stack: what ends first are they.
struct Skipped {
  std::uint32_t stack, count;
};
constexpr std::uint32_t kSkippedStacks = 8;

// What only the process itself knows of a range that is open.
struct OpenAutograd {
  std::uint64_t backward;  // sequence + 1 of the backward range that it is or lies in
  std::uint32_t forward_thread;
  SharedPath path;  // that it opens; kNoPath: not asked for yet, or unknown
};

// A range of the process. Of the ones that are free each names the next.
struct Started {
  std::atomic<std::uint64_t> range = 0;  // as start() gave it; 0 = free
  std::atomic<std::uint32_t> next = 0;
  std::uint32_t generation = 0;
  StartedRange* shown = nullptr;  // for whoever follows; none: there was no room
  std::int64_t start_ns = 0;
  std::uint64_t sequence = 0;
  std::uint32_t name_bytes = 0, arguments_bytes = 0, lane_bytes = 0;
  ScopeDomain domain{};
  std::uint8_t captures = 0;  // as OpenRange's
  char* large = nullptr;      // where `text` is too small
  std::size_t large_bytes = 0;
  char text[440] = {};  // name, arguments, and the lane's name
};
static_assert(sizeof(Started) == 512);
constexpr std::uint32_t kStartedAtOnce = 1024;
constexpr std::uint32_t kStartedChunks = 64;

}  // namespace

// One spool file and the thread that writes it at the moment. When a thread ends, another takes its
// file over. Lives in memory of its own, zero at first, never given back.
struct SpoolThread {
  SpoolThread* next;  // in Run::threads; never changes once it is there
  std::atomic<bool> taken;

  // The file is there, with room, and has told whose events come: a push may go ahead. Set last.
  bool ready;
  // In a forked child, the push that the fork interrupted is still under way: what it writes goes
  // to memory that nobody reads.
  bool orphan;
  std::uint32_t pushing;  // pushes that are under way, more than one in signal handlers
  bool full;
  bool worn;            // so large that the next file is to begin
  std::uint32_t tries;  // to get room, while there is none
  LanePage* page;       // none: no file yet, or there was no room for one
  // Cell i is at `base` + 64 i, for those that are in the window: from `flushed` to `limit`.
  std::uintptr_t base;
  std::uint64_t flushed;
  std::uint64_t committed;
  std::uint64_t limit;
  // Where in memory the thread's stack is, roughly, and its number for the system: another thread
  // that has been made without the C library may have the same SpoolThread.
  std::uintptr_t stack;
  std::int32_t native_id;
  std::uint32_t strings, frames, lanes, devices, attributes, blobs;
  std::uint32_t lane;
  std::uint64_t events;  // in this file, and told to be lost

  // The ranges that are open; the page has a copy for whoever follows.
  std::uint32_t open_count;
  std::uint32_t scope;  // the frame of the innermost that is known
  std::uint32_t skipped_count;
  Skipped skipped[kSkippedStacks];
  std::uint32_t next_started;  // in the page
  std::uint64_t tokens;
  std::uint64_t steps;
  std::int64_t step_start_ns;
  base::IterationMark mark;  // told of when this push is over
  std::uint64_t mark_name;

  std::int64_t loss_ns;       // when `full` began
  std::uint32_t number;       // M of its N-M.lane
  std::atomic<bool> entered;  // file and lane are being made

  Recent recent_strings;
  Known<Hash, std::uint32_t, kKnownStrings> known_strings;
  Known<Hash, std::uint32_t, kKnownOthers> known_others;  // lanes, devices, attributes
  Known<FrameKey, KnownFrame, kKnownFrames> known_frames;
  std::uint32_t last_frame;           // index of the one that was asked for last
  std::uint32_t path_frames[kPaths];  // by path of the process; 0 = none
  std::uint32_t path_frame_count;     // that may not be 0
  OpenRange open[kMaxOpen];
  std::uint32_t next_retired;
  Retired retired[kRetired];        // where only the newest part is kept
  OpenAutograd autograd[kMaxOpen];  // of each
  char open_names[kMaxOpen][64];    // for the child after a fork, whose file has other numbers
  char path[PATH_MAX];              // here, because stacks may be small
};

namespace {

enum class Membership : std::uint32_t { kForked, kJoining, kJoined };

struct Run {
  char folder[PATH_MAX - 64] = {};
  RunPage* page = nullptr;
  ProcessPage* process = nullptr;
  std::uint32_t process_number = 0;
  JobRank rank;
  pthread_key_t key = 0;
  bool key_made = false;
  std::atomic<SpoolThread*> threads = nullptr;
  // The kernel clears this page in a forked child.
  std::atomic<Membership>* membership = nullptr;
};

// One a process by its nature.
constinit Run g_run;
constinit std::atomic<bool> g_joined = false;
constinit std::atomic<bool> g_collecting = true;
// Whether threads hang ranges below those of others.
constinit std::atomic<bool> g_sharing = false;
// As the run's page says, and this host can.
constinit bool g_ticks = false;     // the counter of ticks is sound
constinit bool g_barriers = false;  // who follows makes all threads pass a barrier
constinit bool g_captured = false;  // the run collects only inside of ranges of one name
constinit TickClock g_clock;
// Ranges of the process that are open and inside of which the run collects.
constinit std::atomic<std::uint32_t> g_captures = 0;
// One for each vendor.
constinit std::atomic<void (*)() noexcept> g_changed[4] = {};

void tell_change() {
  for (const auto& one : g_changed) {
    if (const auto changed = one.load(std::memory_order_acquire); changed != nullptr) changed();
  }
}
void begin_capture() {
  if (g_captures.fetch_add(1, std::memory_order_relaxed) != 0) return;
  g_run.page->captured.fetch_add(1, std::memory_order_relaxed);
  tell_change();
}
void end_capture() {
  if (g_captures.fetch_sub(1, std::memory_order_relaxed) == 1) tell_change();
}

// Of a process that has joined.
bool may_collect() {
  return g_collecting.load(std::memory_order_relaxed) &&
         g_run.page->paused.load(std::memory_order_relaxed) == 0;
}
bool is_captured() { return !g_captured || g_captures.load(std::memory_order_relaxed) > 0; }
bool captures(std::string_view name) {
  return g_captured && g_run.page->capture_by == CaptureBy::kRange &&
         name == std::string_view(g_run.page->capture);
}

// Where something else than a range says when to collect: whether it does now.
constinit std::atomic<bool> g_switched = false;

void set_capture(bool on) {
  if (g_switched.exchange(on, std::memory_order_relaxed) == on) return;
  if (on) {
    begin_capture();
  } else {
    end_capture();
  }
}

// What tells of iterations: whichever does first, and nothing else from then on.
enum class Teller : std::uint64_t { kNobody, kSteps, kOptimizers, kRanges };
constinit std::atomic<std::uint64_t> g_teller =
    0;  // a Teller, or the hash of what ranges are called
constinit std::atomic<std::int64_t> g_iteration = -1;  // the last that was told of

bool collects_iterations() {
  return g_captured && g_run.page->capture_by == CaptureBy::kIterations;
}

bool may_tell(std::uint64_t who) {
  std::uint64_t expected = 0;
  return g_teller.compare_exchange_strong(expected, who, std::memory_order_relaxed) ||
         expected == who;
}

void begin_iteration(std::int64_t number) {
  g_iteration.store(number, std::memory_order_relaxed);
  g_run.page->iterations.fetch_add(1, std::memory_order_relaxed);
  set_capture(number >= g_run.page->first_iteration && number <= g_run.page->last_iteration);
}

bool is_optimizer_step(std::string_view name) {
  return name.substr(0, base::kOptimizerStep.size()) == base::kOptimizerStep;
}
bool may_be_iteration(const Said& said) {
  return said.domain == ScopeDomain::kAnnotation && base::names_iteration(said.name);
}

// For whoever analyses whole iterations: not those that are collected, which have their own rules.
constinit std::atomic<bool> g_counts_iterations = false;
constinit std::atomic<std::uint64_t> g_iterations_ended = 0;
constinit std::atomic<void (*)(std::uint64_t)> g_on_iteration = nullptr;
constinit std::atomic_flag g_counting = ATOMIC_FLAG_INIT;
constinit base::IterationCounter g_counter;  // while g_counting is held

void count_mark(base::IterationMark mark, std::uint64_t name) {
  while (g_counting.test_and_set(std::memory_order_acquire)) {
  }
  const bool ended = g_counter.mark(mark, name);
  const std::uint64_t count = g_counter.ended();
  if (ended) g_iterations_ended.store(count, std::memory_order_relaxed);
  g_counting.clear(std::memory_order_release);
  auto* const function = g_on_iteration.load();
  if (ended && function != nullptr) function(count);
}

// A range that begins now may be where an iteration ends.
void look_for_mark(SpoolThread& thread, const Said& said) {
  const auto mark = [&thread](base::IterationMark kind, std::string_view name) {
    thread.mark = kind;
    thread.mark_name = hash(name.data(), name.size()).a;
  };
  if (said.domain == ScopeDomain::kModule) {
    if (said.is_compiled || thread.native_id != getpid()) return;
    for (std::uint32_t i = 0; i < thread.open_count; ++i) {
      if (thread.open[i].domain == static_cast<std::uint16_t>(ScopeDomain::kModule)) return;
    }
    mark(base::IterationMark::kForward, said.name);
  } else if (is_optimizer_step(said.name)) {
    mark(base::IterationMark::kOptimizer, said.name);
  } else if (may_be_iteration(said)) {
    const base::NumberInName number = base::number_in_name(said.name);
    mark(base::IterationMark::kRange,
         number.begin == number.end ? said.name : said.name.substr(0, number.begin));
  }
}

// Of a range that begins, where iterations are collected: what its end will mean.
std::uint8_t begin_range(SpoolThread& thread, const Said& said) {
  if (g_counts_iterations.load(std::memory_order_relaxed)) look_for_mark(thread, said);
  if (!collects_iterations()) return captures(said.name) ? kCaptures : std::uint8_t{0};
  if (is_optimizer_step(said.name)) {
    return may_tell(static_cast<std::uint64_t>(Teller::kOptimizers)) ? kOptimizer : std::uint8_t{0};
  }
  if (!may_be_iteration(said)) return 0;
  const base::NumberInName number = base::number_in_name(said.name);
  const std::string_view stem(said.name.data(), number.begin);
  const std::uint64_t who =
      hash(stem.data(), stem.size()).a | static_cast<std::uint64_t>(Teller::kRanges);
  if (!may_tell(who)) return 0;
  const std::int64_t value =
      number.value >= 0 ? number.value : g_iteration.load(std::memory_order_relaxed) + 1;
  begin_iteration(value);
  return value == g_run.page->last_iteration ? kLastIteration : std::uint8_t{0};
}

void end_range(std::uint8_t meaning) {
  if ((meaning & kCaptures) != 0) end_capture();
  if ((meaning & kLastIteration) != 0) set_capture(false);
  if ((meaning & kOptimizer) != 0) {
    // The first iteration has no mark before it.
    const std::int64_t last = g_iteration.load(std::memory_order_relaxed);
    begin_iteration(last < 0 ? 1 : last + 1);
  }
}

// Ranges of the process. `g_free`: number + 1 of the first that is free, under a count of changes.
constinit std::atomic<Started*> g_started[kStartedChunks] = {};
constinit std::atomic<std::uint32_t> g_started_count = 0;
constinit std::atomic<std::uint64_t> g_free = 0;

bool is_member() {
  return g_run.membership->load(std::memory_order_acquire) == Membership::kJoined;
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

// Around all that calls the system: errno is the program's, no signal handler gets in between (and
// none cuts short a call that takes long), and no call is a point where the thread can be
// cancelled.
class Undisturbed {
 public:
  Undisturbed() : errno_(errno) {
    sigset_t all;
    sigfillset(&all);
    // Of these we are the cause, if they come now.
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
      sigdelset(&all, signal);
    }
    pthread_sigmask(SIG_SETMASK, &all, &signals_);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_);
  }
  ~Undisturbed() {
    pthread_setcancelstate(cancel_, nullptr);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    errno = errno_;
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  int errno_;
  int cancel_ = 0;
  sigset_t signals_;
};

// Fits into `to` of PATH_MAX by the size of Run::folder.
void lane_path(char* to, std::uint32_t number, const char* ending = kLaneEnding) {
  to = append(append(to, g_run.folder), "/");
  to = append(append(append(to, g_run.process_number), "-"), number);
  append(to, ending);
}

// Takes away the oldest file of this process to which nothing more comes; false when there is none.
// Whoever follows does so in time, as long as he lives.
bool let_go_of_oldest() {
  Retired* oldest = nullptr;
  for (SpoolThread* thread = g_run.threads.load(std::memory_order_acquire); thread != nullptr;
       thread = thread->next) {
    for (Retired& file : thread->retired) {
      if (file.name.load(std::memory_order_acquire) != 0 &&
          (oldest == nullptr || file.last_ns.load(std::memory_order_relaxed) <
                                    oldest->last_ns.load(std::memory_order_relaxed))) {
        oldest = &file;
      }
    }
  }
  if (oldest == nullptr) return false;
  const std::uint64_t bytes = oldest->bytes.load(std::memory_order_relaxed);
  const std::uint64_t events = oldest->events.load(std::memory_order_relaxed);
  const std::int64_t last_ns = oldest->last_ns.load(std::memory_order_relaxed);
  const std::uint64_t name = oldest->name.exchange(0, std::memory_order_acq_rel);
  if (name == 0) return true;  // another thread has, and there may be room
  char path[PATH_MAX];
  lane_path(path, static_cast<std::uint32_t>(name - 1));
  RunPage& run = *g_run.page;
  // Before it is gone: nobody may find it missing and not told.
  std::int64_t from_ns = run.kept_from_ns.load(std::memory_order_relaxed);
  while (from_ns <= last_ns && !run.kept_from_ns.compare_exchange_weak(from_ns, last_ns + 1)) {
  }
  // To take a file away can take long, and the process may be killed meanwhile: it is told before,
  // and after the file has gone for all who look.
  char gone[PATH_MAX];
  lane_path(gone, static_cast<std::uint32_t>(name - 1), kGoneEnding);
  if (rename(path, gone) != 0) return true;  // who follows has been here
  run.let_go.fetch_add(events, std::memory_order_relaxed);
  unlink(gone);
  run.used_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  return true;
}

// Takes `bytes` of what the run may use.
bool reserve(std::uint64_t bytes) {
  RunPage& run = *g_run.page;
  do {
    if (run.used_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes <= run.limit_bytes) {
      return true;
    }
    run.used_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  } while (run.segment_bytes != 0 && let_go_of_oldest());
  return false;
}

// A program's own limit of file sizes is asked first: to pass it would be a signal that ends the
// program.
bool may_grow_to(std::uint64_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

// Makes the file so large, really.
bool allocate(int file, std::uint64_t size) {
  if (!may_grow_to(size)) return false;
  // It may be interrupted without a signal that could be blocked, as by a debugger.
  for (int tries = 0; tries < 100; ++tries) {
    const int failed = posix_fallocate(file, 0, static_cast<off_t>(size));
    if (failed != EINTR) return failed == 0;
  }
  return false;
}

void* map(int file, std::size_t size) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

// Cells: they are the parent's business, so a forked child does not get them at all.
void* map_cells(int file, std::size_t size) {
  void* mapped = map(file, size);
  if (mapped != nullptr) madvise(mapped, size, MADV_DONTFORK);
  return mapped;
}

// A new file of `size` bytes in the run's folder.
unsigned char* create(const char* path, std::size_t size, decltype(map)* how = map) {
  if (!reserve(size)) return nullptr;
  const Descriptor file(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  void* mapped = nullptr;
  if (file.get() >= 0) {
    if (allocate(file.get(), size)) mapped = how(file.get(), size);
    if (mapped == nullptr) unlink(path);
  }
  if (mapped == nullptr) g_run.page->used_bytes.fetch_sub(size, std::memory_order_relaxed);
  return static_cast<unsigned char*>(mapped);
}

void count_dropped(SpoolThread* thread, std::uint64_t count = 1) {
  if (thread != nullptr && thread->page != nullptr && !thread->orphan) {
    thread->page->dropped.fetch_add(count, std::memory_order_relaxed);
  } else if (g_run.process != nullptr) {
    g_run.process->dropped.fetch_add(count, std::memory_order_relaxed);
  } else if (g_run.page != nullptr) {
    g_run.page->dropped.fetch_add(count, std::memory_order_relaxed);
  }
}

// From here on the window is that of the cells from `flushed` on.
void set_up_window(SpoolThread& thread) {
  thread.base =
      reinterpret_cast<std::uintptr_t>(thread.page) + kLanePageBytes - thread.flushed * kCellBytes;
  thread.limit = thread.flushed + kWindowCells;
}

bool make_file(SpoolThread& thread) {
  // A lane without its process would be nobody's.
  if (g_run.process == nullptr) return false;
  lane_path(thread.path, thread.number);
  unsigned char* mapped = create(thread.path, kMapping, map_cells);
  if (mapped == nullptr) return false;
  auto* page = new (mapped) LanePage{};
  page->version = kVersion;
  page->process = g_run.process_number;
  page->hold_ns.store(kNoHold, std::memory_order_relaxed);
  page->magic.store(kLaneMagic, std::memory_order_release);
  thread.page = page;
  thread.flushed = thread.committed = 0;
  thread.full = false;
  thread.worn = false;
  thread.tries = 0;
  thread.strings = thread.frames = thread.lanes = thread.devices = thread.attributes = 0;
  thread.blobs = 0;
  thread.events = 0;
  thread.lane = 0;
  thread.recent_strings.clear();
  thread.known_strings.clear();
  thread.known_frames.clear();
  std::memset(thread.path_frames, 0, thread.path_frame_count * sizeof thread.path_frames[0]);
  thread.path_frame_count = 0;
  thread.known_others.clear();
  set_up_window(thread);
  return true;
}

// Empties the window into the file behind it. That may fail half-way, as where a disk is full: then
// the window stays as it is.
bool flush(SpoolThread& thread) {
  if (thread.orphan) return false;
  const Undisturbed undisturbed;
  const std::size_t size = (thread.committed - thread.flushed) * kCellBytes;
  const std::uint64_t end = kMapping + thread.committed * kCellBytes;
  if (!reserve(size)) return false;
  const Descriptor file(open(thread.path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  const auto* from = reinterpret_cast<const char*>(thread.page) + kLanePageBytes;
  std::size_t done = 0;
  while (file.get() >= 0 && done < size && may_grow_to(end)) {
    const ssize_t wrote =
        pwrite(file.get(), from + done, size - done, static_cast<off_t>(end - size + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  if (done < size) {
    g_run.page->used_bytes.fetch_sub(size, std::memory_order_relaxed);
    return false;
  }
  thread.flushed = thread.committed;
  // With a full barrier: whoever reads the window anew sees that it is.
  thread.page->flushed.exchange(thread.flushed, std::memory_order_seq_cst);
  set_up_window(thread);
  const std::uint64_t segment = g_run.page->segment_bytes;
  thread.worn = segment != 0 && end >= segment;
  return true;
}

void commit(SpoolThread& thread, std::size_t cells) {
  thread.committed += cells;
  thread.page->committed.store(thread.committed, std::memory_order_release);
}

Event* cell_at(const SpoolThread& thread, std::uint64_t number) {
  return reinterpret_cast<Event*>(thread.base + number * kCellBytes);
}

[[gnu::noinline]] Event* more_room(SpoolThread& thread) {
  if (thread.full) return nullptr;
  if (flush(thread)) return cell_at(thread, thread.committed);
  thread.full = true;
  thread.ready = false;
  thread.tries = 1;
  thread.loss_ns = spool_now_ns();
  return nullptr;
}

// Room for `cells` in a row; none when there is not, and then none until the next push.
inline Event* room(SpoolThread& thread, std::size_t cells) {
  if (thread.committed + cells <= thread.limit) return cell_at(thread, thread.committed);
  return more_room(thread);
}

// Each field as it was written: a processor that reads two of them at once, just after they were
// written one by one, has to wait until both have left its way to memory.
template <class Field>
inline void copy_field(Field& to, Field from) {
  asm("" : "+r"(from));
  to = from;
}

inline void copy_event(Event& to, const Event& from) {
  copy_field(to.start_ns, from.start_ns);
  copy_field(to.end_ns, from.end_ns);
  copy_field(to.correlation, from.correlation);
  copy_field(to.name.value, from.name.value);
  copy_field(to.lane.value, from.lane.value);
  copy_field(to.scope.value, from.scope.value);
  copy_field(to.detail, from.detail);
  copy_field(to.kind, from.kind);
  copy_field(to.flags, from.flags);
  auto* to_rest = reinterpret_cast<unsigned char*>(&to.raw);
  const auto* rest = reinterpret_cast<const unsigned char*>(&from.raw);
  for (std::size_t i = 0; i < sizeof from.raw; i += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, rest + i, sizeof word);
    asm("" : "+r"(word));
    std::memcpy(to_rest + i, &word, sizeof word);
  }
}

inline void copy_range(OpenRange& to, const OpenRange& from) {
  copy_field(to.start_ns, from.start_ns);
  copy_field(to.token, from.token);
  copy_field(to.sequence, from.sequence);
  copy_field(to.name, from.name);
  copy_field(to.scope, from.scope);
  copy_field(to.frame, from.frame);
  copy_field(to.arguments, from.arguments);
  copy_field(to.stack, from.stack);
  copy_field(to.domain, from.domain);
  copy_field(to.captures, from.captures);
  copy_field(to.silent, from.silent);
}

template <class Cell>
bool add_cell(SpoolThread& thread, const Cell& cell) {
  static_assert(sizeof(Cell) == kCellBytes);
  Event* to = room(thread, 1);
  if (to == nullptr) return false;
  std::memcpy(static_cast<void*>(to), &cell, sizeof cell);
  commit(thread, 1);
  return true;
}

Hash hash_of(std::string_view text) { return hash(text.data(), text.size()); }

std::uint32_t intern_text(SpoolThread& thread, std::string_view text) {
  if (text.size() > kMaxTextBytes) {
    text = {text.data(), kMaxTextBytes};
    thread.page->texts_cut.fetch_add(1, std::memory_order_relaxed);
  }
  if (const std::uint32_t known = thread.recent_strings.find(text); known != 0) return known;
  const Hash key = hash(text.data(), text.size());
  if (const auto* known = thread.known_strings.find(key); known != nullptr) {
    thread.recent_strings.add(text, known->value);
    return known->value;
  }
  const auto bytes = static_cast<std::uint32_t>(text.size());
  const std::size_t cells = cells_of(bytes);
  Event* to = room(thread, cells);
  if (to == nullptr) return 0;
  StringCell cell{};
  cell.kind = CellKind::kString;
  cell.id = ++thread.strings;
  cell.bytes = bytes;
  std::memcpy(static_cast<void*>(to), &cell, sizeof cell);
  if (bytes > 0) std::memcpy(static_cast<void*>(to + 1), text.data(), bytes);
  commit(thread, cells);
  thread.known_strings.add(key, cell.id);
  return cell.id;
}

// The number that an equal cell has got before, or a new one. `cell` has no number yet.
template <class Cell>
std::uint32_t intern_cell(SpoolThread& thread, Cell& cell, std::uint32_t& count) {
  const Hash key = hash(&cell, sizeof cell);
  if (const auto* known = thread.known_others.find(key); known != nullptr) return known->value;
  cell.id = count + 1;
  if (!add_cell(thread, cell)) return 0;
  thread.known_others.add(key, ++count);
  return count;
}

std::uint32_t intern_frame(SpoolThread& thread, std::uint32_t parent, std::uint32_t name,
                           ScopeDomain domain) {
  if (name == 0) return parent;
  const FrameKey key{parent, name, domain};
  // Programs do the same again and again: after this frame it was that one.
  auto& frames = thread.known_frames;
  auto* last = frames.at(thread.last_frame);
  auto* known = last != nullptr ? frames.at(last->value.next) : nullptr;
  if (known == nullptr || known->key != key) {
    known = frames.find(key);
    if (known == nullptr) {
      FrameCell cell{};
      cell.kind = CellKind::kFrame;
      cell.parent = parent;
      cell.name = name;
      cell.domain = static_cast<std::uint32_t>(domain);
      cell.id = thread.frames + 1;
      if (!add_cell(thread, cell)) return 0;
      known = frames.add(key, {++thread.frames, kNoPath, 0});
      last = frames.at(thread.last_frame);
    }
    if (last != nullptr) last->value.next = frames.index_of(known);
  }
  thread.last_frame = frames.index_of(known);
  return known->value.id;
}

// What is to be kept of what the program has said where the user wants no data of the program: of
// names that it gives only a hash. Numbers behind them go too, as "#0", so that it stays one path.
class Discreet {
 public:
  explicit Discreet(const Said& said) : said_(said) {
    const bool numbered = event::is_numbered(said.name);
    std::string_view name = said.name;
    if (numbered) name = name.substr(0, name.rfind('#'));
    const std::uint64_t sum = hash_of(name).a;
    char* to = append(text_, "hidden-");
    for (int shift = 60; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[sum >> shift & 15];
    if (numbered) to = append(to, "#0");
    said_.name = {text_, static_cast<std::size_t>(to - text_)};
    // Where a tagged piece of memory lies is no data of the program.
    constexpr std::string_view kTag = R"({"address":)";
    if (said.arguments.substr(0, kTag.size()) != kTag) said_.arguments = {};
    said_.known_arguments = {};
  }
  Discreet(const Discreet&) = delete;
  Discreet& operator=(const Discreet&) = delete;
  [[nodiscard]] const Said& said() const { return said_; }

 private:
  Said said_;
  char text_[32];
};

// Whether of what was told less is to be kept, see Discreet.
inline bool hides(const Said& told) {
  return g_run.page->hides != 0 && told.domain == ScopeDomain::kAnnotation;
}

// The path that a range of this name opens, which is its frame in this file.
SharedPath opened_path(SpoolThread& thread, std::uint32_t frame, SharedPath around,
                       std::string_view name, ScopeDomain domain) {
  if (!event::is_path_node(domain, name)) return around;
  // All frames of the file are numbered in the order in which they were added here.
  auto& frames = thread.known_frames;
  auto* known = frames.at(frame - 1 - (thread.frames - frames.count()));
  if (known == nullptr) return shared_path(around, name, hash(name.data(), name.size()).a, domain);
  if (known->value.path == kNoPath) {
    known->value.path = shared_path(around, name, hash(name.data(), name.size()).a, domain);
  }
  return known->value.path;
}

// Of the innermost range that is open. It is found out where it is asked for, except of those that
// hang elsewhere than in what is open around them, and of long names.
SharedPath path_of(SpoolThread& thread) {
  SharedPath path = kOutside;
  std::uint32_t i = thread.open_count;
  for (; i > 0; --i) {
    if (thread.open[i - 1].frame == 0 || thread.autograd[i - 1].path == kNoPath) continue;
    path = thread.autograd[i - 1].path;
    break;
  }
  for (; i < thread.open_count; ++i) {
    if (thread.open[i].frame == 0) continue;
    path = opened_path(thread, thread.open[i].frame, path, thread.open_names[i],
                       static_cast<ScopeDomain>(thread.open[i].domain));
    thread.autograd[i].path = path;
  }
  return path;
}

// The frame of this file that a path of the process is; 0 for one that is too deep to be told.
std::uint32_t frame_of(SpoolThread& thread, SharedPath path) {
  SharedPath missing[kMaxOpen * 2];
  std::uint32_t count = 0;
  std::uint32_t frame = 0;
  for (; path > kOutside; path = shared_node(path).parent) {
    frame = thread.path_frames[path];
    if (frame != 0) break;
    if (count == kMaxOpen * 2) return 0;
    missing[count++] = path;
  }
  while (count > 0) {
    const SharedPath next = missing[--count];
    const SharedNode node = shared_node(next);
    const std::uint32_t name = intern_text(thread, node.name);
    frame = name == 0 ? 0 : intern_frame(thread, frame, name, node.domain);
    if (frame == 0) return 0;
    thread.path_frames[next] = frame;
    if (next >= thread.path_frame_count) thread.path_frame_count = next + 1;
  }
  return frame;
}

// After the ranges from `from` on have changed.
void show_open(SpoolThread& thread, std::uint32_t from) {
  for (std::uint32_t i = from; i < thread.open_count; ++i) {
    copy_range(thread.page->open[i], thread.open[i]);
  }
  thread.page->open_count.store(thread.open_count, std::memory_order_release);
  thread.scope = 0;
  for (std::uint32_t i = thread.open_count; i > 0 && thread.scope == 0; --i) {
    thread.scope = thread.open[i - 1].frame;
  }
}

// By words, the last of which may share bytes with the one before: names are short.
template <class Word>
void copy_words(char* to, const char* from, std::size_t size) {
  const std::size_t last = size - sizeof(Word);
  for (std::size_t i = 0; i < last; i += sizeof(Word)) std::memcpy(to + i, from + i, sizeof(Word));
  std::memcpy(to + last, from + last, sizeof(Word));
}

// Cut where it does not fit.
void keep_name(char (&to)[64], std::string_view name) {
  const std::size_t size = name.size() < sizeof to ? name.size() : sizeof to - 1;
  if (size >= 8) {
    copy_words<std::uint64_t>(to, name.data(), size);
  } else if (size >= 4) {
    copy_words<std::uint32_t>(to, name.data(), size);
  } else if (size > 0) {
    copy_words<unsigned char>(to, name.data(), size);
  }
  to[size] = '\0';
}

void skip(SpoolThread& thread, std::uint32_t stack) {
  if (thread.skipped_count == 0) std::memset(thread.skipped, 0, sizeof thread.skipped);
  for (Skipped& skipped : thread.skipped) {
    if (skipped.count > 0 && skipped.stack != stack) continue;
    skipped.stack = stack;
    ++skipped.count;
    ++thread.skipped_count;
    return;
  }
}

// Whether the innermost of this stack was skipped; then it has ended.
bool unskip(SpoolThread& thread, std::uint32_t stack) {
  if (thread.skipped_count == 0) return false;
  for (Skipped& skipped : thread.skipped) {
    if (skipped.count == 0 || skipped.stack != stack) continue;
    --skipped.count;
    --thread.skipped_count;
    return true;
  }
  return false;
}

void count_unmatched() {
  if (g_run.process != nullptr) g_run.process->unmatched.fetch_add(1, std::memory_order_relaxed);
}

// Ends the range that is open at `at`.
void close_at(SpoolThread& thread, std::uint32_t at) {
  const OpenRange range = thread.open[at];
  if (range.silent == 0) {
    // First committed, then closed: at no moment is it in neither.
    if (Event* to = room(thread, 1); to != nullptr) {
      *to = {};
      to->kind = Kind::kScope;
      to->name = {range.name};
      to->lane = {thread.lane};
      to->scope = {range.scope};
      to->detail = range.domain;
      to->range.sequence = range.sequence;
      to->range.arguments = {range.arguments};
      to->range.forward_thread = thread.autograd[at].forward_thread;
      to->start_ns = range.start_ns;
      const std::int64_t now_ns = spool_now_ns();
      to->end_ns = now_ns > range.start_ns ? now_ns : range.start_ns;
      ++thread.events;
      commit(thread, 1);
    } else {
      count_dropped(&thread);
    }
  }
  for (std::uint32_t i = at; i + 1 < thread.open_count; ++i) {
    thread.open[i] = thread.open[i + 1];
    thread.autograd[i] = thread.autograd[i + 1];
    std::memcpy(thread.open_names[i], thread.open_names[i + 1], sizeof thread.open_names[i]);
  }
  --thread.open_count;
  show_open(thread, at);
  end_range(range.captures);
}

Started* started_of(std::uint32_t number) {
  if (number >= kStartedAtOnce * kStartedChunks) return nullptr;
  Started* chunk = g_started[number / kStartedAtOnce].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + number % kStartedAtOnce;
}

// One that is free, and its number; none when there are too many.
Started* take_started(std::uint32_t& number) {
  std::uint64_t first = g_free.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(first) != 0) {
    number = static_cast<std::uint32_t>(first) - 1;
    Started* started = started_of(number);
    const std::uint64_t next =
        ((first >> 32) + 1) << 32 | std::uint64_t{started->next.load(std::memory_order_relaxed)};
    if (g_free.compare_exchange_weak(first, next, std::memory_order_acq_rel)) return started;
  }
  number = g_started_count.fetch_add(1, std::memory_order_relaxed);
  if (number >= kStartedAtOnce * kStartedChunks) {
    g_started_count.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  std::atomic<Started*>& chunk = g_started[number / kStartedAtOnce];
  if (chunk.load(std::memory_order_acquire) == nullptr) {
    constexpr std::size_t kBytes = sizeof(Started) * kStartedAtOnce;
    void* memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;  // its number is lost
    Started* none = nullptr;
    // Zero is how all that is in it begins.
    if (!chunk.compare_exchange_strong(none, static_cast<Started*>(memory),
                                       std::memory_order_acq_rel)) {
      munmap(memory, kBytes);
    }
  }
  return started_of(number);
}

void free_started(Started& started, std::uint32_t number) {
  if (started.large != nullptr) munmap(started.large, started.large_bytes);
  started.large = nullptr;
  std::uint64_t first = g_free.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    started.next.store(static_cast<std::uint32_t>(first), std::memory_order_relaxed);
    next = ((first >> 32) + 1) << 32 | std::uint64_t{number + 1};
  } while (!g_free.compare_exchange_weak(first, next, std::memory_order_acq_rel));
}

// Whoever ends the range has a spool with other numbers, so its text is kept.
bool keep_text(Started& started, const Said& said, std::string_view lane) {
  const auto cut = [](std::string_view text) {
    return text.size() > kMaxTextBytes ? std::string_view{text.data(), kMaxTextBytes} : text;
  };
  char* to = started.text;
  const std::string_view parts[] = {cut(said.name), cut(said.arguments), cut(lane)};
  const std::size_t size = parts[0].size() + parts[1].size() + parts[2].size();
  if (size > sizeof started.text) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    to = started.large = static_cast<char*>(memory);
    started.large_bytes = size;
  }
  for (const std::string_view part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  started.name_bytes = static_cast<std::uint32_t>(parts[0].size());
  started.arguments_bytes = static_cast<std::uint32_t>(parts[1].size());
  started.lane_bytes = static_cast<std::uint32_t>(parts[2].size());
  return true;
}

std::uint32_t unbound_lane(SpoolThread& thread, std::string_view name) {
  LaneCell cell{};
  cell.kind = CellKind::kLane;
  cell.name = intern_text(thread, name);
  cell.type = static_cast<std::uint16_t>(LaneType::kThread);
  cell.unbound = 1;
  return cell.name == 0 ? 0 : intern_cell(thread, cell, thread.lanes);
}

// Tells whose events come now, and gives open ranges their numbers in this file.
void begin_lane(SpoolThread& thread) {
  char name[32] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  LaneCell cell{};
  cell.kind = CellKind::kLane;
  cell.native_id = static_cast<std::uint64_t>(syscall(SYS_gettid));
  cell.name = intern_text(thread, name);
  cell.type = static_cast<std::uint16_t>(LaneType::kThread);
  cell.id = thread.lanes + 1;
  if (!add_cell(thread, cell)) return;
  thread.lane = ++thread.lanes;
  thread.page->lane = thread.lane;
  std::uint32_t frame = 0;
  for (std::uint32_t i = 0; i < thread.open_count; ++i) {
    OpenRange& range = thread.open[i];
    range.name = range.scope = range.frame = range.arguments = 0;
    range.captures &= static_cast<std::uint8_t>(~kPlaced);  // which is not kept
    if (range.silent == kLeftOut) continue;
    range.name = intern_text(thread, thread.open_names[i]);
    range.scope = frame;
    if (const SharedPath path = thread.autograd[i].path; path > kOutside) {
      // It may hang elsewhere than in what is open around it.
      const bool node =
          event::is_path_node(static_cast<ScopeDomain>(range.domain), thread.open_names[i]);
      const std::uint32_t other = frame_of(thread, node ? shared_node(path).parent : path);
      if (other != 0) range.scope = frame = other;
    }
    range.frame = intern_frame(thread, frame, range.name, static_cast<ScopeDomain>(range.domain));
    if (range.name == 0 || range.frame == 0) {
      range.silent = kLeftOut;
      range.frame = 0;
      count_dropped(&thread);
      continue;
    }
    frame = range.frame;
  }
  show_open(thread, 0);
  thread.ready = !thread.full;
}

// A number for a file's name. Of the whole run, because a process id can come again.
std::uint32_t next_number() { return g_run.page->files.fetch_add(1, std::memory_order_relaxed); }

// Goes on in a new file, so that the old one can be taken away as a whole. Without room it stays.
void begin_next_file(SpoolThread& thread) {
  const Undisturbed undisturbed;
  thread.worn = false;
  LanePage* const page = thread.page;
  const std::uint32_t number = thread.number;
  const std::uint64_t bytes = kMapping + thread.flushed * kCellBytes;
  const std::uint64_t events = thread.events + page->dropped.load(std::memory_order_relaxed) -
                               page->told.load(std::memory_order_relaxed);
  thread.number = next_number();
  if (!make_file(thread)) {
    thread.number = number;
    lane_path(thread.path, number);
    return;
  }
  thread.page->hold_ns.store(page->hold_ns.load(std::memory_order_relaxed),
                             std::memory_order_release);
  thread.page->follows = number + 1;
  begin_lane(thread);
  page->open_count.store(0, std::memory_order_release);
  page->hold_ns.store(kNoHold, std::memory_order_release);
  page->pending.store(0, std::memory_order_release);
  page->retired.store(1, std::memory_order_release);
  // Another thread may be about to end a range of the process that is shown there: then it stays.
  bool shows = false;
  for (const StartedRange& range : page->started) {
    shows = shows || range.open.load(std::memory_order_acquire) != 0;
  }
  if (shows) return;
  munmap(page, kMapping);
  Retired& retired = thread.retired[thread.next_retired++ % kRetired];
  retired.name.store(0, std::memory_order_relaxed);
  retired.bytes.store(bytes, std::memory_order_relaxed);
  retired.events.store(events, std::memory_order_relaxed);
  retired.last_ns.store(spool_now_ns(), std::memory_order_relaxed);
  retired.name.store(std::uint64_t{number} + 1, std::memory_order_release);
}

SpoolThread* make_thread() {
  for (SpoolThread* thread = g_run.threads.load(std::memory_order_acquire); thread != nullptr;
       thread = thread->next) {
    bool taken = false;
    if (!thread->taken.load(std::memory_order_relaxed) &&
        thread->taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) {
      thread->open_count = thread->skipped_count = thread->scope = 0;
      thread->steps = 0;
      thread->step_start_ns = 0;
      thread->ready = false;
      thread->lane = 0;
      return thread;
    }
  }
  void* memory = mmap(nullptr, sizeof(SpoolThread), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* thread = new (memory) SpoolThread;
  thread->taken.store(true, std::memory_order_relaxed);
  thread->number = next_number();
  thread->next = g_run.threads.load(std::memory_order_relaxed);
  while (!g_run.threads.compare_exchange_weak(thread->next, thread, std::memory_order_release,
                                              std::memory_order_relaxed)) {
  }
  return thread;
}

// In a forked child, which has only what it has put in their place.
void forget_file(SpoolThread& thread) {
  if (thread.orphan) munmap(thread.page, kMapping);
  thread.page = nullptr;
  thread.ready = thread.orphan = thread.full = false;
  thread.lane = 0;
  thread.tries = 0;
}

// By the system, when a thread ends.
void leave_thread(void* value) {
  if (!is_member()) return;  // a forked child that has had nothing to say
  auto* thread = static_cast<SpoolThread*>(value);
  if (thread->orphan) forget_file(*thread);
  thread->pushing = 0;
  if (thread->page != nullptr) {
    // A thread can be made to end in the middle of a push.
    thread->page->pending.store(0, std::memory_order_release);
    thread->committed = thread->page->committed.load(std::memory_order_relaxed);
    // What it left open ends with it.
    pthread_setspecific(g_run.key, value);
    thread->skipped_count = 0;
    while (thread->open_count > 0) {
      SpoolPush push = SpoolPush::even_stopped();
      if (!push) break;
      push.close(0);
    }
    if (thread->open_count > 0) count_dropped(thread, thread->open_count);
    thread->page->open_count.store(0, std::memory_order_release);
    thread->page->hold_ns.store(kNoHold, std::memory_order_release);
    pthread_setspecific(g_run.key, nullptr);
  }
  thread->entered.store(false, std::memory_order_relaxed);
  thread->taken.store(false, std::memory_order_release);
}

// Shows that times are taken from now on, until what ends then has been committed; false when that
// is so already, as in a signal handler that interrupts a push. Whoever follows must see it before
// any time is taken: either there is a barrier here, or they let all threads pass one.
inline bool enter(LanePage& page) {
  if (!g_barriers) return page.pending.exchange(1, std::memory_order_seq_cst) == 0;
  if (page.pending.load(std::memory_order_relaxed) != 0) return false;
  page.pending.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}

// After a time without room. What was lost meanwhile is told where it was lost.
void try_again(SpoolThread& thread) {
  if (!enter(*thread.page)) return;
  if (flush(thread)) {
    thread.full = false;
    if (thread.lane == 0) {
      begin_lane(thread);
    } else {
      thread.ready = true;
    }
    const std::uint64_t dropped = thread.page->dropped.load(std::memory_order_relaxed);
    const std::uint64_t told = thread.page->told.load(std::memory_order_relaxed);
    if (thread.ready && dropped > told) {
      Event gap{};
      gap.kind = Kind::kGap;
      gap.lane = {thread.lane};
      gap.start_ns = thread.loss_ns;
      gap.end_ns = spool_now_ns();
      gap.gap.lost = dropped - told;
      if (add_cell(thread, gap)) {
        thread.page->told.store(dropped, std::memory_order_relaxed);
        thread.events += gap.gap.lost;
      }
    }
  }
  thread.page->pending.store(0, std::memory_order_release);
}

std::int32_t native_thread() { return static_cast<std::int32_t>(syscall(SYS_gettid)); }

// What this_thread() has to do at times.
[[gnu::noinline]] SpoolThread* prepare_thread(SpoolThread* thread, std::uintptr_t stack) {
  if (thread != nullptr && thread->stack != stack) {
    // Of another thread that shares what the C library keeps for this one nothing is known.
    if (thread->native_id != native_thread()) return nullptr;
    thread->stack = stack;
    if (thread->ready) return thread;
  }
  const bool no_room = thread != nullptr && thread->tries > 0;
  if (no_room && ++thread->tries % kBetweenTries != 0) {
    return thread->lane != 0 ? thread : nullptr;
  }
  const Undisturbed undisturbed;
  if (thread == nullptr) {
    thread = make_thread();
    if (thread == nullptr) return nullptr;
    if (pthread_setspecific(g_run.key, thread) != 0) {
      thread->taken.store(false, std::memory_order_release);
      return nullptr;
    }
    thread->native_id = native_thread();
    thread->stack = stack;
  }
  if (thread->entered.exchange(true, std::memory_order_acquire)) return nullptr;
  if (thread->page == nullptr && !make_file(*thread) && thread->tries == 0) thread->tries = 1;
  if (thread->page != nullptr) {
    if (thread->full) try_again(*thread);
    if (thread->lane == 0) begin_lane(*thread);
  }
  const bool able = thread->lane != 0;
  thread->entered.store(false, std::memory_order_release);
  return able ? thread : nullptr;
}

inline SpoolThread* this_thread() {
  auto* thread = static_cast<SpoolThread*>(pthread_getspecific(g_run.key));
  const std::uintptr_t stack =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) / kStackBytes;
  return thread != nullptr && thread->ready && thread->stack == stack
             ? thread
             : prepare_thread(thread, stack);
}

std::size_t read_file(const char* path, char* to, std::size_t size) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return 0;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = read(file.get(), to + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

// Field 22 of /proc/self/stat, which counts from after the name in parentheses.
std::uint64_t started_ticks() {
  char text[1024];
  const std::size_t size = read_file("/proc/self/stat", text, sizeof text - 1);
  text[size] = '\0';
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

// Of process ids.
std::uint64_t namespace_id() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool make_process(bool forked) {
  g_run.process_number = next_number();
  char path[PATH_MAX];
  append(append(append(append(path, g_run.folder), "/"), g_run.process_number), kProcessEnding);
  unsigned char* mapped = create(path, 4096);
  if (mapped == nullptr) {
    g_run.process = nullptr;
    return false;
  }
  auto* page = new (mapped) ProcessPage{};
  page->version = kVersion;
  page->process = getpid();
  page->parent = getppid();
  page->rank = g_run.rank.rank;
  page->world_size = g_run.rank.world_size;
  page->forked = forked ? 1 : 0;
  page->started_ticks = started_ticks();
  page->namespace_id = namespace_id();
  page->start_ns = spool_now_ns();
  page->hold_ns.store(page->start_ns, std::memory_order_relaxed);
  page->command_bytes = static_cast<std::uint32_t>(
      read_file("/proc/self/cmdline", page->command, sizeof page->command));
  const std::size_t name = read_file("/proc/self/comm", page->name, sizeof page->name - 1);
  if (name > 0 && page->name[name - 1] == '\n') page->name[name - 1] = '\0';
  page->magic.store(kProcessMagic, std::memory_order_release);
  g_run.process = page;
  return true;
}

bool matches(const char* pattern, const char* text) {
  regex_t regex;
  if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
  const bool found = regexec(&regex, text, 0, nullptr, 0) == 0;
  regfree(&regex);
  return found;
}

// Whether this program is one of those that the run collects from.
bool is_wanted(const RunPage& run) {
  if (run.include[0] == '\0' && run.exclude[0] == '\0') return true;
  char command[4096];
  std::size_t size = read_file("/proc/self/cmdline", command, sizeof command - 1);
  while (size > 0 && command[size - 1] == '\0') --size;
  for (std::size_t i = 0; i < size; ++i) {
    if (command[i] == '\0') command[i] = ' ';
  }
  command[size] = '\0';
  return (run.include[0] == '\0' || matches(run.include, command)) &&
         (run.exclude[0] == '\0' || !matches(run.exclude, command));
}

bool become_member() {
  if (g_run.membership == nullptr) {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
      munmap(page, 4096);
      return false;
    }
    g_run.membership = new (page) std::atomic<Membership>;
  }
  g_run.membership->store(Membership::kJoined, std::memory_order_release);
  return true;
}

// Memory in the place of what a push that is under way writes to.
bool replace(void* memory, std::size_t bytes) {
  return mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
              0) != MAP_FAILED;
}

// Without memory nothing can save this child: the push will be a fault.
void cut_off(SpoolThread& thread) {
  if (!replace(thread.page, kMapping)) return;
  thread.page->pending.store(1, std::memory_order_relaxed);
  thread.orphan = true;
}

// After a push, or after none could be made.
void finish_push(SpoolThread& thread) {
  if (--thread.pushing > 0 || !thread.orphan) return;
  const Undisturbed undisturbed;
  forget_file(thread);
}

}  // namespace

namespace {

[[gnu::noinline]] std::int64_t compare_clocks() {
  ClockPair pair;
  pair.before = processor_ticks();
  pair.ns = host_now_ns();
  pair.after = processor_ticks();
  return g_clock.learn(pair);
}

}  // namespace

std::int64_t spool_now_ns() noexcept {
  if (!g_ticks) return host_now_ns();
  std::int64_t ns = 0;
  return g_clock.at(processor_ticks(), ns) ? ns : compare_clocks();
}

bool join_run(const char* folder, const JobRank& rank) noexcept {
  const Undisturbed undisturbed;
  if (g_joined.load(std::memory_order_relaxed)) return true;
  if (folder == nullptr || std::strlen(folder) >= sizeof g_run.folder) return false;
  append(g_run.folder, folder);
  g_run.rank = rank;
  char path[PATH_MAX];
  append(append(append(path, folder), "/"), kRunFile);
  {
    const Descriptor file(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat status {};
    if (file.get() < 0 || fstat(file.get(), &status) != 0 || status.st_size < 4096) return false;
    void* mapped = map(file.get(), 4096);
    if (mapped == nullptr) return false;
    g_run.page = static_cast<RunPage*>(mapped);
  }
  const bool ours = g_run.page->magic.load(std::memory_order_acquire) == kRunMagic &&
                    g_run.page->version == kVersion && is_wanted(*g_run.page);
  if (ours && !g_run.key_made) g_run.key_made = pthread_key_create(&g_run.key, leave_thread) == 0;
  if (!ours || !g_run.key_made || !become_member()) {
    munmap(g_run.page, 4096);
    g_run.page = nullptr;
    return false;
  }
  g_ticks = g_run.page->ticks != 0;
  g_barriers = g_run.page->barriers != 0 && register_for_barriers();
  g_captured = g_run.page->capture[0] != '\0';
  make_process(false);  // without one, losses are counted in the run's page
  // What comes before the first mark is of the first iteration, or comes before it.
  if (collects_iterations() && g_run.page->first_iteration == 0) set_capture(true);
  g_joined.store(true, std::memory_order_release);
  return true;
}

bool in_run() noexcept { return g_joined.load(std::memory_order_acquire); }

void after_fork() noexcept {
  if (!in_run()) return;
  const Undisturbed undisturbed;
  Membership forked = Membership::kForked;
  if (!g_run.membership->compare_exchange_strong(forked, Membership::kJoining,
                                                 std::memory_order_acquire)) {
    return;
  }
  g_clock.forget();
  g_barriers = g_barriers && register_for_barriers();
  auto* own = static_cast<SpoolThread*>(pthread_getspecific(g_run.key));
  if (own != nullptr) own->native_id = native_thread();
  // The files are the parent's. Its other threads are not here.
  for (SpoolThread* thread = g_run.threads.load(std::memory_order_relaxed); thread != nullptr;
       thread = thread->next) {
    thread->entered.store(false, std::memory_order_relaxed);
    thread->number = next_number();
    if (thread->next_retired > 0) {
      for (Retired& retired : thread->retired) retired.name.store(0, std::memory_order_relaxed);
      thread->next_retired = 0;
    }
    if (thread == own && own->pushing > 0) {
      if (!own->orphan) cut_off(*own);
      continue;
    }
    forget_file(*thread);
    thread->pushing = 0;
    thread->taken.store(thread == own, std::memory_order_relaxed);
  }
  if (g_run.process != nullptr) munmap(g_run.process, 4096);
  make_process(true);
  g_captures.store(0, std::memory_order_relaxed);
  g_counting.clear();
  // Who told of iterations does so in the parent.
  g_switched.store(false, std::memory_order_relaxed);
  g_teller.store(0, std::memory_order_relaxed);
  g_iteration.store(-1, std::memory_order_relaxed);
  // Ranges of the process are the parent's, which ends them.
  const std::uint32_t count = g_started_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (Started* started = started_of(i)) {
      started->range.store(0, std::memory_order_relaxed);
      if (started->large != nullptr) munmap(started->large, started->large_bytes);
      started->large = nullptr;
    }
  }
  g_started_count.store(0, std::memory_order_relaxed);
  g_free.store(0, std::memory_order_relaxed);
  if (own != nullptr) {
    const std::int64_t now = spool_now_ns();
    for (std::uint32_t i = 0; i < own->open_count; ++i) {
      own->open[i].start_ns = now;
      if ((own->open[i].captures & kCaptures) != 0) {
        g_captures.fetch_add(1, std::memory_order_relaxed);
      }
    }
    own->step_start_ns = 0;
    own->steps = 0;
  }
  g_run.membership->store(Membership::kJoined, std::memory_order_release);
}

void leave_run(std::int32_t status) noexcept {
  // In the child of a vfork(), or of a fork that nobody told of, this page is the parent's.
  if (!in_run() || !is_member() || g_run.process == nullptr || g_run.process->process != getpid()) {
    return;
  }
  g_run.process->status.store(status, std::memory_order_relaxed);
  g_run.process->end_ns.store(spool_now_ns(), std::memory_order_relaxed);
  g_run.process->ending.store(Ending::kExit, std::memory_order_release);
}

unsigned char* make_spool_memory(const char* ending, std::size_t bytes) noexcept {
  if (!in_run()) return nullptr;
  const Undisturbed undisturbed;
  char path[PATH_MAX];
  lane_path(path, next_number(), ending);
  return create(path, bytes);
}

void start_collection() noexcept {
  g_collecting.store(true, std::memory_order_relaxed);
  tell_change();
}
void stop_collection() noexcept {
  g_collecting.store(false, std::memory_order_relaxed);
  tell_change();
}
bool is_stopped() noexcept { return !g_collecting.load(std::memory_order_relaxed); }
void on_collection_change(void (*changed)() noexcept) noexcept {
  for (auto& one : g_changed) {
    void (*nobody)() noexcept = nullptr;
    if (one.compare_exchange_strong(nobody, changed) || nobody == changed) return;
  }
}

void switch_capture(bool on) noexcept {
  if (in_run() && is_member() && g_run.page->capture_by == CaptureBy::kProfiler) set_capture(on);
}
CaptureBy capture_by() noexcept { return in_run() ? g_run.page->capture_by : CaptureBy::kRange; }
std::uint32_t cuda_options() noexcept { return in_run() ? g_run.page->cuda : 0; }

SpoolPush SpoolPush::opening(std::string_view name) noexcept {
  return SpoolPush(in_run() && may_collect() &&
                   (captures(name) || (collects_iterations() &&
                                       (is_optimizer_step(name) || base::names_iteration(name)))));
}

bool is_collecting() noexcept { return in_run() && may_collect() && is_captured(); }

bool is_wanted() noexcept {
  return in_run() && g_collecting.load(std::memory_order_relaxed) && is_captured();
}

bool wants_torch() noexcept { return in_run() && g_run.page->torch != 0; }
void share_paths() noexcept { g_sharing.store(true, std::memory_order_relaxed); }
PythonMode python_mode() noexcept { return in_run() ? g_run.page->python : PythonMode::kOff; }

PythonMode call_places_mode() noexcept {
  return in_run() && g_run.page->call_places != 0 ? g_run.page->python : PythonMode::kOff;
}

void work_begins() noexcept {
  if (g_run.process == nullptr) return;
  g_run.process->under_way.fetch_add(1, std::memory_order_seq_cst);
}

void hold_work(std::int64_t ns) noexcept {
  if (g_run.process == nullptr) return;
  g_run.process->hold_ns.store(ns, std::memory_order_release);
}

void work_ends(std::uint64_t count) noexcept {
  if (g_run.process == nullptr) return;
  g_run.process->under_way.fetch_sub(count, std::memory_order_release);
}

SpoolPush::SpoolPush(bool even_stopped) noexcept : thread_(nullptr) {
  if (!g_joined.load(std::memory_order_acquire)) return;
  SpoolThread* thread = nullptr;
  if (is_member()) [[likely]] {
    if (!even_stopped && !(may_collect() && is_captured())) return;
    thread = this_thread();
  } else {
    after_fork();
    if (!even_stopped && !(may_collect() && is_captured())) return;
    if (is_member()) thread = this_thread();  // else another thread is still at it
  }
  if (thread == nullptr) {
    count_dropped(nullptr);
    return;
  }
  ++thread->pushing;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (!enter(*thread->page)) {
    count_dropped(thread);
    finish_push(*thread);
    return;
  }
  thread_ = thread;
}

SpoolPush::~SpoolPush() {
  if (thread_ == nullptr) return;
  if (!thread_->orphan) {
    if (thread_->worn) begin_next_file(*thread_);
    thread_->page->pending.store(0, std::memory_order_release);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const auto mark = std::exchange(thread_->mark, base::IterationMark::kNone);
  const std::uint64_t name = thread_->mark_name;
  finish_push(*thread_);
  // Who is told may push.
  if (mark != base::IterationMark::kNone) count_mark(mark, name);
}

void count_iterations() noexcept { g_counts_iterations.store(true); }
std::uint64_t iterations_ended() noexcept {
  return g_iterations_ended.load(std::memory_order_relaxed);
}
void on_iteration(void (*function)(std::uint64_t ended)) noexcept {
  g_on_iteration.store(function);
}

std::uint32_t SpoolPush::file() const noexcept { return thread_->number; }
LaneId SpoolPush::lane() const noexcept { return {thread_->lane}; }
SharedPath SpoolPush::path() const noexcept { return path_of(*thread_); }
FrameId SpoolPush::scope() const noexcept { return {thread_->scope}; }

namespace {
Hash hash_of(std::uint64_t key) { return {mix(key), key ^ 0x5bd1e9955bd1e995u}; }
}  // namespace

StringId SpoolPush::known(std::uint64_t key) const noexcept {
  const auto* known = thread_->known_strings.find(hash_of(key));
  return {known != nullptr ? known->value : 0};
}
void SpoolPush::know(std::uint64_t key, StringId string) noexcept {
  if (string.value != 0) thread_->known_strings.add(hash_of(key), string.value);
}

StringId SpoolPush::string(std::string_view text) noexcept { return {intern_text(*thread_, text)}; }

FrameId SpoolPush::frame(FrameId parent, StringId name, ScopeDomain domain) noexcept {
  return {intern_frame(*thread_, parent.value, name.value, domain)};
}

LaneId SpoolPush::queue(const Lane& queue) noexcept {
  LaneCell cell{};
  cell.kind = CellKind::kLane;
  cell.native_id = queue.native_id;
  cell.context = queue.context;
  cell.name = queue.name.value;
  cell.device = queue.device.value;
  cell.type = static_cast<std::uint16_t>(LaneType::kQueue);
  if (queue.native_text) {
    cell.name = queue.native_text.value;
    cell.unbound = 1;
  }
  return {intern_cell(*thread_, cell, thread_->lanes)};
}

LaneId SpoolPush::thread(std::uint64_t native_id) noexcept {
  LaneCell cell{};
  cell.kind = CellKind::kLane;
  cell.native_id = native_id;
  cell.type = static_cast<std::uint16_t>(LaneType::kThread);
  return {intern_cell(*thread_, cell, thread_->lanes)};
}

DeviceId SpoolPush::device(const Device& device) noexcept {
  DeviceCell cell{};
  cell.kind = CellKind::kDevice;
  cell.memory_bytes = device.memory_bytes;
  cell.ordinal = device.ordinal;
  cell.uuid = device.uuid.value;
  cell.name = device.name.value;
  cell.multiprocessors = device.multiprocessors;
  cell.type = static_cast<std::uint32_t>(device.type);
  cell.warp_size = device.warp_size;
  cell.max_threads_per_multiprocessor = device.max_threads_per_multiprocessor;
  cell.compute_major = device.compute_major;
  cell.compute_minor = device.compute_minor;
  return {intern_cell(*thread_, cell, thread_->devices)};
}

AttributesId SpoolPush::attributes(const LaunchAttributes& attributes) noexcept {
  AttributesCell cell{};
  cell.kind = CellKind::kAttributes;
  cell.registers_per_thread = attributes.registers_per_thread;
  cell.static_shared_bytes = attributes.static_shared_bytes;
  cell.dynamic_shared_bytes = attributes.dynamic_shared_bytes;
  cell.local_bytes_per_thread = attributes.local_bytes_per_thread;
  cell.priority = attributes.priority;
  for (int i = 0; i < 3; ++i) {
    cell.block[i] = attributes.block[i];
    cell.cluster[i] = attributes.cluster[i];
  }
  return {intern_cell(*thread_, cell, thread_->attributes)};
}

void SpoolPush::add(const Event& event) noexcept {
  Event* to = room(*thread_, 1);
  if (to == nullptr) {
    count_dropped(thread_);
    return;
  }
  copy_event(*to, event);
  ++thread_->events;
  commit(*thread_, 1);
}

void SpoolPush::add(Event event, std::string_view blob) noexcept {
  const std::size_t cells = cells_of(static_cast<std::uint32_t>(blob.size()));
  Event* to = blob.size() > kMaxTextBytes ? nullptr : room(*thread_, cells + 1);
  if (to == nullptr) {
    count_dropped(thread_);
    return;
  }
  StringCell cell{};
  cell.kind = CellKind::kBlob;
  cell.id = ++thread_->blobs;
  cell.bytes = static_cast<std::uint32_t>(blob.size());
  std::memcpy(static_cast<void*>(to), &cell, sizeof cell);
  if (!blob.empty()) std::memcpy(static_cast<void*>(to + 1), blob.data(), blob.size());
  event.device.blob = {cell.id};
  to[cells] = event;
  ++thread_->events;
  commit(*thread_, cells + 1);
}

void SpoolPush::hold(std::int64_t ns) noexcept {
  thread_->page->hold_ns.store(ns, std::memory_order_release);
}

void SpoolPush::lost(std::uint64_t count) noexcept { count_dropped(thread_, count); }

void SpoolPush::note(Reason reason, std::uint64_t count, std::string_view text) noexcept {
  NoteCell cell{};
  cell.kind = CellKind::kNote;
  cell.count = count;
  cell.text = intern_text(*thread_, text);
  cell.reason = static_cast<std::uint16_t>(reason);
  if (!add_cell(*thread_, cell)) count_dropped(thread_);
}

void SpoolPush::fact(std::string_view key, std::string_view value) noexcept {
  FactCell cell{};
  cell.kind = CellKind::kFact;
  cell.said_ns = now();
  cell.key = intern_text(*thread_, key);
  cell.value = intern_text(*thread_, value);
  if (!add_cell(*thread_, cell)) count_dropped(thread_);
}

std::uint64_t SpoolPush::open(const Said& told, std::uint32_t stack) noexcept {
  if (hides(told)) [[unlikely]] {
    return open(told, Discreet(told).said(), stack);
  }
  return open(told, told, stack);
}

std::uint64_t SpoolPush::open(const Said& told, const Said& said, std::uint32_t stack) noexcept {
  SpoolThread& thread = *thread_;
  // Not that of another thread's range, whatever the program mixes up.
  const std::uint64_t token =
      (std::uint64_t{thread.number} << kTokenBits | ++thread.tokens) & ~kDeep;
  const std::uint8_t meaning = may_collect() ? begin_range(thread, told) : std::uint8_t{0};
  const bool silent = !may_collect() || !(is_captured() || meaning == kCaptures);
  // Once one has been skipped, so are those in it: what a stack skipped are its innermost.
  if (thread.open_count == kMaxOpen || thread.skipped_count > 0) {
    if (!silent) count_dropped(thread_);
    skip(thread, stack);
    if (meaning == kLastIteration) set_capture(false);
    return token | kDeep;
  }
  const std::uint32_t at = thread.open_count;
  OpenRange range{};
  range.token = token;
  range.stack = stack;
  range.domain = static_cast<std::uint16_t>(said.domain);
  range.captures = meaning;
  thread.open_names[at][0] = '\0';
  OpenAutograd& autograd = thread.autograd[at];
  autograd = {.backward = at > 0 ? thread.autograd[at - 1].backward : 0,
              .forward_thread = static_cast<std::uint32_t>(said.forward_thread),
              .path = kNoPath};
  if (silent) {
    range.silent = kLeftOut;
  } else {
    if (said.path_only) range.silent = kPathOnly;
    range.name = intern_text(thread, said.name);
    range.scope = thread.scope;
    const bool numbered = said.sequence != 0 && said.sequence != autograd.backward;
    SharedPath around = kNoPath;
    if (numbered && said.forward_thread != 0) {
      around = forward_path(said.forward_thread, said.sequence);
      const std::uint32_t frame = around == kNoPath ? 0 : frame_of(thread, around);
      if (frame != 0) range.scope = frame;
      if (frame == 0) around = kNoPath;
      autograd.backward = said.sequence;
    }
    if (around == kNoPath && said.below != kNoPath && thread.open_count == 0) {
      const std::uint32_t frame = frame_of(thread, said.below);
      if (frame != 0) {
        range.scope = frame;
        around = said.below;
      }
    }
    if (!said.place.empty()) {
      const std::uint32_t place = intern_text(thread, said.place);
      range.scope = intern_frame(thread, range.scope, place, ScopeDomain::kPython);
      range.captures |= kPlaced;
    }
    range.frame = intern_frame(thread, range.scope, range.name, said.domain);
    if (g_sharing.load(std::memory_order_relaxed) && range.frame != 0) {
      const bool is_forward = numbered && said.forward_thread == 0 && said.thread != 0;
      if (is_forward || around != kNoPath || said.name.size() >= sizeof thread.open_names[at]) {
        if (around == kNoPath) around = path_of(thread);
        autograd.path = opened_path(thread, range.frame, around, said.name, said.domain);
      }
      if (is_forward) remember_forward(said.thread, said.sequence, autograd.path);
    }
    if (said.known_arguments.value != 0) {
      range.arguments = said.known_arguments.value;
    } else if (!said.arguments.empty()) {
      range.arguments = intern_text(thread, said.arguments);
    }
    range.sequence = said.sequence;
    if (meaning == kCaptures) begin_capture();
    keep_name(thread.open_names[at], said.name);
    // What finds no room here is counted here, whatever room there is at its end.
    if (range.name == 0 || range.frame == 0) {
      range.silent = 1;
      range.frame = 0;
      count_dropped(thread_);
    }
  }
  range.start_ns = now();
  copy_range(thread.open[at], range);
  copy_range(thread.page->open[at], range);
  ++thread.open_count;
  thread.page->open_count.store(thread.open_count, std::memory_order_release);
  if (range.frame != 0) thread.scope = range.frame;
  return token;
}

bool SpoolPush::is_too_deep(std::uint64_t token) noexcept { return (token & kDeep) != 0; }

void SpoolPush::close(std::uint64_t token) noexcept {
  SpoolThread& thread = *thread_;
  if ((token == 0 || is_too_deep(token)) && unskip(thread, 0)) return;
  std::uint32_t at = thread.open_count;
  while (at > 0 && token != 0 && thread.open[at - 1].token != token) --at;
  if (at > 0) {
    close_at(thread, at - 1);
  } else {
    count_unmatched();
  }
}

bool SpoolPush::lies_in(std::string_view name, ScopeDomain domain) noexcept {
  if (thread_->open_count == 0) return false;
  const OpenRange& range = thread_->open[thread_->open_count - 1];
  return range.domain == static_cast<std::uint16_t>(domain) && range.name != 0 &&
         range.name == intern_text(*thread_, name);
}

bool SpoolPush::lies_in(ScopeDomain domain) const noexcept {
  std::uint32_t i = thread_->open_count;
  while (i > 0 && thread_->open[i - 1].domain != static_cast<std::uint16_t>(domain)) --i;
  return i > 0;
}

bool SpoolPush::has_place() const noexcept {
  std::uint32_t i = thread_->open_count;
  while (i > 0 && (thread_->open[i - 1].captures & kPlaced) == 0) --i;
  return i > 0;
}

void SpoolPush::close_from(std::uint64_t token) noexcept {
  SpoolThread& thread = *thread_;
  std::uint32_t at = thread.open_count;
  while (at > 0 && thread.open[at - 1].token != token) --at;
  if (at == 0) return close(token);
  thread.skipped_count = 0;  // what was too deep is in all that are open
  while (thread.open_count >= at) close_at(thread, thread.open_count - 1);
}

void SpoolPush::close_row(std::uint64_t first, std::uint64_t last) noexcept {
  SpoolThread& thread = *thread_;
  // Where one was skipped, so were those that follow it.
  const auto number_of = [](std::uint64_t token) { return token & ~kDeep; };
  for (std::uint64_t token = number_of(last); token >= number_of(first); --token) {
    std::uint32_t at = thread.open_count;
    while (at > 0 && thread.open[at - 1].token != token) --at;
    if (at > 0) {
      close_at(thread, at - 1);
    } else if (!unskip(thread, 0)) {
      count_unmatched();
    }
  }
}

std::uint32_t SpoolPush::depth(std::uint32_t stack) const noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < thread_->open_count; ++i) {
    if (thread_->open[i].stack == stack) ++count;
  }
  if (thread_->skipped_count == 0) return count;
  for (const Skipped& skipped : thread_->skipped) {
    if (skipped.stack == stack) count += skipped.count;
  }
  return count;
}

void SpoolPush::close_innermost(std::uint32_t stack) noexcept {
  SpoolThread& thread = *thread_;
  if (unskip(thread, stack)) return;
  std::uint32_t at = thread.open_count;
  while (at > 0 && thread.open[at - 1].stack != stack) --at;
  if (at > 0) {
    close_at(thread, at - 1);
  } else {
    count_unmatched();
  }
}

std::uint64_t SpoolPush::start(const Said& told, std::string_view lane) noexcept {
  if (hides(told)) [[unlikely]] {
    return start(told, Discreet(told).said(), lane);
  }
  return start(told, told, lane);
}

std::uint64_t SpoolPush::start(const Said& told, const Said& said, std::string_view lane) noexcept {
  const std::uint8_t meaning = begin_range(*thread_, told);
  if (!is_captured() && meaning != kCaptures) return 0;
  std::uint32_t number = 0;
  Started* started = take_started(number);
  if (started == nullptr || !keep_text(*started, said, lane)) {
    if (started != nullptr) free_started(*started, number);
    count_dropped(thread_);
    return 0;
  }
  started->domain = said.domain;
  started->captures = meaning;
  if (meaning == kCaptures) begin_capture();
  started->sequence = said.sequence;
  started->start_ns = now();
  SpoolThread& thread = *thread_;
  started->shown = nullptr;
  for (std::uint32_t i = 0; i < kMaxStarted; ++i) {
    StartedRange& shown = thread.page->started[thread.next_started++ % kMaxStarted];
    if (shown.open.load(std::memory_order_acquire) != 0) continue;
    shown.name = intern_text(thread, said.name);
    shown.arguments = said.arguments.empty() ? 0 : intern_text(thread, said.arguments);
    shown.lane = unbound_lane(thread, lane);
    shown.domain = static_cast<std::uint16_t>(said.domain);
    shown.sequence = said.sequence;
    shown.start_ns = started->start_ns;
    shown.open.store(1, std::memory_order_release);
    started->shown = &shown;
    break;
  }
  const std::uint64_t range =
      std::uint64_t{++started->generation} << 32 | std::uint64_t{number + 1};
  started->range.store(range, std::memory_order_release);
  return range;
}

void SpoolPush::finish(std::uint64_t range) noexcept {
  if (range == 0) return;
  const auto number = static_cast<std::uint32_t>(range) - 1;
  Started* started = started_of(number);
  std::uint64_t expected = range;
  if (started == nullptr ||
      !started->range.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
    count_unmatched();
    return;
  }
  const char* text = started->large != nullptr ? started->large : started->text;
  const std::string_view arguments{text + started->name_bytes, started->arguments_bytes};
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kAnnotation;
  event.detail = static_cast<std::uint16_t>(started->domain);
  event.name = string({text, started->name_bytes});
  event.range.sequence = started->sequence;
  if (!arguments.empty()) event.range.arguments = string(arguments);
  event.lane = {unbound_lane(*thread_, {arguments.data() + arguments.size(), started->lane_bytes})};
  event.start_ns = started->start_ns;
  event.end_ns = now();
  // By another thread, whose clock may be a little behind.
  if (event.end_ns < event.start_ns) event.end_ns = event.start_ns;
  if (event.lane) {
    add(event);
  } else {
    count_dropped(thread_);
  }
  if (started->shown != nullptr) started->shown->open.store(0, std::memory_order_release);
  end_range(started->captures);
  free_started(*started, number);
}

void SpoolPush::mark(const Said& said) noexcept {
  if (hides(said)) [[unlikely]] {
    return add_mark(Discreet(said).said());
  }
  add_mark(said);
}

void SpoolPush::add_mark(const Said& said) noexcept {
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kInstant;
  event.name = string(said.name);
  event.lane = lane();
  event.scope = scope();
  event.detail = static_cast<std::uint16_t>(said.domain);
  event.range.sequence = said.sequence;
  if (!said.arguments.empty()) event.range.arguments = string(said.arguments);
  event.start_ns = event.end_ns = now();
  add(event);
}

void SpoolPush::step() noexcept {
  SpoolThread& thread = *thread_;
  Event event{};
  if (thread.step_start_ns != 0) {
    char name[32];
    const char* end = append(append(name, "step#"), thread.steps - 1);
    event.kind = Kind::kScope;
    event.name = string({name, static_cast<std::size_t>(end - name)});
    event.lane = lane();
    event.scope = scope();
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kIteration);
  }
  const std::int64_t now_ns = now();
  if (thread.step_start_ns != 0) {
    event.start_ns = thread.step_start_ns;
    event.end_ns = now_ns;
    add(event);
  }
  if (g_counts_iterations.load(std::memory_order_relaxed)) {
    thread.mark = base::IterationMark::kStep;
    thread.mark_name = 0;
  }
  if (may_collect() && collects_iterations() &&
      may_tell(static_cast<std::uint64_t>(Teller::kSteps))) {
    begin_iteration(static_cast<std::int64_t>(thread.steps));
  }
  thread.step_start_ns = may_collect() && is_captured() ? now_ns : 0;
  ++thread.steps;
}

bool SpoolPush::origin(std::uint32_t number) noexcept {
  OriginCell cell{};
  cell.kind = CellKind::kOrigin;
  cell.number = number;
  cell.frame = thread_->scope;
  if (cell.frame == 0) return false;
  if (add_cell(*thread_, cell)) return true;
  count_dropped(thread_);
  return false;
}

void SpoolPush::name_thread(std::uint64_t thread, std::string_view name) noexcept {
  LaneCell cell{};
  cell.kind = CellKind::kLane;
  cell.native_id = thread;
  cell.name = intern_text(*thread_, name);
  cell.type = static_cast<std::uint16_t>(LaneType::kThread);
  cell.named = 1;
  if (intern_cell(*thread_, cell, thread_->lanes) == 0) {
    count_dropped(thread_);
  }
}

}  // namespace pasta::trace
