// What CUDA's driver loads (CUDA_INJECTION64_PATH) into a program whose accesses are to be analysed
// on the GPU. A library of its own, see src/collect.
//
// A launch that is taken gets a piece of a block of device memory, its header and tables written on
// its own stream before it begins; the patches in its code count there. Nobody waits for a launch:
// now and then a mark is written behind the launches of a stream, and a thread of ours, on a stream
// of its own, sees by the marks what is complete, takes the results and zeroes the pieces for those
// that come.
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/sanitizer/api.h"
#include "adapters/sanitizer/cubin.h"
#include "adapters/sanitizer/objects.h"
#include "adapters/sanitizer/opcodes.h"
#include "adapters/sanitizer/patches.h"
#include "adapters/sanitizer/places.h"
#include "adapters/sanitizer/pool.h"
#include "adapters/sanitizer/tensor_maps.h"
#include "device/launch_policy.h"
#include "pasta/quality.h"
#include "trace/device_result.h"
#include "trace/spool.h"

namespace pasta::adapters::sanitizer {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Of each context: for launches, which find it zero, and for what they share, which need not; with
// 128 GiB of objects, launches between two marks may each share another MiB. Where the program has
// left too little for the first, it is the next.
struct ArenaBytes {
  std::size_t tables, launches;
};
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::array kArenas = {ArenaBytes{16 * kMiB, 80 * kMiB}, ArenaBytes{8 * kMiB, 40 * kMiB},
                                ArenaBytes{4 * kMiB, 9 * kMiB}};
constexpr std::uint32_t kMostStreams = 1024;
constexpr std::size_t kMarkBytes = kMostStreams * sizeof(std::uint64_t);
// Launches of a stream between two marks, and for how long none is written.
constexpr std::uint64_t kLaunchesPerMark = 16;
constexpr auto kMarkAfter = 20ms;
constexpr auto kLook = 2ms;
// How long a launch waits for room, and the end of the process for results.
constexpr auto kMostWait = 5s;
constexpr auto kMostEnd = 10s;
constexpr auto kMarkAgain = 50ms;
// What is waited for then is a mark in the device's memory, of which nothing here is told.
constexpr auto kHelpAgain = 100us;
// Launches whose results a thread takes at a time: what it has begun to take no other can.
constexpr std::size_t kMostTaken = 8;
// Iterations without patches whose launches are timed, and of one at most so many.
constexpr std::uint32_t kTimedIterations = 3;
constexpr std::size_t kMostTimed = std::size_t{1} << 16;

// CU_STREAM_CAPTURE_MODE_RELAXED: what a thread does spoils no graph that others capture.
constexpr std::int32_t kRelaxed = 2;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Stream {
  std::uint32_t index;
  Handle handle;
  std::uint64_t begun = 0;       // launches, whose numbers are 1, 2, ...
  std::set<std::uint64_t> open;  // begun, and not yet handed to the device
  std::uint64_t marked = 0;      // a mark is on its way that says so many are complete
  std::uint64_t complete = 0;
  bool is_gone = false;  // the program has destroyed it, and its last mark is on its way
  Clock::time_point last_mark{};

  // All up to here have been handed to the device.
  [[nodiscard]] std::uint64_t submitted() const { return open.empty() ? begun : *open.begin() - 1; }
};

// What lies on the device for all launches that see the same objects, until the last of them is
// over. Each stream writes it, as long as it is not known to be there: the same bytes once more
// change nothing.
struct Table {
  std::shared_ptr<const Snapshot> snapshot;
  const PatchKind* patch;
  std::unique_ptr<PatchOfObjects> of;
  std::size_t at;  // among the tables
  // Launches whose results have not been taken, with those that were refused, and the context.
  std::uint64_t users = 0;
  std::map<const Stream*, std::uint64_t> written;  // behind so many launches of each

  [[nodiscard]] bool is_there_for(const Stream& stream) const {
    return written.contains(&stream) || std::ranges::any_of(written, [](const auto& by) {
             return by.first->complete > by.second;
           });
  }
};

// One more launch that is counted with another.
struct Twin {
  std::uint64_t number;
  device::StreamRow place;
};
using Twins = std::vector<Twin>;

// A launch whose results have not been taken.
struct Pending {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence;  // in its stream
  std::size_t at;          // among the launches
  Block block;             // without its image
  std::shared_ptr<Table> table;
  device::Launch launch;
  std::string kernel;
  std::uint64_t code, code_bytes;
  std::optional<Unseen> unseen;
  std::shared_ptr<const Places> places;
  std::vector<std::uint64_t> mapped;  // where the tensor maps begin that it was given
  std::uint64_t number;               // in the process
  std::uint64_t iteration;            // as IterationRow has it
  device::StreamRow place;
  std::int64_t start_ns;
  std::shared_ptr<Twins> twins;  // none: it is no node of a graph
};

// Where results are copied to.
struct HostRoom {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};

struct Context {
  Handle handle;
  std::set<std::string> codes;  // of patches, that are there
  bool lost = false;            // the device has failed
  std::byte* arena = nullptr;   // marks, tables, launches
  Pool tables, pool;
  std::shared_ptr<Table> table;                       // of the objects as they were last
  HostRoom our_room, program_room;                    // of our thread, of a thread of the program
  std::map<Handle, std::shared_ptr<Stream>> streams;  // by handle
  std::uint32_t stream_count = 0;
  std::deque<Pending> pending;
  std::size_t taking = 0;       // launches whose results are just being taken
  Handle own_stream = nullptr;  // of our thread
  bool has_own_stream = false;

  // Nothing more will come of what has been launched.
  [[nodiscard]] bool is_done() const { return lost || (pending.empty() && taking == 0); }
};

struct Module {
  Handle context = nullptr;
  bool patched = false;
  std::map<std::string, Unseen, std::less<>> unseen;  // by kernel
  std::shared_ptr<const Places> places = std::make_shared<Places>();
  std::vector<std::string> variables;    // of which it is not known yet where they lie
  std::vector<std::uint64_t> addresses;  // where others do
};

struct Function {
  std::uint64_t code = 0, bytes = 0;
};

// A launch between two events of the device.
struct Timed {
  std::string kernel;
  Handle context, begin, end;
};

using StreamOf = std::pair<Handle, Handle>;  // a context and one of its streams

struct State {
  const trace::DeviceCollector* collector = nullptr;
  Api api{};
  Driver driver{};
  bool has_driver = false;
  Handle subscriber = nullptr;
  std::string patches_path;  // of all patches; "": each has a file of its own
  // Code with patches asks what its launch was given, until the end of the process: so launches are
  // told of as long, and given nothing once nothing is analysed any more.
  std::atomic<bool> started{false}, active{false};
  std::atomic<std::uint64_t> with_variables{0};  // modules that were loaded
  std::atomic<bool> since_13_1{false};           // so much is known of the library
  std::FILE* log = nullptr;

  std::mutex objects_mutex;  // nothing is called while it is held
  Objects objects;

  std::mutex maps_mutex;  // nothing is called while it is held
  TensorMaps maps;

  std::mutex switching;  // from one patch to another; before `patching`
  std::mutex making;     // of streams of ours
  std::mutex helping;    // by a thread of the program; before all below
  std::mutex pushing;    // of the parts of a result, one after the other
  std::mutex patching;   // of modules and contexts, one after the other: the vendor wants it

  std::mutex mutex;  // of all below; no function of the vendor is called while it is held
  std::condition_variable wake, room;
  device::LaunchPolicy policy;
  bool global_only = false;
  const PatchKind* asked = nullptr;
  const PatchKind* patch = nullptr;  // in the code of modules; none: they are as they were
  bool wants_iteration = true;       // this one
  std::uint64_t left_out_iterations = 0;
  std::atomic<bool> timing{false};         // launches, of this iteration
  std::atomic<std::uint32_t> captures{0};  // of graphs, that have begun and not ended
  std::map<Handle, std::unique_ptr<Context>> contexts;
  std::vector<std::unique_ptr<Context>> gone;  // whose handles are of others now
  std::map<Handle, Module> modules;
  std::map<Handle, Function> functions;
  std::set<Handle> graphs_for_device;    // executable ones
  std::set<Handle> functions_of_graphs;  // that were given something for all their launches
  std::map<StreamOf, device::StreamRow> launches_on;  // the last of each
  std::uint64_t streams = 0;                          // that were launched on
  std::uint64_t launches = 0, analysed = 0, left_out = 0;
  std::vector<Timed> timed;
  std::map<Handle, std::vector<Handle>> events;  // that nobody uses, by context
  std::uint32_t timed_iterations = 0;
  std::map<std::string, std::uint64_t> problems;  // what was said of them, and how often
  bool hurry = false;                             // somebody waits for room or for the end
  bool any_callback = false;
};
State& state() {
  // Never destroyed: the program may launch while static objects go.
  static State* const made = new State;
  return *made;
}

thread_local bool t_ours = false;  // our own calls raise callbacks, too

template <class... Values>
void log(fmt::format_string<Values...> line, Values&&... values) {
  State& s = state();
  if (s.log == nullptr) return;
  fmt::print(s.log, "{} {}\n", now_ns() / 1000, fmt::format(line, std::forward<Values>(values)...));
  std::fflush(s.log);
}

// Counts what went wrong; true when nothing did.
bool good(Api::Error error, const char* what) {
  if (error == 0) return true;
  State& s = state();
  const char* text = nullptr;
  if (s.api.error_text(error, &text) != 0 || text == nullptr) text = "unknown error";
  std::string said = fmt::format("{}: {} ({})", what, text, error);
  log("{}", said);
  const std::lock_guard lock(s.mutex);
  ++s.problems[std::move(said)];
  return false;
}

void count_problem(std::string what, std::uint64_t count = 1) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.problems[std::move(what)] += count;
}

void note(Reason reason, std::uint64_t count, const std::string& text) {
  log("note: {} x {}", count, text);
  state().collector->note(static_cast<std::uint32_t>(reason), count, text.c_str());
}

// --- modules and contexts

Context& context_of(Handle handle) {
  auto& known = state().contexts[handle];
  if (!known) {
    known = std::make_unique<Context>();
    known->handle = handle;
  }
  return *known;
}

std::string folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&state), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// With what is loaded, each thread that the device can have gets the stack of all its functions
// together: so it is no more than what is asked for.
std::string path_of(const PatchKind& patch) {
  const std::string& all = state().patches_path;
  return !all.empty()
             ? all
             : fmt::format("{}/pastapatches_{}.fatbin", folder_of_this_library(), patch.code);
}

// While `patching` is held.
bool has_code(Handle context, const PatchKind& patch) {
  const std::lock_guard lock(state().mutex);
  return context_of(context).codes.contains(path_of(patch));
}
Api::Error add_code(Handle context, const PatchKind& patch) {
  State& s = state();
  const std::string path = path_of(patch);
  const Api::Error error = s.api.add_patches(path.c_str(), context);
  if (error != 0) return error;
  const std::lock_guard lock(s.mutex);
  context_of(context).codes.insert(path);
  return 0;
}

// The program may soon have taken all memory. Where it is too early, the first module tries again.
void load_context(Handle context) {
  State& s = state();
  const std::lock_guard one_after_the_other(s.patching);
  if (!has_code(context, *s.asked) && add_code(context, *s.asked) != 0) {
    log("context {}: no patches yet", context);
  }
}

// While `patching` is held. A function that is not there ends it: to patch a module with what is
// left would be a part of the patch, whose counts say nothing, and the vendor's library may end the
// program over it.
bool put_patch(Handle module, Handle context, const PatchKind& patch) {
  State& s = state();
  if (!has_code(context, patch) && !good(add_code(context, patch), "the patches")) return false;
  for (const Point& point : points(patch, s.global_only && patch.has_results())) {
    const std::string function = fmt::format("pasta_{}_{}", patch.code, point.function);
    if (!good(s.api.patch_instructions(point.instruction, module, function.c_str()),
              function.c_str())) {
      return false;
    }
  }
  return good(s.api.patch_module(module), "patching a module");
}

void load_module(const ModuleData& data) {
  State& s = state();
  Module module;
  module.context = data.context;
  if (data.cubin != nullptr) {
    const std::span cubin(reinterpret_cast<const std::byte*>(data.cubin), data.cubin_bytes);
    module.unseen = find_unseen(cubin);
    module.places = std::make_shared<Places>(Places::read(cubin));
    if (const auto program = Cubin::read(cubin)) {
      for (const std::string_view name : program->global_variables()) {
        module.variables.emplace_back(name);
      }
    }
  }
  const std::lock_guard one_after_the_other(s.patching);
  const PatchKind* patch = nullptr;
  bool lost = false;
  {
    const std::lock_guard lock(s.mutex);
    lost = context_of(data.context).lost;
    patch = s.patch;
  }
  if (!lost && !has_code(data.context, *s.asked) &&
      !good(add_code(data.context, *s.asked), "the patches")) {
    const std::lock_guard lock(s.mutex);
    context_of(data.context).lost = lost = true;
  }
  if (!lost && patch != nullptr) module.patched = put_patch(data.module, data.context, *patch);
  log("module {} of {} bytes, patched {}", data.module, data.cubin_bytes, module.patched);
  const std::lock_guard lock(s.mutex);
  const bool has_variables = !module.variables.empty();
  s.modules[data.module] = std::move(module);
  if (has_variables) ++s.with_variables;
}

// --- launches

// The arguments of the launch that this thread is just calling for; none when it is not known how.
struct Arguments {
  void** each = nullptr;
  void** extra = nullptr;
};
thread_local Arguments t_arguments;

// The addresses that tensor maps among them begin at.
std::vector<std::uint64_t> mapped_by(Handle function) {
  State& s = state();
  std::vector<std::byte> all;
  constexpr std::uintptr_t kEnd = 0, kBuffer = 1, kBufferBytes = 2;
  if (t_arguments.each != nullptr && s.driver.argument_place != nullptr) {
    std::size_t offset = 0, bytes = 0;
    for (std::size_t i = 0; s.driver.argument_place(function, i, &offset, &bytes) == 0; ++i) {
      if (bytes < TensorMaps::kBytes) continue;
      all.resize((all.size() + TensorMaps::kAlign - 1) / TensorMaps::kAlign * TensorMaps::kAlign);
      const auto* argument = static_cast<const std::byte*>(t_arguments.each[i]);
      all.insert(all.end(), argument, argument + bytes);
    }
  } else if (t_arguments.each == nullptr && t_arguments.extra != nullptr) {
    const std::byte* buffer = nullptr;
    std::size_t bytes = 0;
    for (void** extra = t_arguments.extra; reinterpret_cast<std::uintptr_t>(*extra) != kEnd;
         extra += 2) {
      const auto what = reinterpret_cast<std::uintptr_t>(*extra);
      if (what == kBuffer) buffer = static_cast<const std::byte*>(extra[1]);
      if (what == kBufferBytes) bytes = *static_cast<const std::size_t*>(extra[1]);
    }
    if (buffer != nullptr) all.assign(buffer, buffer + bytes);
  }
  const std::lock_guard lock(s.maps_mutex);
  return s.maps.in(all);
}

// What this thread has begun to launch and not yet handed to the device.
struct Begun {
  std::shared_ptr<Stream> stream;
  Handle context;
  std::uint64_t sequence;
};
thread_local std::vector<Begun> t_begun;

// What the functions were given in the launch of a graph that this thread is just calling for; none
// where nothing. Data of a single node would be that of others, too: those that the driver hands to
// the device together have that of the last. So it is given to functions, and nodes of one function
// are counted together.
thread_local std::map<Handle, std::shared_ptr<Twins>> t_given;

// A mark behind all launches of a stream that have been handed to the device. `again`: even if one
// is on its way; of two that threads write at once, the one with less may come last.
void write_mark(Handle context_handle, const std::shared_ptr<Stream>& stream, bool again) {
  State& s = state();
  std::uint64_t value = 0;
  std::byte* to = nullptr;
  {
    const std::lock_guard lock(s.mutex);
    const auto context = s.contexts.find(context_handle);
    if (context == s.contexts.end() || context->second->lost) return;
    if (stream->is_gone) return;
    value = stream->submitted();
    if (value <= (again ? stream->complete : stream->marked)) return;
    stream->marked = value;
    stream->last_mark = Clock::now();
    to = context->second->arena + stream->index * sizeof(std::uint64_t);
  }
  good(s.api.copy_to_device(to, &value, sizeof value, stream->handle), "a mark");
  s.wake.notify_one();
}

void write_marks(Handle context_handle) {
  State& s = state();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(s.mutex);
    const auto context = s.contexts.find(context_handle);
    if (context == s.contexts.end()) return;
    for (const auto& [handle, stream] : context->second->streams) streams.push_back(stream);
  }
  for (const auto& stream : streams) write_mark(context_handle, stream, true);
}

// All that this thread has begun is with the device now.
void end_launches() {
  State& s = state();
  for (const Begun& begun : std::exchange(t_begun, {})) {
    bool mark = false;
    {
      const std::lock_guard lock(s.mutex);
      begun.stream->open.erase(begun.sequence);
      mark = begun.stream->submitted() >= begun.stream->marked + kLaunchesPerMark ||
             (begun.stream->submitted() > begun.stream->marked &&
              Clock::now() > begun.stream->last_mark + kMarkAfter);
    }
    if (mark) write_mark(begun.context, begun.stream, false);
  }
}

// The memory of the analysis, when a context launches for the first time.
bool make_arena(Context& context, Handle stream) {
  State& s = state();
  const std::lock_guard one_makes_it(s.patching);
  {
    const std::lock_guard lock(s.mutex);
    if (context.arena != nullptr || context.lost) return !context.lost;
  }
  void* made = nullptr;
  const auto bytes = [](const ArenaBytes& arena) {
    return kMarkBytes + arena.tables + arena.launches;
  };
  const auto arena = std::ranges::find_if(kArenas, [&](const ArenaBytes& tried) {
    return s.api.allocate(context.handle, &made, bytes(tried)) == 0;
  });
  if (arena == kArenas.end()) {
    count_problem(
        fmt::format("the program left less than {} MiB of the device's memory, so in a "
                    "context nothing was analysed",
                    bytes(kArenas.back()) / kMiB));
    return false;
  }
  if (arena != kArenas.begin()) {
    count_problem(
        fmt::format("the program left less than {} MiB of the device's memory, so a "
                    "context had {}, and its launches waited for each other",
                    bytes(kArenas.front()) / kMiB, bytes(*arena) / kMiB));
  }
  if (!good(s.api.fill(made, 0, bytes(*arena), stream), "zeroing memory on the device") ||
      !good(s.api.synchronize(stream), "zeroing memory on the device")) {
    return false;
  }
  log("context {}: {} bytes at {}", context.handle, bytes(*arena), made);
  const std::lock_guard lock(s.mutex);
  context.arena = static_cast<std::byte*>(made);
  context.tables = Pool(arena->tables);
  context.pool = Pool(arena->launches);
  return true;
}

std::byte* table_address(const Context& context, std::size_t at) {
  return context.arena + kMarkBytes + at;
}
std::byte* address_of(const Context& context, std::size_t at) {
  return table_address(context, context.tables.bytes() + at);
}

Function function_of(const LaunchData& data) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    const auto known = s.functions.find(data.function);
    if (known != s.functions.end()) return known->second;
  }
  Function function;
  good(s.api.function_pc(data.module, data.name, &function.code, &function.bytes),
       "where a kernel's code lies");
  const std::lock_guard lock(s.mutex);
  s.functions[data.function] = function;
  return function;
}

void help_to_take(Context& context);

// Takes room, and waits for it when the launches before have not been taken yet. The driver may let
// no other thread do anything while it tells of a launch, so this one takes results itself.
std::optional<std::size_t> take_room(Context& context, Pool& pool, std::size_t bytes) {
  State& s = state();
  const auto deadline = Clock::now() + kMostWait;
  {
    const std::lock_guard lock(s.mutex);
    if (auto at = pool.take(bytes)) return at;
    if (bytes > pool.bytes()) return std::nullopt;
  }
  write_marks(context.handle);
  for (;;) {
    help_to_take(context);
    {
      const std::lock_guard lock(s.mutex);
      if (auto at = pool.take(bytes)) return at;
      if (context.lost || Clock::now() > deadline) return std::nullopt;
      // What this thread has not handed to the device yet, it would wait for in vain.
      const auto begun = std::ranges::count(t_begun, context.handle, &Begun::context);
      if (context.taking == 0 && context.pending.size() <= static_cast<std::size_t>(begun)) {
        return std::nullopt;
      }
    }
    std::this_thread::sleep_for(kHelpAgain);
  }
}

void drop_table(Context& context, Table& table) {
  if (--table.users == 0) context.tables.give(table.at);
}

// Of these objects; there is one launch more that uses it. None without room.
std::shared_ptr<Table> table_for(Context& context, const PatchKind& patch,
                                 const std::shared_ptr<const Snapshot>& snapshot) {
  State& s = state();
  const auto known = [&]() -> std::shared_ptr<Table> {
    if (!context.table) return nullptr;
    if (context.table->snapshot == snapshot && context.table->patch == &patch) {
      ++context.table->users;
      return context.table;
    }
    drop_table(context, *std::exchange(context.table, nullptr));
    return nullptr;
  };
  {
    const std::lock_guard lock(s.mutex);
    if (auto table = known()) return table;
  }
  auto of = patch.of(snapshot->objects);
  const std::size_t bytes = std::max<std::size_t>(of->table().size(), 1);
  const auto at = take_room(context, context.tables, bytes);
  if (!at) return nullptr;
  if (snapshot->left_out > 0) {
    count_problem("objects were left out of a table, and what accesses them is unknown",
                  snapshot->left_out);
  }
  of->put_table(reinterpret_cast<std::uintptr_t>(table_address(context, *at)));
  log("table of {} objects at {} ({} bytes)", snapshot->objects.size(),
      static_cast<void*>(table_address(context, *at)), bytes);
  const std::lock_guard lock(s.mutex);
  // Another thread may have made the same meanwhile.
  if (auto table = known()) {
    context.tables.give(*at);
    return table;
  }
  context.table = std::make_shared<Table>(Table{.snapshot = snapshot,
                                                .patch = &patch,
                                                .of = std::move(of),
                                                .at = *at,
                                                .users = 2,
                                                .written = {}});
  return context.table;
}

// Behind it, launches of the stream find the table. To be called when a launch is sure to follow,
// which tells when the device has written it.
bool write_table(const Context& context, Stream& stream, Table& table) {
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    if (table.is_there_for(stream)) return true;
  }
  const std::span<const std::byte> bytes = table.of->table();
  if (!bytes.empty() && !good(s.api.copy_to_device(table_address(context, table.at), bytes.data(),
                                                   bytes.size(), stream.handle),
                              "a table of objects")) {
    return false;
  }
  const std::lock_guard lock(s.mutex);
  table.written.try_emplace(&stream, stream.begun);
  return true;
}

// What a launch is to count in; none: nothing. Which of the two counts where both are set is not
// said: so there is one at a time.
bool give(const LaunchData& data, bool of_graph, const void* address) {
  State& s = state();
  bool has_other = false;
  {
    const std::lock_guard lock(s.mutex);
    if (of_graph) {
      s.functions_of_graphs.insert(data.function);
    } else {
      has_other = s.functions_of_graphs.erase(data.function) > 0;
    }
  }
  constexpr const char* kWhat = "the data of a launch";
  if (of_graph) return good(s.api.set_function_data(data.function, address), kWhat);
  if (has_other) good(s.api.set_function_data(data.function, nullptr), kWhat);
  return good(s.api.set_launch_data(data.launch, data.function, data.stream_handle, address),
              kWhat);
}
void leave_out(const LaunchData& data, bool of_graph) {
  if (of_graph) t_given[data.function] = nullptr;
  give(data, of_graph, nullptr);
}

// Of what lies in modules nobody tells: so the driver is asked. It may be before a call, but not
// while it tells of nodes of a graph, over which it has hung.
void find_variables(Handle context) {
  State& s = state();
  // For which context, and of how many modules, this thread has seen to it last.
  thread_local Handle seen_context = nullptr;
  thread_local std::uint64_t seen = 0;
  const std::uint64_t loaded = s.with_variables;
  if (loaded == 0 || (context == seen_context && loaded == seen)) return;
  seen_context = context;
  seen = loaded;
  std::vector<std::pair<Handle, std::vector<std::string>>> wanted;
  {
    const std::lock_guard lock(s.mutex);
    for (auto& [handle, module] : s.modules) {
      if (module.context == context && !module.variables.empty()) {
        wanted.emplace_back(handle, std::exchange(module.variables, {}));
      }
    }
  }
  if (s.driver.find_variable == nullptr) return;
  const bool before = std::exchange(t_ours, true);
  for (auto& [module, names] : wanted) {
    std::vector<std::uint64_t> addresses;
    for (std::string& name : names) {
      std::uint64_t address = 0;
      std::size_t bytes = 0;
      if (s.driver.find_variable(&address, &bytes, module, name.c_str()) != 0) continue;
      log("variable {} at {:#x}, {} bytes", name, address, bytes);
      addresses.push_back(address);
      const std::lock_guard lock(s.objects_mutex);
      s.objects.found_variable(address, bytes, std::move(name));
    }
    const std::lock_guard lock(s.mutex);
    const auto known = s.modules.find(module);
    if (known != s.modules.end()) known->second.addresses = std::move(addresses);
  }
  t_ours = before;
}

// To be asked once for each launch that could be analysed, with the lock held.
bool takes(const char* name, const LaunchData& data, std::uint64_t iteration) {
  State& s = state();
  const bool taken = s.policy.take(name, data.grid, data.block, iteration);
  if (!taken) ++s.left_out;
  return taken;
}

// `stream_handle`: on which it is ordered behind what is written for it.
void begin_launch(const LaunchData& data, Handle stream_handle, bool of_graph) {
  State& s = state();
  const std::int64_t start_ns = now_ns();
  const std::uint64_t iteration = s.collector->iterations();
  Context* context = nullptr;
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;
  device::StreamRow place;
  bool taken = false, no_arena = false;
  const PatchKind* patch = nullptr;
  std::optional<Unseen> unseen;
  std::shared_ptr<const Places> places;
  const char* name = data.name == nullptr ? "" : data.name;
  {
    const std::lock_guard lock(s.mutex);
    number = ++s.launches;
    device::StreamRow& last = s.launches_on[{data.context, stream_handle}];
    if (last.stream == 0) last.stream = ++s.streams;
    ++last.launch;
    place = last;
    if (const auto given = t_given.find(data.function); of_graph && given != t_given.end()) {
      if (given->second) {
        given->second->push_back({number, place});
        ++s.analysed;
      } else if (s.collector->is_collecting()) {
        takes(name, data, iteration);
      }
      return;
    }
    context = &context_of(data.context);
    patch = s.patch;
    const auto module = s.modules.find(data.module);
    taken = s.active.load(std::memory_order_relaxed) && patch != nullptr && !context->lost &&
            module != s.modules.end() && module->second.patched && s.collector->is_collecting() &&
            takes(name, data, iteration);
    if (taken) {
      const auto kernel = module->second.unseen.find(std::string_view(name));
      if (kernel != module->second.unseen.end()) unseen = kernel->second;
      places = module->second.places;
      auto& known = context->streams[stream_handle];
      if (!known && context->stream_count < kMostStreams) {
        known = std::make_shared<Stream>();
        known->index = context->stream_count++;
        known->handle = stream_handle;
      }
      if (known) known->is_gone = false;  // there is another with its handle
      stream = known;
      no_arena = context->arena == nullptr;
    }
  }
  if (!taken || !stream) {
    if (taken) count_problem("launches in too many streams");
    leave_out(data, of_graph);
    return;
  }
  if (no_arena && !make_arena(*context, stream_handle)) {
    {
      const std::lock_guard lock(s.mutex);
      context->lost = true;
    }
    leave_out(data, of_graph);
    return;
  }
  std::shared_ptr<const Snapshot> snapshot;
  {
    const std::lock_guard lock(s.objects_mutex);
    snapshot = s.objects.snapshot();
  }
  const std::shared_ptr<Table> table = table_for(*context, *patch, snapshot);
  const Function function = function_of(data);
  Pending pending{.stream = stream,
                  .sequence = 0,
                  .at = 0,
                  .block = {},
                  .table = table,
                  .launch = {},
                  .kernel = name,
                  .code = function.code,
                  .code_bytes = function.bytes,
                  .unseen = unseen,
                  .places = std::move(places),
                  .mapped = unseen && unseen->uses_tensor_maps() ? mapped_by(data.function)
                                                                 : std::vector<std::uint64_t>(),
                  .number = number,
                  .iteration = iteration,
                  .place = place,
                  .start_ns = start_ns,
                  .twins = of_graph ? std::make_shared<Twins>() : nullptr};
  std::optional<std::size_t> at;
  std::size_t header_at = 0;
  if (table) {
    for (int i = 0; i < 3; ++i) {
      pending.launch.grid[i] = data.grid[i];
      pending.launch.block[i] = data.block[i];
    }
    pending.launch.global_only = s.global_only || patch->reach == Reach::kGlobalMemory ? 1 : 0;
    pending.launch.objects = snapshot->objects.data();
    pending.launch.object_count = static_cast<std::uint32_t>(snapshot->objects.size());
    const Block sizes = table->of->block(pending.launch, function.code, 0);
    at = take_room(*context, context->pool, sizes.bytes);
    header_at = sizes.header;
    // Patches are told by the lower half of the address that it is one, see is_given().
    if (at && static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(
                  address_of(*context, *at) + sizes.header)) == 0) {
      const auto other = take_room(*context, context->pool, sizes.bytes);
      const std::lock_guard lock(s.mutex);
      context->pool.give(*at);
      at = other;
    }
    if (!at) {
      const std::lock_guard lock(s.mutex);
      drop_table(*context, *table);
    }
  }
  if (!at) {
    count_problem("launches were not analysed: no room on the device");
    leave_out(data, of_graph);
    return;
  }
  std::byte* const address = address_of(*context, *at) + header_at;
  pending.at = *at;
  pending.block =
      table->of->block(pending.launch, function.code, reinterpret_cast<std::uintptr_t>(address));
  const std::vector<std::byte> image = std::exchange(pending.block.image, {});
  const bool ready = write_table(*context, *stream, *table) &&
                     good(s.api.copy_to_device(address, image.data(), image.size(), stream_handle),
                          "the header of a launch") &&
                     give(data, of_graph, address);
  log("launch {} {} grid {},{},{} block {},{},{} stream {} at {} ({} bytes, {} back)", number, name,
      data.grid[0], data.grid[1], data.grid[2], data.block[0], data.block[1], data.block[2],
      stream_handle, static_cast<void*>(address), pending.block.bytes,
      pending.block.result_end - pending.block.result_begin);
  if (!ready) {
    // What has been written to both may be on its way, and nothing tells when it is there. So they
    // are not given back.
    leave_out(data, of_graph);
    return;
  }
  const std::lock_guard lock(s.mutex);
  pending.sequence = ++stream->begun;
  stream->open.insert(pending.sequence);
  t_begun.push_back({stream, data.context, pending.sequence});
  if (of_graph) t_given[data.function] = pending.twins;
  if (context->pending.empty()) s.wake.notify_one();
  context->pending.push_back(std::move(pending));
  ++s.analysed;
}

// --- results

// What is known of it besides what a patch counts.
void say_of_launch(device::PatchResult& result, const Pending& pending,
                   const device::StreamRow& place) {
  if (pending.unseen) {
    const auto append = [&](device::TableId id, const auto& row) {
      device::append_row(result.tables.emplace_back(device::ResultTable{.id = id}), row);
    };
    append(device::TableId::kUnseen, pending.unseen->global);
    append(device::TableId::kUnseenToo, pending.unseen->other);
  }
  device::say_iteration(result, pending.iteration);
  device::say_stream(result, place);
}

void push(const Pending& pending, const device::PatchResult& result, std::uint64_t number) {
  State& s = state();
  const std::string_view format = pending.table->patch->format;
  const std::lock_guard one_after_the_other(s.pushing);
  for (const std::string& part : device::write_result(result, trace::spool::kMaxTextBytes)) {
    const trace::DeviceResult given{.size = sizeof given,
                                    .kernel = pending.kernel.data(),
                                    .kernel_bytes = pending.kernel.size(),
                                    .format = format.data(),
                                    .format_bytes = format.size(),
                                    .blob = part.data(),
                                    .blob_bytes = part.size(),
                                    .launch = number,
                                    .start_ns = pending.start_ns,
                                    .even_stopped = true};
    s.collector->push(&given);
  }
}

std::string variable_name(const std::string& name) {
  int error = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &error), std::free);
  return "variable " + (plain != nullptr ? std::string(plain.get()) : name);
}

void push_result(const Pending& pending, std::span<std::byte> bytes) {
  const device::Launch& launch = pending.launch;
  const Snapshot& snapshot = *pending.table->snapshot;
  const device::Names names = {
      .object =
          [&](const device::MemoryObject& object) {
            const auto at = static_cast<std::size_t>(&object - launch.objects);
            if (at >= snapshot.kinds.size()) return std::string();
            const auto named = snapshot.names.find(object.number);
            return named == snapshot.names.end() ? std::string(kind_name(snapshot.kinds[at]))
                                                 : variable_name(named->second);
          },
      .site =
          [&](std::uint64_t site) {
            return site < pending.code_bytes ? pending.places->name(pending.kernel, site)
                                             : std::string("in a function that it calls");
          }};
  device::PatchResult result = pending.table->of->result(launch, bytes, names);
  say_of_launch(result, pending, pending.place);
  if (!pending.mapped.empty()) {
    device::ResultTable objects{.id = device::TableId::kObjects};
    device::ResultTable mapped{.id = device::TableId::kMapped};
    for (const std::uint64_t address : pending.mapped) {
      const std::uint32_t at = launch.find(address, 1);
      if (at != device::kNoObject) device::append_object(objects, launch.objects[at], names);
      device::append_row(mapped,
                         device::MappedRow{at == device::kNoObject ? device::kUnknownObject
                                                                   : launch.objects[at].number});
    }
    result.tables.push_back(std::move(objects));
    result.tables.push_back(std::move(mapped));
  }
  push(pending, result, pending.number);
  if (!pending.twins) return;
  // They are in what was counted of this one.
  for (const Twin& twin : *pending.twins) {
    device::PatchResult none = device::result_of(launch, {});
    say_of_launch(none, pending, twin.place);
    push(pending, none, twin.number);
  }
}

// A stream that waits for no other, and that no other waits for.
void make_own_stream(Context& context) {
  State& s = state();
  const std::lock_guard one_makes_it(s.making);
  if (context.has_own_stream) return;
  constexpr std::uint32_t kNonBlocking = 1;
  Handle stream = nullptr, before = nullptr;
  bool made = s.has_driver && s.driver.push_context(context.handle) == 0;
  if (made) {
    made = s.driver.create_stream(&stream, kNonBlocking) == 0;
    s.driver.pop_context(&before);
  }
  if (!made ||
      !good(s.api.stream_handle(context.handle, stream, &context.own_stream), "our own stream")) {
    count_problem("results are taken on the program's default stream");
  }
  context.has_own_stream = true;
}

// Pinned, so that the device writes there by itself.
bool make_room(const Context& context, HostRoom& room, std::size_t bytes) {
  if (bytes <= room.bytes) return true;
  State& s = state();
  if (room.at != nullptr) {
    good(s.api.free_host(context.handle, room.at), "memory on the host");
  }
  room = {};
  void* made = nullptr;
  const std::size_t rounded = std::bit_ceil(bytes);
  if (!good(s.api.allocate_host(context.handle, &made, rounded), "memory on the host")) {
    return false;
  }
  room = {static_cast<std::byte*>(made), rounded};
  return true;
}

// What streams say of how far they are. False when the device has failed.
bool read_marks(Context& context, std::uint32_t streams) {
  State& s = state();
  std::vector<std::uint64_t> marks(streams);
  const bool read = good(s.api.copy_to_host(marks.data(), context.arena,
                                            marks.size() * sizeof marks[0], context.own_stream),
                         "the marks");
  const std::lock_guard lock(s.mutex);
  if (!read) {
    context.lost = true;
    s.problems["results of launches were lost: the device has failed"] += context.pending.size();
    context.pending.clear();
    s.room.notify_all();
    return false;
  }
  for (const auto& [handle, stream] : context.streams) {
    if (stream && stream->index < streams) {
      stream->complete = std::max(stream->complete, marks[stream->index]);
    }
  }
  return true;
}

// Takes some of what is complete. Two threads may do so at a time, each with its room.
void take_results(Context& context, std::uint32_t streams, HostRoom& host) {
  State& s = state();
  make_own_stream(context);
  if (!read_marks(context, streams)) return;
  std::vector<Pending> complete;
  {
    const std::lock_guard lock(s.mutex);
    std::deque<Pending> left;
    for (Pending& pending : context.pending) {
      if (pending.sequence <= pending.stream->complete && complete.size() < kMostTaken) {
        complete.push_back(std::move(pending));
      } else {
        left.push_back(std::move(pending));
      }
    }
    context.pending = std::move(left);
    context.taking += complete.size();
  }
  for (const Pending& pending : complete) {
    std::byte* const address = address_of(context, pending.at);
    const Block& block = pending.block;
    const std::size_t bytes = block.result_end - block.result_begin;
    if (pending.table->patch->has_results() && make_room(context, host, bytes) &&
        good(s.api.copy_to_host(host.at, address + block.result_begin, bytes, context.own_stream),
             "a result")) {
      push_result(pending, {host.at, bytes});
    }
    good(s.api.fill(address, 0, block.bytes, context.own_stream), "zeroing a piece");
  }
  if (!complete.empty()) good(s.api.synchronize(context.own_stream), "zeroing pieces");
  const std::lock_guard lock(s.mutex);
  for (const Pending& pending : complete) {
    context.pool.give(pending.at);
    drop_table(context, *pending.table);
  }
  context.taking -= complete.size();
  s.room.notify_all();
}

// What a thread of the program does that waits for room or for results; one at a time.
void help_to_take(Context& context) {
  State& s = state();
  const std::unique_lock helps(s.helping, std::try_to_lock);
  if (!helps) return;
  std::uint32_t streams = 0;
  {
    const std::lock_guard lock(s.mutex);
    if (context.lost || context.pending.empty() || context.arena == nullptr) return;
    streams = context.stream_count;
  }
  const bool before = std::exchange(t_ours, true);
  take_results(context, streams, context.program_room);
  t_ours = before;
}

void watch() {
  t_ours = true;
  pthread_setname_np(pthread_self(), "pasta-sanitizer");
  State& s = state();
  if (s.has_driver) {
    // Copies of ours must not spoil a graph that the program captures meanwhile.
    std::int32_t mode = kRelaxed;
    s.driver.exchange_capture_mode(&mode);
  }
  for (;;) {
    std::vector<std::pair<Context*, std::uint32_t>> busy;
    {
      std::unique_lock lock(s.mutex);
      s.wake.wait(lock, [&s] {
        return std::ranges::any_of(s.contexts, [](const auto& known) {
          return !known.second->pending.empty() && !known.second->lost;
        });
      });
      s.wake.wait_for(lock, s.hurry ? Clock::duration(200us) : Clock::duration(kLook));
      for (const auto& [handle, context] : s.contexts) {
        if (!context->pending.empty() && !context->lost) {
          busy.emplace_back(context.get(), context->stream_count);
        }
      }
    }
    for (const auto& [context, streams] : busy) {
      if (s.has_driver) s.driver.set_context(context->handle);
      take_results(*context, streams, context->our_room);
    }
  }
}

// Until a context has nothing to do.
void wait_for_context(Handle handle) {
  State& s = state();
  Handle before = nullptr;
  if (!s.has_driver || s.driver.push_context(handle) != 0) return;
  std::int32_t mode = kRelaxed;
  s.driver.exchange_capture_mode(&mode);
  s.driver.synchronize();
  s.driver.exchange_capture_mode(&mode);
  s.driver.pop_context(&before);
}

// Until all that has been launched in a context is taken, but not for ever; what is left then.
std::size_t wait_for_results(Handle handle, Clock::time_point deadline) {
  State& s = state();
  for (;;) {
    write_marks(handle);
    Context* help = nullptr;
    {
      const std::lock_guard lock(s.mutex);
      const auto known = s.contexts.find(handle);
      if (known == s.contexts.end()) return 0;
      help = known->second.get();
    }
    help_to_take(*help);
    const Context& context = *help;
    std::unique_lock lock(s.mutex);
    s.hurry = true;
    s.wake.notify_one();
    const bool done = s.room.wait_for(lock, kMarkAgain, [&context] { return context.is_done(); });
    s.hurry = false;
    if (done || Clock::now() > deadline) return context.pending.size() + context.taking;
  }
}

// Until the device is done with all launches that were analysed; their results are taken by our
// thread meanwhile, and afterwards.
void wait_for_launches(Handle handle, Clock::time_point deadline) {
  State& s = state();
  for (;;) {
    write_marks(handle);
    Context* context = nullptr;
    std::uint32_t streams = 0;
    {
      const std::lock_guard lock(s.mutex);
      const auto known = s.contexts.find(handle);
      if (known == s.contexts.end() || known->second->lost || known->second->arena == nullptr)
        return;
      context = known->second.get();
      streams = context->stream_count;
    }
    make_own_stream(*context);
    if (!read_marks(*context, streams)) return;
    {
      const std::lock_guard lock(s.mutex);
      const bool done = std::ranges::all_of(context->streams, [](const auto& stream) {
        return !stream.second || stream.second->complete >= stream.second->begun;
      });
      if (done || Clock::now() > deadline) return;
    }
    std::this_thread::sleep_for(kHelpAgain);
  }
}

// What launches are told of costs, so it is only where there are patches.
void tell_of_launches(bool on) {
  State& s = state();
  for (const Domain domain : {Domain::kLaunch, Domain::kGraphs, Domain::kSynchronize}) {
    good(s.api.enable_domain(on ? 1 : 0, s.subscriber, domain), "callbacks of the driver");
  }
  for (const GraphCallback callback : {GraphCallback::kMade, GraphCallback::kDestroyed}) {
    good(s.api.enable_callback(1, s.subscriber, Domain::kGraphs,
                               static_cast<std::uint32_t>(callback)),
         "callbacks of graphs");
  }
  for (const DriverCallback callback :
       {DriverCallback::kLaunch, DriverCallback::kLaunchOwn, DriverCallback::kLaunchCooperative,
        DriverCallback::kLaunchCooperativeOwn, DriverCallback::kLaunchEx,
        DriverCallback::kLaunchExOwn, DriverCallback::kGraphLaunch,
        DriverCallback::kGraphLaunchOwn}) {
    good(s.api.enable_callback(on ? 1 : 0, s.subscriber, Domain::kDriver,
                               static_cast<std::uint32_t>(callback)),
         "callbacks of the driver");
  }
}

// From now on the code of all modules has this patch in it; none: it is the program's alone.
// Whether any took it, where there are some.
bool switch_patch(const PatchKind* patch) {
  State& s = state();
  const std::lock_guard one_switches(s.switching);
  std::vector<Handle> contexts, patched;
  std::vector<std::pair<Handle, Handle>> all;  // modules and their contexts
  bool none_before = false;
  {
    const std::lock_guard lock(s.mutex);
    if (s.patch == patch) return true;
    none_before = s.patch == nullptr;
    s.patch = nullptr;  // until it is done, others' launches are not analysed
    for (const auto& [handle, context] : s.contexts) contexts.push_back(handle);
  }
  // Launches run what their code is when the device comes to them. So before there is a patch that
  // asks what they were given, those that nobody told of are over, and those that begin meanwhile
  // are told of, and given nothing; and before a patch goes, those that it counts in are over, too.
  if (none_before) {
    tell_of_launches(true);
    for (const Handle handle : contexts) wait_for_context(handle);
  }
  for (const Handle handle : contexts) wait_for_launches(handle, Clock::now() + kMostWait);
  const std::lock_guard one_after_the_other(s.patching);
  {
    const std::lock_guard lock(s.mutex);
    for (auto& [handle, module] : s.modules) {
      all.emplace_back(handle, module.context);
      if (module.patched) patched.push_back(handle);
      module.patched = false;
    }
  }
  const auto begin = Clock::now();
  for (const Handle module : patched) good(s.api.unpatch_module(module), "taking a patch out");
  bool taken = patch == nullptr || all.empty();
  for (const auto& [module, context] : all) {
    const bool put = patch != nullptr && put_patch(module, context, *patch);
    taken = taken || put;
    const std::lock_guard lock(s.mutex);
    const auto known = s.modules.find(module);
    if (known != s.modules.end()) known->second.patched = put;
  }
  if (patch == nullptr) tell_of_launches(false);
  {
    const std::lock_guard lock(s.mutex);
    s.patch = patch;
  }
  log("patch {} in {} modules, {} us", patch == nullptr ? "none" : patch->name, all.size(),
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count());
  return taken;
}

void push_of_no_launch(const std::string& kernel, std::string_view format,
                       device::ResultTable table) {
  for (const std::string& part : device::write_result(device::result_of({}, {std::move(table)}),
                                                      trace::spool::kMaxTextBytes)) {
    const trace::DeviceResult given{.size = sizeof given,
                                    .kernel = kernel.data(),
                                    .kernel_bytes = kernel.size(),
                                    .format = format.data(),
                                    .format_bytes = format.size(),
                                    .blob = part.data(),
                                    .blob_bytes = part.size(),
                                    .launch = 0,
                                    .start_ns = now_ns(),
                                    .even_stopped = true};
    state().collector->push(&given);
  }
}

// --- times without patches

// What this thread just launches while launches are timed.
struct UnderWay {
  Handle context = nullptr, stream = nullptr, begin = nullptr;
  std::string kernel;
};
thread_local UnderWay t_timed;

// Where the thread's own default stream is meant, none is given.
Handle own_stream_or(Handle stream) {
  constexpr std::uintptr_t kPerThread = 2;
  return stream != nullptr ? stream : reinterpret_cast<Handle>(kPerThread);
}

Handle record_event(Handle context, Handle stream) {
  State& s = state();
  Handle event = nullptr;
  {
    const std::lock_guard lock(s.mutex);
    auto& unused = s.events[context];
    if (s.timed.size() >= kMostTimed) return nullptr;
    if (!unused.empty()) {
      event = unused.back();
      unused.pop_back();
    }
  }
  const bool before = std::exchange(t_ours, true);
  const bool recorded = (event != nullptr || s.driver.create_event(&event, 0) == 0) &&
                        s.driver.record_event(event, stream) == 0;
  t_ours = before;
  if (recorded) return event;
  const std::lock_guard lock(s.mutex);
  if (event != nullptr) s.events[context].push_back(event);
  return nullptr;
}

void begin_timed(Handle context, Handle stream) {
  State& s = state();
  if (!s.timing || s.captures > 0) return;
  t_timed = {context, stream, record_event(context, stream), {}};
}

void end_timed() {
  State& s = state();
  const UnderWay timed = std::exchange(t_timed, {});
  if (timed.begin == nullptr) return;
  const Handle end = timed.kernel.empty() ? nullptr : record_event(timed.context, timed.stream);
  const std::lock_guard lock(s.mutex);
  if (end != nullptr) s.timed.push_back({timed.kernel, timed.context, timed.begin, end});
  if (end == nullptr) s.events[timed.context].push_back(timed.begin);
}

// Tells how long they took, once the device is done with them.
void finish_timing() {
  State& s = state();
  s.timing = false;
  tell_of_launches(false);
  std::vector<Handle> contexts;
  std::vector<Timed> timed;
  {
    const std::lock_guard lock(s.mutex);
    for (const auto& [handle, context] : s.contexts) contexts.push_back(handle);
    timed = std::exchange(s.timed, {});
    ++s.timed_iterations;
  }
  for (const Handle handle : contexts) wait_for_context(handle);
  std::map<std::string, device::TimesRow> kernels;
  for (const Timed& launch : timed) {
    float ms = 0;
    if (s.driver.between_events(&ms, launch.begin, launch.end) != 0) continue;
    device::TimesRow& row = kernels[launch.kernel];
    ++row.launches;
    row.ns += static_cast<std::uint64_t>(static_cast<double>(ms) * 1e6);
  }
  {
    const std::lock_guard lock(s.mutex);
    for (const Timed& launch : timed) {
      s.events[launch.context].push_back(launch.begin);
      s.events[launch.context].push_back(launch.end);
    }
  }
  for (const auto& [kernel, row] : kernels) {
    device::ResultTable table{.id = device::TableId::kTimes};
    device::append_row(table, row);
    push_of_no_launch(kernel, device::kTimesFormat, std::move(table));
  }
  log("timed {} launches of {} kernels", timed.size(), kernels.size());
}

// For tools, which say of how many launches they know nothing.
void push_left_out(std::uint64_t launches) {
  if (launches == 0) return;
  device::ResultTable table{.id = device::TableId::kSkipped};
  device::append_row(table, device::SkippedRow{launches});
  push_of_no_launch("", device::kSkippedFormat, std::move(table));
}

// Between the iterations that are analysed the program runs as it was.
void iteration_ended(std::uint64_t ended) {
  State& s = state();
  // Waiting for the device would spoil a graph that is just captured.
  if (!s.active.load(std::memory_order_relaxed) || s.captures > 0) return;
  bool takes = false, times = false;
  {
    const std::lock_guard lock(s.mutex);
    takes = s.wants_iteration = s.policy.wants_iteration(ended);
    if (!takes) ++s.left_out_iterations;
    times = !takes && s.analysed > 0 && s.timed_iterations < kTimedIterations && s.has_driver &&
            s.driver.create_event != nullptr && s.driver.record_event != nullptr &&
            s.driver.between_events != nullptr;
  }
  t_ours = true;
  if (s.timing) finish_timing();
  switch_patch(takes && s.collector->is_wanted() ? s.asked : nullptr);
  if (times) {
    tell_of_launches(true);
    s.timing = true;
  }
  t_ours = false;
}

// Outside of what is collected the program runs as it was, too.
void collection_changed() noexcept {
  State& s = state();
  if (!s.active.load(std::memory_order_relaxed) || s.captures > 0 || s.timing) return;
  bool takes = false;
  {
    const std::lock_guard lock(s.mutex);
    takes = s.wants_iteration;
  }
  const bool before = std::exchange(t_ours, true);
  switch_patch(takes && s.collector->is_wanted() ? s.asked : nullptr);
  t_ours = before;
}

// Waits until all that has been launched is taken.
void finish() {
  State& s = state();
  if (!s.active.exchange(false)) return;
  std::vector<Handle> contexts;
  {
    const std::lock_guard lock(s.mutex);
    for (const auto& [handle, context] : s.contexts) contexts.push_back(handle);
  }
  const auto deadline = Clock::now() + kMostEnd;
  std::uint64_t left = 0;
  for (const Handle handle : contexts) left += wait_for_results(handle, deadline);
  std::map<std::string, std::uint64_t> problems;
  std::uint64_t launches = 0, analysed = 0, left_out = 0, iterations = 0;
  bool any_callback = false;
  {
    const std::lock_guard lock(s.mutex);
    iterations = s.left_out_iterations;
    problems = s.problems;
    launches = s.launches;
    analysed = s.analysed;
    left_out = s.left_out;
    any_callback = s.any_callback;
  }
  if (!any_callback) {
    note(
        Reason::kNotRecorded, 1,
        "accesses on the GPU: Compute Sanitizer told of nothing; another tool, such as a profiler, "
        "has the device");
  }
  if (left > 0) problems["results of launches were not complete when the program ended"] += left;
  for (const auto& [what, count] : problems) {
    note(Reason::kCollectorWarning, count, fmt::format("analysis of accesses: {}", what));
  }
  push_left_out(left_out);
  // One of them: problems of one reason are told together.
  if (launches > analysed) {
    note(Reason::kNotRecorded, launches - analysed,
         "launches whose accesses were not analysed" +
             (iterations == 0
                  ? std::string()
                  : fmt::format("; those of {} whole iterations are not counted", iterations)));
  } else if (iterations > 0) {
    note(Reason::kNotRecorded, iterations,
         "iterations whose launches were not analysed nor counted, as --launches says");
  }
  if (s.policy.is_of_iterations() && s.collector->iterations() == 0 && analysed > 0) {
    note(Reason::kCollectorWarning, 1,
         "nothing has marked iterations, so all was one: mark them by pasta_step()");
  }
  log("end: {} launches, {} analysed", launches, analysed);
}

// --- callbacks

// Where in the program it was, the collector knows.
void tell_memory(const MemoryData& memory, MemoryKind kind, bool freed) {
  if (kind == MemoryKind::kModule || kind == MemoryKind::kPeer) return;
  const trace::DeviceMemory told{.size = sizeof told,
                                 .address = memory.address,
                                 .bytes = memory.bytes,
                                 .device = kind == MemoryKind::kHost ? -1 : memory.device,
                                 .freed = freed};
  state().collector->memory(&told);
}

void allocated(const MemoryData& memory, MemoryKind kind) {
  State& s = state();
  log("allocated {:#x} {} flags {:#x}", memory.address, memory.bytes, memory.flags);
  {
    const std::lock_guard lock(s.objects_mutex);
    s.objects.allocated(memory.address, memory.bytes, kind);
  }
  tell_memory(memory, kind, false);
}

void freed(const MemoryData& memory, MemoryKind kind) {
  State& s = state();
  {
    const std::lock_guard lock(s.objects_mutex);
    s.objects.freed(memory.address);
  }
  tell_memory(memory, kind, true);
}

void tagged(std::uint64_t address, std::uint64_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.objects_mutex);
  s.objects.tagged(address, bytes);
}

// Whether the library tells of streams as since 13.1; of any stream without a green context that is
// seen, and a stream of our own is one.
bool learn_form(const void* data) {
  State& s = state();
  if (is_since_13_1(data)) s.since_13_1 = true;
  return s.since_13_1;
}

void on_resource(ResourceCallback callback, const void* data) {
  State& s = state();
  switch (callback) {
    case ResourceCallback::kModuleLoaded:
      load_module(*static_cast<const ModuleData*>(data));
      break;
    case ResourceCallback::kModuleUnloadStarting: {
      std::vector<std::uint64_t> variables;
      {
        const std::lock_guard lock(s.mutex);
        const auto known = s.modules.find(static_cast<const ModuleData*>(data)->module);
        if (known == s.modules.end()) break;
        variables = std::move(known->second.addresses);
        s.modules.erase(known);
        s.functions.clear();
      }
      const std::lock_guard lock(s.objects_mutex);
      for (const std::uint64_t address : variables) s.objects.freed(address);
      break;
    }
    case ResourceCallback::kMemoryAllocated:
    case ResourceCallback::kAllocatedAsync:
    case ResourceCallback::kPoolPointerImported: {
      const auto& memory = *static_cast<const MemoryData*>(data);
      allocated(memory, kind_of_flags(memory.flags));
      break;
    }
    case ResourceCallback::kHostAllocated:
      allocated(*static_cast<const MemoryData*>(data), MemoryKind::kHost);
      break;
    case ResourceCallback::kMemoryFreed:
    case ResourceCallback::kFreedAsync: {
      const auto& memory = *static_cast<const MemoryData*>(data);
      freed(memory, kind_of_flags(memory.flags));
      break;
    }
    case ResourceCallback::kHostFreed:
      freed(*static_cast<const MemoryData*>(data), MemoryKind::kHost);
      break;
    case ResourceCallback::kStreamDestroyStarting: {
      const Handle context_handle = static_cast<const StreamData*>(data)->context;
      const Handle stream_handle = handle_of(data, learn_form(data));
      std::shared_ptr<Stream> known;
      {
        const std::lock_guard lock(s.mutex);
        s.launches_on.erase({context_handle, stream_handle});
        const auto context = s.contexts.find(context_handle);
        if (context == s.contexts.end()) break;
        const auto found = context->second->streams.find(stream_handle);
        if (found == context->second->streams.end()) break;
        known = found->second;
      }
      write_mark(context_handle, known, true);
      const std::lock_guard lock(s.mutex);
      known->is_gone = true;
      // What the next one with its handle finds need not be there yet.
      const auto context = s.contexts.find(context_handle);
      if (context != s.contexts.end() && context->second->table) {
        context->second->table->written.erase(known.get());
      }
      break;
    }
    case ResourceCallback::kContextCreated: {
      const Handle handle = static_cast<const ContextData*>(data)->context;
      {
        const std::lock_guard lock(s.mutex);
        const auto known = s.contexts.find(handle);
        if (known != s.contexts.end() && known->second->lost) {
          s.gone.push_back(std::move(known->second));
          s.contexts.erase(known);
        }
      }
      load_context(handle);
      break;
    }
    case ResourceCallback::kContextDestroyStarting: {
      // What is pending is complete soon, or never.
      const Handle handle = static_cast<const ContextData*>(data)->context;
      wait_for_results(handle, Clock::now() + kMostEnd);
      const std::lock_guard lock(s.mutex);
      const auto known = s.contexts.find(handle);
      if (known == s.contexts.end()) break;
      known->second->lost = true;
      break;
    }
    default:
      break;
  }
}

// This thread brings a graph to the device, and does not launch it.
thread_local bool t_uploads = false;

// What kernels launch nobody is told of: what would be counted then would have been taken long ago.
bool is_for_device(Handle graph) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.graphs_for_device.contains(graph);
}

void begin_node(const GraphNodeData& node) {
  const LaunchData& launch = node.launch;
  if (t_uploads || is_for_device(node.graph)) {
    leave_out(launch, true);
    if (t_uploads) return;
    const std::lock_guard lock(state().mutex);
    ++state().launches;
    return;
  }
  begin_launch(
      launch, launch.api_stream_handle != nullptr ? launch.api_stream_handle : launch.stream_handle,
      true);
}

void on_graph(GraphCallback callback, const void* data) {
  State& s = state();
  if (callback == GraphCallback::kMade || callback == GraphCallback::kDestroyed) {
    const auto& made = *static_cast<const GraphExecData*>(data);
    const bool is_new = callback == GraphCallback::kMade && made.is_for_device != 0;
    if (is_new) {
      count_problem(
          "graphs were made for kernels to launch: these are not analysed, whoever launches them");
    }
    const std::lock_guard lock(s.mutex);
    if (is_new) {
      s.graphs_for_device.insert(made.executable);
    } else {
      s.graphs_for_device.erase(made.executable);
    }
  } else if (callback == GraphCallback::kLaunchBegin) {
    t_uploads = static_cast<const GraphLaunchData*>(data)->is_upload != 0;
    t_given.clear();
  } else if (callback == GraphCallback::kNodeBegin) {
    const auto& node = *static_cast<const GraphNodeData*>(data);
    if (node.type == kKernelNode) {
      // Between the nodes of a graph there is no place for events.
      if (!state().timing) begin_node(node);
    } else if (t_uploads) {
      // Memory is had and given back when it is launched.
    } else if (node.type == kAllocationNode) {
      allocated(node.allocation, kind_of_flags(node.allocation.flags));
    } else if (node.type == kFreeNode) {
      MemoryData memory{};
      memory.address = node.freed;
      freed(memory, MemoryKind::kDevice);
    }
  } else if (callback == GraphCallback::kLaunchEnd) {
    t_uploads = false;
    t_given.clear();
    end_launches();
  }
}

void time_call(const CallData& call, Handle stream) {
  if (call.ends == 0) find_variables(call.context);
  if (call.ends != 0) {
    end_timed();
  } else {
    begin_timed(call.context, stream);
  }
}

void on_call(DriverCallback callback, const CallData& call) {
  State& s = state();
  switch (callback) {
    case DriverCallback::kLaunch:
    case DriverCallback::kLaunchOwn: {
      const auto& launch = *static_cast<const LaunchParameters*>(call.parameters);
      t_arguments = call.ends != 0 ? Arguments{} : Arguments{launch.arguments, launch.extra};
      time_call(call, callback == DriverCallback::kLaunchOwn ? own_stream_or(launch.stream)
                                                             : launch.stream);
      break;
    }
    case DriverCallback::kLaunchCooperative:
    case DriverCallback::kLaunchCooperativeOwn: {
      const auto& launch = *static_cast<const LaunchParameters*>(call.parameters);
      t_arguments = call.ends != 0 ? Arguments{} : Arguments{launch.arguments, nullptr};
      time_call(call, callback == DriverCallback::kLaunchCooperativeOwn
                          ? own_stream_or(launch.stream)
                          : launch.stream);
      break;
    }
    case DriverCallback::kLaunchEx:
    case DriverCallback::kLaunchExOwn: {
      const auto& launch = *static_cast<const LaunchExParameters*>(call.parameters);
      t_arguments = call.ends != 0 ? Arguments{} : Arguments{launch.arguments, launch.extra};
      time_call(call, callback == DriverCallback::kLaunchExOwn
                          ? own_stream_or(launch.config->stream)
                          : launch.config->stream);
      break;
    }
    case DriverCallback::kGraphLaunch:
    case DriverCallback::kGraphLaunchOwn:
      if (call.ends == 0) find_variables(call.context);
      break;
    case DriverCallback::kEncodeTiled:
    case DriverCallback::kEncodeIm2col:
    case DriverCallback::kEncodeIm2colWide: {
      if (call.ends == 0 || call.result == nullptr || *call.result != 0) break;
      const auto& encode = *static_cast<const EncodeParameters*>(call.parameters);
      const std::lock_guard lock(s.maps_mutex);
      s.maps.encoded(std::span<const std::byte, TensorMaps::kBytes>(
                         static_cast<const std::byte*>(encode.map), TensorMaps::kBytes),
                     reinterpret_cast<std::uintptr_t>(encode.address));
      break;
    }
    case DriverCallback::kBeginCapture:
    case DriverCallback::kBeginCaptureOwn:
    case DriverCallback::kBeginCapture2:
    case DriverCallback::kBeginCapture2Own:
    case DriverCallback::kBeginCaptureToGraph:
    case DriverCallback::kBeginCaptureToGraphOwn:
      if (call.ends != 0 && call.result != nullptr && *call.result == 0) ++s.captures;
      break;
    case DriverCallback::kEndCapture:
    case DriverCallback::kEndCaptureOwn:
      if (call.ends != 0 && s.captures > 0) --s.captures;
      break;
    case DriverCallback::kProfilerStart:
      if (call.ends != 0) s.collector->switch_capture(true);
      break;
    case DriverCallback::kProfilerStop:
      if (call.ends == 0) s.collector->switch_capture(false);
      break;
  }
}

void on_callback(void*, Domain domain, std::uint32_t callback, const void* data) {
  if (!state().started.load(std::memory_order_relaxed)) return;
  if (domain == Domain::kResource &&
      callback == static_cast<std::uint32_t>(ResourceCallback::kStreamCreated)) {
    learn_form(data);
  }
  if (t_ours) return;
  state().any_callback = true;
  switch (domain) {
    case Domain::kDriver:
      on_call(static_cast<DriverCallback>(callback), *static_cast<const CallData*>(data));
      break;
    case Domain::kResource:
      on_resource(static_cast<ResourceCallback>(callback), data);
      break;
    case Domain::kLaunch:
      if (callback == static_cast<std::uint32_t>(LaunchCallback::kBegin)) {
        // Whatever became of the last one, it is over.
        end_launches();
        const auto& launch = *static_cast<const LaunchData*>(data);
        if (state().timing) {
          t_timed.kernel = launch.name == nullptr ? "" : launch.name;
        } else {
          begin_launch(launch, launch.stream_handle, false);
        }
      } else if (callback == static_cast<std::uint32_t>(LaunchCallback::kEnd)) {
        end_launches();
      }
      break;
    case Domain::kGraphs:
      on_graph(static_cast<GraphCallback>(callback), data);
      break;
    case Domain::kSynchronize: {
      const auto& waited = *static_cast<const SynchronizeData*>(data);
      write_marks(waited.context);
      break;
    }
    default:
      break;
  }
}

// --- beginning

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

Status start() {
  State& s = state();
  if (const std::string path = variable("PASTA_SANITIZER_LOG", ""); !path.empty()) {
    s.log = std::fopen(path.c_str(), "ae");
  }
  auto policy = device::LaunchPolicy::parse(variable(device::kLaunchesVariable, "all"));
  if (!policy) return tl::unexpected(std::move(policy).error());
  s.policy = std::move(*policy);
  const std::string names = variable("PASTA_PATCHES", "access");
  const std::string name = names.substr(0, names.find(','));
  if (name != names) {
    note(Reason::kNotRecorded, 1,
         fmt::format("on a GPU one patch runs at a time: {} alone of {}; run the program again for "
                     "the others",
                     name, names));
  }
  s.asked = find_patch(name);
  if (s.asked == nullptr) {
    return fail(ErrorCode::kUsage, fmt::format("there is no patch \"{}\"", name));
  }
  s.global_only = variable("PASTA_PATCH_REACH", "all") == "global";
  if (s.global_only && s.asked->reach == Reach::kEverywhere) {
    note(Reason::kNotRecorded, 1,
         "shared and local memory are not looked into, as PASTA_PATCH_REACH=global says");
  }
  s.patches_path = variable("PASTA_GPU_CODE", "");
  const std::string path = path_of(*s.asked);
  if (std::FILE* file = std::fopen(path.c_str(), "rbe"); file != nullptr) {
    std::fclose(file);
  } else {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} is not there: pastaprof was built without nvcc", path));
  }
  auto loaded = load_api();
  if (!loaded) return tl::unexpected(std::move(loaded).error());
  s.api = loaded->api;
  auto driver = load_driver();
  if (driver) s.driver = *driver;
  s.has_driver = driver.has_value();
  log("library {}, patches {}, patch {}", loaded->path, path, name);
  const auto check = [&](Api::Error error, const char* what) -> Status {
    const char* text = "unknown error";
    if (error == 0) return {};
    s.api.error_text(error, &text);
    return fail(ErrorCode::kUnsupported, fmt::format("{}: {}", what, text));
  };
  s.started = s.active = true;
  PASTA_TRY(check(s.api.subscribe(&s.subscriber, on_callback, nullptr), "Compute Sanitizer"));
  PASTA_TRY(check(s.api.enable_domain(1, s.subscriber, Domain::kResource), "callbacks of memory"));
  for (const DriverCallback callback :
       {DriverCallback::kEncodeTiled, DriverCallback::kEncodeIm2col,
        DriverCallback::kEncodeIm2colWide, DriverCallback::kBeginCapture,
        DriverCallback::kBeginCaptureOwn, DriverCallback::kBeginCapture2,
        DriverCallback::kBeginCapture2Own, DriverCallback::kBeginCaptureToGraph,
        DriverCallback::kBeginCaptureToGraphOwn, DriverCallback::kEndCapture,
        DriverCallback::kEndCaptureOwn, DriverCallback::kProfilerStart,
        DriverCallback::kProfilerStop}) {
    good(s.api.enable_callback(1, s.subscriber, Domain::kDriver,
                               static_cast<std::uint32_t>(callback)),
         "callbacks of the driver");
  }
  if (s.collector->is_wanted()) {
    s.patch = s.asked;
    tell_of_launches(true);
  }
  s.collector->on_change(collection_changed);
  s.collector->on_tag(tagged);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's own threads
  std::thread(watch).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::atexit(finish);
  s.collector->before_end(finish);
  if (s.policy.leaves_out_iterations()) {
    s.collector->on_iteration(iteration_ended);
  }
  return {};
}

}  // namespace
}  // namespace pasta::adapters::sanitizer

extern "C" {

// For measurements: another patch from now on, by its name; "": none. 0 when there is none of it,
// or no code of it: then there is no patch from now on.
__attribute__((visibility("default"))) int pasta_sanitizer_patch(const char* name) {
  namespace own = pasta::adapters::sanitizer;
  const own::PatchKind* patch = own::find_patch(name);
  if (!own::state().started || (patch == nullptr && *name != '\0')) return 0;
  own::t_ours = true;
  const bool taken = own::switch_patch(patch);
  if (!taken) own::switch_patch(nullptr);
  own::t_ours = false;
  return taken ? 1 : 0;
}

__attribute__((visibility("default"))) int InitializeInjection() {
  namespace own = pasta::adapters::sanitizer;
  static std::once_flag once;
  std::call_once(once, [] {
    void* symbol = dlsym(RTLD_DEFAULT, pasta::trace::kDeviceCollector);
    if (symbol == nullptr) return;  // nobody watches
    pasta::trace::GetDeviceCollector get = nullptr;
    std::memcpy(&get, &symbol, sizeof get);
    own::state().collector = get();
    if (own::state().collector == nullptr) return;
    if (const auto started = own::start(); !started) {
      own::state().started = own::state().active = false;
      own::note(pasta::Reason::kNotRecorded, 1,
                "accesses on the GPU are not analysed: " + started.error().message);
    }
  });
  return 1;
}

}  // extern "C"
