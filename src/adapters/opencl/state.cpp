#include "adapters/opencl/state.h"

#include <time.h>

#include <algorithm>

#include "adapters/opencl/words.h"
#include "trace/tick_clock.h"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>

namespace pasta::adapters::opencl {
namespace {

using trace::SpoolPush;

// A command may seem to end a little before it was enqueued, as far as clocks are uncertain.
constexpr std::int64_t kSlackNs = 1'000'000;
constexpr std::uint32_t kLookEvery = 32;
constexpr std::int64_t kLookAfterNs = 10'000'000;
constexpr std::int64_t kTellAfterNs = 1'000'000'000;
constexpr int kCommandsAtOnce = 64;

constinit State g_state;

const cl_icd_dispatch& next() { return *static_cast<const cl_icd_dispatch*>(runtime()); }

cl_device_id as_device(const void* device) {
  return static_cast<cl_device_id>(const_cast<void*>(device));
}

template <class T>
T device_info(const void* device, cl_device_info what, T otherwise) {
  T value{};
  if (next().clGetDeviceInfo(as_device(device), what, sizeof value, &value, nullptr) !=
      CL_SUCCESS) {
    return otherwise;
  }
  return value;
}

std::string_view device_text(const void* device, cl_device_info what) {
  char text[256];
  std::size_t size = 0;
  if (next().clGetDeviceInfo(as_device(device), what, sizeof text, text, &size) != CL_SUCCESS ||
      size == 0) {
    return {};
  }
  return g_state.texts.keep({text, size - 1});
}

// "OpenCL 1.2 and what the vendor says".
bool is_of_version(const void* device, int major, int minor) {
  const std::string_view text = device_text(device, CL_DEVICE_VERSION);
  constexpr std::string_view kBefore = "OpenCL ";
  if (text.size() < kBefore.size() + 3 || !text.starts_with(kBefore)) return false;
  const int has_major = text[kBefore.size()] - '0', has_minor = text[kBefore.size() + 2] - '0';
  return has_major > major || (has_major == major && has_minor >= minor);
}

bool has_extension(const void* device, std::string_view name) {
  constexpr std::size_t kMost = std::size_t{16} << 10;
  char text[kMost];
  std::size_t size = 0;
  return next().clGetDeviceInfo(as_device(device), CL_DEVICE_EXTENSIONS, sizeof text, text,
                                &size) == CL_SUCCESS &&
         size > 0 && std::string_view(text, size - 1).find(name) != std::string_view::npos;
}

std::string_view device_uuid(const void* device) {
  constexpr cl_device_info kUuid = 0x106A;  // of cl_khr_device_uuid
  if (!has_extension(device, "cl_khr_device_uuid")) return {};
  struct Uuid {
    unsigned char bytes[16];
  };
  const auto uuid = device_info<Uuid>(device, kUuid, {});
  char text[37];
  char* to = text;
  bool any = false;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *to++ = '-';
    *to++ = "0123456789abcdef"[uuid.bytes[i] >> 4];
    *to++ = "0123456789abcdef"[uuid.bytes[i] & 15];
    any = any || uuid.bytes[i] != 0;
  }
  return any ? g_state.texts.keep({text, static_cast<std::size_t>(to - text)}) : std::string_view();
}

struct SystemClock {
  HostClock clock;
  clockid_t id;
  std::string_view name;
};
constexpr SystemClock kSystemClocks[] = {
    {HostClock::kRaw, CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
    {HostClock::kMonotonic, CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
    {HostClock::kBoot, CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
    {HostClock::kReal, CLOCK_REALTIME, "CLOCK_REALTIME"},
};

const SystemClock* system_clock(HostClock clock) {
  for (const SystemClock& known : kSystemClocks) {
    if (known.clock == clock) return &known;
  }
  return nullptr;
}

// A device time between two of the host.
struct Reading {
  std::int64_t before, device, after;
};

Reading read_clock(const SystemClock& clock) {
  Reading reading{};
  timespec at{};
  reading.before = trace::host_now_ns();
  clock_gettime(clock.id, &at);
  reading.after = trace::host_now_ns();
  reading.device = std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
  return reading;
}

// Where the device's clock can be read. The tightest of a few readings counts.
void read_clocks(Device& device) {
  constexpr int kReadings = 3;
  Reading readings[kReadings];
  int count = 0;
  const SystemClock* system = system_clock(device.host_clock);
  for (Reading& reading : readings) {
    if (device.timer) {
      cl_ulong at = 0, host = 0;
      reading.before = trace::host_now_ns();
      device.timer =
          next().clGetDeviceAndHostTimer(as_device(device.handle), &at, &host) == CL_SUCCESS;
      reading.after = trace::host_now_ns();
      reading.device = static_cast<std::int64_t>(at);
      if (!device.timer) break;
    } else if (system != nullptr) {
      reading = read_clock(*system);
    } else {
      break;
    }
    ++count;
  }
  const Held held(device.lock);
  for (int i = 0; i < count; ++i) {
    device.clock.observe(readings[i].before, readings[i].device, readings[i].after);
  }
}

// A device whose clock is, by what its commands say, within microseconds of one of the system's is
// on that: by chance it would not be.
void identify_clock(Device& device) {
  const Held held(device.lock);
  if (device.timer || device.host_clock != HostClock::kUnknown) return;
  for (const SystemClock& system : kSystemClocks) {
    const Reading reading = read_clock(system);
    if (!device.clock.agrees(reading.before, reading.device, reading.after)) continue;
    device.host_clock = system.clock;
    return;
  }
}

void tell_clock(SpoolPush& push, Device& device, std::int64_t now_ns, bool at_once) {
  Words key, value;
  {
    const Held held(device.lock);
    if (device.clock.brackets() == 0) return;
    if (!at_once && now_ns - device.told_ns < kTellAfterNs) return;
    device.told_ns = now_ns;
    key << "opencl device " << std::int64_t{device.ordinal} << " clock";
    const std::int64_t offset = device.clock.offset_ns();
    value << "CLOCK_MONOTONIC " << (offset < 0 ? "+ " : "- ") << (offset < 0 ? -offset : offset)
          << " ns; residual " << device.clock.off_ns() << " ns, at most " << device.clock.worst_ns()
          << " ns";
    if (const SystemClock* system = system_clock(device.host_clock)) {
      value << "; it counts " << system->name;
    } else if (!device.timer) {
      value << "; from when commands were queued";
    }
    if (device.clock.steps() > 0) {
      value << "; clocks stepped " << static_cast<std::int64_t>(device.clock.steps()) << " times";
    }
  }
  push.fact(key.text(), value.text());
}

void tell_queue(Queue& queue, std::int64_t now_ns, bool at_once) {
  Words key, value;
  {
    const Held held(queue.lock);
    Waits& waits = queue.waits;
    if (waits.commands == waits.told_commands) return;
    if (!at_once && now_ns - waits.told_ns < kTellAfterNs) return;
    waits.told_ns = now_ns;
    waits.told_commands = waits.commands;
    const auto count = static_cast<std::int64_t>(waits.commands);
    key << "opencl queue " << std::int64_t{queue.number} << " waits";
    value << count << " commands: from queued to submitted " << waits.queued_ns / count
          << " ns on average, at most " << waits.longest_queued_ns << "; from submitted to started "
          << waits.submitted_ns / count << " ns on average, at most " << waits.longest_submitted_ns;
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.fact(key.text(), value.text());
}

bool read_times(cl_event event, CommandTimes& times) {
  const auto read = [&](cl_profiling_info what, std::int64_t& to) {
    cl_ulong value = 0;
    const cl_int status =
        next().clGetEventProfilingInfo(event, what, sizeof value, &value, nullptr);
    to = static_cast<std::int64_t>(value);
    return status == CL_SUCCESS;
  };
  return read(CL_PROFILING_COMMAND_QUEUED, times.queued) &&
         read(CL_PROFILING_COMMAND_SUBMIT, times.submitted) &&
         read(CL_PROFILING_COMMAND_START, times.start) &&
         read(CL_PROFILING_COMMAND_END, times.end) && times.start <= times.end;
}

// Of a command that has ended: how, and its times, from which the clock learns. False while it has
// not.
bool settle(Command& command) {
  if (command.cancelled.load(std::memory_order_acquire)) return true;
  auto event = static_cast<cl_event>(command.event.load(std::memory_order_acquire));
  if (event == nullptr) return false;
  cl_int status = CL_QUEUED;
  if (next().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                            nullptr) != CL_SUCCESS) {
    status = CL_COMPLETE;
  }
  if (status > CL_COMPLETE) return false;
  command.status = status;
  Queue& queue = *command.queue;
  CommandTimes& times = command.times;
  command.timed = status == CL_COMPLETE && queue.profiled && read_times(event, times);
  next().clReleaseEvent(event);
  if (!command.timed) return true;
  if (times.waits_known()) {
    const Held held(queue.lock);
    queue.waits.add(times.submitted - times.queued, times.start - times.submitted);
  }
  Device& device = *queue.device;
  // A runtime may not know when a command was queued: 0 is no time.
  if (!device.timer && times.queued > 0) {
    const Held held(device.lock);
    const std::uint64_t steps = device.clock.steps();
    device.clock.observe(command.before_ns - trace::kTicksOffNs, times.queued,
                         command.after_ns + trace::kTicksOffNs);
    if (device.clock.steps() != steps) device.host_clock = HostClock::kNone;
  }
  return true;
}

// What a command did before it started, by the host's clock, as ranges on its queue.
void put_waits(SpoolPush& push, LaneId lane, const Command& command, std::int64_t started_ns) {
  const CommandTimes& times = command.times;
  if (!times.waits_known()) return;
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kAnnotation;
  event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
  event.correlation = command.what.correlation;
  event.lane = lane;
  event.start_ns = started_ns - (times.start - times.queued);
  event.end_ns = started_ns - (times.start - times.submitted);
  event.name = push.string("queued");
  push.add(event);
  event.start_ns = event.end_ns;
  event.end_ns = started_ns;
  event.name = push.string("submitted");
  push.add(event);
}

void put(SpoolPush& push, LaneId lane, const Command& command) {
  if (command.cancelled.load(std::memory_order_relaxed)) return;
  Event event = command.what;
  event.lane = lane;
  if (command.timed) {
    event.name = push.string(command.name);
    Device& device = *command.queue->device;
    {
      const Held held(device.lock);
      event.start_ns = device.clock.to_host(command.times.start);
      event.end_ns = device.clock.to_host(command.times.end);
    }
    put_waits(push, lane, command, event.start_ns);
    if (event.kind == Kind::kKernel) event.kernel.attributes = push.attributes(command.attributes);
    if (event.kind == Kind::kSync) event.sync.on = lane;
  } else {
    // It failed, or the runtime does not know its times.
    Words text;
    text << command.name;
    if (command.status < 0) {
      text << ": ended with status " << std::int64_t{command.status};
    } else {
      text << ": ended, no times known";
    }
    event = {};
    event.kind = Kind::kScope;
    event.flags = kInstant | kAnnotation;
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
    event.correlation = command.what.correlation;
    event.name = push.string(text.text());
    event.lane = lane;
    event.start_ns = event.end_ns = push.now();
  }
  push.add(event);
}

void put_all(Queue& queue, const Command* command) {
  constexpr int kAtOnce = 256;
  while (command != nullptr) {
    SpoolPush push = SpoolPush::even_stopped();
    if (!push) {
      command = command->next;  // that is counted
      continue;
    }
    const LaneId lane = put_lane(push, queue);
    for (int i = 0; i < kAtOnce && command != nullptr; ++i, command = command->next) {
      put(push, lane, *command);
    }
    tell_clock(push, *queue.device, push.now(), false);
  }
}

void look_once(Queue& queue, bool all) {
  Command *taken = nullptr, *taken_last = nullptr;
  {
    const Held held(queue.lock);
    taken = queue.first;
    taken_last = queue.last;
    queue.first = queue.last = nullptr;
    if (taken == nullptr) return;
    queue.looking_from_ns = taken->before_ns;
  }
  Command *first = nullptr, *last = nullptr, *done = nullptr, *done_last = nullptr;
  std::uint64_t ended = 0;
  bool stop = false;
  int seen = 0;
  while (taken != nullptr) {
    Command* command = taken;
    if (!stop && settle(*command)) {
      taken = command->next;
      command->next = nullptr;
      (done_last == nullptr ? done : done_last->next) = command;
      done_last = command;
      ++ended;
    } else if (stop) {
      break;
    } else {
      // Nothing behind it has ended in a queue that keeps order, unless it is not in there yet.
      stop = !queue.out_of_order && command->event.load(std::memory_order_relaxed) != nullptr;
      taken = command->next;
      command->next = nullptr;
      (last == nullptr ? first : last->next) = command;
      last = command;
    }
    if (!all && ++seen >= kCommandsAtOnce) stop = true;
  }
  // After all that they teach about the clock.
  if (done != nullptr) {
    identify_clock(*queue.device);
    read_clocks(*queue.device);
  }
  put_all(queue, done);
  // What was not looked at stays behind what was.
  (last == nullptr ? first : last->next) = taken;
  if (taken != nullptr) last = taken_last;
  {
    const Held held(queue.lock);
    queue.looking_from_ns = kNoTime;
    if (first != nullptr) {
      last->next = queue.first;
      if (queue.last == nullptr) queue.last = last;
      queue.first = first;
    }
    while (done != nullptr) {
      Command* command = done;
      done = command->next;
      command->next = queue.free;
      queue.free = command;
    }
  }
  if (ended == 0) return;
  trace::work_ends(ended);
  tell_queue(queue, SpoolPush::now(), false);
}

// What is under way ends after the oldest of it was enqueued, and what is not yet, later than now.
void hold() {
  std::int64_t hold_ns = SpoolPush::now();
  for (Queue* queue = g_state.all_queues.load(std::memory_order_acquire); queue != nullptr;
       queue = queue->next) {
    const Held held(queue->lock);
    if (queue->looking_from_ns != kNoTime) hold_ns = std::min(hold_ns, queue->looking_from_ns);
    if (queue->first != nullptr) hold_ns = std::min(hold_ns, queue->first->before_ns);
  }
  hold_ns -= kSlackNs;
  if (hold_ns > g_state.held_ns.load(std::memory_order_relaxed)) {
    g_state.held_ns.store(hold_ns, std::memory_order_relaxed);
    trace::hold_work(hold_ns);
  }
}

// Makes a record of a queue new, unless commands of it are under way.
bool retire(Queue& queue) {
  tell_queue(queue, 0, true);
  const Held held(queue.lock);
  if (queue.first != nullptr || queue.looking_from_ns != kNoTime) return false;
  queue.has_properties = false;
  queue.property_count = 0;
  queue.since_looked = 0;
  queue.waits = {};
  return true;
}

}  // namespace

State& state() noexcept { return g_state; }

Device* device_of(const void* handle) noexcept {
  Device** known = g_state.devices.make(handle);
  if (known == nullptr) return nullptr;
  const Held held(g_state.making_devices);
  if (*known != nullptr && !(*known)->closed) return *known;
  const std::string_view name = device_text(handle, CL_DEVICE_NAME);
  const std::string_view uuid = device_uuid(handle);
  const auto compute_units = device_info<cl_uint>(handle, CL_DEVICE_MAX_COMPUTE_UNITS, 0);
  const auto memory_bytes = device_info<cl_ulong>(handle, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
  Device** const before = g_state.devices.any([&](const void*, const Device* other) {
    return other != nullptr && other->closed && other->name == name && other->uuid == uuid &&
           other->compute_units == compute_units && other->memory_bytes == memory_bytes;
  });
  Device* device = before != nullptr ? *before : g_state.arena.make<Device>();
  if (device == nullptr) return nullptr;
  if (before == nullptr) {
    device->ordinal = g_state.device_count.fetch_add(1, std::memory_order_relaxed);
  }
  device->closed = false;
  device->handle = handle;
  device->name = name;
  device->uuid = uuid;
  device->compute_units = compute_units;
  device->memory_bytes = memory_bytes;
  const auto type = device_info<cl_device_type>(handle, CL_DEVICE_TYPE, 0);
  device->type = (type & CL_DEVICE_TYPE_GPU) != 0           ? DeviceType::kGpu
                 : (type & CL_DEVICE_TYPE_CPU) != 0         ? DeviceType::kCpu
                 : (type & CL_DEVICE_TYPE_ACCELERATOR) != 0 ? DeviceType::kAccelerator
                                                            : DeviceType::kUnknown;
  // A runtime of an older version may have in its place what leads back to the loader, and so to
  // us.
  device->timer = next().clGetDeviceAndHostTimer != nullptr && is_of_version(handle, 2, 1);
  read_clocks(*device);
  *known = device;
  return device;
}

Context* context_of(const void* handle) noexcept {
  Context* context = g_state.contexts.make(handle);
  if (context == nullptr || context->number != 0) return context;
  constexpr std::size_t kMost = 64;
  cl_device_id devices[kMost];
  std::size_t size = 0;
  if (next().clGetContextInfo(static_cast<cl_context>(const_cast<void*>(handle)),
                              CL_CONTEXT_DEVICES, kMost * sizeof(cl_device_id), devices,
                              &size) == CL_SUCCESS &&
      size > 0) {
    context->device = device_of(devices[0]);
  }
  context->number = g_state.context_count.fetch_add(1, std::memory_order_relaxed) + 1;
  return context;
}

Queue* new_queue(const void* handle) noexcept {
  Queue** known = g_state.queues.make(handle);
  if (known == nullptr) return nullptr;
  auto native = static_cast<cl_command_queue>(const_cast<void*>(handle));
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue_properties properties = 0;
  const auto info = [&](cl_command_queue_info what, void* to, std::size_t size) {
    return next().clGetCommandQueueInfo(native, what, size, to, nullptr) == CL_SUCCESS;
  };
  if (!info(CL_QUEUE_DEVICE, &device, sizeof(cl_device_id)) ||
      !info(CL_QUEUE_CONTEXT, &context, sizeof(cl_context)) ||
      !info(CL_QUEUE_PROPERTIES, &properties, sizeof properties)) {
    return nullptr;
  }
  Device* on = device_of(device);
  Context* in = context_of(context);
  if (on == nullptr || in == nullptr) return nullptr;
  // A handle that comes again is of a queue that is no more; all of its commands may have been
  // seen.
  Queue* queue = *known;
  const bool again = queue != nullptr && retire(*queue);
  if (!again) queue = g_state.arena.make<Queue>();
  if (queue == nullptr) return nullptr;
  queue->looking_from_ns = kNoTime;
  queue->device = on;
  queue->context = in->number;
  queue->number = g_state.queue_count.fetch_add(1, std::memory_order_relaxed) + 1;
  queue->out_of_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
  queue->profiled = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  queue->asked_profiling = queue->profiled;
  if (again) return queue;
  queue->next = g_state.all_queues.load(std::memory_order_relaxed);
  while (!g_state.all_queues.compare_exchange_weak(queue->next, queue, std::memory_order_release,
                                                   std::memory_order_relaxed)) {
  }
  *known = queue;
  return queue;
}

Queue* queue_of(const void* handle) noexcept {
  Queue** known = g_state.queues.find(handle);
  return known != nullptr && *known != nullptr ? *known : new_queue(handle);
}

LaneId put_lane(SpoolPush& push, const Queue& queue) noexcept {
  Words name;
  name << "queue " << std::int64_t{queue.number};
  if (queue.out_of_order) name << " (out of order)";
  return push.queue({.type = LaneType::kQueue,
                     .device = put_device(push, *queue.device),
                     .context = queue.context,
                     .native_id = queue.number,
                     .native_text = {},
                     .name = push.string(name.text())});
}

DeviceId put_device(SpoolPush& push, const Device& device) noexcept {
  pasta::Device facts;
  facts.ordinal = device.ordinal;
  facts.type = device.type;
  facts.multiprocessors = device.compute_units;
  facts.memory_bytes = device.memory_bytes;
  if (!device.name.empty()) facts.name = push.string(device.name);
  if (!device.uuid.empty()) facts.uuid = push.string(device.uuid);
  return push.device(facts);
}

Command* begin(Queue& queue) noexcept {
  trace::work_begins();
  Command* command = nullptr;
  {
    const Held held(queue.lock);
    command = queue.free;
    if (command != nullptr) queue.free = command->next;
  }
  if (command == nullptr) command = g_state.arena.make<Command>();
  if (command == nullptr) {
    trace::work_ends(1);
    SpoolPush push;
    if (push) push.lost(1);
    return nullptr;
  }
  command->next = nullptr;
  command->queue = &queue;
  command->event.store(nullptr, std::memory_order_relaxed);
  command->cancelled.store(false, std::memory_order_relaxed);
  const Held held(queue.lock);
  // Under the lock, so that the list is in the order of these times.
  command->before_ns = SpoolPush::now();
  (queue.last == nullptr ? queue.first : queue.last->next) = command;
  queue.last = command;
  return command;
}

void enqueued(Command& command, void* event, std::int64_t after_ns) noexcept {
  command.after_ns = after_ns;
  command.event.store(event, std::memory_order_release);
}

void cancel(Command& command) noexcept { command.cancelled.store(true, std::memory_order_release); }

void look(Queue& queue, bool all) noexcept {
  queue.again.store(true, std::memory_order_seq_cst);
  // Who looks already looks again.
  while (queue.again.load(std::memory_order_seq_cst) && queue.looking.try_lock()) {
    queue.again.store(false, std::memory_order_seq_cst);
    look_once(queue, all);
    queue.looked_ns.store(SpoolPush::now(), std::memory_order_relaxed);
    queue.looking.unlock();
  }
  hold();
}

void look_at_all() noexcept {
  for (Queue* queue = g_state.all_queues.load(std::memory_order_acquire); queue != nullptr;
       queue = queue->next) {
    look(*queue, true);
  }
}

void look_sometimes(Queue& queue, std::int64_t now_ns) noexcept {
  bool due = now_ns - queue.looked_ns.load(std::memory_order_relaxed) > kLookAfterNs;
  {
    const Held held(queue.lock);
    if (++queue.since_looked >= kLookEvery) due = true;
    if (due) queue.since_looked = 0;
  }
  if (due) look(queue, false);
}

bool holds(const void* event) noexcept {
  for (Queue* queue = g_state.all_queues.load(std::memory_order_acquire); queue != nullptr;
       queue = queue->next) {
    const Held held(queue->lock);
    for (const Command* command = queue->first; command != nullptr; command = command->next) {
      if (command->event.load(std::memory_order_relaxed) == event) return true;
    }
  }
  return false;
}

void abandon() noexcept {
  std::uint64_t count = 0;
  for (Queue* queue = g_state.all_queues.load(std::memory_order_acquire); queue != nullptr;
       queue = queue->next) {
    const Held held(queue->lock);
    while (queue->first != nullptr) {
      Command* command = queue->first;
      queue->first = command->next;
      command->next = queue->free;
      queue->free = command;
      if (!command->cancelled.load(std::memory_order_relaxed)) ++count;
      trace::work_ends(1);
    }
    queue->last = nullptr;
  }
  g_state.devices.any([](const void*, Device* device) {
    if (device != nullptr) device->closed = true;
    return false;
  });
  if (count == 0) return;
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.note(Reason::kWorkUnderWay, count, "of an OpenCL runtime that was closed");
}

void finish() noexcept {
  if (runtime_is_there()) {
    look_at_all();
  } else {
    abandon();
  }
  for (Queue* queue = g_state.all_queues.load(std::memory_order_acquire); queue != nullptr;
       queue = queue->next) {
    tell_queue(*queue, SpoolPush::now(), true);
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  g_state.devices.any([&](const void*, Device* device) {
    if (device != nullptr) tell_clock(push, *device, SpoolPush::now(), true);
    return false;
  });
}

// The child has the runtime's memory and none of its threads: what was under way is its parent's.
void after_fork() noexcept {
  for (Queue* queue = g_state.all_queues.load(std::memory_order_acquire); queue != nullptr;
       queue = queue->next) {
    queue->lock.unlock();
    queue->looking.unlock();
    queue->first = queue->last = nullptr;
    queue->waits = {};
    queue->device->lock.unlock();
    queue->device->clock = {};
    queue->device->host_clock = HostClock::kUnknown;
    queue->device->told_ns = 0;
  }
  g_state.arena.after_fork();
  g_state.texts.after_fork();
  g_state.devices.after_fork();
  g_state.contexts.after_fork();
  g_state.queues.after_fork();
  g_state.kernels.after_fork();
  g_state.memories.after_fork();
  g_state.shared.after_fork();
  g_state.making_devices.unlock();
  g_state.held_ns.store(0, std::memory_order_relaxed);
}

}  // namespace pasta::adapters::opencl
