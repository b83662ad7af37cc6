// How the watched process writes its spool (see spool.h): the interface for everything that
// collects in it, be it annotations, NVTX, or a layer over a vendor's library.
//
//   trace::SpoolPush push;                       // enters this thread's spool
//   if (push) {                                  // false: not watched, or no room; that is counted
//     Event event{};
//     event.kind = Kind::kApi;
//     event.name = push.string("clFinish");      // a number of this spool, defined on first sight
//     event.lane = push.lane();                  // this thread; others by push.queue()
//     event.scope = push.scope();                // the innermost open range
//     event.start_ns = began, event.end_ns = push.now();
//     push.add(event);
//   }
//
// - Of a thread: take end times by now() of a SpoolPush, after it was made. Whoever follows the
//   spool trusts that what is committed later ends later.
// - What ends long before it is pushed (device work that a callback tells of): call hold() with a
//   time before that at which it can start, and let go with kNoHold once nothing is under way.
//   Pushes may then come from any thread, each into its own spool; the hold must be in one of them.
//   work_begins() and its kin are the same for the whole process.
// - Device work is committed after the call that launched it: who follows links the two.
// - Nothing here allocates from the heap, throws, takes a lock or waits for another thread. What
//   finds no room is counted and is not kept. In a signal handler that interrupts a push, the same.
//
// The most that a push can do. Nearly always: write to memory that is mapped, a text's bytes once
// more where it is new, and no call of the system (where times are told by ticks, see tick_clock.h,
// one of the vDSO every millisecond). Else one of these, with signals blocked meanwhile:
//   the first of a thread     makes its file: about 20 calls, 20 us; 3 MiB of memory at most,
//                             as far as it is used
//   a window that is full     is written to the file, 112 KiB in one write: about 40 us, as long as
//   (1792 cells)              the disk takes at worst; that it is slow is the only thing that a
//                             push ever waits for
//   no room on the disk       one push of 1024 tries again to write; the others cost the check
//   only the newest is kept   a new file every `segment_bytes`, as the first; and when nobody
//   follows
//                             any more, an old one is taken away for it
//   a stack that has moved    by 1 MiB or more, as between coroutines: the thread's number is asked
//
// Needs no libstdc++: it is loaded into programs that do not have it.
#pragma once

#include <cstdint>
#include <string_view>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "trace/job_rank.h"
#include "trace/shared_paths.h"
#include "trace/spool.h"

namespace pasta::trace {

struct SpoolThread;

// Joins the run that lives in `folder`. Once in a process, before its first push; false when the
// folder is not there or cannot be written: then everything here does nothing.
bool join_run(const char* folder, const JobRank& rank) noexcept;
// Whether join_run() has succeeded.
bool in_run() noexcept;
// In the child after fork(), which gets files of its own; ranges that were open go on in it from
// now on. Also found out by the first push when nobody has said it.
void after_fork() noexcept;
// The process is about to end with this status.
void leave_run(std::int32_t status) noexcept;
// CLOCK_MONOTONIC to within spool::kClockNs, mostly much less; in a thread it never goes back.
std::int64_t spool_now_ns() noexcept;

// `bytes` of zeros of a file of its own in the run's folder, "N-M" and `ending`, that stay mapped:
// what lies there is there whatever becomes of the process. In a child after fork() they are still
// the parent's. None when there is no room.
unsigned char* make_spool_memory(const char* ending, std::size_t bytes) noexcept;

// Of the whole process: while stopped, SpoolPush is false and nothing is counted. Ranges that are
// open go on, and their ends are kept. The run may be paused as well, or collect only inside of
// ranges of one name.
void start_collection() noexcept;
void stop_collection() noexcept;
// Whether this process has been stopped so.
bool is_stopped() noexcept;
// In a run, and not stopped.
bool is_collecting() noexcept;
// The same, whether the whole run is paused or not: what on_collection_change() tells of.
bool is_wanted() noexcept;
// `changed` is called when this process may have begun or ceased to be; not when the whole run is
// paused, which the process finds out by asking. It may be called within a push. At most four.
void on_collection_change(void (*changed)() noexcept) noexcept;

// The vendor's switch of profilers, which the program has set (cudaProfilerStart,
// cudaProfilerStop). Does nothing unless the run collects by it.
void switch_capture(bool on) noexcept;
// From now on iterations are counted, by what base::IterationCounter makes of pasta_step() and of
// the ranges that begin while this process is collected from.
void count_iterations() noexcept;
std::uint64_t iterations_ended() noexcept;
// `function` is called by the thread that ends one, outside of pushes, with how many have ended.
void on_iteration(void (*function)(std::uint64_t ended)) noexcept;
// Of the run: see RunPage.
spool::CaptureBy capture_by() noexcept;
std::uint32_t cuda_options() noexcept;
// What the user wants to know of Python in this run. None outside of one.
bool wants_torch() noexcept;
// From now on ranges can be told to be the backward of others: what opens costs more.
void share_paths() noexcept;
spool::PythonMode python_mode() noexcept;
// The same of where vendors' libraries are called.
spool::PythonMode call_places_mode() noexcept;

// Device work of the process that is under way. What a process leaves under way when it ends is
// counted as lost.
//   work_begins()       before the launch, and before the time that hold_work() will be told of it
//   hold_work(ns)       work that is under way, or begins from now on, ends no earlier than `ns`
//   work_ends(count)    after the work has been committed, or has come to nothing
void work_begins() noexcept;
void hold_work(std::int64_t ns) noexcept;
void work_ends(std::uint64_t count) noexcept;

// What is said of a range or a moment.
struct Said {
  std::string_view name;
  ScopeDomain domain = ScopeDomain::kAnnotation;
  std::string_view arguments = {};  // a JSON object
  StringId known_arguments = {};    // the same as a string of this spool, instead
  std::uint64_t sequence = 0;
  // Autograd's numbers of threads; 0 = none. `thread` is this one. Who gives `forward_thread` too
  // is the backward of what bore the same sequence there, and hangs below it (docs/correlation.md).
  std::uint64_t thread = 0;
  std::uint64_t forward_thread = 0;
  // Where it hangs on a thread that has nothing open, unless below its forward operator.
  SharedPath below = kNoPath;
  // Part of the paths of what lies in it, and no event of its own.
  bool path_only = false;
  // Where in the program's Python it was made: that is in its path, around it.
  std::string_view place = {};
  // A module that a compiler has made: many small ones come again and again, and tell no iteration.
  bool is_compiled = false;
};

class SpoolPush {
 public:
  SpoolPush() noexcept : SpoolPush(false) {}
  // Of what began while collecting: also while stopped.
  static SpoolPush even_stopped() noexcept { return SpoolPush(true); }
  // For open() of a range of this name, which may be the one inside of which the run collects.
  static SpoolPush opening(std::string_view name) noexcept;
  ~SpoolPush();
  SpoolPush(const SpoolPush&) = delete;
  SpoolPush& operator=(const SpoolPush&) = delete;
  explicit operator bool() const { return thread_ != nullptr; }

  [[nodiscard]] static std::int64_t now() noexcept { return spool_now_ns(); }
  // What tells the files of a process apart. A thread may go on in another with its next push,
  // where numbers given so far mean nothing.
  [[nodiscard]] std::uint32_t file() const noexcept;
  // This thread's.
  [[nodiscard]] LaneId lane() const noexcept;
  // Of the innermost open range that is known; none outside.
  [[nodiscard]] FrameId scope() const noexcept;
  // The same for other threads, once paths are shared.
  [[nodiscard]] SharedPath path() const noexcept;
  // Numbers of this spool, equal or not for equal text. {} when there is no room.
  StringId string(std::string_view text) noexcept;
  // A string that stands for a number which is as good as its text, and takes less to find out:
  // {} until it has been told.
  [[nodiscard]] StringId known(std::uint64_t key) const noexcept;
  void know(std::uint64_t key, StringId string) noexcept;
  FrameId frame(FrameId parent, StringId name, ScopeDomain domain) noexcept;
  // A device queue. The same `queue` gives the same lane in all spools of the process. Text fields
  // of `queue` and of `device` are strings of this spool.
  LaneId queue(const Lane& queue) noexcept;
  // Another thread of the process, by its system id.
  LaneId thread(std::uint64_t native_id) noexcept;
  DeviceId device(const Device& device) noexcept;
  AttributesId attributes(const LaunchAttributes& attributes) noexcept;

  void add(const Event& event) noexcept;
  // Of kind kDevice, with its bytes: at most spool::kMaxTextBytes, more is dropped and counted.
  void add(Event event, std::string_view blob) noexcept;
  void hold(std::int64_t ns) noexcept;
  // Events that a vendor has dropped, of which nothing else is known.
  void lost(std::uint64_t count) noexcept;
  // What readers of the trace are told besides its events.
  void note(Reason reason, std::uint64_t count, std::string_view text) noexcept;
  // A fact of the process; the last value of a key counts.
  void fact(std::string_view key, std::string_view value) noexcept;

  // A range of this thread from now on; gives what close() needs. Collection may be stopped: then
  // it is not kept, and still has to be closed.
  std::uint64_t open(const Said& said, std::uint32_t stack = 0) noexcept;
  // Whether what open() has given is of a range that is nested too deep to be kept.
  static bool is_too_deep(std::uint64_t token) noexcept;
  // Ends the range that `token` is of, which need not be the innermost; 0: the innermost.
  void close(std::uint64_t token) noexcept;
  // Whether the innermost open range of this thread is called so.
  [[nodiscard]] bool lies_in(std::string_view name, ScopeDomain domain) noexcept;
  // Whether some open range of this thread is of this kind.
  [[nodiscard]] bool lies_in(ScopeDomain domain) const noexcept;
  // Whether of some open range of this thread its place was told.
  [[nodiscard]] bool has_place() const noexcept;
  // Ends that range and all that are open in it, the innermost first.
  void close_from(std::uint64_t token) noexcept;
  // Ends the ranges that one push has opened in a row, `first` and so on up to `last`, and none of
  // those that are open in them.
  void close_row(std::uint64_t first, std::uint64_t last) noexcept;
  // How many ranges of this stack are open; their innermost ends.
  [[nodiscard]] std::uint32_t depth(std::uint32_t stack) const noexcept;
  void close_innermost(std::uint32_t stack) noexcept;
  // A range of the process, on a lane of this name; gives what finish() needs, 0 when it is not
  // kept. Any thread may end it, in the process that began it.
  std::uint64_t start(const Said& said, std::string_view lane) noexcept;
  void finish(std::uint64_t range) noexcept;
  // A moment.
  void mark(const Said& said) noexcept;
  // Ends the iteration that is under way on this thread, and begins the next. Iterations are
  // counted also while collection is stopped.
  void step() noexcept;
  // The path that is open now is where something was made that `number` stands for: see
  // spool::OriginCell. False when there is no path, or no room.
  bool origin(std::uint32_t number) noexcept;
  // What the program calls a thread, by the system's number.
  void name_thread(std::uint64_t thread, std::string_view name) noexcept;

 private:
  explicit SpoolPush(bool even_stopped) noexcept;
  // Of what the program has told, `said` is to be kept.
  std::uint64_t open(const Said& told, const Said& said, std::uint32_t stack) noexcept;
  std::uint64_t start(const Said& told, const Said& said, std::string_view lane) noexcept;
  void add_mark(const Said& said) noexcept;

  SpoolThread* thread_;
};

}  // namespace pasta::trace
