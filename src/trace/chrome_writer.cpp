#include "trace/chrome_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/input.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "trace/common_source.h"
#include "trace/output_file.h"

namespace pasta::trace {
namespace {

constexpr std::string_view kAsyncLane = "async ";  // and the category: ranges tied to an id
constexpr std::string_view kTotalAllocated = "Total Allocated";
constexpr std::string_view kTotalReserved = "Total Reserved";

std::string json_string(std::string_view text) {
  std::string out;
  base::append_json_string(out, text);
  return out;
}

// A JSON object under construction.
class Object {
 public:
  template <class Number>
  Object& number(std::string_view key, const Number& value) {
    return raw(key, fmt::format("{}", value));
  }
  Object& string(std::string_view key, std::string_view value) {
    return raw(key, json_string(value));
  }
  Object& raw(std::string_view key, std::string_view json) {
    separate();
    base::append_json_string(text_, key);
    text_ += ':';
    text_ += json;
    return *this;
  }
  // Members as they are, without braces.
  Object& members(std::string_view json) {
    if (json.empty()) return *this;
    separate();
    text_ += json;
    return *this;
  }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string finish() const { return "{" + text_ + "}"; }

 private:
  void separate() {
    if (!text_.empty()) text_ += ',';
  }
  std::string text_;
};

// Exact: at most three decimals, and no more than are needed.
std::string microseconds(std::int64_t ns) {
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::string text = fmt::format("{}{}", ns < 0 ? "-" : "", size / 1000);
  if (size % 1000 != 0) {
    text += fmt::format(".{:03}", size % 1000);
    while (text.back() == '0') text.pop_back();
  }
  return text;
}

std::string triple(const std::uint32_t (&v)[3]) {
  return fmt::format("[{},{},{}]", v[0], v[1], v[2]);
}

std::string_view scope_category(std::uint16_t detail) {
  switch (static_cast<ScopeDomain>(detail)) {
    case ScopeDomain::kOperator:
      return "cpu_op";
    case ScopeDomain::kModule:
    case ScopeDomain::kPython:
      return "python_function";
    case ScopeDomain::kAnnotation:
    case ScopeDomain::kIteration:
      return "user_annotation";
    case ScopeDomain::kRuntime:
      return "overhead";
    case ScopeDomain::kUnknown:
      break;
  }
  return {};
}

std::string_view direction_word(std::uint16_t detail) {
  switch (static_cast<CopyDirection>(detail)) {
    case CopyDirection::kHostToDevice:
      return "HtoD";
    case CopyDirection::kDeviceToHost:
      return "DtoH";
    case CopyDirection::kDeviceToDevice:
      return "DtoD";
    case CopyDirection::kHostToHost:
      return "HtoH";
    case CopyDirection::kPeerToPeer:
      return "PtoP";
    case CopyDirection::kMigration:
    case CopyDirection::kUnknown:
      break;
  }
  return {};
}

std::string_view sync_word(std::uint16_t detail) {
  switch (static_cast<SyncTarget>(detail)) {
    case SyncTarget::kContext:
      return "Context Sync";
    case SyncTarget::kStream:
      return "Stream Sync";
    case SyncTarget::kEvent:
      return "Event Sync";
    case SyncTarget::kStreamWaitsEvent:
      return "Stream Wait Event";
    case SyncTarget::kUnknown:
      break;
  }
  return {};
}

// What the last launches lie in, by their correlation. A device has less than this under way.
class Launches {
 public:
  bool add(std::uint64_t correlation, FrameId scope) {
    if (find(correlation) != nullptr) return false;
    if (last_.size() == kMost) before_ = std::exchange(last_, {});
    last_.emplace(correlation, scope);
    return true;
  }
  [[nodiscard]] const FrameId* find(std::uint64_t correlation) const {
    for (const auto* launches : {&last_, &before_}) {
      if (const auto found = launches->find(correlation); found != launches->end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 17;
  std::unordered_map<std::uint64_t, FrameId> last_, before_;
};

class ChromeWriter final : public Recorder {
 public:
  explicit ChromeWriter(OutputFile file) : file_(std::move(file)) {}

  Status begin(const Dictionary& dictionary) override {
    dictionary_ = &dictionary;
    out_ = "{\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[";
    return {};
  }

  Status record(std::span<const Event> events) override {
    for (const Event& event : events) {
      take(event);
      if (out_.size() >= kFlushBytes) PASTA_TRY(flush());
    }
    return {};
  }

  Status end(std::span<const SourceInfo> sources,
             std::span<const std::vector<Problem>> /*problems*/) override {
    write_memory();
    // In the order of their launches, which are not here.
    const std::map<std::uint64_t, std::vector<Event>> left(waiting_.begin(), waiting_.end());
    for (const auto& [correlation, works] : left) {
      launched_in_.add(correlation, works.front().scope);
      for (const Event& work : works) take(work);
    }
    write_names();
    out_ += "\n]";
    write_members(common_source(sources));
    out_ += "}\n";
    PASTA_TRY(flush());
    return file_.close();
  }

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 18;

  Status flush() {
    PASTA_TRY(file_.write(std::string_view(out_)));
    out_.clear();
    return {};
  }

  void write(const Object& record) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    out_ += record.finish();
  }

  // --- where

  // The number of a device in this file: its ordinal, or where another process has a device with
  // that ordinal the next free number.
  std::uint32_t device_number(DeviceId id) {
    const auto known = device_numbers_.find(id);
    if (known != device_numbers_.end()) return known->second;
    std::uint32_t number = dictionary_->device(id).ordinal;
    while (!numbers_taken_.insert(number).second) ++number;
    return device_numbers_[id] = number;
  }

  // A process's pid as JSON; told apart by its source where another one has the same.
  const std::string& pid(ProcessId id) {
    const auto known = pids_.find(id);
    if (known != pids_.end()) return known->second;
    const Process p = dictionary_->process(id);
    const std::string_view text = dictionary_->text(p.native_text);
    std::string json = text.empty() ? fmt::format("{}", p.native_id) : json_string(text);
    if (!pids_taken_.insert(json).second) {
      const std::string plain = text.empty() ? json : std::string(text);
      json = json_string(fmt::format("{} of {}", plain, dictionary_->text(p.source)));
      for (int n = 2; !pids_taken_.insert(json).second; ++n) {
        json = json_string(fmt::format("{} of {} ({})", plain, dictionary_->text(p.source), n));
      }
    }
    return pids_[id] = std::move(json);
  }

  void write_row(Object& record, LaneId id) {
    const Lane lane = dictionary_->lane(id);
    if (lane.type == LaneType::kQueue) {
      queues_seen_.insert(id);
      record.number("pid", device_number(lane.device)).number("tid", lane.native_id);
      return;
    }
    record.raw("pid", pid(lane.process));
    if (lane.native_text) {
      record.string("tid", dictionary_->text(lane.native_text));
    } else {
      record.number("tid", lane.native_id);
    }
  }

  [[nodiscard]] std::optional<std::string_view> async_category(LaneId id) const {
    const std::string_view text = dictionary_->text(dictionary_->lane(id).native_text);
    if (!text.starts_with(kAsyncLane)) return std::nullopt;
    return text.substr(kAsyncLane.size());
  }

  // --- when

  // Viewers keep times as doubles, which hold nanoseconds for only some months. Times since 1970
  // are written since a round date before the trace, which the document names.
  std::string time(std::int64_t ns) {
    if (!base_chosen_) {
      base_chosen_ = true;
      constexpr std::int64_t kDay = 86'400'000'000'000;
      constexpr std::int64_t kYear2001 = 1'000'000'000'000'000'000;
      if (ns >= kYear2001) base_ns_ = (ns - kDay) / (30 * kDay) * (30 * kDay);
    }
    return microseconds(ns - base_ns_);
  }

  void write_time(Object& record, const Event& e, bool range) {
    if (e.untimed()) return;
    record.raw("ts", time(e.start_ns));
    if (range) record.raw("dur", microseconds(e.end_ns - e.start_ns));
  }

  // --- which

  // A correlation's number in this file: the vendor's, made different for every process but one.
  void write_correlation(Object& args, std::uint64_t correlation) {
    if (correlation == 0) return;
    const ProcessId owner = correlation_process(correlation);
    const auto index = static_cast<std::uint64_t>(std::find(owners_.begin(), owners_.end(), owner) -
                                                  owners_.begin());
    if (index == owners_.size()) owners_.push_back(owner);
    args.number("correlation", (correlation & kMaxVendorCorrelation) + (index << 40));
  }

  // --- what

  void take(const Event& e) {
    if (e.kind == Kind::kCounter && joins_memory(e)) return;
    write_memory();
    if (waits(e)) return;
    switch (e.kind) {
      case Kind::kScope:
        return scope(e);
      case Kind::kApi: {
        Object args;
        write_correlation(args, e.correlation);
        const bool driver = static_cast<ApiDomain>(e.detail) == ApiDomain::kDriver;
        complete(e, driver ? "cuda_driver" : "cuda_runtime", args);
        if (e.correlation == 0 || !launched_in_.add(e.correlation, e.scope)) return;
        if (const auto waited = waiting_.extract(e.correlation)) {
          for (const Event& work : waited.mapped()) take(work);
        }
        return;
      }
      case Kind::kKernel:
        return kernel(e);
      case Kind::kCopy:
        return copy(e);
      case Kind::kFill: {
        Object args = queue_args(e);
        if (e.fill.bytes != kUnknownBytes) args.number("bytes", e.fill.bytes);
        return complete(e, "gpu_memset", args);
      }
      case Kind::kSync: {
        Object args = queue_args(e);
        if (const std::string_view word = sync_word(e.detail); !word.empty()) {
          args.string("cuda_sync_kind", word);
        }
        if (e.sync.on) args.number("wait_on_stream", dictionary_->lane(e.sync.on).native_id);
        if (e.sync.object != 0) args.number("wait_on_cuda_event_id", e.sync.object);
        return complete(e, "cuda_sync", args);
      }
      case Kind::kAlloc:
      case Kind::kFree:
        memory_ = Memory{.event = e};
        return;
      case Kind::kCounter:
        return counter(e);
      case Kind::kFault:
      case Kind::kDevice:
      case Kind::kGap:
        break;
    }
    ++not_exported_[std::string(kind_name(e.kind))];
  }

  Object head(std::string_view phase, std::string_view category, std::string_view name) {
    Object record;
    record.string("ph", phase);
    if (!category.empty()) record.string("cat", category);
    record.string("name", name);
    return record;
  }

  void complete(const Event& e, std::string_view category, const Object& args) {
    Object record = head("X", category, dictionary_->text(e.name));
    write_row(record, e.lane);
    write_time(record, e, true);
    if (!args.empty()) record.raw("args", args.finish());
    write(record);
  }

  // Whether it has to wait for its launch, which may end after its work: what its path has below
  // that of its launch is its own.
  bool waits(const Event& e) {
    if (!kDeviceWork.has(e.kind) || (e.flags & kLinked) == 0 ||
        dictionary_->frame(e.scope).domain != ScopeDomain::kOperator ||
        launched_in_.find(e.correlation) != nullptr) {
      return false;
    }
    waiting_[e.correlation].push_back(e);
    return true;
  }

  // What the source says itself of where work comes from, below its launch, as XLA's profiler does.
  void own_path(Object& args, const Event& e) {
    const Frame operation = dictionary_->frame(e.scope);
    if (!e.scope || operation.domain != ScopeDomain::kOperator) return;
    FrameId outer{};
    if ((e.flags & kLinked) != 0) {
      const FrameId* const launch = launched_in_.find(e.correlation);
      if (launch == nullptr || *launch == e.scope) return;
      outer = *launch;
    }
    if (operation.parent != outer) {
      const Frame module = dictionary_->frame(operation.parent);
      if (module.domain != ScopeDomain::kModule || module.parent != outer) return;
      args.string("hlo_module", dictionary_->text(module.name));
    }
    args.string("hlo_op", dictionary_->text(operation.name));
  }

  Object queue_args(const Event& e) {
    const Lane lane = dictionary_->lane(e.lane);
    Object args;
    if (lane.type == LaneType::kQueue) {
      args.number("device", device_number(lane.device));
      if (lane.context != 0) args.number("context", lane.context);
      args.number("stream", lane.native_id);
    }
    write_correlation(args, e.correlation);
    if (kDeviceWork.has(e.kind)) own_path(args, e);
    return args;
  }

  void kernel(const Event& e) {
    Object args = queue_args(e);
    if ((e.kernel.grid[0] | e.kernel.grid[1] | e.kernel.grid[2]) != 0) {
      args.raw("grid", triple(e.kernel.grid));
    }
    const LaunchAttributes a = dictionary_->attributes(e.kernel.attributes);
    if ((a.block[0] | a.block[1] | a.block[2]) != 0) args.raw("block", triple(a.block));
    if (a.registers_per_thread != 0) args.number("registers per thread", a.registers_per_thread);
    const std::uint64_t shared = std::uint64_t{a.static_shared_bytes} + a.dynamic_shared_bytes;
    if (shared != 0) args.number("shared memory", shared);
    if (a.priority != 0) args.number("priority", a.priority);
    if (e.kernel.graph_node != 0) args.number("graph node id", e.kernel.graph_node);
    if (a.collective) collective(args, dictionary_->collective(a.collective));
    complete(e, "kernel", args);
  }

  void collective(Object& args, const Collective& c) {
    args.string("Collective name", dictionary_->text(c.name));
    if (c.element_type) args.string("dtype", dictionary_->text(c.element_type));
    if (c.in_elements != 0) args.number("In msg nelems", c.in_elements);
    if (c.out_elements != 0) args.number("Out msg nelems", c.out_elements);
    if (c.group_size != 0) args.number("Group size", c.group_size);
    if (c.group) args.string("Process Group Name", dictionary_->text(c.group));
    if (c.ranks) args.string("Process Group Ranks", dictionary_->text(c.ranks));
  }

  void copy(const Event& e) {
    Object args = queue_args(e);
    if (e.copy.bytes != kUnknownBytes) args.number("bytes", e.copy.bytes);
    if (e.copy.src != 0) args.number("src", e.copy.src);
    if (e.copy.dst != 0) args.number("dst", e.copy.dst);
    // Readers look into the name first.
    const std::string_view word = direction_word(e.detail);
    if (!word.empty() && dictionary_->text(e.name).find(word) == std::string_view::npos) {
      args.string("kind", word);
    }
    complete(e, "gpu_memcpy", args);
  }

  void scope(const Event& e) {
    const std::string_view name = dictionary_->text(e.name);
    if ((e.flags & kAnnotation) != 0 && dictionary_->lane(e.lane).type == LaneType::kThread) {
      if (const auto category = async_category(e.lane)) return async(e, *category);
    }
    if (dictionary_->lane(e.lane).type == LaneType::kQueue) {
      return complete(e, "gpu_user_annotation", queue_args(e));
    }
    const std::string_view category = scope_category(e.detail);
    if ((e.flags & kInstant) != 0) {
      Object record = head("i", category, name);
      record.string("s", "t");
      write_row(record, e.lane);
      write_time(record, e, false);
      return write(record);
    }
    Object args;
    if (e.range.sequence != 0) {
      args.number("Sequence number", e.range.sequence - 1);
      if (e.range.forward_thread != 0) args.number("Fwd thread id", e.range.forward_thread);
    }
    args.members(arguments(e.range.arguments));
    backward_arrow(e);
    if ((e.flags & kUnfinished) != 0 && args.empty()) {
      // A begin without an end is what it was.
      Object record = head("B", category, name);
      write_row(record, e.lane);
      write_time(record, e, false);
      return write(record);
    }
    complete(e, category, args);
  }

  // A backward operator lies in the path of its forward operator, which only an arrow can say in
  // this format: its path is not that of the ranges around it. An arrow more than needed, between
  // threads that go the same paths, says nothing wrong.
  void backward_arrow(const Event& e) {
    if (e.untimed() || static_cast<ScopeDomain>(e.detail) != ScopeDomain::kOperator) return;
    if (e.scope) {
      const auto forward = last_of_path_.find(path_key(dictionary_->frame(e.scope)));
      if (forward != last_of_path_.end() && forward->second.lane != e.lane &&
          forward->second.end_ns <= e.start_ns) {
        ++arrow_id_;
        write_arrow_end("s", forward->second.lane, forward->second.start_ns);
        write_arrow_end("f", e.lane, e.start_ns);
      }
    }
    last_of_path_[path_key({e.scope, e.name, ScopeDomain::kOperator})] = {e.lane, e.start_ns,
                                                                          e.end_ns};
  }
  void write_arrow_end(std::string_view phase, LaneId lane, std::int64_t at_ns) {
    Object record = head(phase, "fwdbwd", "fwdbwd");
    record.number("id", arrow_id_);
    write_row(record, lane);
    record.raw("ts", time(at_ns));
    if (phase == "f") record.string("bp", "e");
    write(record);
  }
  struct Range {
    LaneId lane;
    std::int64_t start_ns, end_ns;
  };
  using PathKey = std::pair<std::uint64_t, std::uint32_t>;
  static PathKey path_key(const Frame& frame) {
    return {std::uint64_t{frame.parent.value} << 32 | frame.name.value,
            static_cast<std::uint32_t>(frame.domain)};
  }

  void async(const Event& e, std::string_view category) {
    const auto record = [&](std::string_view phase, std::int64_t at_ns) {
      Object object = head(phase, category, dictionary_->text(e.name));
      object.number("id", async_id_).raw("pid", pid(dictionary_->lane(e.lane).process));
      object.number("tid", 0);
      if (!e.untimed()) object.raw("ts", time(at_ns));
      write(object);
    };
    ++async_id_;
    if (e.untimed() || (e.flags & kInstant) != 0) return record("n", e.start_ns);
    record("b", e.start_ns);
    if ((e.flags & kUnfinished) == 0) record("e", e.end_ns);
  }

  // Kept arguments are a JSON object when they come from such a file; by hand they can be anything.
  std::string_view arguments(StringId id) {
    const std::string_view text = dictionary_->text(id);
    if (text.size() <= 2) return {};
    const auto [known, is_new] = arguments_fit_.emplace(id, false);
    if (is_new && text.front() == '{' && text.back() == '}') {
      const auto stream = base::memory_stream(std::as_bytes(std::span(text)));
      base::JsonReader reader(*stream, {.strict = true, .on_problem = {}});
      const auto type = reader.open();
      std::string key;
      bool fits = type.has_value();
      while (fits) {
        const auto more = reader.next_member(key);
        fits = more.has_value();
        if (!fits || !*more) break;
        fits = reader.skip().has_value();
      }
      known->second = fits && !reader.truncated();
    }
    return known->second ? text.substr(1, text.size() - 2) : std::string_view();
  }

  // --- memory: one record holds the event and the totals after it

  struct Memory {
    Event event;
    std::optional<double> allocated{}, reserved{};
  };

  bool joins_memory(const Event& e) {
    if (!memory_ || e.lane != memory_->event.lane || e.end_ns != memory_->event.end_ns ||
        e.counter.device != memory_->event.memory.device || !(e.counter.value >= 0) ||
        e.counter.value >= 0x1p63) {
      return false;
    }
    const std::string_view name = dictionary_->text(e.name);
    std::optional<double>* const total = name == kTotalAllocated  ? &memory_->allocated
                                         : name == kTotalReserved ? &memory_->reserved
                                                                  : nullptr;
    if (total == nullptr || total->has_value()) return false;
    *total = e.counter.value;
    return true;
  }

  void write_memory() {
    if (!memory_) return;
    const Event& e = memory_->event;
    Object args;
    args.number("Device Type", e.memory.device ? 1 : 0);
    args.raw("Device Id",
             e.memory.device ? fmt::format("{}", device_number(e.memory.device)) : "-1");
    if (e.memory.address != 0) args.number("Addr", e.memory.address);
    args.raw("Bytes", fmt::format("{}{}", e.kind == Kind::kFree ? "-" : "", e.memory.bytes));
    if (memory_->allocated) {
      args.number(kTotalAllocated, static_cast<std::uint64_t>(*memory_->allocated));
    }
    if (memory_->reserved) {
      args.number(kTotalReserved, static_cast<std::uint64_t>(*memory_->reserved));
    }
    Object record = head("i", "cpu_instant_event", "[memory]");
    record.string("s", "t");
    write_row(record, e.lane);
    write_time(record, e, false);
    record.raw("args", args.finish());
    memory_.reset();
    write(record);
  }

  void counter(const Event& e) {
    if (!std::isfinite(e.counter.value)) {
      ++not_exported_["counter"];
      return;
    }
    Object args;
    args.number("value", e.counter.value);
    Object record = head("C", {}, dictionary_->text(e.name));
    write_row(record, e.lane);
    write_time(record, e, false);
    record.raw("args", args.finish());
    write(record);
  }

  // --- the rest of the document

  void write_names() {
    const auto name_record = [&](std::string_view what, std::string_view name) {
      Object args, record = head("M", {}, what);
      args.string("name", name);
      record.raw("args", args.finish());
      return record;
    };
    for (std::uint32_t id = 1; id < dictionary_->process_count(); ++id) {
      const std::string_view name = dictionary_->text(dictionary_->process(ProcessId{id}).name);
      if (name.empty()) continue;
      Object record = name_record("process_name", name);
      record.raw("pid", pid(ProcessId{id})).number("tid", 0);
      write(record);
    }
    for (std::uint32_t id = 1; id < dictionary_->lane_count(); ++id) {
      const Lane lane = dictionary_->lane(LaneId{id});
      if (!lane.name || async_category(LaneId{id})) continue;
      // A row of a queue without work would be read as a thread.
      if (lane.type == LaneType::kQueue && !queues_seen_.contains(LaneId{id})) continue;
      Object record = name_record("thread_name", dictionary_->text(lane.name));
      write_row(record, LaneId{id});
      write(record);
    }
  }

  void write_members(const SourceInfo& source) {
    const auto member = [&](std::string_view key, std::string_view json) {
      out_ += ",\n";
      base::append_json_string(out_, key);
      out_ += ':';
      out_ += json;
    };
    if (base_ns_ != 0) member("baseTimeNanoseconds", fmt::format("{}", base_ns_));
    if (source.rank >= 0) {
      Object info;
      info.number("rank", source.rank).number("world_size", source.world_size);
      member("distributedInfo", info.finish());
    }
    std::string devices;
    for (std::uint32_t id = 1; id < dictionary_->device_count(); ++id) {
      const Device d = dictionary_->device(DeviceId{id});
      if (!d.name && d.multiprocessors == 0 && d.memory_bytes == 0) continue;
      Object properties;
      properties.number("id", device_number(DeviceId{id}))
          .string("name", dictionary_->text(d.name))
          .number("totalGlobalMem", d.memory_bytes)
          .number("computeMajor", d.compute_major)
          .number("computeMinor", d.compute_minor)
          .number("maxThreadsPerMultiprocessor", d.max_threads_per_multiprocessor)
          .number("warpSize", d.warp_size)
          .number("numSms", d.multiprocessors);
      devices += devices.empty() ? "\n" : ",\n";
      devices += properties.finish();
    }
    if (!devices.empty()) member("deviceProperties", "[" + devices + "]");
    constexpr std::array<std::string_view, 5> kOwn = {"displayTimeUnit", "traceEvents",
                                                      "baseTimeNanoseconds", "distributedInfo",
                                                      "deviceProperties"};
    for (const auto& [key, value] : dictionary_->facts()) {
      if (std::find(kOwn.begin(), kOwn.end(), key) == kOwn.end()) member(key, json_string(value));
    }
    if (!not_exported_.empty()) {
      std::string list;
      for (const auto& [kind, count] : not_exported_) {
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, kind);
      }
      member("notExported", json_string(list));
    }
  }

  OutputFile file_;
  const Dictionary* dictionary_ = nullptr;
  std::string out_;
  bool first_ = true;
  bool base_chosen_ = false;
  std::int64_t base_ns_ = 0;
  std::uint64_t async_id_ = 0;
  std::uint64_t arrow_id_ = 0;
  std::map<PathKey, Range> last_of_path_;  // the last operator of each call path
  Launches launched_in_;
  std::unordered_map<std::uint64_t, std::vector<Event>> waiting_;
  std::optional<Memory> memory_;  // not yet written: its totals may follow
  std::map<DeviceId, std::uint32_t> device_numbers_;
  std::set<std::uint32_t> numbers_taken_;
  std::map<ProcessId, std::string> pids_;
  std::set<std::string> pids_taken_;
  std::vector<ProcessId> owners_;
  std::set<LaneId> queues_seen_;
  std::map<StringId, bool> arguments_fit_;
  std::map<std::string, std::uint64_t> not_exported_;
};

}  // namespace

Result<std::unique_ptr<Recorder>> make_chrome_writer(std::string path,
                                                     ChromeWriterOptions options) {
  auto file = OutputFile::open(std::move(path), {.overwrite = options.overwrite});
  if (!file) return tl::unexpected(std::move(file).error());
  return std::make_unique<ChromeWriter>(std::move(*file));
}

}  // namespace pasta::trace
