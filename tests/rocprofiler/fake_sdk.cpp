// A librocprofiler-sdk.so.1 without a GPU: fake_play() tells of what a script says, in the layouts
// of the version in FAKE_ROCM_VERSION, as the SDK would. One command a line:
//
//   object NUMBER BASE                        a code object is loaded
//   at OBJECT ENTRY                           where the next symbol lies
//   symbol KERNEL GROUP VGPRS ACCUMULATION NAME
//   call KIND OPERATION CORRELATION START END
//   kernel CORRELATION START END AGENT QUEUE KERNEL DISPATCH PRIVATE GROUP WX WY WZ GX GY GZ
//   again                                     the same kernel once more
//   count COUNTER VALUE VALUE                 of that kernel, if it is counted; two instances
//   trap N DISPATCH OBJECT OFFSET             so many samples of the first GPU, of a host trap,
//   issue N DISPATCH OBJECT OFFSET            and of the hardware
//   stall N DISPATCH OBJECT OFFSET WHY
//   invalid N | lose N                        of samples
//   launch                                    of which nothing is told later
//   copy CORRELATION START END OPERATION FROM TO BYTES SOURCE TARGET
//   alloc CORRELATION START END OPERATION AGENT ADDRESS BYTES
//   scratch CORRELATION START END OPERATION AGENT QUEUE
//   migrate START END OPERATION FIRST END FROM TO
//   fault START END OPERATION AGENT ADDRESS
//   dropped N | short KIND | sample           odd records
//   stream N ... end                          a stream is set
//   push TEXT | pop | mark TEXT | start N TEXT | stop N | pause | resume | name TEXT
//   thread ... join                           on a thread of its own
//   full N                                    the buffer holds so many
//   flush | drop N | hang | crash | finalize
//   wait NANOSECONDS                          until the clock has moved on so far
//
// Times are nanoseconds after a moment soon after the start; 0 stays 0, ! keeps one
// as it is, and ~ counts from when the command is played.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/rocprofiler/api.h"
#include "adapters/rocprofiler/records.h"

namespace {

using namespace pasta::adapters::rocprofiler;

std::uint64_t now() {
  timespec at{};
  clock_gettime(CLOCK_BOOTTIME, &at);
  constexpr std::uint64_t kApart = 7'000'000'000;  // from PASTA's, on any machine
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(at.tv_nsec) + kApart;
}

std::uint32_t version() {
  const char* given = std::getenv("FAKE_ROCM_VERSION");
  return given == nullptr ? 10000u : static_cast<std::uint32_t>(std::atoi(given));
}

const std::vector<std::string>& buffered_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"NONE",
                                    "HSA_CORE_API",
                                    "HSA_AMD_EXT_API",
                                    "HSA_IMAGE_EXT_API",
                                    "HSA_FINALIZE_EXT_API",
                                    "HIP_RUNTIME_API",
                                    "HIP_COMPILER_API",
                                    "MARKER_CORE_API",
                                    "MARKER_CONTROL_API",
                                    "MARKER_NAME_API",
                                    "MEMORY_COPY",
                                    "KERNEL_DISPATCH"};
    if (version() < 10000) all.emplace_back("PAGE_MIGRATION");
    for (const char* name : {"SCRATCH_MEMORY", "CORRELATION_ID_RETIREMENT", "RCCL_API"}) {
      all.emplace_back(name);
    }
    if (version() >= 600) {
      for (const char* name : {"OMPT", "MEMORY_ALLOCATION", "RUNTIME_INITIALIZATION"}) {
        all.emplace_back(name);
      }
    }
    if (version() >= 10000) {
      for (const char* name : {"HIP_STREAM", "KFD_EVENT_DROPPED_EVENTS", "KFD_PAGE_MIGRATE",
                               "KFD_PAGE_FAULT", "KFD_QUEUE"}) {
        all.emplace_back(name);
      }
    }
    return all;
  }();
  return names;
}

const std::vector<std::string>& callback_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"NONE", "MARKER_CORE_API", "MARKER_CONTROL_API",
                                    "MARKER_NAME_API", "CODE_OBJECT"};
    if (version() >= 10000) all.emplace_back("HIP_STREAM");
    return all;
  }();
  return names;
}

std::int32_t number_of(const std::vector<std::string>& names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

std::vector<std::string> operations_of(std::string_view kind) {
  if (kind == "HIP_RUNTIME_API") {
    return {"hipMalloc", "hipLaunchKernel", "hipMemcpy", "hipGetDevice", "hipFree"};
  }
  if (kind == "HIP_COMPILER_API") return {"__hipPushCallConfiguration", "__hipRegisterFunction"};
  if (kind == "HSA_CORE_API") return {"hsa_init", "hsa_queue_create"};
  if (kind == "RCCL_API") return {"ncclAllReduce"};
  if (kind == "MEMORY_COPY") {
    return {"MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_HOST_TO_DEVICE",
            "MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE"};
  }
  if (kind == "MEMORY_ALLOCATION") {
    return {"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",
            "MEMORY_ALLOCATION_VMEM_ALLOCATE", "MEMORY_ALLOCATION_FREE",
            "MEMORY_ALLOCATION_VMEM_FREE"};
  }
  if (kind == "SCRATCH_MEMORY") return {"SCRATCH_MEMORY_NONE", "SCRATCH_MEMORY_ALLOC"};
  if (kind == "KFD_PAGE_MIGRATE") return {"KFD_PAGE_MIGRATE_PREFETCH"};
  if (kind == "KFD_PAGE_FAULT") return {"KFD_PAGE_FAULT_READ_FAULT_MIGRATED"};
  if (kind == "PAGE_MIGRATION" && version() < 600) {
    return {"NONE", "PAGE_MIGRATE", "PAGE_FAULT", "QUEUE_SUSPEND", "UNMAP_FROM_GPU"};
  }
  if (kind == "PAGE_MIGRATION") {
    return {"NONE",           "PAGE_MIGRATE_START", "PAGE_MIGRATE_END", "PAGE_FAULT_START",
            "PAGE_FAULT_END", "QUEUE_EVICTION",     "QUEUE_RESTORE",    "UNMAP_FROM_GPU",
            "DROPPED_EVENT"};
  }
  return {};
}

constexpr std::size_t kMain = 1, kOfSamples = 2;  // buffers, in the order they are made
struct Kept {
  std::size_t buffer;
  std::uint32_t category, kind;
  std::vector<char> bytes;
};

struct Sdk {
  std::mutex mutex;
  std::vector<Kept> kept;
  std::size_t most = 1u << 20;
  std::uint64_t dropped[4] = {};  // of each buffer, which are numbered from 1
  struct {
    Api::Buffered take;
    void* data;
  } buffers[4] = {};
  std::size_t buffer_count = 0;
  bool started[3] = {};
  std::vector<std::vector<std::int32_t>> wanted{64};  // operations of each kind; -1: all
  Api::AnyFunction callback = nullptr;
  Api::RequestId request = nullptr;
  Api::ChooseCounters choose = nullptr;
  Api::Counted counted = nullptr;
  ConfigureResult* tool = nullptr;
  int state = 0;  // -1 finalizing, 1 finalized
  std::atomic<bool> hangs = false, crashes = false;
  std::uint64_t base = 0;
  KernelRecord last{};
  KernelSymbol1 next_symbol{};
  bool samples = false;
};
Sdk& sdk() {
  static Sdk* one = new Sdk;  // outlives all handlers of exit()
  return *one;
}

// In a thread of the SDK's, as its buffers are.
void deliver(std::size_t buffer) {
  std::vector<Kept> kept;
  std::uint64_t dropped = 0;
  {
    const std::lock_guard lock(sdk().mutex);
    for (Kept& one : sdk().kept) {
      if (one.buffer == buffer) kept.push_back(std::move(one));
    }
    std::erase_if(sdk().kept, [&](const Kept& one) { return one.buffer == buffer; });
    dropped = std::exchange(sdk().dropped[buffer], 0);
  }
  if (kept.empty() && dropped == 0) return;
  std::thread([&] {
    std::vector<RecordHeader> headers;
    std::vector<RecordHeader*> pointers;
    headers.reserve(kept.size());
    for (const Kept& one : kept) headers.push_back({one.category, one.kind, one.bytes.data()});
    for (RecordHeader& header : headers) pointers.push_back(&header);
    const auto& to = sdk().buffers[buffer];
    to.take(2, buffer, pointers.data(), pointers.size(), to.data, dropped);
    if (sdk().crashes) std::abort();
  }).join();
}

void keep(std::uint32_t category, std::int32_t kind, const void* bytes, std::size_t size,
          std::size_t buffer = kMain) {
  bool is_full = false;
  {
    const std::lock_guard lock(sdk().mutex);
    const auto* from = static_cast<const char*>(bytes);
    sdk().kept.push_back({buffer, category, static_cast<std::uint32_t>(kind), {from, from + size}});
    is_full = sdk().kept.size() >= sdk().most;
  }
  if (is_full) deliver(buffer);
}

bool is_wanted(std::int32_t kind, std::int32_t operation) {
  if (!sdk().started[2] || kind < 0) return false;
  for (const std::int32_t one : sdk().wanted[static_cast<std::size_t>(kind)]) {
    if (one == -1 || one == operation) return true;
  }
  return false;
}

template <class Record>
void tell(const char* kind, Record record) {
  record.size = sizeof record;
  record.kind = number_of(buffered_kinds(), kind);
  if (is_wanted(record.kind, record.operation)) {
    keep(RecordHeader::kTracing, record.kind, &record, sizeof record);
  }
}

std::uint64_t thread() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

void call_back(const char* kind, std::int32_t operation, std::int32_t phase, const void* payload,
               std::uint64_t& user_data) {
  const std::int32_t number = number_of(callback_kinds(), kind);
  if (!sdk().started[1] || sdk().callback == nullptr || number < 0) return;
  const auto fill = [&](auto& record) {
    record.context = 1;
    record.thread = thread();
    record.kind = number;
    record.operation = operation;
    record.phase = phase;
    record.payload = payload;
  };
  if (version() >= 10000) {
    Callback1 record{};
    fill(record);
    reinterpret_cast<void (*)(Callback1, std::uint64_t*, void*)>(sdk().callback)(record, &user_data,
                                                                                 nullptr);
  } else {
    Callback05 record{};
    fill(record);
    reinterpret_cast<void (*)(Callback05, std::uint64_t*, void*)>(sdk().callback)(
        record, &user_data, nullptr);
  }
}

void mark(const char* kind, std::int32_t operation, const char* text, std::uint64_t range = 0) {
  Marker marker{};
  marker.size = sizeof marker;
  if (text != nullptr) {
    marker.text = text;
  } else {
    marker.range = range;
  }
  std::uint64_t user_data = 0;  // of the call
  call_back(kind, operation, kEnter, &marker, user_data);
  marker.result = range;
  call_back(kind, operation, kLeave, &marker, user_data);
}

std::uint64_t external(std::int32_t kind, std::uint64_t correlation) {
  std::uint64_t given = 0;
  if (sdk().request != nullptr && sdk().started[2]) {
    sdk().request(thread(), 2, kind, 0, correlation, &given, nullptr);
  }
  return given;
}

std::string rest_of(std::istringstream& line) {
  std::string text;
  std::getline(line >> std::ws, text);
  return text;
}

struct Numbers {
  std::istringstream& from;
  std::uint64_t next() {
    std::string text;
    from >> text;
    return std::strtoull(text.c_str(), nullptr, 0);
  }
  std::int32_t operation() { return static_cast<std::int32_t>(next()); }
  std::uint32_t narrow() { return static_cast<std::uint32_t>(next()); }
  std::uint64_t time() {
    std::string text;
    from >> text;
    if (text[0] == '~') return now() + std::strtoull(text.c_str() + 1, nullptr, 0);
    if (text[0] == '!') return std::strtoull(text.c_str() + 1, nullptr, 0);
    const std::uint64_t given = std::strtoull(text.c_str(), nullptr, 0);
    return given == 0 ? 0 : sdk().base + given;
  }
};

void finalize() {
  if (sdk().state != 0) return;
  sdk().state = -1;
  if (sdk().tool != nullptr) sdk().tool->finalize(sdk().tool->data);
  sdk().state = 1;
  deliver(kMain);  // what nobody may want any more
}

void run(const std::vector<std::string>& lines, std::size_t& at);

// --- what the kernel driver does, as each version tells it

void tell_06(std::int32_t operation, std::uint64_t at, PageRecord06 record) {
  record.operation = operation;
  record.timestamp = at;
  tell("PAGE_MIGRATION", record);
}
// As the agents are made below.
std::uint32_t node_of(std::uint64_t agent) { return static_cast<std::uint32_t>((agent - 100) * 2); }

void tell_pages(const MigrationRecord& from) {
  if (version() >= 10000) return tell("KFD_PAGE_MIGRATE", from);
  if (version() >= 600) {
    PageRecord06 to{};
    to.migration = {from.first_address, from.end_address, from.source_agent, from.target_agent};
    if (from.start != 0) tell_06(kMigrationStart, from.start, to);
    return tell_06(kMigrationEnd, from.end, to);
  }
  PageRecord05 to{};
  to.operation = kMigration05;
  to.start = from.start;
  to.end = from.end;
  to.migration = {from.first_address, from.end_address, node_of(from.source_agent),
                  node_of(from.target_agent)};
  tell("PAGE_MIGRATION", to);
}
void tell_pages(const FaultRecord& from) {
  if (version() >= 10000) return tell("KFD_PAGE_FAULT", from);
  if (version() >= 600) {
    PageRecord06 to{};
    to.fault = {1, from.agent, from.address};
    tell_06(kFaultStart, from.start, to);
    return tell_06(kFaultEnd, from.end, to);
  }
  PageRecord05 to{};
  to.operation = kFault05;
  to.start = from.start;
  to.end = from.end;
  to.fault = {1, node_of(from.agent), from.address};
  tell("PAGE_MIGRATION", to);
}
void tell_pages(const DroppedRecord& from) {
  if (version() >= 10000) return tell("KFD_EVENT_DROPPED_EVENTS", from);
  PageRecord06 to{};
  to.dropped = from.count;
  tell_06(kPagesDropped, from.timestamp, to);
}

void run_records(std::string_view word, Numbers numbers) {
  const bool is_1 = version() >= 10000;
  if (word == "kernel") {
    KernelRecord record{};
    record.operation = 2;
    record.correlation.internal = numbers.next();
    record.start = numbers.time();
    record.end = numbers.time();
    record.thread = thread();
    record.correlation.external = external(11, record.correlation.internal);
    Dispatch& to = record.dispatch;
    to.size = offsetof(Dispatch, reserved);
    to.agent = numbers.next();
    to.queue = numbers.next();
    to.kernel = numbers.next();
    to.id = numbers.next();
    to.private_bytes = numbers.narrow();
    to.group_bytes = numbers.narrow();
    for (std::uint32_t& one : to.workgroup) one = numbers.narrow();
    for (std::uint32_t& one : to.grid) one = numbers.narrow();
    tell("KERNEL_DISPATCH", record);
    sdk().last = record;
  } else if (word == "copy") {
    CopyRecord1 record{};
    record.correlation.internal = numbers.next();
    record.start = numbers.time();
    record.end = numbers.time();
    record.operation = numbers.operation();
    record.source_agent = numbers.next();
    record.target_agent = numbers.next();
    record.bytes = numbers.next();
    record.source = numbers.next();
    record.target = numbers.next();
    record.thread = thread();
    record.correlation.external = external(10, record.correlation.internal);
    if (is_1) {
      tell("MEMORY_COPY", record);
    } else {
      tell("MEMORY_COPY", static_cast<CopyRecord05>(record));
    }
  } else if (word == "alloc") {
    const auto fill = [&](auto record) {
      record.correlation.internal = numbers.next();
      record.start = numbers.time();
      record.end = numbers.time();
      record.operation = numbers.operation();
      record.agent = numbers.next();
      record.address = numbers.next();
      record.bytes = numbers.next();
      record.thread = thread();
      tell("MEMORY_ALLOCATION", record);
    };
    is_1 ? fill(AllocationRecord1{}) : fill(AllocationRecord06{});
  } else if (word == "scratch") {
    const auto fill = [&](auto record) {
      record.correlation.internal = numbers.next();
      record.start = numbers.time();
      record.end = numbers.time();
      record.operation = numbers.operation();
      record.agent = numbers.next();
      record.queue = numbers.next();
      record.thread = thread();
      tell("SCRATCH_MEMORY", record);
    };
    if (is_1) {
      fill(ScratchRecord1{});
    } else if (version() >= 600) {
      fill(ScratchRecord06{});
    } else {
      fill(ScratchRecord05{});
    }
  } else if (word == "migrate") {
    MigrationRecord record{};
    record.start = numbers.time();
    record.end = numbers.time();
    record.operation = numbers.operation();
    record.first_address = numbers.next();
    record.end_address = numbers.next();
    record.source_agent = numbers.next();
    record.target_agent = numbers.next();
    tell_pages(record);
  } else if (word == "fault") {
    FaultRecord record{};
    record.start = numbers.time();
    record.end = numbers.time();
    record.operation = numbers.operation();
    record.agent = numbers.next();
    record.address = numbers.next();
    tell_pages(record);
  } else if (word == "dropped") {
    DroppedRecord record{};
    record.timestamp = now();
    record.count = numbers.narrow();
    tell_pages(record);
  }
}

void run_call(std::istringstream& line) {
  std::string kind;
  line >> kind;
  Numbers numbers{line};
  const auto fill = [&](auto record) {
    record.operation = numbers.operation();
    record.correlation.internal = numbers.next();
    record.start = numbers.time();
    record.end = numbers.time();
    record.thread = thread();
    tell(kind.c_str(), record);
  };
  version() >= 10000 ? fill(CallRecord1{}) : fill(CallRecord05{});
}

void run_symbol(std::istringstream& line) {
  Numbers numbers{line};
  KernelSymbol1 symbol = std::exchange(sdk().next_symbol, {});
  symbol.size = version() >= 10000 ? sizeof symbol : sizeof(KernelSymbol);
  symbol.kernel = numbers.next();
  symbol.group_bytes = numbers.narrow();
  symbol.vgprs = numbers.narrow();
  symbol.accumulation_vgprs = numbers.narrow();
  const std::string name = rest_of(line);  // gone when the command is
  symbol.name = name.c_str();
  std::uint64_t user_data = 0;
  call_back("CODE_OBJECT", kKernelSymbolRegister, kEnter, &symbol, user_data);
}

void run_samples(std::string_view word, Numbers numbers) {
  const std::uint64_t count = numbers.next(), dispatch = numbers.next();
  const Pc pc = {numbers.next(), numbers.next()};
  const std::uint32_t why = numbers.narrow();
  for (std::uint64_t i = 0; i < count && sdk().samples && sdk().started[2]; ++i) {
    if (word == "trap") {
      HostTrapSample sample{};
      sample.size = sizeof sample;
      sample.dispatch = dispatch;
      sample.pc = pc;
      keep(RecordHeader::kPcSampling, kHostTrapPc, &sample, sizeof sample, kOfSamples);
    } else if (word == "invalid") {
      const std::uint64_t size = sizeof size;
      keep(RecordHeader::kPcSampling, kInvalidPc, &size, sizeof size, kOfSamples);
    } else {
      StochasticSample sample{};
      sample.size = sizeof sample;
      sample.dispatch = dispatch;
      sample.pc = pc;
      sample.issued = word == "issue" ? 1 | 2 << 1 : 0;
      // Of the other bits nothing is to be taken for the reason.
      sample.snapshot = 0xfffffff0u | why;
      keep(RecordHeader::kPcSampling, kStochasticPc, &sample, sizeof sample, kOfSamples);
    }
  }
}

void run_count(std::istringstream& line) {
  Numbers numbers{line};
  const std::uint64_t counter = numbers.next();
  const KernelRecord& last = sdk().last;
  const CountedDispatch dispatch = {sizeof dispatch, last.correlation, last.start, last.end,
                                    last.dispatch};
  std::uint64_t config = 0, user_data = 0;
  if (sdk().choose == nullptr || !sdk().started[2]) return;
  sdk().choose(dispatch, &config, &user_data, nullptr);
  if (config != 900 + last.dispatch.agent) return;
  std::vector<CounterRecord06> records(2);
  for (std::uint64_t i = 0; i < 2; ++i) {
    double value = 0;
    line >> value;
    records[i].id = counter << 48 | i;
    records[i].value = value;
    records[i].dispatch = last.dispatch.id;
  }
  const std::vector<CounterRecord05> old(records.begin(), records.end());
  const void* all = version() >= 600 ? static_cast<const void*>(records.data()) : old.data();
  std::thread([&] { sdk().counted(dispatch, all, 2, user_data, nullptr); }).join();
}

void run_one(const std::vector<std::string>& lines, std::size_t& at) {
  std::istringstream line(lines[at]);
  std::string word;
  line >> word;
  ++at;
  Numbers numbers{line};
  if (word == "symbol") return run_symbol(line);
  if (word == "call") return run_call(line);
  if (word == "again") return tell("KERNEL_DISPATCH", sdk().last);
  if (word == "count") return run_count(line);
  if (word == "object") {
    CodeObject object{};
    object.size = sizeof object;
    object.id = numbers.next();
    object.load_base = numbers.next();
    std::uint64_t user_data = 0;
    return call_back("CODE_OBJECT", kCodeObjectLoad, kEnter, &object, user_data);
  }
  if (word == "at") {
    sdk().next_symbol.code_object = numbers.next();
    sdk().next_symbol.entry = numbers.next();
    return;
  }
  if (word == "trap" || word == "issue" || word == "stall" || word == "invalid") {
    return run_samples(word, numbers);
  }
  if (word == "launch") return static_cast<void>(external(11, 0));
  if (word == "short" || word == "sample") {
    const std::uint64_t size[2] = {8, 0};
    std::string kind;
    line >> kind;
    const bool sample = word == "sample";
    return keep(sample ? RecordHeader::kPcSampling : RecordHeader::kTracing,
                sample ? 1 : number_of(buffered_kinds(), kind), size, sizeof size);
  }
  if (word == "stream") {
    const StreamChange change = {sizeof change, numbers.next(), 0};
    std::uint64_t user_data = 0;
    call_back("HIP_STREAM", kStreamSet, kEnter, &change, user_data);
    run(lines, at);
    return call_back("HIP_STREAM", kStreamSet, kLeave, &change, user_data);
  }
  if (word == "push") return mark("MARKER_CORE_API", kRangePush, rest_of(line).c_str());
  if (word == "pop") return mark("MARKER_CORE_API", kRangePop, nullptr);
  if (word == "mark") return mark("MARKER_CORE_API", kMark, rest_of(line).c_str());
  if (word == "start") {
    const std::uint64_t range = numbers.next();
    return mark("MARKER_CORE_API", kRangeStart, rest_of(line).c_str(), range);
  }
  if (word == "stop") return mark("MARKER_CORE_API", kRangeStop, nullptr, numbers.next());
  if (word == "pause") return mark("MARKER_CONTROL_API", kPause, nullptr);
  if (word == "resume") return mark("MARKER_CONTROL_API", kResume, nullptr);
  if (word == "name") return mark("MARKER_NAME_API", kNameThread, rest_of(line).c_str());
  if (word == "thread") return std::thread([&] { run(lines, at); }).join();
  if (word == "full") return static_cast<void>(sdk().most = numbers.next());
  if (word == "flush") return deliver(kMain);
  if (word == "drop") return static_cast<void>(sdk().dropped[kMain] = numbers.next());
  if (word == "lose") return static_cast<void>(sdk().dropped[kOfSamples] = numbers.next());
  if (word == "wait") {
    const std::uint64_t until = now() + numbers.next();
    while (now() < until) {
    }
    return;
  }
  if (word == "hang") return static_cast<void>(sdk().hangs = true);
  if (word == "crash") return static_cast<void>(sdk().crashes = true);
  if (word == "finalize") return finalize();
  run_records(word, numbers);
}

// To "end" or "join", or the end of the script.
void run(const std::vector<std::string>& lines, std::size_t& at) {
  while (at < lines.size()) {
    if (lines[at] == "end" || lines[at] == "join") {
      ++at;
      return;
    }
    run_one(lines, at);
  }
}

Status copy_name(const std::vector<std::string>& names, std::int32_t number, const char** name,
                 std::uint64_t* size) {
  if (number < 0 || static_cast<std::size_t>(number) >= names.size()) return 5;
  const std::string& found = names[static_cast<std::size_t>(number)];
  if (name != nullptr) *name = found.c_str();
  if (size != nullptr) *size = found.size();
  return 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char* rocprofiler_get_status_string(Status status) {
  return status == 12 ? "the service is not offered" : "some error";
}
EXPORT Status rocprofiler_get_version(std::uint32_t* major, std::uint32_t* minor,
                                      std::uint32_t* patch) {
  *major = version() / 10000;
  *minor = version() / 100 % 100;
  *patch = version() % 100;
  return 0;
}
EXPORT Status rocprofiler_get_timestamp(std::uint64_t* at) {
  *at = now();
  return 0;
}
EXPORT Status rocprofiler_is_finalized(int* state) {
  *state = sdk().state;
  return 0;
}
EXPORT Status rocprofiler_create_context(std::uint64_t* context) {
  static std::uint64_t last = 0;
  if (*context != 0) return 3;
  *context = ++last;
  return 0;
}
EXPORT Status rocprofiler_start_context(std::uint64_t context) {
  sdk().started[context] = true;
  return 0;
}
EXPORT Status rocprofiler_stop_context(std::uint64_t context) {
  sdk().started[context] = false;
  return 0;
}
#ifndef FAKE_WITHOUT_BUFFERS
EXPORT Status rocprofiler_create_buffer(std::uint64_t, std::size_t, std::size_t, std::int32_t,
                                        Api::Buffered take, void* data, std::uint64_t* buffer) {
  *buffer = ++sdk().buffer_count;
  sdk().buffers[*buffer] = {take, data};
  return 0;
}
#endif
EXPORT Status rocprofiler_flush_buffer(std::uint64_t buffer) {
  if (sdk().hangs) {
    for (;;) pause();
  }
  deliver(buffer);
  return 0;
}
EXPORT Status rocprofiler_configure_buffer_tracing_service(std::uint64_t, std::int32_t kind,
                                                           const std::int32_t* operations,
                                                           std::size_t count, std::uint64_t) {
  const char* refused = std::getenv("FAKE_ROCM_REFUSES");
  const auto number = static_cast<std::size_t>(kind);
  if (refused != nullptr && buffered_kinds()[number] == refused) return 12;
  sdk().wanted[number] = operations == nullptr
                             ? std::vector<std::int32_t>{-1}
                             : std::vector<std::int32_t>(operations, operations + count);
  return 0;
}
EXPORT Status rocprofiler_configure_callback_tracing_service(std::uint64_t, std::int32_t,
                                                             const std::int32_t*, std::size_t,
                                                             Api::AnyFunction callback, void*) {
  sdk().callback = callback;
  return 0;
}
EXPORT Status rocprofiler_query_buffer_tracing_kind_name(std::int32_t kind, const char** name,
                                                         std::uint64_t* size) {
  return copy_name(buffered_kinds(), kind, name, size);
}
EXPORT Status rocprofiler_query_callback_tracing_kind_name(std::int32_t kind, const char** name,
                                                           std::uint64_t* size) {
  return copy_name(callback_kinds(), kind, name, size);
}
EXPORT Status rocprofiler_query_buffer_tracing_kind_operation_name(std::int32_t kind,
                                                                   std::int32_t operation,
                                                                   const char** name,
                                                                   std::uint64_t* size) {
  static std::vector<std::vector<std::string>>* names = [] {
    auto* all = new std::vector<std::vector<std::string>>;
    for (const std::string& one : buffered_kinds()) all->push_back(operations_of(one));
    return all;
  }();
  if (kind < 0 || static_cast<std::size_t>(kind) >= names->size()) return 5;
  return copy_name((*names)[static_cast<std::size_t>(kind)], operation, name, size);
}
EXPORT Status rocprofiler_iterate_buffer_tracing_kind_operations(std::int32_t kind,
                                                                 Api::NameOperation callback,
                                                                 void* data) {
  const auto all = operations_of(buffered_kinds()[static_cast<std::size_t>(kind)]);
  for (std::size_t i = 0; i < all.size(); ++i) callback(kind, static_cast<std::int32_t>(i), data);
  return 0;
}
EXPORT Status rocprofiler_query_available_agents(std::int32_t, Api::TakeAgents take, std::size_t,
                                                 void* data) {
  static MemoryBank bank{};
  bank.bytes = std::uint64_t{192} << 30;
  static Agent agents[3] = {};
  const void* pointers[3];
  for (std::uint32_t i = 0; i < 3; ++i) {
    Agent& agent = agents[i];
    agent.size = version() >= 600 ? sizeof agent : offsetof(Agent, uuid);
    agent.id = 100 + i;
    agent.type = i == 0 ? Agent::kCpu : Agent::kGpu;
    agent.name = i == 0 ? "Host CPU" : "gfx942";
    agent.product_name = i == 0 ? "" : "AMD Instinct MI300X";
    agent.node = i * 2;  // one lies between that may not be used
    agent.logical = static_cast<std::int32_t>(i);
    agent.of_type = i == 2 ? 1 : 0;
    pointers[i] = &agent;
    if (i == 0) continue;
    agent.compute_units = 304;
    agent.wave_size = 64;
    agent.waves_per_unit = 32;
    agent.gfx_version = 90402;
    agent.memory_banks = 1;
    agent.banks = &bank;
    agent.uuid[0] = 0x0123456789abcde0 + i;
  }
  return take(1, pointers, 3, data);
}
EXPORT Status rocprofiler_configure_external_correlation_id_request_service(
    std::uint64_t, const std::int32_t*, std::size_t, Api::RequestId request, void*) {
  sdk().request = request;
  return 0;
}

constexpr const char* kCounters[] = {"", "SQ_WAVES", "GRBM_COUNT"};
EXPORT Status rocprofiler_iterate_agent_supported_counters(std::uint64_t agent,
                                                           Api::TakeCounters take, void* data) {
  std::uint64_t counters[] = {1, 2};
  return take(agent, counters, 2, data);
}
EXPORT Status rocprofiler_query_counter_info(std::uint64_t counter, std::int32_t, void* to) {
  CounterInfo info{};
  info.id = counter;
  info.name = kCounters[counter];
  std::memcpy(to, &info, sizeof info);
  return 0;
}
EXPORT Status rocprofiler_create_profile_config(std::uint64_t agent, std::uint64_t*, std::size_t,
                                                std::uint64_t* config) {
  *config = 900 + agent;
  return 0;
}
EXPORT Status rocprofiler_configure_callback_dispatch_counting_service(std::uint64_t,
                                                                       Api::ChooseCounters choose,
                                                                       void*, Api::Counted counted,
                                                                       void*) {
  sdk().choose = choose;
  sdk().counted = counted;
  return 0;
}
EXPORT Status rocprofiler_query_record_counter_id(std::uint64_t record, std::uint64_t* counter) {
  *counter = record >> 48;
  return 0;
}

// The first GPU offers both methods, the second host traps alone; FAKE_ROCM_PC says otherwise:
// "none", or "busy", which another process is.
EXPORT Status rocprofiler_query_pc_sampling_agent_configurations(std::uint64_t agent,
                                                                 Api::TakePcConfigurations take,
                                                                 void* data) {
  const PcConfiguration all[] = {
      {sizeof all[0], kHostTrap, kTime, 1, 1000000, 0},
      {sizeof all[0], kStochastic, kCycles, 256, std::uint64_t{1} << 31, 1}};
  const char* given = std::getenv("FAKE_ROCM_PC");
  const bool none = given != nullptr && std::string_view(given) == "none";
  return take(all, none ? 0 : agent == 101 ? 2 : 1, data);
}
EXPORT Status rocprofiler_configure_pc_sampling_service(std::uint64_t context, std::uint64_t agent,
                                                        std::int32_t method, std::int32_t unit,
                                                        std::uint64_t interval,
                                                        std::uint64_t buffer, int) {
  const char* given = std::getenv("FAKE_ROCM_PC");
  if (given != nullptr && std::string_view(given) == "busy") return 12;
  const bool fits = method == kStochastic
                        ? agent == 101 && unit == kCycles && (interval & (interval - 1)) == 0
                        : method == kHostTrap && unit == kTime;
  if (context != 2 || buffer < kOfSamples || !fits) return 5;
  sdk().samples = true;
  return 0;
}

// --- what ROCm calls

EXPORT int rocprofiler_set_api_table(const char*, std::uint64_t, std::uint64_t, void**,
                                     std::uint64_t) {
  if (sdk().tool != nullptr) return 0;
  std::atexit(finalize);
  const char* tools = std::getenv("ROCP_TOOL_LIBRARIES");
  void* library = tools == nullptr ? nullptr : dlopen(tools, RTLD_NOW);
  using Configure = ConfigureResult* (*)(std::uint32_t, const char*, std::uint32_t, void*);
  const auto configure = reinterpret_cast<Configure>(
      dlsym(library == nullptr ? RTLD_DEFAULT : library, "rocprofiler_configure"));
  if (configure == nullptr) return 0;
  ClientId1 client = {sizeof client, nullptr, 1};
  ClientId05 old_client = {nullptr, 1};
  const bool is_1 = version() >= 10000;
  sdk().tool = configure(version(), "fake", 0,
                         is_1 ? static_cast<void*>(&client) : static_cast<void*>(&old_client));
  if (sdk().tool != nullptr && (is_1 ? client.name : old_client.name) == nullptr) return 1;
  return sdk().tool == nullptr ? 0 : sdk().tool->initialize(nullptr, sdk().tool->data);
}

EXPORT int fake_play(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  sdk().base = now();
  std::size_t at = 0;
  while (at < lines.size()) run(lines, at);
  return 0;
}
