// What the layer knows of the runtime's objects, and the commands that are under way.
//
// A command is on its queue's list from before the call that enqueues it until its end has been
// seen, which the calls of the program itself look for: those that wait, and every so many that
// enqueue. No thread, no callback and no memory of the program is used for it. Its times come from
// the runtime's profiling information.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "adapters/opencl/clock.h"
#include "adapters/opencl/memory.h"
#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "trace/spool_writer.h"

namespace pasta::adapters::opencl {

// The table (cl_icd_dispatch) of the runtime, or of the next layer; entries may be missing.
const void* runtime() noexcept;
// Whether its code still is: a program may close the library.
bool runtime_is_there() noexcept;

// A clock of the system that a device may go by; runtimes for processors do.
enum class HostClock : std::uint8_t { kUnknown, kRaw, kMonotonic, kBoot, kReal, kNone };

struct Device {
  const void* handle;
  std::uint32_t ordinal;
  std::uint32_t compute_units;
  std::uint64_t memory_bytes;
  DeviceType type;
  std::string_view name, uuid;
  bool closed;  // with its runtime; may come again by another handle
  bool timer;   // the runtime can read its clock and the host's together
  Lock lock;    // of the rest
  Clock clock;
  HostClock host_clock;  // that it turned out to count
  std::int64_t told_ns;
};

struct Context {
  std::uint32_t number;  // from 1, as they are made
  Device* device;        // the first
};

// How long the commands of a queue waited for it and for the device, by the device's clock.
struct Waits {
  std::uint64_t commands, told_commands;
  std::int64_t queued_ns, longest_queued_ns, submitted_ns, longest_submitted_ns;
  std::int64_t told_ns;
  void add(std::int64_t queued, std::int64_t submitted) {
    ++commands;
    queued_ns += queued;
    submitted_ns += submitted;
    longest_queued_ns = std::max(longest_queued_ns, queued);
    longest_submitted_ns = std::max(longest_submitted_ns, submitted);
  }
};

struct Queue;

// By the device's clock.
struct CommandTimes {
  std::int64_t queued, submitted, start, end;
  // A runtime that does not know when a command was queued says 0, or anything.
  [[nodiscard]] bool waits_known() const {
    return queued > 0 && queued <= submitted && submitted <= start;
  }
};

struct Command {
  Command* next;
  Queue* queue;
  // Its event once it has been enqueued, ours to release.
  std::atomic<void*> event;
  std::atomic<bool> cancelled;
  std::int64_t before_ns, after_ns;  // around the call
  Event what;                        // but for strings, lane and times
  std::string_view name;
  LaunchAttributes attributes;
  // Once it has ended.
  std::int32_t status;
  bool timed;
  CommandTimes times;
};

struct Queue {
  Queue* next;  // in the list of all
  Device* device;
  std::uint32_t number, context;
  bool out_of_order;
  bool profiled;         // times can be had
  bool asked_profiling;  // by the program
  // As the program gave them, for when it asks; ends with 0.
  bool has_properties;
  std::uint64_t properties[16];
  std::uint32_t property_count;
  std::uint32_t since_looked;
  std::atomic<std::int64_t> looked_ns;
  Lock looking;
  std::atomic<bool> again;
  Lock lock;  // of the rest
  Waits waits;
  Command *first, *last, *free;
  std::int64_t looking_from_ns;  // of what is off the list to be looked at; else kNoTime
};

struct Kernel {
  std::string_view name;
  bool known;  // what follows, up to the arguments
  std::uint32_t static_bytes, private_bytes;
  std::uint32_t block[3];  // that the program was compiled for; 0 = any
  static constexpr std::uint32_t kArguments = 64;
  std::uint32_t local_bytes;  // of arguments
  std::uint32_t argument_bytes[kArguments];
};

// A buffer, an image or a pipe.
struct Memory {
  // Ours: OpenCL tells nobody where a buffer is. Never that of another object.
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t references;
  std::uint32_t element_bytes;  // of an image
  Memory* parent;               // of a sub-buffer
  Device* device;
  std::string_view pool;
};

struct Shared {
  std::uint64_t bytes;
  bool alive;
  Device* device;
};

struct State {
  Arena arena;
  Texts texts{arena};
  Handles<Device*> devices;
  Handles<Context> contexts;
  Handles<Queue*> queues;
  Handles<Kernel> kernels;
  Handles<Memory> memories;
  Handles<Shared> shared;
  std::atomic<Queue*> all_queues = nullptr;
  std::atomic<std::uint32_t> device_count = 0, context_count = 0, queue_count = 0;
  std::atomic<std::uint64_t> correlations = 0;
  std::atomic<std::uint32_t> launches = 0;
  std::atomic<std::uint64_t> addresses{std::uint64_t{1} << 48};  // above those of the program
  std::atomic<std::int64_t> held_ns = 0;
  Lock making_devices;
};
State& state() noexcept;

// Of handles that the program uses. None when there is no memory.
Device* device_of(const void* device) noexcept;
Context* context_of(const void* context) noexcept;
Queue* queue_of(const void* queue) noexcept;
// The new queue of the handle.
Queue* new_queue(const void* queue) noexcept;

LaneId put_lane(trace::SpoolPush& push, const Queue& queue) noexcept;
DeviceId put_device(trace::SpoolPush& push, const Device& device) noexcept;

// Before the call that enqueues. None when there is no memory: counted.
Command* begin(Queue& queue) noexcept;
// After it, and after the call has been pushed. The event is ours to release from now on.
void enqueued(Command& command, void* event, std::int64_t after_ns) noexcept;
// It was not enqueued.
void cancel(Command& command) noexcept;
// Looks for commands that have ended. `all`: the program has waited, so that many will have.
void look(Queue& queue, bool all) noexcept;
void look_at_all() noexcept;
// As `look`, every now and then.
void look_sometimes(Queue& queue, std::int64_t now_ns) noexcept;
// Whether `event` is one of a command of ours that is under way, which holds one reference more.
bool holds(const void* event) noexcept;

// The runtime has been closed: of what was under way nothing can be known any more. It is counted.
void abandon() noexcept;
// The program is about to end: the last look, and what is known of clocks.
void finish() noexcept;
void after_fork() noexcept;

}  // namespace pasta::adapters::opencl
