#include "adapters/cupti/adapter.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "adapters/common/python/call_places.h"
#include "adapters/common/vendor_thread.h"
#include "adapters/cupti/api.h"
#include "adapters/cupti/calls.h"
#include "adapters/cupti/decode.h"
#include "adapters/cupti/device_clocks.h"
#include "adapters/cupti/device_runtime.h"
#include "adapters/cupti/waits.h"
#include "trace/append_text.h"
#include "trace/quick_hash.h"
#include "trace/spool_writer.h"

namespace pasta::adapters::cupti {
namespace {

namespace python = common::python;
using trace::SpoolPush;

// CUPTI takes one for each thread that calls CUDA, and one more while it empties the other.
constexpr std::size_t kBufferBytes = std::size_t{256} << 10;
constexpr std::uint32_t kBuffersAtOnce = 32;
constexpr std::uint32_t kMostBuffers = 512;
constexpr std::uint32_t kBitsOfWord = 64;

// An event may be pushed this long after the buffer that it lies in was complete.
constexpr std::int64_t kHoldNs = 2'000'000'000;
// For what a flush may take when the process is about to end.
constexpr std::int64_t kMostNsOfFlush = 10'000'000'000;

constexpr RecordKind kKinds[] = {
    RecordKind::kContext,    RecordKind::kConcurrentKernel, RecordKind::kMemcpy,
    RecordKind::kPeerCopy,   RecordKind::kMemset,           RecordKind::kMemory,
    RecordKind::kMemoryPool, RecordKind::kOverhead,         RecordKind::kExternalCorrelation,
    RecordKind::kGraphTrace, RecordKind::kRuntime,          RecordKind::kDriver};
constexpr const char* kKindNames[] = {"contexts",
                                      "kernels",
                                      "copies",
                                      "copies to peers",
                                      "fills",
                                      "allocations",
                                      "memory pools",
                                      "overhead",
                                      "external correlation",
                                      "whole graphs",
                                      "calls of the runtime",
                                      "calls of the driver"};

// CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
constexpr Api::Result kTaken = 39;
constexpr std::uint32_t kMostCallbacks = 2048;

struct Buffer {
  unsigned char* bytes = nullptr;
  std::size_t valid = 0;
  // When CUPTI got it; 0: it has not got it.
  std::atomic<std::int64_t> lent_ns = 0;
  Buffer* next = nullptr;  // in State::complete
};

// From what CUPTI and CUDA number to the spool's numbers, each entry where its key's hash leads;
// what falls out is interned again.
template <class Key, class Id, std::uint32_t n>
class Cache {
 public:
  // The id of `key`, made by `make` when it is not here.
  template <class Make>
  Id get(const Key& key, Make&& make) {
    static_assert(sizeof(Key) % sizeof(std::uint64_t) == 0);
    const char* bytes = reinterpret_cast<const char*>(&key);
    Entry& entry = entries_[trace::quick_hash({bytes, sizeof key}) >> 32 & (n - 1)];
    if (entry.id && std::memcmp(&entry.key, &key, sizeof key) == 0) return entry.id;
    const Id id = make();
    entry.key = key;
    entry.id = id;
    return id;
  }
  void clear() { std::memset(static_cast<void*>(entries_), 0, sizeof entries_); }

 private:
  struct Entry {
    Key key;
    Id id;
  };
  Entry entries_[n] = {};
};

struct NameKey {
  std::uint64_t address, hash, size;
};
struct LaneKey {
  std::uint64_t type, device, context, stream;
};
struct AttributesKey {
  std::uint32_t words[10];
};

// Where nodes of graphs were made: from CUPTI's number of a node to one of an origin in the spool.
// A node of an executable graph is a copy of one that was captured, and has its origin. Threads of
// the program write, one at a time; ours reads.
class Nodes {
 public:
  // 0: none is known.
  [[nodiscard]] std::uint32_t find(std::uint64_t node) const {
    const Slot* slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr || node == 0) return 0;
    for (std::uint32_t at = home(node);; at = (at + 1) % kSlots) {
      const std::uint64_t key = slots[at].node.load(std::memory_order_acquire);
      if (key == node) return slots[at].origin.load(std::memory_order_relaxed);
      if (key == 0) return 0;
    }
  }
  // False when there is no room.
  bool add(std::uint64_t node, std::uint32_t origin) {
    Slot* slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr) {
      void* mapped = mmap(nullptr, sizeof(Slot) * kSlots, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) return false;
      slots = static_cast<Slot*>(mapped);
      slots_.store(slots, std::memory_order_release);
    }
    for (std::uint32_t at = home(node);; at = (at + 1) % kSlots) {
      const std::uint64_t key = slots[at].node.load(std::memory_order_relaxed);
      if (key != 0 && key != node) continue;
      if (key == 0 && used_ == kSlots / 4 * 3) return false;
      slots[at].origin.store(origin, std::memory_order_relaxed);
      if (key == 0) ++used_;
      slots[at].node.store(node, std::memory_order_release);
      return true;
    }
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> node;
    std::atomic<std::uint32_t> origin;
    std::uint32_t padding;
  };
  static constexpr std::uint32_t kSlots = 1u << 20;
  static std::uint32_t home(std::uint64_t node) {
    return static_cast<std::uint32_t>(node * 0x9e3779b97f4a7c15u >> 44);
  }
  std::atomic<Slot*> slots_ = nullptr;
  std::uint32_t used_ = 0;
};

struct State {
  Api api{};
  pid_t process = 0;
  std::atomic<bool> active = false;    // until CUPTI is another's, or has ended
  std::atomic<bool> serves = false;    // until what it had is taken, too
  std::atomic<bool> used = false;      // and ever after
  std::atomic<bool> of_other = false;  // another has records written for it
  pthread_mutex_t handing_over = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<bool> recording = false;
  bool enabled_before = false;  // so that what is refused is said once
  struct Calls {
    std::uint32_t ids[1024];
    std::uint32_t count;
  };
  Calls runtime_calls = {}, driver_calls = {};
  Calls never_made[2] = {};                     // of the driver, of the runtime
  WaitCall wait_calls[2][kMostCallbacks] = {};  // by the domain: see wait_call_of()
  Calls launches[2] = {};                       // of the driver, of the runtime
  // Of which of them and of waits it is asked where Python makes them.
  std::atomic<bool> placed = false;
  Waits waits;
  ThreadsInside in_waits;

  Api::Subscriber subscriber = nullptr;
  std::atomic<bool> raw_times = false;  // of device work; else CUPTI makes them those of its clock
  std::atomic<bool> clock_told = false;
  pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;  // of nodes
  Nodes nodes;
  std::uint32_t origins = 0;
  // The last origin that was told of: nodes come in rows.
  std::uint32_t last_origin = 0, last_file = 0, last_frame = 0;
  std::atomic<std::uint64_t> nodes_without_room = 0;

  Buffer buffers[kMostBuffers];
  std::atomic<std::uint64_t> free_buffers[kMostBuffers / kBitsOfWord] = {};  // a bit each
  std::atomic<std::uint32_t> buffer_count = 0;
  std::atomic<bool> growing = false;
  std::atomic<Buffer*> complete = nullptr;
  std::atomic<std::uint32_t> complete_count = 0;
  std::atomic<std::uint64_t> refused = 0;  // requests that found no buffer

  common::VendorThread thread;

  // Of our thread from here on.
  common::VendorClock clock;
  DeviceClocks device_clocks;
  std::uint64_t last_correlation = 0;
  std::uint64_t unknown = 0, invalid = 0, untimed = 0, unclocked = 0, refused_told = 0;
  LoadedObjects objects;
  bool kernels_launch = false;  // some code that is loaded can do that
  // Numbers of the program whose call has not come yet.
  struct External {
    std::uint64_t correlation;  // 0: none
    std::uint64_t number;
    const char* name;
  } externals[64] = {};
  std::uint32_t next_external = 0;
  std::uint64_t externals_alone = 0;
  // Numbers of one file of the spool.
  std::uint32_t file = 0;
  Cache<NameKey, StringId, 2048> names;
  Cache<LaneKey, LaneId, 512> lanes;
  Cache<AttributesKey, AttributesId, 1024> attributes;
  StringId calls[2][kMostCallbacks] = {};
  struct KnownDevice {
    bool known;
    DeviceId id;
  } devices[64] = {};
  struct KnownContext {
    std::uint32_t context, device;
  } contexts[256] = {};
  std::uint32_t context_count = 0;
};

// One a process by its nature.
constinit State g;

// --- buffers, from CUPTI's threads and the program's

void give_buffer(Buffer& buffer) {
  buffer.lent_ns.store(0, std::memory_order_relaxed);
  const auto index = static_cast<std::uint32_t>(&buffer - g.buffers);
  g.free_buffers[index / kBitsOfWord].fetch_or(std::uint64_t{1} << index % kBitsOfWord,
                                               std::memory_order_release);
}

void add_buffers() {
  const std::uint32_t count = g.buffer_count.load(std::memory_order_relaxed);
  if (count == kMostBuffers) return;
  unsigned char* memory = trace::make_spool_memory(trace::spool::kVendorEnding,
                                                   std::size_t{kBuffersAtOnce} * kBufferBytes);
  if (memory == nullptr) return;
  // A page that is written for the first time is a fault, which the program would wait for.
  for (std::size_t at = 0; at < kBuffersAtOnce * kBufferBytes; at += 4096) {
    static_cast<volatile unsigned char*>(memory)[at] = 0;
  }
  for (std::uint32_t i = count; i < count + kBuffersAtOnce; ++i) {
    g.buffers[i].bytes = memory + std::size_t{i - count} * kBufferBytes;
  }
  g.buffer_count.store(count + kBuffersAtOnce, std::memory_order_release);
  for (std::uint32_t i = count; i < count + kBuffersAtOnce; ++i) give_buffer(g.buffers[i]);
}

Buffer* take_buffer() {
  for (std::uint32_t word = 0; word < std::size(g.free_buffers); ++word) {
    std::atomic<std::uint64_t>& free = g.free_buffers[word];
    std::uint64_t bits = free.load(std::memory_order_acquire);
    while (bits != 0) {
      const auto lowest = static_cast<std::uint32_t>(__builtin_ctzll(bits));
      if (free.compare_exchange_weak(bits, bits & (bits - 1), std::memory_order_acquire)) {
        return &g.buffers[word * kBitsOfWord + lowest];
      }
    }
  }
  return nullptr;
}

void request(std::uint8_t** bytes, std::size_t* size, std::size_t* max_records) noexcept {
  const int kept = errno;
  Buffer* buffer = take_buffer();
  while (buffer == nullptr) {
    // One thread makes more; the others wait for it rather than lose what they have to tell.
    const std::uint32_t count = g.buffer_count.load(std::memory_order_relaxed);
    if (!g.growing.exchange(true, std::memory_order_acquire)) {
      if (g.buffer_count.load(std::memory_order_relaxed) == count) add_buffers();
      const bool grown = g.buffer_count.load(std::memory_order_relaxed) != count;
      g.growing.store(false, std::memory_order_release);
      buffer = take_buffer();
      if (!grown) break;
    } else {
      sched_yield();
      buffer = take_buffer();
    }
  }
  *max_records = 0;
  if (buffer == nullptr) {
    g.refused.fetch_add(1, std::memory_order_relaxed);
    *bytes = nullptr;
    *size = 0;
  } else {
    buffer->lent_ns.store(trace::spool_now_ns(), std::memory_order_relaxed);
    *bytes = buffer->bytes;
    *size = kBufferBytes;
  }
  errno = kept;
}

// NOLINTNEXTLINE(readability-non-const-parameter): CUPTI says what it is
void complete(void*, std::uint32_t, std::uint8_t* bytes, std::size_t, std::size_t valid) noexcept {
  const std::uint32_t count = g.buffer_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    Buffer& buffer = g.buffers[i];
    if (buffer.bytes != bytes) continue;
    buffer.valid = valid;
    buffer.next = g.complete.load(std::memory_order_relaxed);
    while (!g.complete.compare_exchange_weak(buffer.next, &buffer, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
    // Our thread looks by itself soon enough. To wake it for each buffer would take the core of a
    // thread of the program's again and again.
    if (g.complete_count.fetch_add(1, std::memory_order_relaxed) + 1 == count / 4) {
      g.thread.wake();
    }
    return;
  }
}

bool asked_for(std::uint32_t option) { return (trace::cuda_options() & option) != 0; }

// --- events, in our thread

StringId name_of(SpoolPush& push, const char* text) {
  const std::string_view name(text);
  // A module that is unloaded may leave its place to another, so the address alone tells nothing.
  const NameKey key = {reinterpret_cast<std::uintptr_t>(text), trace::quick_hash(name),
                       name.size()};
  return g.names.get(key, [&] { return push.string(name); });
}

// "cudaLaunchKernel" of "cudaLaunchKernel_v7000": the version of the runtime's interface.
StringId call_of(SpoolPush& push, CallbackDomain domain, std::uint32_t callback) {
  StringId unknown{};
  StringId& known = callback < kMostCallbacks
                        ? g.calls[domain == CallbackDomain::kRuntime ? 1 : 0][callback]
                        : unknown;
  if (known) return known;
  const char* name = nullptr;
  if (g.api.get_callback_name(static_cast<std::int32_t>(domain), callback, &name) != 0 ||
      name == nullptr) {
    return {};
  }
  std::string_view text = name;
  std::size_t digits = 0;
  while (digits < text.size() && text[text.size() - 1 - digits] >= '0' &&
         text[text.size() - 1 - digits] <= '9') {
    ++digits;
  }
  const std::size_t rest = text.size() - digits;
  if (digits >= 4 && rest > 2 && text[rest - 1] == 'v' && text[rest - 2] == '_') {
    text = text.substr(0, rest - 2);
  }
  known = push.string(text);
  return known;
}

DeviceId device_of(SpoolPush& push, std::uint32_t ordinal) {
  if (ordinal >= std::size(g.devices)) return {};
  auto& known = g.devices[ordinal];
  if (!known.known) {
    const DeviceFacts facts = device_facts(ordinal);
    Device device;
    device.ordinal = ordinal;
    device.type = DeviceType::kGpu;
    if (facts.uuid[0] != '\0') device.uuid = push.string(facts.uuid);
    if (facts.name[0] != '\0') device.name = push.string(facts.name);
    device.multiprocessors = facts.multiprocessors;
    device.memory_bytes = facts.memory_bytes;
    known.id = push.device(device);
    known.known = true;
  }
  return known.id;
}

void learn_context(std::uint32_t context, std::uint32_t device) {
  for (std::uint32_t i = 0; i < g.context_count; ++i) {
    if (g.contexts[i].context == context) return;
  }
  if (g.context_count < std::size(g.contexts)) g.contexts[g.context_count++] = {context, device};
}

LaneId lane_of(SpoolPush& push, const Place& place) {
  if (place.type == Place::Type::kThread) {
    const LaneKey key = {1, 0, 0, place.thread};
    return g.lanes.get(key, [&] { return push.thread(place.thread); });
  }
  Lane lane;
  lane.type = LaneType::kQueue;
  bool knows_device = place.knows_device;
  std::uint32_t device = place.device;
  for (std::uint32_t i = 0; i < g.context_count && !knows_device; ++i) {
    if (g.contexts[i].context != place.context) continue;
    knows_device = true;
    device = g.contexts[i].device;
  }
  const bool memory = place.type == Place::Type::kMemory;
  const LaneKey key = {memory ? 3u : 2u, knows_device ? device : ~std::uint64_t{0},
                       memory ? 0 : place.context, memory ? 0 : place.stream};
  return g.lanes.get(key, [&] {
    if (knows_device) lane.device = device_of(push, device);
    if (memory) {
      lane.native_text = push.string("memory");
    } else {
      lane.context = place.context;
      lane.native_id = place.stream;
    }
    return push.queue(lane);
  });
}

AttributesId attributes_of(SpoolPush& push, const LaunchAttributes& attributes) {
  const AttributesKey key = {{attributes.block[0], attributes.block[1], attributes.block[2],
                              attributes.cluster[0], attributes.cluster[1], attributes.cluster[2],
                              attributes.registers_per_thread, attributes.static_shared_bytes,
                              attributes.dynamic_shared_bytes, attributes.local_bytes_per_thread}};
  return g.attributes.get(key, [&] { return push.attributes(attributes); });
}

// "pool 0x7f00" and what is said of it.
std::string_view pool_name(char (&to)[48], std::uint64_t address, const char* what) {
  char* at = to;
  for (const char c : std::string_view("pool 0x")) *at++ = c;
  int shift = 60;
  while (shift > 0 && (address >> shift & 15) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[address >> shift & 15];
  for (const char c : std::string_view(what)) *at++ = c;
  return {to, static_cast<std::size_t>(at - to)};
}

// CUPTI's 32 bits come round again within hours.
std::uint64_t whole_correlation(std::uint64_t low) {
  if (low == 0) return 0;
  const auto ahead = static_cast<std::int32_t>(static_cast<std::uint32_t>(low) -
                                               static_cast<std::uint32_t>(g.last_correlation));
  const std::uint64_t whole = g.last_correlation + static_cast<std::uint64_t>(std::int64_t{ahead});
  if (ahead > 0) g.last_correlation = whole;
  return whole & kMaxVendorCorrelation;
}

// CUPTI tells of the program's number first, and then of the call that it was open around.
void keep_external(const Decoded& told) {
  State::External& to = g.externals[g.next_external++ % std::size(g.externals)];
  if (to.correlation != 0) ++g.externals_alone;
  to = {told.event.correlation, told.external, told.text};
}

// As a moment of the thread when it made the call, with its correlation.
void add_external(SpoolPush& push, const Event& call, std::uint64_t low) {
  for (State::External& external : g.externals) {
    if (external.correlation != low || low == 0) continue;
    char arguments[48];
    trace::append(trace::append(trace::append(arguments, R"({"id":)"), external.number), "}");
    Event event{};
    event.kind = Kind::kScope;
    event.flags = kInstant;
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    event.name = push.string(external.name);
    event.range.arguments = push.string(arguments);
    event.lane = call.lane;
    event.correlation = call.correlation;
    event.start_ns = event.end_ns = call.start_ns;
    push.add(event);
    external.correlation = 0;
  }
}

void add_event(SpoolPush& push, Decoded& told) {
  Event& event = told.event;
  if (event.untimed()) {
    // The device failed before CUPTI had read them there: what is left has no place in time.
    ++g.untimed;
    push.lost(1);
    return;
  }
  const std::uint64_t low = event.correlation;
  event.correlation = whole_correlation(low);
  event.lane = lane_of(push, told.place);
  if (told.text != nullptr) {
    event.name = name_of(push, told.text);
  } else if (told.name[0] != '\0') {
    event.name = push.string(told.name);
  }
  switch (event.kind) {
    case Kind::kKernel:
      event.kernel.attributes = attributes_of(push, told.attributes);
      learn_context(told.place.context, told.place.device);
      break;
    case Kind::kCopy:
    case Kind::kFill:
      learn_context(told.place.context, told.place.device);
      break;
    case Kind::kApi:
      event.scope = {trace::spool::kScopeByTime};
      event.name = call_of(push,
                           event.detail == static_cast<std::uint16_t>(ApiDomain::kDriver)
                               ? CallbackDomain::kDriver
                               : CallbackDomain::kRuntime,
                           told.callback);
      break;
    case Kind::kSync:
      if (event.detail == static_cast<std::uint16_t>(SyncTarget::kStream) &&
          told.place.type == Place::Type::kQueue) {
        event.sync.on = event.lane;
      }
      break;
    case Kind::kAlloc:
    case Kind::kFree: {
      char name[48];
      if (!told.of_host) event.memory.device = device_of(push, told.place.device);
      if (told.pool != 0) {
        event.memory.pool = push.string(pool_name(name, told.pool, ""));
      } else if (told.memory_kind != nullptr) {
        event.memory.pool = push.string(told.memory_kind);
      }
      break;
    }
    default:
      break;
  }
  if (kDeviceWork.has(event.kind)) {
    if (const std::uint32_t origin = g.nodes.find(told.graph_node); origin != 0) {
      event.scope = {trace::spool::kScopeOfOrigin + origin};
    }
  }
  if (told.of_device_clock && g.raw_times.load(std::memory_order_acquire)) {
    if (!g.device_clocks.shift(event, told.place.device)) {
      ++g.unclocked;
      push.lost(1);
      return;
    }
  } else {
    g.clock.shift(event);
  }
  push.add(event);
  if (event.kind == Kind::kApi) add_external(push, event, low);
}

WaitCall& wait_call_of(bool of_driver, std::uint32_t callback) {
  return g.wait_calls[of_driver ? 0 : 1][callback < kMostCallbacks ? callback : 0];
}

void add_call(SpoolPush& push, Decoded& told) {
  const bool of_driver = told.event.detail == static_cast<std::uint16_t>(ApiDomain::kDriver);
  const SyncTarget target = wait_call_of(of_driver, told.callback).target;
  if (target == SyncTarget::kUnknown) return add_event(push, told);
  Decoded wait;
  Waits::On on{};
  const bool known = g.waits.take(static_cast<std::uint32_t>(told.event.correlation), on);
  if (of_driver && !known) {
    // Part of a call of the runtime that is a wait by itself.
    if (asked_for(trace::spool::kCudaDriverCalls)) add_event(push, told);
    return;
  }
  wait.event.kind = Kind::kSync;
  wait.event.detail = static_cast<std::uint16_t>(target);
  wait.event.correlation = told.event.correlation;
  wait.event.start_ns = told.event.start_ns;
  wait.event.end_ns = told.event.end_ns;
  wait.event.sync.object = on.event;
  wait.text = wait_name(target);
  wait.place = told.place;
  if (known) {
    wait.place.type = Place::Type::kQueue;
    wait.place.knows_device = false;
    wait.place.context = on.context;
    wait.place.stream = on.stream;
  }
  add_event(push, told);
  if (!wait.event.untimed()) add_event(push, wait);
}

void add_counters(SpoolPush& push, const Decoded& told) {
  char name[48];
  Event event{};
  event.kind = Kind::kCounter;
  event.start_ns = event.end_ns = told.event.start_ns;
  g.clock.shift(event);
  event.lane = lane_of(push, told.place);
  event.counter.unit = push.string("bytes");
  event.counter.device = device_of(push, told.place.device);
  event.name = push.string(pool_name(name, told.pool, " size"));
  event.counter.value = static_cast<double>(told.pool_size);
  push.add(event);
  event.name = push.string(pool_name(name, told.pool, " used"));
  event.counter.value = static_cast<double>(told.pool_used);
  push.add(event);
}

void read_clock() {
  g.clock.read([](std::uint64_t& at) { return g.api.get_timestamp(&at) == 0; });
}

void take_records(SpoolPush& push, Buffer& buffer) {
  if (push.file() != g.file) {
    g.file = push.file();
    g.names.clear();
    g.lanes.clear();
    g.attributes.clear();
    std::memset(static_cast<void*>(g.calls), 0, sizeof g.calls);
    std::memset(static_cast<void*>(g.devices), 0, sizeof g.devices);
  }
  Record* record = nullptr;
  Decoded told;
  while (g.api.next_record(buffer.bytes, buffer.valid, &record) == 0) {
    switch (decode(record, told)) {
      case Told::kEvent:
        if (told.event.kind == Kind::kApi) {
          add_call(push, told);
        } else {
          add_event(push, told);
        }
        break;
      case Told::kCounters:
        add_counters(push, told);
        break;
      case Told::kContext:
        learn_context(told.place.context, told.place.device);
        break;
      case Told::kExternal:
        keep_external(told);
        break;
      case Told::kNothing:
        break;
      case Told::kUnknown:
        ++g.unknown;
        break;
      case Told::kInvalid:
        ++g.invalid;
        break;
    }
  }
  std::size_t dropped = 0;
  if (g.api.dropped_records(nullptr, 0, &dropped) == 0 && dropped > 0) push.lost(dropped);
}

void take_complete() {
  Buffer* list = g.complete.exchange(nullptr, std::memory_order_acquire);
  g.complete_count.store(0, std::memory_order_relaxed);
  Buffer* in_order = nullptr;
  if (list != nullptr) g.device_clocks.read();
  while (list != nullptr) {
    Buffer* next = list->next;
    list->next = in_order;
    in_order = list;
    list = next;
  }
  while (in_order != nullptr) {
    Buffer& buffer = *in_order;
    in_order = buffer.next;
    // For each buffer its own, so that whoever follows need not wait for all.
    SpoolPush push = SpoolPush::even_stopped();
    if (push) take_records(push, buffer);
    std::memset(buffer.bytes, 0, buffer.valid);
    give_buffer(buffer);
  }
}

// Nothing that is pushed later ends earlier than this.
void tell_hold() {
  std::int64_t oldest = trace::spool_now_ns();
  // What CUPTI has not given back by then never comes.
  const std::uint32_t count =
      g.serves.load(std::memory_order_acquire) ? g.buffer_count.load(std::memory_order_acquire) : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t lent = g.buffers[i].lent_ns.load(std::memory_order_relaxed);
    if (lent != 0 && lent < oldest) oldest = lent;
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.hold(oldest - kHoldNs);
}

// Whatever could not be kept is counted, once for each.
void tell_losses() {
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  if (g.unknown > 0) push.note(Reason::kNotKept, g.unknown, "records of CUPTI of other kinds");
  if (g.invalid > 0) push.note(Reason::kRecordSkipped, g.invalid, "records of CUPTI without sense");
  if (g.untimed > 0) {
    push.note(
        Reason::kCollectorWarning, g.untimed,
        "CUPTI could no longer tell the times of device work, as after a fault of the device");
  }
  for (State::External& external : g.externals) {
    if (external.correlation != 0) ++g.externals_alone;
    external.correlation = 0;
  }
  if (g.externals_alone > 0) {
    push.note(Reason::kNotKept, g.externals_alone,
              "external ids of CUPTI of calls that are not recorded");
  }
  if (const std::uint64_t nodes = g.nodes_without_room.exchange(0); nodes > 0) {
    push.note(Reason::kCollectorWarning, nodes,
              "nodes of CUDA graphs of which is not kept where they were made");
  }
  if (g.unclocked > 0) {
    push.note(Reason::kCollectorWarning, g.unclocked,
              "device work of a GPU whose clock cannot be read");
  }
  g.unknown = g.invalid = g.untimed = g.unclocked = g.externals_alone = 0;
  if (const std::uint64_t failed = g.device_clocks.take_failed(); failed > 0) {
    push.note(Reason::kCollectorWarning, failed,
              "times that the clock of a GPU could not be read: its work may lie beside calls by "
              "microseconds");
  }
  const std::uint64_t refused = g.refused.load(std::memory_order_relaxed);
  if (refused > g.refused_told) {
    push.note(Reason::kCollectorWarning, refused - g.refused_told,
              "CUPTI found no room for more records; give --spool-size more");
    g.refused_told = refused;
  }
}

void flush_and_take(bool forced) {
  if (g.serves.load(std::memory_order_acquire)) {
    read_clock();
    g.api.flush_all(forced ? 1 : 0);
  }
  take_complete();
  if (forced) tell_losses();
  tell_hold();
}

bool is_any_lent() {
  const std::uint32_t count = g.buffer_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (g.buffers[i].lent_ns.load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

void follow_collection() noexcept;
void note(Reason reason, const char* text);

// CUPTI tells of no kernel that a kernel launches.
void look_for_kernels_that_launch() {
  if (g.kernels_launch || !g.objects.find_device_runtime()) return;
  g.kernels_launch = true;
  note(Reason::kNotRecorded,
       "kernels that kernels launch: CUPTI tells of none, and the program has code that can");
}

void begin() noexcept {
  read_clock();
  tell_hold();
}

void look(bool wanted, bool due) noexcept {
  follow_collection();
  if (wanted) {
    flush_and_take(true);
  } else if (!due) {
    take_complete();
  } else if (g.serves.load(std::memory_order_acquire) && is_any_lent()) {
    flush_and_take(false);
  } else {
    tell_hold();
  }
  // Last: whoever waits for a flush may have the loader's lock.
  look_for_kernels_that_launch();
}

constexpr common::VendorThread::Work kWork = {"pasta-cupti", kFlushNs, begin, look};

// --- beginning

void note(Reason reason, const char* text) {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.note(reason, 1, text);
}

// "what: why".
void note_result(const char* what, Api::Result result) {
  const char* why = nullptr;
  char text[256];
  if (g.api.get_result_string(result, &why) != 0 || why == nullptr) why = "unknown error";
  std::size_t at = 0;
  const char* const parts[] = {"CUPTI does not record ", what, ": ", why};
  for (const char* part : parts) {
    for (; *part != '\0' && at + 1 < sizeof text; ++part) text[at++] = *part;
  }
  text[at] = '\0';
  note(Reason::kNotRecorded, text);
}

template <class Wanted>
void find_calls(CallbackDomain domain, Wanted&& wanted, State::Calls& to) {
  for (std::uint32_t callback = 1; callback < kMostCallbacks; ++callback) {
    const char* name = nullptr;
    if (g.api.get_callback_name(static_cast<std::int32_t>(domain), callback, &name) == 0 &&
        name != nullptr && wanted(std::string_view(name)) && to.count < std::size(to.ids)) {
      to.ids[to.count++] = callback;
    }
  }
}

bool is_wanted(RecordKind kind) {
  if (kind == RecordKind::kDriver) return asked_for(trace::spool::kCudaDriverCalls);
  if (kind == RecordKind::kGraphTrace) return asked_for(trace::spool::kCudaWholeGraphs);
  if (kind == RecordKind::kMemset) return !asked_for(trace::spool::kCudaFillCalls);
  return true;
}

using SetCall = Api::Result (*)(std::uint32_t callback, std::uint8_t on);

// False when CUPTI cannot do that by call.
bool switch_calls(const State::Calls& calls, SetCall set, bool on) {
  if (set == nullptr) return false;
  bool done = false;
  for (std::uint32_t i = 0; i < calls.count; ++i) done = set(calls.ids[i], on ? 1 : 0) == 0 || done;
  return done;
}

// The kind of all calls of the runtime costs those that are left out, too.
Api::Result switch_kind(RecordKind kind, bool on) {
  if (kind == RecordKind::kRuntime && switch_calls(g.runtime_calls, g.api.enable_runtime_api, on)) {
    return 0;
  }
  return on ? g.api.enable(kind) : g.api.disable(kind);
}

// CUPTI tells of single calls only if some were asked for when CUDA began: so that they can be
// asked for at any time, some always are, which are never made.
void switch_never_made(bool on) {
  switch_calls(g.never_made[0], g.api.enable_driver_api, on);
  switch_calls(g.never_made[1], g.api.enable_runtime_api, on);
}

void watch_waits(bool on) {
  if (g.subscriber == nullptr) return;
  if (on) g.in_waits.clear();
  for (const CallbackDomain domain : {CallbackDomain::kDriver, CallbackDomain::kRuntime}) {
    for (std::uint32_t call = 1; call < kMostCallbacks; ++call) {
      if (wait_call_of(domain == CallbackDomain::kDriver, call).target == SyncTarget::kUnknown) {
        continue;
      }
      g.api.enable_callback(on ? 1 : 0, g.subscriber, static_cast<std::int32_t>(domain), call);
    }
  }
}

void watch_launches(bool on) {
  for (const CallbackDomain domain : {CallbackDomain::kDriver, CallbackDomain::kRuntime}) {
    const State::Calls& calls = g.launches[domain == CallbackDomain::kRuntime ? 1 : 0];
    for (std::uint32_t i = 0; i < calls.count; ++i) {
      g.api.enable_callback(on ? 1 : 0, g.subscriber, static_cast<std::int32_t>(domain),
                            calls.ids[i]);
    }
  }
}

bool wants_places() {
  return g.recording.load(std::memory_order_acquire) && python::wants_call_places();
}

void follow_python() {
  if (wants_places() == g.placed.load(std::memory_order_relaxed)) return;
  pthread_mutex_lock(&g.switching);
  const bool wanted = wants_places();
  if (g.subscriber != nullptr && wanted != g.placed.load(std::memory_order_relaxed)) {
    watch_launches(wanted);
    g.placed.store(wanted, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&g.switching);
}

// Turns recording on or off as the collection is. What was never on costs nothing; what was, and is
// off, costs each launch a little: so nothing is turned on before it is wanted.
void follow_collection() noexcept {
  if (!g.active.load(std::memory_order_acquire)) return;
  pthread_mutex_lock(&g.switching);
  // Asked for here, so that of two threads that change it the last to come does what is so then.
  const bool wanted = trace::is_collecting();
  if (g.active.load(std::memory_order_acquire) &&
      wanted != g.recording.load(std::memory_order_acquire)) {
    for (std::size_t i = 0; i < std::size(kKinds); ++i) {
      if (!is_wanted(kKinds[i])) continue;
      const Api::Result result = switch_kind(kKinds[i], wanted);
      if (wanted && result != 0 && !g.enabled_before) note_result(kKindNames[i], result);
    }
    g.enabled_before = g.enabled_before || wanted;
    watch_waits(wanted);
    if (!asked_for(trace::spool::kCudaDriverCalls)) {
      switch_calls(g.driver_calls, g.api.enable_driver_api, wanted);
    }
    g.recording.store(wanted, std::memory_order_release);
  }
  pthread_mutex_unlock(&g.switching);
  follow_python();
}

// --- callbacks, from the program's threads

void add_node(const GraphData& data) {
  std::uint64_t node = 0;
  if (data.node == nullptr || g.api.graph_node_id(data.node, &node) != 0) return;
  SpoolPush push = SpoolPush::even_stopped();
  if (!push || !push.scope()) return;
  pthread_mutex_lock(&g.creating);
  std::uint32_t origin = g.last_origin;
  if (origin == 0 || push.file() != g.last_file || push.scope().value != g.last_frame) {
    origin = push.origin(g.origins + 1) ? ++g.origins : 0;
    g.last_origin = origin;
    g.last_file = push.file();
    g.last_frame = push.scope().value;
  }
  if (origin != 0 && !g.nodes.add(node, origin)) g.nodes_without_room.fetch_add(1);
  pthread_mutex_unlock(&g.creating);
}

void copy_node(const GraphData& data) {
  std::uint64_t node = 0, original = 0;
  if (data.node == nullptr || data.original_node == nullptr ||
      g.api.graph_node_id(data.node, &node) != 0 ||
      g.api.graph_node_id(data.original_node, &original) != 0) {
    return;
  }
  pthread_mutex_lock(&g.creating);
  if (const std::uint32_t origin = g.nodes.find(original); origin != 0) {
    if (!g.nodes.add(node, origin)) g.nodes_without_room.fetch_add(1);
  }
  pthread_mutex_unlock(&g.creating);
}

// CUPTI makes the times of devices the host's by readings of both clocks that may be microseconds
// off. Where these clocks can be read better, it leaves the times as they are; of that nothing has
// come yet when the first context is made. A whole graph may end on another device than it begins
// on, and its record does not say.
bool is_device_clock_wanted() {
  return g.subscriber != nullptr && g.api.enable_raw_times != nullptr &&
         g.api.device_id != nullptr && !asked_for(trace::spool::kCudaVendorClock) &&
         !asked_for(trace::spool::kCudaWholeGraphs) && g.device_clocks.open();
}

void add_device(void* context) {
  std::uint32_t ordinal = 0;
  const bool first = !g.clock_told.exchange(true);
  if (g.raw_times.load(std::memory_order_acquire) &&
      (g.api.device_id(context, &ordinal) != 0 || !g.device_clocks.add(ordinal)) && first) {
    g.api.enable_raw_times(0);
    g.raw_times.store(false, std::memory_order_release);
  }
  if (!first) return;
  SpoolPush push = SpoolPush::even_stopped();
  if (push) {
    push.fact("device_clock", g.raw_times.load(std::memory_order_acquire)
                                  ? "the devices', read beside the host's by the driver"
                                  : "made the host's by CUPTI");
  }
}

// Of a call that waits: what for. Whoever reads the call's record finds it there.
void on_wait(bool of_driver, const WaitCall& call, const CallData& data) {
  const auto thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
  const bool entering = data.site == 0;
  if (!of_driver) {
    if (!entering) return g.in_waits.leave(thread);
    g.in_waits.enter(thread);
  } else if (!entering || g.in_waits.has(thread)) {
    return;
  }
  // Of each such call the first is the stream, or else the event, and the second the event.
  const auto* parameters = static_cast<void* const*>(data.parameters);
  Waits::On on{data.context_number, kNoStream, 0};
  if (call.target == SyncTarget::kStream || call.target == SyncTarget::kStreamWaitsEvent) {
    std::uint32_t stream = 0;
    if (g.api.stream_id(nullptr, parameters[0], call.per_thread ? 1 : 0, &stream) == 0) {
      on.stream = stream;
    }
  }
  if (call.target == SyncTarget::kEvent) {
    on.event = reinterpret_cast<std::uintptr_t>(parameters[0]);
  } else if (call.target == SyncTarget::kStreamWaitsEvent) {
    on.event = reinterpret_cast<std::uintptr_t>(parameters[1]);
  }
  g.waits.put(data.correlation, on);
}

// Around a launch or a wait, where Python makes it.
void place(const CallData& call) {
  if (call.kept == nullptr) return;
  // It ends also where meanwhile none is wanted any more.
  if (call.site != 0) return python::close_call_place(*call.kept);
  const bool wanted = g.placed.load(std::memory_order_relaxed);
  *call.kept = wanted ? python::open_call_place() : 0;
}

void on_call(bool of_driver, std::uint32_t callback, const CallData& call) {
  const bool entering = call.site == 0;
  const std::uint32_t of = of_driver ? 0 : 1;
  if (callback == kProfilerStart[of] || callback == kProfilerStop[of]) {
    // The calls themselves are not part of it.
    if (entering == (callback == kProfilerStop[of])) trace::switch_capture(!entering);
    return;
  }
  if (entering) place(call);
  const WaitCall& wait = wait_call_of(of_driver, callback);
  if (wait.target != SyncTarget::kUnknown) on_wait(of_driver, wait, call);
  if (!entering) place(call);
}

// CUPTI takes itself out of the process.
void on_fatal_error(const StateData& data) {
  g.active.store(false, std::memory_order_release);
  g.serves.store(false, std::memory_order_release);
  g.recording.store(false, std::memory_order_release);
  note_result("CUDA from shortly before it failed on", data.result);
}

void on_callback(void*, std::int32_t domain, std::uint32_t callback, const void* data) noexcept {
  const int kept = errno;
  if (domain == static_cast<std::int32_t>(CallbackDomain::kState)) {
    if (callback == kFatalError) on_fatal_error(*static_cast<const StateData*>(data));
  } else if (domain == static_cast<std::int32_t>(CallbackDomain::kResource)) {
    const void* what = static_cast<const ResourceData*>(data)->what;
    if (callback == kContextCreated) {
      add_device(static_cast<const ResourceData*>(data)->context);
    } else if (what != nullptr && callback == kGraphNodeCreated) {
      add_node(*static_cast<const GraphData*>(what));
    } else if (what != nullptr && callback == kGraphNodeCloned) {
      copy_node(*static_cast<const GraphData*>(what));
    }
  } else {
    on_call(domain == static_cast<std::int32_t>(CallbackDomain::kDriver), callback,
            *static_cast<const CallData*>(data));
  }
  errno = kept;
}

void enable_callbacks() {
  const auto want = [](CallbackDomain domain, std::uint32_t callback) {
    g.api.enable_callback(1, g.subscriber, static_cast<std::int32_t>(domain), callback);
  };
  if (trace::capture_by() == trace::spool::CaptureBy::kProfiler) {
    for (const auto* of : {kProfilerStart, kProfilerStop}) {
      want(CallbackDomain::kDriver, of[0]);
      want(CallbackDomain::kRuntime, of[1]);
    }
  }
  want(CallbackDomain::kState, kFatalError);
  want(CallbackDomain::kResource, kContextCreated);
  if (g.api.graph_node_id != nullptr && !asked_for(trace::spool::kCudaWholeGraphs)) {
    want(CallbackDomain::kResource, kGraphNodeCreated);
    want(CallbackDomain::kResource, kGraphNodeCloned);
  }
}

bool set_up() {
  std::uint8_t zeroed = 1;
  std::size_t size = sizeof zeroed;
  constexpr std::int32_t kZeroedBuffers = 5;
  g.api.set_attribute(kZeroedBuffers, &size, &zeroed);
  constexpr std::int32_t kSystemThreadIds = 1;
  g.api.set_thread_id_type(kSystemThreadIds);
  if (const Api::Result result = g.api.register_callbacks(request, complete); result != 0) {
    note_result("anything", result);
    return false;
  }
  // Where they begin and end collection, the switches of profilers are no part of it.
  const bool by_profiler = trace::capture_by() == trace::spool::CaptureBy::kProfiler;
  find_calls(
      CallbackDomain::kRuntime,
      [&](std::string_view name) {
        return !begins_with_one(name, kQueries) &&
               !(by_profiler && name.starts_with("cudaProfiler"));
      },
      g.runtime_calls);
  find_calls(
      CallbackDomain::kDriver,
      [](std::string_view name) {
        return begins_with_one(name, kDriverLaunches) ||
               wait_call(name).target != SyncTarget::kUnknown;
      },
      g.driver_calls);
  find_calls(
      CallbackDomain::kDriver,
      [](std::string_view name) { return begins_with_one(name, kDriverLaunches); }, g.launches[0]);
  find_calls(
      CallbackDomain::kRuntime,
      [](std::string_view name) { return begins_with_one(name, kRuntimeLaunches); }, g.launches[1]);
  const auto never_made = [](std::string_view name) { return begins_with_one(name, kNeverMade); };
  find_calls(CallbackDomain::kDriver, never_made, g.never_made[0]);
  find_calls(CallbackDomain::kRuntime, never_made, g.never_made[1]);
  for (const CallbackDomain domain : {CallbackDomain::kDriver, CallbackDomain::kRuntime}) {
    for (std::uint32_t call = 1; call < kMostCallbacks; ++call) {
      const char* name = nullptr;
      if (g.api.get_callback_name(static_cast<std::int32_t>(domain), call, &name) == 0 &&
          name != nullptr) {
        wait_call_of(domain == CallbackDomain::kDriver, call) = wait_call(name);
      }
    }
  }
  return true;
}

void unsubscribe() {
  if (g.subscriber != nullptr) g.api.unsubscribe(g.subscriber);
  g.subscriber = nullptr;
}

// One thread at a time.
void let_go() {
  flush();
  pthread_mutex_lock(&g.switching);
  const bool was_ours = g.active.exchange(false, std::memory_order_acq_rel);
  if (was_ours) {
    g.recording.store(false, std::memory_order_release);
    for (const RecordKind kind : kKinds) {
      if (is_wanted(kind)) switch_kind(kind, false);
    }
    switch_calls(g.driver_calls, g.api.enable_driver_api, false);
    switch_never_made(false);
    if (g.raw_times.load(std::memory_order_acquire)) g.api.enable_raw_times(0);
  }
  pthread_mutex_unlock(&g.switching);
  if (!was_ours) return;
  // What other threads have done meanwhile: a buffer that CUPTI keeps would be given to whoever
  // registers next.
  flush();
  g.serves.store(false, std::memory_order_release);
  pthread_mutex_lock(&g.switching);
  unsubscribe();
  pthread_mutex_unlock(&g.switching);
  note(Reason::kNotRecorded,
       "CUDA from when the program's own profiler began: CUPTI serves only one");
}

}  // namespace

void start() noexcept {
  if (!trace::in_run() || g.process == getpid()) return;
  if (g.process != 0) {
    return note(Reason::kNotRecorded, "CUDA is not watched: it had begun before fork()");
  }
  g.process = getpid();
  char where[512];
  if (!load_api(g.api, where, sizeof where)) {
    char text[600] = "CUDA is not watched: ";
    std::strncat(text, where, sizeof text - std::strlen(text) - 1);
    note(Reason::kNotRecorded, text);
    return;
  }
  constexpr char kOfOther[] = "CUDA is not watched: another tool in the program has CUPTI already";
  if (g.of_other.load(std::memory_order_acquire)) return note(Reason::kNotRecorded, kOfOther);
  {
    std::uint32_t version = 0;
    g.api.get_version(&version);
    char digits[12];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + version % 10);
    while ((version /= 10) != 0);
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.fact("cupti_version", {digits + at, sizeof digits - at});
    if (push) push.fact("cupti_library", where);
  }
  g.objects = {};
  g.kernels_launch = false;
  // CUPTI has room for one, and who was there first keeps it.
  if (const Api::Result result = g.api.subscribe(&g.subscriber, on_callback, nullptr);
      result == kTaken) {
    return note(Reason::kNotRecorded, kOfOther);
  } else if (result != 0) {
    g.subscriber = nullptr;
    note_result("graphs' origins, what is waited for and the switch of profilers", result);
  }
  add_buffers();
  if (g.buffer_count.load() == 0) {
    note(Reason::kNotRecorded, "CUDA is not watched: the spool has no room for its records");
    return;
  }
  if (!g.thread.start(kWork)) {
    note(Reason::kNotRecorded, "CUDA is not watched: no thread could be started");
    return;
  }
  if (!set_up()) {
    unsubscribe();
    return;
  }
  if (g.subscriber != nullptr) enable_callbacks();
  if (asked_for(trace::spool::kCudaFillCalls)) {
    note(Reason::kNotRecorded, "fills on GPUs: --cuda-fills calls has nothing but their calls");
  }
  g.clock_told.store(false);
  g.raw_times.store(is_device_clock_wanted() && g.api.enable_raw_times(1) == 0,
                    std::memory_order_release);
  g.used.store(true, std::memory_order_release);
  g.serves.store(true, std::memory_order_release);
  switch_never_made(true);
  g.active.store(true, std::memory_order_release);
  trace::on_collection_change(follow_collection);
  follow_collection();
  std::atexit(flush);
}

void flush() noexcept {
  if (g.used.load(std::memory_order_acquire) && g.process == getpid()) {
    g.thread.flush(kMostNsOfFlush);
  }
}

void begins_other() noexcept { g.of_other.store(true, std::memory_order_release); }

void hand_over() noexcept {
  if (!g.used.load(std::memory_order_acquire) || g.process != getpid()) return;
  // Of two that begin at once the second waits: before the first is through it would get what is
  // ours.
  pthread_mutex_lock(&g.handing_over);
  if (g.active.load(std::memory_order_acquire)) let_go();
  pthread_mutex_unlock(&g.handing_over);
}

void* used_function(const char* name) noexcept {
  if (!g.used.load(std::memory_order_acquire) || g.process != getpid()) return nullptr;
  return system_dlsym()(g.api.library, name);
}

void after_fork() noexcept {
  // Another process may have the same number elsewhere.
  g.used.store(false, std::memory_order_release);
  g.active.store(false, std::memory_order_release);
  g.serves.store(false, std::memory_order_release);
  g.recording.store(false, std::memory_order_release);
}

}  // namespace pasta::adapters::cupti
