// The folder that a watched run writes into, as it lies in shared memory: what the collector writes
// and who follows it reads.
//
//   run            one RunPage: clock, limits, how the program ended
//   N.process      one ProcessPage for each image that a process ran (an exec() makes a new one)
//   N-M.vendor     buffers that a vendor's library fills; what it has handed out is in a lane
//   N-M.lane       a LanePage, a window of cells, and cells: 64 bytes each, what one thread at a
//                  time appends. Where only the newest part is kept, a thread begins a new file now
//                  and then, so that old ones can be taken away
//   N-M.before     of a lane whose beginning has been taken away: what later cells rest on of it,
//                  and what was lost
//
// Pages and windows are memory that is mapped shared, so what has been stored is there whatever
// becomes of the writer. Their space is reserved before they are mapped: a full disk is an error of
// a call, never a SIGBUS. A window that is full is written behind what has been written before, as
// a whole, and is empty then: cell i of a file lies behind the window when i < `flushed`, else in
// it, at place i - `flushed`. To map more and more instead takes twice the time. A cell is an Event
// or, told by its kind, one of the records below that define what later events of the same file
// refer to by number. Numbers of strings, frames and the like are the file's own. Nothing that has
// been committed is ever changed.
//
// Only what a program without libstdc++ can have: this header is for the collector too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "pasta/event.h"

namespace pasta::trace::spool {

inline constexpr std::uint64_t kRunMagic = 0x006e757241545350;      // "PSTArun\0"
inline constexpr std::uint64_t kProcessMagic = 0x006f727041545350;  // "PSTApro\0"
inline constexpr std::uint64_t kLaneMagic = 0x0065616c41545350;     // "PSTAlae\0"
inline constexpr std::uint32_t kVersion = 5;

inline constexpr const char* kRunFile = "run";
inline constexpr const char* kProcessEnding = ".process";
inline constexpr const char* kLaneEnding = ".lane";
inline constexpr const char* kBeforeEnding = ".before";
inline constexpr const char* kVendorEnding = ".vendor";
inline constexpr const char* kGoneEnding = ".gone";  // let go, about to be taken away
inline constexpr const char* kFolderVariable = "PASTA_RUN_FOLDER";

inline constexpr std::int64_t kNoHold = std::numeric_limits<std::int64_t>::max();

// What opens the stretches outside of which nothing is collected.
enum class CaptureBy : std::uint32_t {
  kRange,       // a range that is called RunPage::capture, if that is a name
  kProfiler,    // the program, by its vendor's switch of profilers (cudaProfilerStart)
  kIterations,  // iterations, by their numbers
};

// RunPage::cuda.
inline constexpr std::uint32_t kCudaDriverCalls = 1;  // all calls of the driver
inline constexpr std::uint32_t kCudaWholeGraphs = 2;  // graphs as one piece of work each
inline constexpr std::uint32_t kCudaFillCalls = 4;    // of fills nothing but their calls
inline constexpr std::uint32_t kCudaVendorClock = 8;  // times of devices are what CUPTI makes
// How much of Python's call stack is told with operators and calls.
enum class PythonMode : std::uint32_t { kOff, kLines, kStacks };

// Times in a spool are of CLOCK_MONOTONIC, to within kClockNs where the run's page allows ticks.
inline constexpr std::int64_t kClockNs = 20'000;
struct RunPage {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint32_t version;
  std::uint8_t ticks;     // 1: times may be told by the processor's ticks, see tick_clock.h
  std::uint8_t barriers;  // 1: who follows makes all threads pass a barrier, see barrier.h
  std::uint16_t reserved;
  std::int64_t start_ns;
  std::int64_t epoch_ns;  // what makes a time one since 1970
  std::uint64_t limit_bytes;
  std::atomic<std::uint64_t> used_bytes;
  std::atomic<std::uint64_t> dropped;  // of processes and threads that have no file of their own
  std::atomic<std::uint32_t> files;    // names given
  std::atomic<std::uint32_t> over;     // 1: end_ns and wait_status are set
  std::int64_t end_ns;
  std::int32_t program;      // the process that was started
  std::int32_t wait_status;  // as waitpid() gives it
  std::int32_t rank;         // that whoever started the run is; -1 = unknown
  std::int32_t world_size;
  char host[64];
  // Of these texts one that does not fit is refused before the run begins; "" is none.
  char capture[256];   // name of the range outside of which nothing is collected
  char include[1024];  // extended regular expressions: which commands are collected from
  char exclude[1024];
  // Where only the newest part is kept: what of it, as the user said ("60s"); else "" and 0.
  char keep[64];
  std::uint64_t segment_bytes;  // a thread begins a new file when one has got so large
  // Of what ended earlier than this, some has been let go: so many events and losses of events.
  // Where all is kept, they are in the trace that whoever follows writes.
  std::atomic<std::int64_t> kept_from_ns;
  std::atomic<std::uint64_t> let_go;
  // 1: nothing is collected now. Away from what is written often, because each push asks.
  alignas(64) std::atomic<std::uint32_t> paused;
  // What `capture` is: "" or the text as the user gave it, and here what it means.
  CaptureBy capture_by;
  std::int64_t first_iteration, last_iteration;  // of kIterations
  std::uint32_t cuda;                            // sum of kCudaDriverCalls and the like
  // How often a process began to be collected from because of `capture`, and iterations that were
  // told of, in all processes.
  std::atomic<std::uint32_t> captured;
  std::atomic<std::uint64_t> iterations;
  std::uint32_t torch;  // 1: operators and modules of PyTorch are wanted
  PythonMode python;
  std::uint32_t call_places;  // 1: where Python calls vendors' libraries is wanted
  std::uint32_t hides;        // 1: what programs call their own ranges is kept as a hash only
};
static_assert(sizeof(RunPage) <= 4096);

enum class Ending : std::uint32_t { kUnknown, kExit };

struct ProcessPage {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint32_t version;
  std::int32_t process;
  std::int32_t parent;
  std::int32_t rank;  // -1 = unknown
  std::int32_t world_size;
  std::uint32_t forked;         // 1: began by fork(), so that its command is its parent's
  std::uint64_t started_ticks;  // of /proc: with the process id, tells processes apart
  std::uint64_t namespace_id;   // what its ids mean; 0 = unknown
  std::int64_t start_ns;
  std::atomic<std::int64_t> end_ns;
  std::atomic<Ending> ending;  // after end_ns and status
  std::atomic<std::int32_t> status;
  std::atomic<std::uint64_t> dropped;    // of threads without a file
  std::atomic<std::uint64_t> unmatched;  // ends of ranges that were not open
  // Work on devices that has been launched and not yet been committed. While there is any, what
  // is committed of it ends no earlier than hold_ns, whichever thread commits it.
  std::atomic<std::uint64_t> under_way;
  std::atomic<std::int64_t> hold_ns;
  std::uint32_t command_bytes;
  char name[32];
  char command[3928];  // arguments, each ended by a zero byte; cut where it is too long
};
static_assert(sizeof(ProcessPage) <= 4096);

// A range of a thread that has not ended.
struct OpenRange {
  std::int64_t start_ns;
  std::uint64_t token;
  std::uint64_t sequence;
  std::uint32_t name;
  std::uint32_t scope;  // the frame around it
  std::uint32_t frame;  // its own
  std::uint32_t arguments;
  std::uint32_t stack;
  std::uint16_t domain;
  std::uint8_t captures;  // sum of kCaptures and its kin
  std::uint8_t silent;    // not 0: it is not kept, see below
};
inline constexpr std::uint32_t kMaxOpen = 128;
// OpenRange::silent.
inline constexpr std::uint8_t kLeftOut = 1;   // or lost and counted
inline constexpr std::uint8_t kPathOnly = 2;  // part of paths, and no event
// OpenRange::captures.
inline constexpr std::uint8_t kCaptures = 1;       // it is one of those that RunPage::capture names
inline constexpr std::uint8_t kLastIteration = 2;  // its end ends the iterations that are wanted
inline constexpr std::uint8_t kOptimizer = 4;      // its end is the end of an iteration
inline constexpr std::uint8_t kPlaced = 8;         // where it was made is told

// A range of the process that has not ended, in the page of the thread that began it. Any thread
// may end it.
struct StartedRange {
  std::int64_t start_ns;
  std::uint64_t sequence;
  std::uint32_t name;
  std::uint32_t lane;
  std::uint32_t arguments;
  std::uint16_t domain;
  std::uint16_t reserved;
  std::atomic<std::uint32_t> open;  // 1 when all of it is set
  std::uint32_t reserved2;
};
inline constexpr std::uint32_t kMaxStarted = 128;

struct LanePage {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint32_t version;
  std::uint32_t process;                 // N of its N.process
  std::atomic<std::uint64_t> committed;  // whole cells
  std::atomic<std::uint64_t> dropped;
  // Not 0 while the thread is between taking a time and committing what ends then.
  std::atomic<std::uint32_t> pending;
  std::atomic<std::uint32_t> open_count;  // may exceed kMaxOpen
  // What is pushed later ends no earlier than this, even if it is pushed long after it ended.
  std::atomic<std::int64_t> hold_ns;
  std::uint32_t lane;  // number of the thread's lane, for `open`
  // M + 1 of the N-M.lane that this one goes on from; 0: none. What is open here is no longer open
  // there.
  std::uint32_t follows;
  std::atomic<std::uint32_t> retired;  // 1: nothing more will come
  std::atomic<std::uint32_t> texts_cut;
  std::atomic<std::uint64_t> told;  // of `dropped`, by gaps among the cells
  OpenRange open[kMaxOpen];
  StartedRange started[kMaxStarted];
  std::atomic<std::uint64_t> flushed;  // of `committed`: they have left the window
  // Of `flushed`: they are no longer in the file, which has a hole there. By whoever follows.
  std::atomic<std::uint64_t> gone;
};
static_assert(offsetof(LanePage, gone) == offsetof(LanePage, flushed) + 8);
inline constexpr std::size_t kLanePageBytes = 16384;
inline constexpr std::size_t kWindowBytes = std::size_t{112} << 10;
static_assert(sizeof(LanePage) <= kLanePageBytes);

// In an N-M.before, before so many cells of the lane, of which the first was its `cell`. Cells from
// LanePage::gone on are still in the lane.
struct BeforeHead {
  std::uint64_t cell, cells;
};

// What stands in the place of an event's kind in cells that are none.
enum class CellKind : std::uint8_t {
  kString = 0x80,      // StringCell, then its text in whole cells
  kFrame = 0x81,       // FrameCell
  kLane = 0x82,        // LaneCell
  kDevice = 0x83,      // DeviceCell
  kAttributes = 0x84,  // AttributesCell
  kFact = 0x85,        // FactCell
  kNote = 0x86,        // NoteCell
  kBlob = 0x87,        // as kString; of the kDevice event that is committed with it
  kOrigin = 0x88,      // OriginCell
};

// `kind` lies where an event's does.
struct StringCell {
  std::uint32_t id;
  std::uint32_t bytes;
  std::uint8_t unused[30];
  CellKind kind;
  std::uint8_t unused2[25];
};
struct FrameCell {
  std::uint32_t id, parent, name;
  std::uint32_t domain;
  std::uint8_t unused[22];
  CellKind kind;
  std::uint8_t unused2[25];
};
struct LaneCell {
  std::uint64_t native_id;
  std::uint64_t context;
  std::uint32_t id, name, device;
  std::uint16_t type;
  std::uint8_t named;    // 1: by the program, not by the system
  std::uint8_t unbound;  // 1: of the process; only its name tells it from others
  std::uint8_t unused[6];
  CellKind kind;
  std::uint8_t unused2[25];
};
struct DeviceCell {
  std::uint64_t memory_bytes;
  std::uint32_t id, ordinal, uuid, name;
  std::uint32_t multiprocessors, type;
  std::uint8_t unused[6];
  CellKind kind;
  std::uint8_t unused2;
  std::uint32_t warp_size, max_threads_per_multiprocessor;
  std::uint32_t compute_major, compute_minor;
  std::uint8_t unused3[8];
};
struct AttributesCell {
  std::uint32_t id;
  std::uint32_t registers_per_thread, static_shared_bytes, dynamic_shared_bytes;
  std::uint32_t local_bytes_per_thread;
  std::int32_t priority;
  std::uint8_t unused[14];
  CellKind kind;
  std::uint8_t unused2;
  std::uint32_t block[3];
  std::uint32_t cluster[3];
};
// A problem that the collector has met.
struct NoteCell {
  std::uint64_t count;
  std::uint32_t text;
  std::uint16_t reason;  // pasta::Reason
  std::uint8_t unused[24];
  CellKind kind;
  std::uint8_t unused2[25];
};
// Of the process. Of equal keys the value that was said last counts.
struct FactCell {
  std::int64_t said_ns;
  std::uint32_t key, value;
  std::uint8_t unused[22];
  CellKind kind;
  std::uint8_t unused2[25];
};
// The path at which the program made something that it runs later, such as a node of a graph.
// Numbers are the process's own, from 1.
struct OriginCell {
  std::uint32_t number, frame;
  std::uint8_t unused[30];
  CellKind kind;
  std::uint8_t unused2[25];
};
// The scope of device work that has an origin, plus its number; it is added to the launch's path.
inline constexpr std::uint32_t kScopeOfOrigin = std::uint32_t{1} << 31;
// The scope of a call that another thread tells of afterwards: what its own thread had open when it
// began.
inline constexpr std::uint32_t kScopeByTime = ~std::uint32_t{0};
inline constexpr std::size_t kCellBytes = sizeof(Event);
inline constexpr std::uint64_t kWindowCells = kWindowBytes / kCellBytes;
static_assert(sizeof(StringCell) == 64 && offsetof(StringCell, kind) == offsetof(Event, kind));
static_assert(sizeof(FrameCell) == 64 && offsetof(FrameCell, kind) == offsetof(Event, kind));
static_assert(sizeof(LaneCell) == 64 && offsetof(LaneCell, kind) == offsetof(Event, kind));
static_assert(sizeof(DeviceCell) == 64 && offsetof(DeviceCell, kind) == offsetof(Event, kind));
static_assert(sizeof(NoteCell) == 64 && offsetof(NoteCell, kind) == offsetof(Event, kind));
static_assert(sizeof(OriginCell) == 64 && offsetof(OriginCell, kind) == offsetof(Event, kind));
static_assert(sizeof(FactCell) == 64 && offsetof(FactCell, kind) == offsetof(Event, kind));
static_assert(sizeof(AttributesCell) == 64 &&
              offsetof(AttributesCell, kind) == offsetof(Event, kind));
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

// Longer texts are cut: the rest is not kept.
inline constexpr std::uint32_t kMaxTextBytes = 32 << 10;

}  // namespace pasta::trace::spool
