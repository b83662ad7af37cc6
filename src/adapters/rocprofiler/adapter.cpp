#include "adapters/rocprofiler/adapter.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>

#include "adapters/common/vendor_thread.h"
#include "adapters/rocprofiler/api.h"
#include "adapters/rocprofiler/decode.h"
#include "adapters/rocprofiler/tables.h"
#include "device/result.h"
#include "device/samples.h"
#include "trace/append_text.h"
#include "trace/spool_writer.h"

namespace pasta::adapters::rocprofiler {
namespace {

using trace::append;
using trace::SpoolPush;

constexpr std::size_t kBufferBytes = std::size_t{2} << 20;
constexpr std::size_t kWatermarkBytes = kBufferBytes / 8 * 7;
constexpr std::int32_t kLossless = 2;  // a full buffer makes the program wait
constexpr std::int32_t kMostKinds = 64;
constexpr std::uint32_t kMostOperations = 2048;
constexpr std::uint32_t kMostAgents = 64;
constexpr std::uint32_t kMostCounters = 64;
// Bytes of all text that is put together here.
constexpr std::size_t kTextRoom = 512;
// Of samples of program counters that become rows at once, and of rows of one event.
constexpr std::uint32_t kMostSamples = 1u << 14;
constexpr std::uint32_t kMostRows = 512;

// A record may be brought this long after it was complete.
constexpr std::int64_t kHoldNs = 2'000'000'000;
// Of ROCTx; domains of NVTX are numbered from 0.
constexpr std::uint32_t kStack = 0xffffff00;

// Calls that only ask for something and come in thousands: their records would cost more than all
// others together.
constexpr std::string_view kQueries[] = {"hipGetDevice",
                                         "hipSetDevice",
                                         "hipGetLastError",
                                         "hipExtGetLastError",
                                         "hipPeekAtLastError",
                                         "hipGetErrorString",
                                         "hipGetErrorName",
                                         "hipStreamIsCapturing",
                                         "hipStreamGetCaptureInfo",
                                         "hipThreadExchangeStreamCaptureMode",
                                         "hipStreamQuery",
                                         "hipEventQuery",
                                         "hipStreamGetPriority",
                                         "hipStreamGetFlags",
                                         "hipStreamGetDevice",
                                         "hipDeviceGet",
                                         "hipCtxGet",
                                         "hipPointerGetAttribute",
                                         "hipFuncGetAttribute",
                                         "hipFuncSetAttribute",
                                         "hipOccupancy",
                                         "hipModuleOccupancy",
                                         "hipDriverGetVersion",
                                         "hipRuntimeGetVersion",
                                         "hipGetProcAddress",
                                         "hipGetStreamDeviceId",
                                         "hipConfigureCall",
                                         "hipGetSymbol",
                                         "__hipPushCallConfiguration",
                                         "__hipPopCallConfiguration",
                                         "__hipRegister"};

struct KnownAgent {
  std::uint64_t id;
  std::uint32_t node;  // of the topology
  bool is_gpu;
  std::uint64_t counters;  // what is counted on it; 0: nothing
  std::uint64_t samples;   // the buffer of its program counters; 0: none
  const char* name;
  char uuid[24];  // GPU- and 16 digits, as AMD's tools print it; "" when it has none
  Device facts;   // without ids
};

struct Operations {
  std::int32_t ids[kMostOperations];
  std::uint32_t count;
  bool some_left_out;
};

// A sample and where it lies: in a kernel, from whose entry the offset is, or else in a code
// object.
struct PlacedSample {
  PcSample told;
  std::uint64_t kernel;
};
struct Samples {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  PlacedSample all[kMostSamples];
};

struct Tables {
  Texts texts;
  Symbols symbols;
  CodeObjects code_objects;
  Samples samples;
  Allocations allocations;
  Allocations pages;  // migrations and faults under way: a pair, and when it began
  Dispatches dispatches;
  Ranges ranges;
  Operations chosen;
};

struct State {
  Api api{};
  std::uint32_t version = 0;
  pid_t process = 0;
  std::atomic<bool> active = false;     // what was set up may be used
  std::atomic<bool> recording = false;  // the context of what is collected has been started
  std::atomic<bool> finalized = false;
  std::uint64_t always = 0, collected = 0;  // contexts
  std::uint64_t buffer = 0;
  Service services[kMostKinds] = {};
  struct CallbackKinds {
    std::int32_t code_object, marker, control, name, stream;
  } kinds = {};  // 0: there is none
  bool counts = false;

  KnownAgent agents[kMostAgents] = {};
  std::uint32_t agent_count = 0;
  // The mark of the stream in whose call a thread is. A thread_local would cost every program.
  pthread_key_t stream_key = 0;
  // Mapped when there is a ROCm to watch: all zeros are empty tables.
  Tables* tables = nullptr;
  common::VendorClock clock;

  pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;
  common::VendorThread thread;
  pthread_mutex_t sdk = PTHREAD_MUTEX_INITIALIZER;  // held by our thread while it is inside
  int exit_status = 0;
};

// One a process by its nature. All of it begins as zeros, so that it is no part of the file.
constinit State g;

void note(Reason reason, const char* text, std::uint64_t count = 1) {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.note(reason, count, text);
}

// "rocprofiler-sdk does not WHAT: WHY".
void note_status(const char* what, Status status) {
  const char* why = g.api.get_status_string(status);
  char text[kTextRoom];
  char* at = append(append(append(text, "rocprofiler-sdk does not record "), what), ": ");
  if (why == nullptr) why = "unknown error";
  if (std::strlen(why) + static_cast<std::size_t>(at - text) < sizeof text) append(at, why);
  note(Reason::kNotRecorded, text);
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '1';
}

std::int64_t timeout_ns() {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const char* given = std::getenv("PASTA_FLUSH_TIMEOUT");
  const int seconds = given == nullptr ? 0 : std::atoi(given);
  return (seconds > 0 && seconds < 3600 ? seconds : 10) * kSecond;
}

// --- what records refer to

const KnownAgent* find_agent(std::uint64_t id) {
  for (std::uint32_t i = 0; i < g.agent_count; ++i) {
    if (g.agents[i].id == id) return &g.agents[i];
  }
  return nullptr;
}

// The number of the agent that is this node; of one that is not known, none's.
std::uint64_t agent_of_node(std::uint64_t node) {
  for (std::uint32_t i = 0; i < g.agent_count; ++i) {
    if (g.agents[i].node == node) return g.agents[i].id;
  }
  return 0;
}

// None of a CPU.
DeviceId device_of(SpoolPush& push, std::uint64_t agent) {
  const KnownAgent* known = find_agent(agent);
  if (known == nullptr || !known->is_gpu) return {};
  Device device = known->facts;
  if (known->name != nullptr) device.name = push.string(known->name);
  if (known->uuid[0] != '\0') device.uuid = push.string(known->uuid);
  return push.device(device);
}

// A stream of HIP's is served by some queue of the hardware: the stream is the lane's number, and
// the queue its context.
LaneId lane_of(SpoolPush& push, const Place& place) {
  if (place.type == Place::Type::kThread) return push.thread(place.thread);
  Lane lane;
  lane.type = LaneType::kQueue;
  lane.device = device_of(push, place.agent);
  char name[kTextRoom];
  if (place.type == Place::Type::kSamples) {
    lane.native_text = push.string("samples");
  } else if (place.type == Place::Type::kMemory) {
    lane.native_text = push.string("migrations");
  } else if (place.knows_stream) {
    lane.native_id = place.stream;
    lane.context = place.queue;
    char* end = append(append(name, "stream "), place.stream);
    if (place.knows_queue) append(append(end, ", queue "), place.queue);
    lane.name = push.string(name);
  } else if (place.knows_queue) {
    lane.native_id = place.queue;
    append(append(name, "queue "), place.queue);
    lane.name = push.string(name);
  } else {
    lane.native_text = push.string("copies");
  }
  return push.queue(lane);
}

StringId name_of(SpoolPush& push, const Decoded& told) {
  char unknown[kTextRoom];
  if (told.event.kind == Kind::kKernel) {
    const Symbol* symbol = g.tables->symbols.find(told.kernel);
    const char* name = symbol == nullptr ? nullptr : symbol->name.load(std::memory_order_acquire);
    if (name != nullptr) return push.string(name);
    append(append(unknown, "kernel "), told.kernel);
    return push.string(unknown);
  }
  const char* name = nullptr;
  std::uint64_t size = 0;
  if (g.api.get_buffered_name(told.kind, told.operation, &name, &size) == 0 && name != nullptr) {
    std::string_view text(name, size != 0 ? size : std::strlen(name));
    constexpr std::string_view kOfEnd = "_END";
    const bool of_end = told.pair != 0 && text.size() > kOfEnd.size() &&
                        text.substr(text.size() - kOfEnd.size()) == kOfEnd;
    return push.string(of_end ? text.substr(0, text.size() - kOfEnd.size()) : text);
  }
  append(append(append(append(unknown, "kind "), static_cast<std::uint32_t>(told.kind)),
                " operation "),
         static_cast<std::uint32_t>(told.operation));
  return push.string(unknown);
}

// --- records, in the SDK's threads

// What was wrong with the records of one buffer.
class Tally {
 public:
  void add(Reason reason) { ++counts_[static_cast<std::size_t>(reason)]; }
  void tell(SpoolPush& push) const {
    for (std::size_t i = 0; i < std::size(counts_); ++i) {
      if (counts_[i] == 0) continue;
      const auto reason = static_cast<Reason>(i);
      push.note(reason, counts_[i], text_of(reason));
    }
  }

 private:
  static std::string_view text_of(Reason reason) {
    switch (reason) {
      case Reason::kNotKept:
        return "records of rocprofiler-sdk of other kinds";
      case Reason::kDuplicate:
        return "a dispatch that rocprofiler-sdk has told twice";
      case Reason::kRecordSkipped:
        return "records of rocprofiler-sdk without what makes them an event";
      default:
        return "records of rocprofiler-sdk";
    }
  }
  std::uint64_t counts_[static_cast<std::size_t>(Reason::kCount)] = {};
};

// False when it cannot be one.
bool complete_memory(SpoolPush& push, Decoded& told) {
  if (told.event.kind == Kind::kAlloc) {
    g.tables->allocations.add({told.event.memory.address, told.event.memory.bytes, told.agent});
  } else {
    Allocations::Allocation allocated{};
    if (!g.tables->allocations.take(told.event.memory.address, allocated)) return false;
    told.event.memory.bytes = allocated.bytes;
    told.agent = allocated.agent;
  }
  told.event.memory.device = device_of(push, told.agent);
  return true;
}

void add_event(SpoolPush& push, Decoded& told, Tally& tally) {
  Event& event = told.event;
  if (told.by_node) {
    for (std::uint64_t* node : {&told.agent, &told.source_agent, &told.place.agent}) {
      *node = agent_of_node(*node);
    }
  }
  if (told.pair != 0) {
    Allocations::Allocation began{};
    g.tables->pages.take(told.pair, began);
    set_times(told, began.bytes, told.time);
  }
  switch (event.kind) {
    case Kind::kKernel: {
      trace::work_ends(1);
      const Symbol* symbol = g.tables->symbols.find(told.kernel);
      if (symbol != nullptr) {
        told.attributes.registers_per_thread = symbol->registers;
        split_shared(told.attributes, symbol->group_bytes);
      }
      event.kernel.attributes = push.attributes(told.attributes);
      break;
    }
    case Kind::kApi:
      if (!event.untimed()) event.scope = {trace::spool::kScopeByTime};
      break;
    case Kind::kAlloc:
    case Kind::kFree:
      if (!complete_memory(push, told)) return tally.add(Reason::kRecordSkipped);
      break;
    case Kind::kFault:
      event.memory.device = device_of(push, told.agent);
      break;
    case Kind::kCopy:
      // What leaves for the host's memory lies where it was.
      if (const KnownAgent* to = find_agent(told.place.agent); to == nullptr || !to->is_gpu) {
        told.place.agent = told.source_agent;
      }
      break;
    default:
      break;
  }
  if (told.times != Reason::kNone) tally.add(told.times);
  if (told.correlation != Reason::kNone) tally.add(told.correlation);
  event.name = name_of(push, told);
  event.lane = lane_of(push, told.place);
  g.clock.shift(event);
  push.add(event);
}

void take_record(SpoolPush& push, const RecordHeader& record, Tally& tally) {
  if (record.payload == nullptr || record.category != RecordHeader::kTracing) {
    return tally.add(Reason::kNotKept);
  }
  const bool known = record.kind < static_cast<std::uint32_t>(kMostKinds);
  Decoded told;
  switch (
      decode(known ? g.services[record.kind] : Service::kOther, g.version, record.payload, told)) {
    case Told::kEvent:
      if (told.event.kind == Kind::kKernel && told.dispatch != 0 &&
          !g.tables->dispatches.is_new(told.dispatch)) {
        return tally.add(Reason::kDuplicate);
      }
      return add_event(push, told, tally);
    case Told::kBegins:
      g.tables->pages.add({told.pair, told.time, told.agent});
      return;
    case Told::kLost:
      return push.lost(told.lost);
    case Told::kUnknown:
      return tally.add(Reason::kNotKept);
    case Told::kInvalid:
      return tally.add(Reason::kRecordSkipped);
  }
}

void take_records(std::uint64_t, std::uint64_t, RecordHeader** records, std::size_t count, void*,
                  std::uint64_t dropped) noexcept {
  if (g.finalized.load(std::memory_order_acquire)) {
    return note(Reason::kLate, "records that rocprofiler-sdk brought after it had ended", count);
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  Tally tally;
  for (std::size_t i = 0; i < count; ++i) {
    if (records[i] != nullptr) take_record(push, *records[i], tally);
  }
  tally.tell(push);
  if (dropped > 0) push.lost(dropped);
}

// --- samples of program counters

// The kernel with the last entry up to `address`, and where the next one begins.
struct Function {
  std::uint64_t kernel, entry, end;
};
Function function_at(const CodeObjects::Known& object, std::uint64_t number,
                     std::uint64_t address) {
  Function found = {0, 0, ~std::uint64_t{0}};
  for (std::uint64_t kernel = object.first_kernel; kernel < object.end_kernel; ++kernel) {
    const Symbol* symbol = g.tables->symbols.find(kernel);
    if (symbol == nullptr || symbol->name.load(std::memory_order_acquire) == nullptr ||
        symbol->code_object != number || symbol->entry == 0) {
      continue;
    }
    if (symbol->entry > address) {
      found.end = std::min(found.end, symbol->entry);
    } else if (symbol->entry >= found.entry) {
      found.kernel = kernel;
      found.entry = symbol->entry;
    }
  }
  return found;
}

// The number of those in code without a name.
std::uint64_t place_samples(PlacedSample* begin, PlacedSample* end) {
  // Those of one function come together, so that it is looked for once.
  std::sort(begin, end, [](const PlacedSample& a, const PlacedSample& b) {
    const Pc &left = a.told.pc, &right = b.told.pc;
    return left.code_object != right.code_object ? left.code_object < right.code_object
                                                 : left.offset < right.offset;
  });
  std::uint64_t nameless = 0, number = 0;
  CodeObjects::Known object{};
  Function function{};
  for (PlacedSample* at = begin; at != end; ++at) {
    Pc& pc = at->told.pc;
    if (number != pc.code_object) {
      number = pc.code_object;
      object = g.tables->code_objects.find(number);
      function = {};
    }
    const std::uint64_t address = object.base + pc.offset;
    if (object.base != 0 && address >= function.end) {
      function = function_at(object, number, address);
    }
    at->kernel = object.base == 0 ? 0 : function.kernel;
    if (at->kernel == 0) {
      ++nameless;
    } else {
      pc.offset = address - function.entry;
    }
  }
  return nameless;
}

// Rows of one launch and function as an event.
class SampleRows {
 public:
  SampleRows(SpoolPush& push, const KnownAgent& agent) : push_(&push) {
    Place place;
    place.type = Place::Type::kSamples;
    place.agent = agent.id;
    event_.kind = Kind::kDevice;
    event_.lane = lane_of(push, place);
    // When it is told: when it was is not in the SDK's clock.
    event_.start_ns = event_.end_ns = SpoolPush::now();
    event_.device.format = push.string(device::kSamplesFormat);
  }

  void add(const PlacedSample& sample) {
    const Pc& pc = sample.told.pc;
    const bool same = blob_.table.rows > 0 && sample.told.dispatch == event_.device.launch &&
                      sample.kernel == kernel_ && pc.code_object == code_object_;
    if (same) {
      device::SampleRow& last = blob_.rows[blob_.table.rows - 1];
      if (last.offset == pc.offset && last.state == sample.told.state &&
          last.stall == sample.told.stall) {
        ++last.samples;
        return;
      }
    }
    if (!same || blob_.table.rows == kMostRows) flush();
    event_.device.launch = sample.told.dispatch;
    kernel_ = sample.kernel;
    code_object_ = pc.code_object;
    blob_.rows[blob_.table.rows++] = {pc.offset, sample.told.state, sample.told.stall, 1};
  }

  void flush() {
    if (blob_.table.rows == 0) return;
    char text[kTextRoom];
    const char* name = text;
    if (kernel_ != 0) {
      name = g.tables->symbols.find(kernel_)->name.load(std::memory_order_acquire);
    } else if (code_object_ != 0) {
      append(append(text, "code object "), code_object_);
    } else {
      append(text, "unknown code");
    }
    event_.name = push_->string(name);
    const std::size_t bytes = offsetof(Blob, rows) + blob_.table.rows * sizeof(device::SampleRow);
    push_->add(event_, {reinterpret_cast<const char*>(&blob_), bytes});
    blob_.table.rows = 0;
  }

 private:
  struct Blob {
    device::StoredHeader header = {1, {}, {}, 0, 0, 0};
    device::StoredTable table = {static_cast<std::uint32_t>(device::TableId::kSamples),
                                 sizeof(device::SampleRow) / sizeof(std::uint64_t), 0, 0};
    device::SampleRow rows[kMostRows];
  };
  static_assert(sizeof(Blob) <= trace::spool::kMaxTextBytes);

  SpoolPush* push_;
  Event event_{};
  std::uint64_t kernel_ = 0, code_object_ = 0;
  Blob blob_;
};

void take_samples(std::uint64_t, std::uint64_t, RecordHeader** records, std::size_t count,
                  void* data, std::uint64_t dropped) noexcept {
  if (g.finalized.load(std::memory_order_acquire)) {
    return note(Reason::kLate, "samples that rocprofiler-sdk brought after it had ended", count);
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  Samples& samples = g.tables->samples;
  const Locked locked(samples.mutex);
  SampleRows rows(push, *static_cast<const KnownAgent*>(data));
  std::uint64_t nameless = 0, invalid = 0, unknown = 0;
  for (std::size_t i = 0; i < count;) {
    PlacedSample* end = samples.all;
    for (; i < count && end != samples.all + kMostSamples; ++i) {
      const RecordHeader* record = records[i];
      if (record == nullptr) continue;
      const bool is_sample =
          record->payload != nullptr && record->category == RecordHeader::kPcSampling;
      switch (is_sample ? decode_sample(record->kind, record->payload, end->told)
                        : Told::kUnknown) {
        case Told::kEvent:
          ++end;
          break;
        case Told::kInvalid:
          ++invalid;
          break;
        default:
          ++unknown;
      }
    }
    nameless += place_samples(samples.all, end);
    std::sort(samples.all, end, [](const PlacedSample& a, const PlacedSample& b) {
      const auto key = [](const PlacedSample& of) {
        return std::tuple(of.told.dispatch, of.kernel, of.told.pc.code_object, of.told.pc.offset,
                          of.told.state, of.told.stall);
      };
      return key(a) < key(b);
    });
    for (const PlacedSample* at = samples.all; at != end; ++at) rows.add(*at);
    rows.flush();
  }
  if (nameless > 0) {
    push.note(Reason::kMissingField, nameless,
              "samples of program counters in code of which no kernel is known");
  }
  if (invalid > 0) {
    push.note(Reason::kRecordSkipped, invalid,
              "samples of program counters that rocprofiler-sdk calls invalid");
  }
  if (unknown > 0) {
    push.note(Reason::kNotKept, unknown, "samples of rocprofiler-sdk of other kinds");
  }
  if (dropped > 0) push.lost(dropped);
}

// What was asked for, and the best of what an agent offers.
struct PcChoice {
  std::int32_t wanted;     // a PcMethod; 0: any
  std::uint64_t interval;  // 0: any
  PcConfiguration best;    // without a method: none
};

Status choose_pc_sampling(const PcConfiguration* offered, std::size_t count, void* data) {
  auto& choice = *static_cast<PcChoice*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    const PcConfiguration& one = offered[i];
    const bool known = (one.method == kStochastic && one.unit == kCycles) ||
                       (one.method == kHostTrap && one.unit == kTime);
    if (!known || (choice.wanted != 0 && choice.wanted != one.method)) continue;
    // The hardware's own says more: why a wave was stalled.
    if (choice.best.method == 0 || one.method == kStochastic) choice.best = one;
  }
  return 0;
}

void not_sampled(const KnownAgent& agent, const char* why) {
  char text[kTextRoom];
  char* at = append(append(text, "program counters of GPU "), std::uint64_t{agent.facts.ordinal});
  at = append(at, " are not sampled: ");
  if (std::strlen(why) + static_cast<std::size_t>(at - text) < sizeof text) append(at, why);
  note(Reason::kNotRecorded, text);
}

void sample_agent(KnownAgent& agent, PcChoice choice) {
  // A millisecond, or about half of one.
  constexpr std::uint64_t kUsualTime = 1000, kUsualCycles = 1u << 20;
  Status status = g.api.list_pc_sampling(agent.id, choose_pc_sampling, &choice);
  const PcConfiguration& best = choice.best;
  if (status != 0) {
    const char* why = g.api.get_status_string(status);
    return not_sampled(agent, why == nullptr ? "unknown error" : why);
  }
  if (best.method == 0) {
    return not_sampled(agent,
                       "it does not offer that (AMD offers it only with "
                       "ROCPROFILER_PC_SAMPLING_BETA_ENABLED=1, and warns that it may freeze the "
                       "machine)");
  }
  std::uint64_t interval = choice.interval;
  if (interval == 0) {
    interval = std::clamp(best.method == kStochastic ? kUsualCycles : kUsualTime, best.least,
                          std::max(best.least, best.most));
  } else if (interval < best.least || interval > best.most) {
    char text[kTextRoom];
    char* at = append(append(text, "it offers intervals from "), best.least);
    append(append(at, " to "), best.most);
    return not_sampled(agent, text);
  }
  status = g.api.create_buffer(g.collected, kBufferBytes, kWatermarkBytes, kLossless, take_samples,
                               &agent, &agent.samples);
  if (status == 0) {
    status =
        g.api.sample_pcs(g.collected, agent.id, best.method, best.unit, interval, agent.samples, 0);
  }
  if (status != 0) {
    agent.samples = 0;
    const char* why = g.api.get_status_string(status);
    return not_sampled(agent, why == nullptr ? "unknown error" : why);
  }
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  char key[kTextRoom], text[kTextRoom];
  append(append(key, "rocm_pc_sampling_"), agent.id);
  char* at = append(append(text, best.method == kStochastic ? "stochastic, every "
                                                            : "host-trap, "
                                                              "every "),
                    interval);
  append(at, best.method == kStochastic ? " cycles" : " us");
  push.fact(key, text);
}

// As --pc-sampling says it: "auto", "host-trap" or "stochastic", and an interval after a colon.
void set_up_samples() {
  const char* asked = std::getenv("PASTA_PC_SAMPLING");
  if (asked == nullptr || *asked == '\0') return;
  if (!g.api.can_sample() || g.version < kVersion1) {
    return note(Reason::kNotRecorded,
                "program counters are not sampled: that needs rocprofiler-sdk 1.0 (ROCm 7)");
  }
  PcChoice choice{};
  if (std::strncmp(asked, "stochastic", 10) == 0) choice.wanted = kStochastic;
  if (std::strncmp(asked, "host-trap", 9) == 0) choice.wanted = kHostTrap;
  if (const char* colon = std::strchr(asked, ':'); colon != nullptr) {
    choice.interval = std::strtoull(colon + 1, nullptr, 10);
  }
  for (std::uint32_t i = 0; i < g.agent_count; ++i) {
    if (g.agents[i].is_gpu) sample_agent(g.agents[i], choice);
  }
}

void flush_samples() {
  for (std::uint32_t i = 0; i < g.agent_count; ++i) {
    if (g.agents[i].samples != 0) g.api.flush_buffer(g.agents[i].samples);
  }
}

// --- counters

void choose_counters(CountedDispatch dispatch, std::uint64_t* config, std::uint64_t*,
                     void*) noexcept {
  const KnownAgent* agent = find_agent(dispatch.dispatch.agent);
  if (agent != nullptr && agent->counters != 0) *config = agent->counters;
}

// A counter has an instance for each part of the device; a dispatch gets their sum.
void take_counters(CountedDispatch dispatch, const void* records, std::size_t count, std::uint64_t,
                   void*) noexcept {
  struct Sum {
    std::uint64_t counter;
    double value;
  } sums[kMostCounters];
  std::uint32_t sum_count = 0;
  const std::size_t stride =
      g.version >= kVersion06 ? sizeof(CounterRecord06) : sizeof(CounterRecord05);
  for (std::size_t i = 0; i < count; ++i) {
    CounterRecord05 record;
    std::memcpy(&record, static_cast<const char*>(records) + i * stride, sizeof record);
    std::uint64_t counter = 0;
    if (g.api.get_counter_of_record(record.id, &counter) != 0) continue;
    std::uint32_t at = 0;
    while (at < sum_count && sums[at].counter != counter) ++at;
    if (at == kMostCounters) continue;
    if (at == sum_count) sums[sum_count++] = {counter, 0};
    sums[at].value += record.value;
  }
  Decoded told;
  decode(dispatch.dispatch, dispatch.correlation.external, told);
  SpoolPush push = SpoolPush::even_stopped();
  if (!push || dispatch.end == 0) return;
  Event event{};
  event.kind = Kind::kCounter;
  event.start_ns = event.end_ns = static_cast<std::int64_t>(dispatch.end);
  event.lane = lane_of(push, told.place);
  event.counter.device = device_of(push, dispatch.dispatch.agent);
  g.clock.shift(event);
  for (std::uint32_t i = 0; i < sum_count; ++i) {
    CounterInfo info{};
    const bool named = g.api.get_counter_info(sums[i].counter, 1, &info) == 0;
    event.name = push.string(named && info.name != nullptr ? info.name : "counter");
    event.counter.value = sums[i].value;
    push.add(event);
  }
}

struct Wanted {
  std::uint64_t ids[kMostCounters];
  std::uint32_t count;
  const char* name;
  std::size_t size;
};

Status choose_counter(std::uint64_t, std::uint64_t* counters, std::size_t count, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    CounterInfo info{};
    if (g.api.get_counter_info(counters[i], 1, &info) != 0 || info.name == nullptr) continue;
    if (std::string_view(info.name) != std::string_view(wanted.name, wanted.size)) continue;
    if (wanted.count < kMostCounters) wanted.ids[wanted.count++] = counters[i];
    break;
  }
  return 0;
}

// `names` as "SQ_WAVES,GRBM_COUNT".
void prepare_counters(KnownAgent& agent, const char* names) {
  Wanted wanted{};
  char text[kTextRoom];
  for (const char* at = names; *at != '\0';) {
    const std::size_t size = std::strcspn(at, ", ");
    wanted.name = at;
    wanted.size = size;
    const std::uint32_t before = wanted.count;
    if (size > 0) g.api.list_counters(agent.id, choose_counter, &wanted);
    if (size > 0 && size < 128 && wanted.count == before) {
      std::memcpy(text, at, size);
      append(
          append(append(text + size, " is not counted: GPU "), std::uint64_t{agent.facts.ordinal}),
          " does not have it");
      note(Reason::kNotRecorded, text);
    }
    at += size;
    at += std::strspn(at, ", ");
  }
  if (wanted.count == 0) return;
  const Status status =
      g.api.create_counter_config(agent.id, wanted.ids, wanted.count, &agent.counters);
  if (status != 0) {
    agent.counters = 0;
    note_status("these counters together", status);
  }
}

void set_up_counters() {
  const char* names = std::getenv("PASTA_COUNTERS");
  if (names == nullptr || *names == '\0') return;
  if (!g.api.can_count()) {
    return note(Reason::kNotRecorded, "counters: this rocprofiler-sdk does not count by dispatch");
  }
  for (std::uint32_t i = 0; i < g.agent_count; ++i) {
    if (!g.agents[i].is_gpu) continue;
    prepare_counters(g.agents[i], names);
    g.counts = g.counts || g.agents[i].counters != 0;
  }
  if (!g.counts) return;
  const Status status =
      g.api.count_dispatches(g.collected, choose_counters, nullptr, take_counters, nullptr);
  if (status != 0) note_status("counters", status);
}

// --- callbacks, in the program's threads

void take_symbol(const void* payload) {
  KernelSymbol from;
  std::memcpy(static_cast<void*>(&from), payload, sizeof from);
  if (from.name == nullptr) return;
  Symbol* to = g.tables->symbols.make(from.kernel);
  char* name = to == nullptr ? nullptr : g.tables->texts.keep(from.name);
  if (name == nullptr) return;
  // "name.kd", as a kernel is called in its code object.
  const std::size_t size = std::strlen(name);
  if (size > 3 && std::strcmp(name + size - 3, ".kd") == 0) name[size - 3] = '\0';
  if (g.version >= kVersion1 && from.size >= sizeof(KernelSymbol1)) {
    KernelSymbol1 more;
    std::memcpy(static_cast<void*>(&more), payload, sizeof more);
    to->code_object = more.code_object;
    to->entry = more.entry;
    g.tables->code_objects.add_kernel(more.code_object, more.kernel);
  }
  to->registers = from.vgprs + from.accumulation_vgprs;
  to->group_bytes = from.group_bytes;
  to->name.store(name, std::memory_order_release);
}

void take_marker(std::int32_t call, std::int32_t phase, const Marker& marker) {
  const bool enters = phase == kEnter;
  if (call == kMark && enters && marker.text != nullptr) {
    SpoolPush push;
    if (push) push.mark({.name = marker.text});
  } else if (call == kRangePush && enters && marker.text != nullptr) {
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.open({.name = marker.text}, kStack);
  } else if (call == kRangePop && !enters) {
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.close_innermost(kStack);
  } else if (call == kRangeStart && !enters && marker.text != nullptr) {
    SpoolPush push = SpoolPush::opening(marker.text);
    if (push)
      g.tables->ranges.add(marker.result, push.start({.name = marker.text}, "ROCTx ranges"));
  } else if (call == kRangeStop && enters) {
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.finish(g.tables->ranges.take(marker.range));
  }
}

// The SDK keeps `outer`, the mark of the stream that this thread was in, until the call returns.
void take_stream(std::int32_t phase, std::uint64_t stream, std::uint64_t& outer) {
  const std::uint64_t inner = phase == kEnter ? stream_mark(stream) : outer;
  if (phase == kEnter) outer = reinterpret_cast<std::uintptr_t>(pthread_getspecific(g.stream_key));
  pthread_setspecific(g.stream_key, reinterpret_cast<const void*>(inner));
}

template <class Ids>
// NOLINTNEXTLINE(readability-non-const-parameter): the SDK says what it is
void on_callback(BasicCallback<Ids> record, std::uint64_t* data, void*) noexcept {
  if (record.payload == nullptr || g.finalized.load(std::memory_order_acquire)) return;
  const auto& kinds = g.kinds;
  if (record.kind == kinds.code_object) {
    if (record.operation == kKernelSymbolRegister && record.phase == kEnter) {
      take_symbol(record.payload);
    } else if (record.operation == kCodeObjectLoad && record.phase == kEnter) {
      CodeObject from;
      std::memcpy(static_cast<void*>(&from), record.payload, sizeof from);
      g.tables->code_objects.load(from.id, from.load_base);
    }
  } else if (record.kind == kinds.marker) {
    take_marker(record.operation, record.phase, *static_cast<const Marker*>(record.payload));
  } else if (record.kind == kinds.control) {
    if (record.operation == kPause && record.phase == kEnter) trace::stop_collection();
    if (record.operation == kResume && record.phase == kLeave) trace::start_collection();
  } else if (record.kind == kinds.name) {
    const char* text = static_cast<const Marker*>(record.payload)->text;
    if (record.operation != kNameThread || record.phase != kEnter || text == nullptr) return;
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.name_thread(record.thread, text);
  } else if (record.kind == kinds.stream && record.operation == kStreamSet) {
    take_stream(record.phase, static_cast<const StreamChange*>(record.payload)->stream, *data);
  }
}

constexpr std::int32_t kOfCopy = 10, kOfKernel = 11;  // external_correlation_id_request_kind

// Of a launch: the stream that it goes to.
int give_id(std::uint64_t, std::uint64_t, std::int32_t kind, std::int32_t, std::uint64_t,
            std::uint64_t* external, void*) noexcept {
  *external = reinterpret_cast<std::uintptr_t>(pthread_getspecific(g.stream_key));
  if (kind == kOfKernel) trace::work_begins();
  return 0;
}

// --- our thread

void read_clock() {
  g.clock.read([](std::uint64_t& at) { return g.api.get_timestamp(&at) == 0; });
}

// Nothing that is pushed later ends earlier than this.
void tell_hold(std::int64_t complete_ns) {
  trace::hold_work(complete_ns - kHoldNs);
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.hold(complete_ns - kHoldNs);
}

void flush_buffer() {
  const Locked locked(g.sdk);
  if (!g.active.load(std::memory_order_acquire)) {
    SpoolPush push = SpoolPush::even_stopped();
    if (push) push.hold(trace::spool::kNoHold);
    return;
  }
  const std::int64_t before = trace::spool_now_ns();
  read_clock();
  g.api.flush_buffer(g.buffer);
  flush_samples();
  tell_hold(before);
}

// Turns recording on or off as the collection is.
void follow_collection() noexcept {
  const bool wanted = trace::is_collecting();
  if (wanted == g.recording.load(std::memory_order_acquire)) return;
  const Locked locked(g.switching);
  if (!g.active.load(std::memory_order_acquire) ||
      wanted == g.recording.load(std::memory_order_acquire)) {
    return;
  }
  const Status status = wanted ? g.api.start_context(g.collected) : g.api.stop_context(g.collected);
  if (status != 0 && wanted) note_status("anything", status);
  g.recording.store(wanted, std::memory_order_release);
}

void begin() noexcept {
  read_clock();
  tell_hold(trace::spool_now_ns());
}

void look(bool wanted, bool due) noexcept {
  follow_collection();
  if (wanted || due) flush_buffer();
}

constexpr common::VendorThread::Work kWork = {"pasta-rocm", kFlushNs, begin, look};

// --- the end

// A program that has called exit() must not stay because the SDK cannot finish.
void* end_if_stuck(void*) {
  std::int64_t since_ns = trace::spool_now_ns();
  const std::int64_t most_ns = timeout_ns();
  for (;;) {
    const timespec moment = {0, common::VendorThread::kLookNs};
    nanosleep(&moment, nullptr);
    int state = 0;  // -1 while it finishes
    if (g.api.is_finalized(&state) != 0 || state > 0) return nullptr;
    if (state == 0) since_ns = trace::spool_now_ns();
    if (trace::spool_now_ns() - since_ns > most_ns) break;
  }
  note(
      Reason::kCollectorWarning,
      "rocprofiler-sdk did not finish when the program had called exit(): it was ended without it");
  std::fflush(nullptr);
  trace::leave_run(g.exit_status);
  syscall(SYS_exit_group, g.exit_status);
  return nullptr;
}

bool is_ours() { return g.active.load(std::memory_order_acquire) && g.process == getpid(); }

// By exit(). Registered after the SDK's own handler, and so called before it.
void on_end(int status, void*) {
  if (!is_ours()) return;
  g.exit_status = status;
  common::start_quiet_thread(end_if_stuck, nullptr);
  flush();
}

// The SDK is at its end: this is the last moment at which it may be asked.
void finalize(void*) {
  if (!is_ours()) return;
  const timespec until = common::after_ns(timeout_ns());
  const bool alone = pthread_mutex_timedlock(&g.sdk, &until) == 0;
  if (alone) {
    read_clock();
    g.api.flush_buffer(g.buffer);
    flush_samples();
    g.active.store(false, std::memory_order_release);
    pthread_mutex_unlock(&g.sdk);
  }
  g.active.store(false, std::memory_order_release);
  g.finalized.store(true, std::memory_order_release);
  trace::hold_work(trace::spool::kNoHold);
}

// --- beginning

void copy_uuid(KnownAgent& to, std::uint64_t uuid) {
  if (uuid == 0) return;
  char* at = append(to.uuid, "GPU-");
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = "0123456789abcdef"[uuid >> shift & 15];
  *at = '\0';
}

Status take_agents(std::int32_t, const void** agents, std::size_t count, void*) {
  for (std::size_t i = 0; i < count && g.agent_count < kMostAgents; ++i) {
    Agent from{};
    std::uint64_t size = 0;
    std::memcpy(&size, agents[i], sizeof size);
    std::memcpy(static_cast<void*>(&from), agents[i], size < sizeof from ? size : sizeof from);
    KnownAgent& to = g.agents[g.agent_count++];
    to.id = from.id;
    to.node = from.node;
    to.is_gpu = from.type == Agent::kGpu;
    const bool has_product = from.product_name != nullptr && *from.product_name != '\0';
    to.name = g.tables->texts.keep(has_product ? from.product_name : from.name);
    to.facts.type = to.is_gpu ? DeviceType::kGpu : DeviceType::kCpu;
    to.facts.ordinal = static_cast<std::uint32_t>(from.of_type);
    to.facts.multiprocessors = from.compute_units;
    to.facts.warp_size = from.wave_size;
    to.facts.max_threads_per_multiprocessor = from.waves_per_unit * from.wave_size;
    to.facts.compute_major = from.gfx_version / 10000;
    to.facts.compute_minor = from.gfx_version / 100 % 100;
    for (std::uint32_t bank = 0; from.banks != nullptr && bank < from.memory_banks; ++bank) {
      to.facts.memory_bytes += from.banks[bank].bytes;
    }
    if (to.is_gpu) copy_uuid(to, from.uuid[0]);
    // The three numbers of an agent, which others' output may use.
    SpoolPush push = SpoolPush::even_stopped();
    if (!push) continue;
    char key[kTextRoom], text[kTextRoom];
    append(append(key, "rocm_agent_"), from.id);
    char* at = append(append(text, "node "), std::uint64_t{from.node});
    at = append(append(at, ", logical node "), static_cast<std::uint32_t>(from.logical));
    at = append(append(at, to.is_gpu ? ", GPU " : ", CPU "),
                static_cast<std::uint32_t>(from.of_type));
    if (from.name != nullptr && std::strlen(from.name) < 128) append(append(at, ", "), from.name);
    push.fact(key, text);
  }
  return 0;
}

int choose_operation(std::int32_t kind, std::int32_t operation, void* data) {
  auto& chosen = *static_cast<Operations*>(data);
  const char* name = nullptr;
  if (g.api.get_buffered_name(kind, operation, &name, nullptr) == 0 && name != nullptr) {
    for (const std::string_view beginning : kQueries) {
      if (std::strncmp(name, beginning.data(), beginning.size()) != 0) continue;
      chosen.some_left_out = true;
      return 0;
    }
  }
  if (chosen.count < kMostOperations) chosen.ids[chosen.count++] = operation;
  return 0;
}

void set_up_records() {
  Operations& chosen = g.tables->chosen;
  const bool with_driver = is_set("PASTA_HSA_CALLS");
  bool any_kernels = false;
  for (std::int32_t kind = 1; kind < kMostKinds; ++kind) {
    const char* name = nullptr;
    if (g.api.get_buffered_kind_name(kind, &name, nullptr) != 0 || name == nullptr) continue;
    const Service service = service_of(name);
    if (service == Service::kOther || (service == Service::kDriverCalls && !with_driver)) continue;
    chosen = {};
    if (service == Service::kRuntimeCalls) g.api.list_operations(kind, choose_operation, &chosen);
    if (service == Service::kPages) {
      // Without what queues and mappings go through.
      constexpr std::int32_t k05[] = {kMigration05, kFault05};
      constexpr std::int32_t k06[] = {kMigrationStart, kMigrationEnd, kFaultStart, kFaultEnd,
                                      kPagesDropped};
      const bool is_06 = g.version >= kVersion06;
      chosen.count = static_cast<std::uint32_t>(is_06 ? std::size(k06) : std::size(k05));
      std::memcpy(chosen.ids, is_06 ? k06 : k05, chosen.count * sizeof chosen.ids[0]);
      chosen.some_left_out = true;
    }
    const bool part = chosen.some_left_out && chosen.count > 0;
    const Status status = g.api.trace_to_buffer(g.collected, kind, part ? chosen.ids : nullptr,
                                                part ? chosen.count : 0, g.buffer);
    if (status != 0) {
      note_status(name, status);
      continue;
    }
    g.services[kind] = service;
    any_kernels = any_kernels || service == Service::kKernels;
  }
  if (!any_kernels) note(Reason::kNotRecorded, "kernels: this rocprofiler-sdk does not tell them");
}

void set_up_callbacks() {
  const struct {
    std::string_view name;
    std::int32_t* kind;
  } wanted[] = {{"CODE_OBJECT", &g.kinds.code_object},
                {"MARKER_CORE_API", &g.kinds.marker},
                {"MARKER_CONTROL_API", &g.kinds.control},
                {"MARKER_NAME_API", &g.kinds.name},
                {"HIP_STREAM", &g.kinds.stream}};
  const auto callback = g.version >= kVersion1
                            ? reinterpret_cast<Api::AnyFunction>(&on_callback<Correlation1>)
                            : reinterpret_cast<Api::AnyFunction>(&on_callback<Correlation>);
  for (std::int32_t kind = 1; kind < kMostKinds; ++kind) {
    const char* name = nullptr;
    if (g.api.get_callback_kind_name(kind, &name, nullptr) != 0 || name == nullptr) continue;
    for (const auto& one : wanted) {
      if (one.name != name) continue;
      *one.kind = kind;
      const Status status = g.api.trace_by_callback(g.always, kind, nullptr, 0, callback, nullptr);
      if (status != 0) note_status(name, status);
    }
  }
}

int initialize(void (*)(), void*) {
  constexpr std::int32_t kAgents = 1;  // ROCPROFILER_AGENT_INFO_VERSION_0
  g.api.list_agents(kAgents, take_agents, offsetof(Agent, visible_to), nullptr);
  Status status = g.api.create_context(&g.always);
  if (status == 0) status = g.api.create_context(&g.collected);
  if (status == 0) {
    status = g.api.create_buffer(g.collected, kBufferBytes, kWatermarkBytes, kLossless,
                                 take_records, nullptr, &g.buffer);
  }
  if (status != 0) {
    note_status("anything", status);
    return 0;
  }
  set_up_callbacks();
  set_up_records();
  set_up_counters();
  set_up_samples();
  if (g.api.request_ids != nullptr) {
    constexpr std::int32_t kLaunches[] = {kOfCopy, kOfKernel};
    status = g.api.request_ids(g.collected, kLaunches, std::size(kLaunches), give_id, nullptr);
    if (status != 0) note_status("streams", status);
  }
  if (!g.thread.start(kWork)) {
    note(Reason::kNotRecorded, "ROCm is not watched: no thread could be started");
    return 0;
  }
  g.active.store(true, std::memory_order_release);
  status = g.api.start_context(g.always);
  if (status != 0) note_status("names of kernels and ROCTx", status);
  trace::on_collection_change(follow_collection);
  follow_collection();
  on_exit(on_end, nullptr);
  return 0;
}

bool is_asked_for() {
  const char* tools = std::getenv("ROCP_TOOL_LIBRARIES");
  return tools != nullptr && std::strstr(tools, "libpastacollect") != nullptr;
}

void tell_facts(void* library, const char* version_text) {
  SpoolPush push = SpoolPush::even_stopped();
  if (!push) return;
  char text[kTextRoom];
  char* at = append(append(text, std::uint64_t{g.version / 10000}), ".");
  at = append(append(at, std::uint64_t{g.version / 100 % 100}), ".");
  append(at, std::uint64_t{g.version % 100});
  push.fact("rocprofiler_sdk_version", text);
  if (version_text != nullptr) push.fact("rocprofiler_sdk_build", version_text);
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0)
    push.fact("rocprofiler_sdk_library", map->l_name);
}

}  // namespace

ConfigureResult* configure(std::uint32_t version, const char* version_text, void* client) noexcept {
  if (!trace::in_run() || !is_asked_for() || g.process == getpid()) return nullptr;
  g.process = getpid();
  g.version = version;
  void* library = open_library(nullptr);
  if (library == nullptr) {
    note(Reason::kNotRecorded, "ROCm is not watched: its rocprofiler-sdk is not found");
    return nullptr;
  }
  tell_facts(library, version_text);
  constexpr std::uint32_t kUnknownVersion = 20000;
  if (version < kOldestVersion || version >= kUnknownVersion) {
    note(Reason::kNotRecorded,
         version < kOldestVersion
             ? "ROCm is not watched: its rocprofiler-sdk is older than 0.5 (ROCm 6.3)"
             : "ROCm is not watched: its rocprofiler-sdk is newer than 1, which pastaprof knows");
    return nullptr;
  }
  g.tables = static_cast<Tables*>(map_memory(sizeof(Tables)));
  if (g.tables == nullptr || pthread_key_create(&g.stream_key, nullptr) != 0) {
    note(Reason::kNotRecorded, "ROCm is not watched: there is no memory for it");
    return nullptr;
  }
  if (const char* missing = load_api(g.api, library); missing != nullptr) {
    char text[kTextRoom];
    append(append(append(text, "ROCm is not watched: its rocprofiler-sdk has no "), missing), "");
    note(Reason::kNotRecorded, text);
    return nullptr;
  }
  constexpr const char* kName = "pastaprof";
  if (version >= kVersion1) {
    static_cast<ClientId1*>(client)->name = kName;
  } else {
    static_cast<ClientId05*>(client)->name = kName;
  }
  static constinit ConfigureResult result = {sizeof(ConfigureResult), initialize, finalize,
                                             nullptr};
  return &result;
}

int set_api_table(const char* name, std::uint64_t version, std::uint64_t instance, void** tables,
                  std::uint64_t count, const void* caller) noexcept {
  // That this function is there makes ROCm think that somebody wants the SDK. Where nobody does it
  // is not loaded, and where it is not installed the program goes on without it: ROCm itself would
  // end the program.
  const char* tools = std::getenv("ROCP_TOOL_LIBRARIES");
  const bool wanted =
      (tools != nullptr && *tools != '\0') || dlsym(RTLD_NEXT, "rocprofiler_configure") != nullptr;
  if (!wanted) return 0;
  void* library = open_library(caller);
  const auto theirs =
      library == nullptr
          ? nullptr
          : reinterpret_cast<int (*)(const char*, std::uint64_t, std::uint64_t, void**,
                                     std::uint64_t)>(dlsym(library, "rocprofiler_set_api_table"));
  if (theirs != nullptr) return theirs(name, version, instance, tables, count);
  static constinit std::atomic<bool> told = false;
  if (trace::in_run() && is_asked_for() && !told.exchange(true)) {
    note(Reason::kNotRecorded,
         "ROCm is not watched: no librocprofiler-sdk.so is found, neither beside the program's "
         "ROCm nor in /opt/rocm");
  }
  return 0;
}

void flush() noexcept {
  if (is_ours() && !g.thread.flush(timeout_ns())) {
    note(Reason::kCollectorWarning, "rocprofiler-sdk did not hand out its last records in time");
  }
}

void after_fork() noexcept {
  g.active.store(false, std::memory_order_release);
  g.finalized.store(true, std::memory_order_release);
}

}  // namespace pasta::adapters::rocprofiler
