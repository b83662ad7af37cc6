#include "adapters/kineto_json/record_taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/decimal.h"

namespace pasta::adapters::kineto_json {

using correlate::FlowEnd;

namespace {

std::uint64_t unsigned_arg(const Record& record, Arg arg) {
  std::uint64_t value = 0;
  return record.has(arg) && whole_number(record.arg(arg), value) ? value : 0;
}

std::uint32_t small_arg(const Record& record, Arg arg) {
  const std::uint64_t value = unsigned_arg(record, arg);
  return value <= 0xffffffff ? static_cast<std::uint32_t>(value) : 0;
}

std::optional<std::int64_t> signed_arg(const Record& record, Arg arg) {
  std::int64_t value = 0;
  if (!record.has(arg) ||
      base::parse_decimal(record.arg(arg), 0, value) != base::DecimalStatus::kExact) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

template <class Detail>
Status RecordTaker::note(Reason reason, Detail&& detail) {
  const auto place = [&] { return fmt::format("byte {}: {}", offset_, detail()); };
  problems_.add(reason, place);
  if (strict_ && reason_info(reason).severity > Severity::kNote) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", place(), reason_info(reason).help));
  }
  return {};
}

Status RecordTaker::take(Record& record, std::uint64_t offset) {
  offset_ = offset;
  if (record.is_object && !record.has_members) {  // "[ {}, ...": to begin with a comma
    if (records_ == 0) dialect_.begins_empty();
    return {};
  }
  if (!record.is_object || record.phase.size() != 1) {
    if (other_records_++ == 0) other_begins_ = record.first_member;
    return note(Reason::kNotAnEvent, [&] {
      return record.is_object ? fmt::format("phase \"{}\"", record.phase.substr(0, 20))
                              : std::string("not an object");
    });
  }
  ++records_;
  if (dialect_.active()) {
    verdict_ = dialect_.translate(record);
    if (verdict_ == Dialect::Verdict::kNoDevice) {
      PASTA_TRY(note(Reason::kMissingField, [&] {
        return fmt::format("\"{}\" does not say its device; counted as of the first", record.name);
      }));
    }
    if (verdict_ == Dialect::Verdict::kListedTwice) {
      return note(Reason::kDuplicate, [&] {
        return fmt::format("\"{}\" is listed again for all streams; counted once", record.name);
      });
    }
  }
  return take_phase(record);
}

Status RecordTaker::take_phase(const Record& record) {
  switch (record.phase.front()) {
    case 'X':
      return take_complete(record);
    case 'B':
      return take_begin(record);
    case 'E':
      return take_end(record);
    case 'b':
    case 'e':
    case 'n':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
      return take_async(record);
    case 'i':
    case 'I':
    case 'R':
      return record.name == "[memory]" ? take_memory(record) : take_instant(record);
    case 'C':
      return take_counters(record);
    case 'M':
      return take_metadata(record);
    case 's':
    case 't':
    case 'f':
      return take_flow(record);
    default:
      return note(Reason::kNotAnEvent, [&] { return fmt::format("phase \"{}\"", record.phase); });
  }
}

Status RecordTaker::finish() {
  for (auto& [key, event] : undecided_) {
    if (dialect_.is_copy(key)) {
      event.kind = Kind::kCopy;
      event.detail = static_cast<std::uint16_t>(CopyDirection::kUnknown);
      event.copy = {.bytes = kUnknownBytes, .src = 0, .dst = 0};
    }
    PASTA_TRY(assembler_.add(event));
  }
  undecided_.clear();
  PASTA_TRY(add_closed(open_.end_all(last_end_ns_), false));
  for (const auto& [name, count] : unknown_categories_) {
    problems_.add(Reason::kUnknownCategory, count, fmt::format("\"{}\"", name));
  }
  return {};
}

// --- times

Result<std::int64_t> RecordTaker::time(std::string_view text, std::string_view what) {
  std::int64_t ns = kNoTime;
  const auto detail = [&] { return fmt::format("{} is \"{}\"", what, text.substr(0, 40)); };
  switch (base::parse_decimal(text, 3, ns)) {
    case base::DecimalStatus::kExact:
      break;
    case base::DecimalStatus::kCut:
      PASTA_TRY(note(Reason::kSubNanosecond, detail));
      break;
    case base::DecimalStatus::kOutOfRange:
      PASTA_TRY(note(Reason::kTimeOutOfRange, detail));
      return kNoTime;
    case base::DecimalStatus::kInvalid:
      PASTA_TRY(note(Reason::kUnreadableNumber, detail));
      return kNoTime;
  }
  return ns;
}

Result<RecordTaker::Times> RecordTaker::instant(const Record& record) {
  if (record.time.empty()) {
    PASTA_TRY(note(Reason::kUntimed, [&] { return fmt::format("\"{}\" has no ts", record.name); }));
    return Times{};
  }
  auto at = time(record.time, "ts");
  if (!at) return tl::unexpected(std::move(at).error());
  return Times{*at, *at};
}

Result<RecordTaker::Times> RecordTaker::range(const Record& record) {
  auto times = instant(record);
  if (!times || !times->usable()) return times;
  if (record.duration.empty()) {
    PASTA_TRY(
        note(Reason::kUntimed, [&] { return fmt::format("\"{}\" has no dur", record.name); }));
    return Times{};
  }
  auto duration = time(record.duration, "dur");
  if (!duration) return tl::unexpected(std::move(duration).error());
  if (*duration == kNoTime) return Times{};
  if (*duration < 0) {
    PASTA_TRY(note(Reason::kNegativeDuration,
                   [&] { return fmt::format("\"{}\" has dur {}", record.name, record.duration); }));
    return Times{};
  }
  if (__builtin_add_overflow(times->start_ns, *duration, &times->end_ns)) {
    PASTA_TRY(note(Reason::kTimeOutOfRange, [&] { return fmt::format("\"{}\"", record.name); }));
    return Times{};
  }
  return times;
}

void RecordTaker::place(Event& event, const Times& times) {
  event.start_ns = times.start_ns;
  event.end_ns = times.end_ns;
  if (!times.usable()) event.flags |= kUntimed;
  last_end_ns_ = std::max(last_end_ns_, times.end_ns);
}

// --- complete events

const Category& RecordTaker::category(const Record& record) {
  static constexpr Category kPlain = {"", Kind::kScope, 0, false};
  static constexpr Category kLegacyKernel = {"", Kind::kKernel, 0, true};
  if (record.category.empty()) {
    // The autograd profiler's own export has no categories; its device row has this name.
    return record.pid == "CUDA functions" ? kLegacyKernel : kPlain;
  }
  if (const Category* known = find_category(record.category)) return *known;
  ++unknown_categories_[std::string(record.category)];
  return kPlain;
}

Status RecordTaker::take_complete(const Record& record) {
  const Category& what = category(record);
  Event event{};
  event.kind = what.kind;
  event.detail = what.detail;
  event.name = places_.string(record.name);
  event.lane = what.on_device ? places_.queue_lane(record) : places_.thread_lane(record);
  auto times = range(record);
  if (!times) return tl::unexpected(std::move(times).error());
  if (!what.name.empty() && times->start_ns == 0 && times->end_ns == 0) {
    // CUPTI lost the times of this record; no profiled program runs at the zero of its clock.
    PASTA_TRY(note(Reason::kUntimed,
                   [&] { return fmt::format("\"{}\" has ts 0 and dur 0", record.name); }));
    times = Times{};
  }
  place(event, *times);
  switch (what.kind) {
    case Kind::kKernel:
      fill_kernel(event, record);
      break;
    case Kind::kCopy: {
      CopyDirection direction = copy_direction(record.name);
      if (direction == CopyDirection::kUnknown) {
        direction = copy_direction(record.arg(Arg::kCopyKind));
      }
      event.detail = static_cast<std::uint16_t>(direction);
      auto size = bytes(record);
      if (!size) return tl::unexpected(std::move(size).error());
      event.copy = {.bytes = *size,
                    .src = unsigned_arg(record, Arg::kSource),
                    .dst = unsigned_arg(record, Arg::kDestination)};
      break;
    }
    case Kind::kFill: {
      auto size = bytes(record);
      if (!size) return tl::unexpected(std::move(size).error());
      event.fill.bytes = *size;
      break;
    }
    case Kind::kSync:
      event.detail = static_cast<std::uint16_t>(
          sync_target(record.has(Arg::kSyncKind) ? record.arg(Arg::kSyncKind) : record.name));
      event.sync.object = unsigned_arg(record, Arg::kWaitOnEvent);
      break;
    case Kind::kScope:
      fill_scope(event, record);
      if (what.on_device) event.flags |= kAnnotation;
      return assembler_.add(event);
    default:
      break;
  }
  if (what.on_device && record.has(Arg::kHloOperation)) PASTA_TRY(set_path_of_xla(event, record));
  auto id = correlation(record);
  if (!id) return tl::unexpected(std::move(id).error());
  event.correlation = *id;
  if (*id != 0 && what.on_device && launch_flows_wanted_) {
    launch_flows_wanted_ = false;
    assembler_.drop_launch_flows();
  }
  if (verdict_ == Dialect::Verdict::kUndecided) {
    undecided_.emplace_back(dialect_.key(), event);
    return {};
  }
  return assembler_.add(event);
}

Result<std::uint64_t> RecordTaker::bytes(const Record& record) {
  std::uint64_t size = kUnknownBytes;
  const std::string_view text = record.arg(Arg::kBytes);
  if (text.empty() || whole_number(text, size)) return size;
  PASTA_TRY(note(Reason::kUnreadableNumber,
                 [&] { return fmt::format("bytes is \"{}\"", text.substr(0, 40)); }));
  return kUnknownBytes;
}

Result<std::uint64_t> RecordTaker::correlation(const Record& record) {
  const std::string_view text = record.arg(Arg::kCorrelation);
  std::uint64_t id = 0;
  // A negative id is how some versions say none.
  if (text.empty() || text.starts_with('-')) return 0;
  if (!whole_number(text, id)) {
    PASTA_TRY(note(Reason::kUnreadableNumber,
                   [&] { return fmt::format("correlation is \"{}\"", text.substr(0, 40)); }));
    return 0;
  }
  if (id > kMaxVendorCorrelation) {
    PASTA_TRY(note(Reason::kCorrelationRange, [&] { return fmt::format("correlation {}", id); }));
    return 0;
  }
  return make_correlation(places_.file_process(), id);
}

void RecordTaker::fill_kernel(Event& event, const Record& record) {
  const auto read = [](const Triple& text, std::uint32_t(&to)[3]) {
    for (std::size_t i = 0; i < 3; ++i) {
      std::uint64_t value = 0;
      to[i] = whole_number(text[i], value) ? static_cast<std::uint32_t>(value) : 0;
    }
  };
  LaunchAttributes attributes;
  read(record.grid, event.kernel.grid);
  read(record.block, attributes.block);
  attributes.registers_per_thread = small_arg(record, Arg::kRegisters);
  // Kineto gives the sum of static and dynamic shared memory.
  attributes.dynamic_shared_bytes = small_arg(record, Arg::kSharedMemory);
  attributes.priority = static_cast<std::int32_t>(signed_arg(record, Arg::kPriority).value_or(0));
  if (record.has(Arg::kCollective)) {
    attributes.collective =
        dictionary_.collective({.name = places_.string(record.arg(Arg::kCollective)),
                                .element_type = places_.string(record.arg(Arg::kElementType)),
                                .in_elements = unsigned_arg(record, Arg::kInElements),
                                .out_elements = unsigned_arg(record, Arg::kOutElements),
                                .group = places_.string(record.arg(Arg::kGroupName)),
                                .ranks = places_.string(record.arg(Arg::kGroupRanks)),
                                .group_size = small_arg(record, Arg::kGroupSize)});
  }
  if (attributes != LaunchAttributes{}) {
    event.kernel.attributes = dictionary_.attributes(attributes);
  }
  event.kernel.graph_node = small_arg(record, Arg::kGraphNode);
}

// What XLA's profiler says itself of device work: the name that the program has for an operation,
// else "jit(f)/dot_general:" with its type, which may be none, after the colon. Of a CUDA graph it
// is not told of what it was made.
Status RecordTaker::set_path_of_xla(Event& event, const Record& record) {
  const std::uint64_t folded = dictionary_.folded_frames();
  const std::string_view module = record.arg(Arg::kHloModule);
  if (!module.empty()) {
    event.scope =
        dictionary_.frame({.name = places_.string(module), .domain = ScopeDomain::kModule});
  }
  std::string_view name = record.arg(Arg::kMetadataName);
  if (name.empty()) {
    name = record.arg(Arg::kFrameworkOperation);
    name = name.substr(0, name.rfind(':'));
  }
  if (name.empty() || name == "XlaModule") name = record.arg(Arg::kHloOperation);
  event.scope = dictionary_.frame(
      {.parent = event.scope, .name = places_.string(name), .domain = ScopeDomain::kOperator});
  if (dictionary_.folded_frames() == folded) return {};
  return note(Reason::kFramesFolded, [] { return std::string(); });
}

void RecordTaker::fill_scope(Event& event, const Record& record) {
  if (is_iteration_mark(record.name)) {
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kIteration);
  } else if (record.name.starts_with("nn.Module: ")) {
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kModule);
  }
  if (const auto sequence = signed_arg(record, Arg::kSequence); sequence && *sequence >= 0) {
    event.range.sequence = static_cast<std::uint64_t>(*sequence) + 1;
    event.range.forward_thread = small_arg(record, Arg::kForwardThread);
  }
  event.range.arguments = arguments(record);
}

// {"Input Dims":[[2,3]],"Input type":["float"]} without blanks, so that equal shapes are equal
// text however the file was indented.
StringId RecordTaker::arguments(const Record& record) {
  scratch_.clear();
  const auto append = [this](std::string_view key, std::string_view json) {
    if (json.empty()) return;
    scratch_ += scratch_.empty() ? "{\"" : ",\"";
    scratch_ += key;
    scratch_ += "\":";
    bool in_string = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const char c = json[i];
      if (in_string) {
        scratch_ += c;
        if (c == '\\' && i + 1 < json.size()) scratch_ += json[++i];
        if (c == '"') in_string = false;
      } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        scratch_ += c;
        in_string = c == '"';
      }
    }
  };
  append("Input Dims", record.arg(Arg::kInputDims));
  append("Input type", record.arg(Arg::kInputTypes));
  if (scratch_.empty()) return {};
  scratch_ += '}';
  return places_.string(scratch_);
}

// --- begins and ends

Status RecordTaker::take_begin(const Record& record) {
  Event event{};
  event.kind = Kind::kScope;
  event.detail = category(record).detail;
  event.name = places_.string(record.name);
  event.lane = places_.thread_lane(record);
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  place(event, *times);
  if (event.untimed()) return assembler_.add(event);
  open_.begin(event);
  return {};
}

Status RecordTaker::take_end(const Record& record) {
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  RangePairing::Closed closed;
  if (times->usable()) {
    last_end_ns_ = std::max(last_end_ns_, times->end_ns);
    closed = open_.end(places_.thread_lane(record), places_.string(record.name), times->end_ns);
  }
  if (closed.empty()) {
    return note(Reason::kEndWithoutBegin, [&] { return fmt::format("\"{}\"", record.name); });
  }
  return add_closed(std::move(closed), true);
}

// Ranges that are tied to an id, not to a thread: they need not nest and take no part in paths.
Status RecordTaker::take_async(const Record& record) {
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kAnnotation;
  event.name = places_.string(record.name);
  event.lane = places_.async_lane(record);
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  place(event, *times);
  const char phase = record.phase.front();
  const bool begins = phase == 'b' || phase == 'S';
  const bool ends = phase == 'e' || phase == 'F';
  if (event.untimed() || (!begins && !ends)) {
    if (!event.untimed()) event.flags |= kInstant;
    return assembler_.add(event);
  }
  // The older form (S, F) pairs by name as well.
  const bool by_name = phase == 'S' || phase == 'F';
  const std::string key = fmt::format("{}\n{}\n{}\n{}", event.lane.value, record.id, record.scope,
                                      by_name ? record.name : std::string_view());
  if (begins) {
    open_.begin_async(key, event);
    return {};
  }
  auto closed = open_.end_async(key, event.end_ns);
  if (closed.empty()) {
    return note(Reason::kEndWithoutBegin,
                [&] { return fmt::format("asynchronous \"{}\"", record.name); });
  }
  return add_closed(std::move(closed), true);
}

Status RecordTaker::add_closed(RangePairing::Closed closed, bool first_ended) {
  for (Event& event : closed) {
    const auto detail = [&] {
      return fmt::format("\"{}\" began at {} ns", dictionary_.text(event.name), event.start_ns);
    };
    if (!first_ended || &event != &closed.front()) {
      PASTA_TRY(note(Reason::kBeginWithoutEnd, detail));
    }
    if (event.end_ns < event.start_ns) {
      PASTA_TRY(note(Reason::kNegativeDuration, detail));
      event.start_ns = event.end_ns = kNoTime;
      event.flags |= kUntimed;
    }
    PASTA_TRY(assembler_.add(event));
  }
  return {};
}

// --- instants, counters, names, arrows

Status RecordTaker::take_instant(const Record& record) {
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kInstant;
  event.detail = category(record).detail;
  event.name = places_.string(record.name);
  event.lane = places_.thread_lane(record);
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  place(event, *times);
  return assembler_.add(event);
}

// One row of the caching allocator: a signed number of bytes, and since 2022 the totals after it.
Status RecordTaker::take_memory(const Record& record) {
  const auto bytes = signed_arg(record, Arg::kMemoryBytes);
  if (!bytes) {
    return note(Reason::kRecordSkipped, [] { return "a [memory] record without Bytes"; });
  }
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  const DeviceId device = unsigned_arg(record, Arg::kDeviceType) == 0
                              ? DeviceId{}
                              : places_.device(unsigned_arg(record, Arg::kDeviceId));
  Event event{};
  event.kind = *bytes < 0 ? Kind::kFree : Kind::kAlloc;
  event.lane = places_.thread_lane(record);
  place(event, *times);
  event.memory = {.bytes = *bytes < 0 ? 0 - static_cast<std::uint64_t>(*bytes)
                                      : static_cast<std::uint64_t>(*bytes),
                  .address = unsigned_arg(record, Arg::kAddress),
                  .device = device,
                  .pool = {}};
  PASTA_TRY(assembler_.add(event));

  for (const auto& [arg, name] : {std::pair(Arg::kTotalAllocated, "Total Allocated"),
                                  std::pair(Arg::kTotalReserved, "Total Reserved")}) {
    std::uint64_t total = 0;
    if (!whole_number(record.arg(arg), total)) continue;
    Event counter{};
    counter.kind = Kind::kCounter;
    counter.name = places_.string(name);
    counter.lane = event.lane;
    place(counter, *times);
    counter.counter = {.value = static_cast<double>(total),
                       .unit = places_.string("bytes"),
                       .device = device,
                       .reserved = 0};
    PASTA_TRY(assembler_.add(counter));
  }
  return {};
}

Status RecordTaker::take_counters(const Record& record) {
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  if (record.series.empty()) {
    return note(Reason::kMissingField,
                [&] { return fmt::format("counter \"{}\" without a value", record.name); });
  }
  for (const CounterSeries& series : record.series) {
    Event event{};
    event.kind = Kind::kCounter;
    event.lane = places_.thread_lane(record);
    place(event, *times);
    if (!base::parse_double(series.value, event.counter.value)) {
      PASTA_TRY(note(Reason::kUnreadableNumber, [&] {
        return fmt::format("counter \"{}\": \"{}\" is no number", record.name, series.name);
      }));
      continue;
    }
    scratch_.assign(record.name);
    if (series.name != "value") {
      scratch_ += '.';
      scratch_ += series.name;
    }
    event.name = places_.string(scratch_);
    PASTA_TRY(assembler_.add(event));
  }
  return {};
}

Status RecordTaker::take_metadata(const Record& record) {
  ++metadata_records_;
  const std::string_view name = record.arg(Arg::kMetadataName);
  if (name.empty()) return {};  // labels and sort orders
  if (record.name == "process_name") {
    places_.name_process(record, name);
    dialect_.name_process(record.pid, name);
  }
  if (record.name == "thread_name") {
    places_.name_row(record, name);
    dialect_.name_thread(record.pid, record.tid, name);
  }
  return {};
}

Status RecordTaker::take_flow(const Record& record) {
  const FlowKind kind = flow_kind(record.category);
  if (kind == FlowKind::kLaunch && !launch_flows_wanted_) return {};
  std::uint64_t id = 0;
  if (kind == FlowKind::kNone || record.phase == "t" || !whole_number(record.id, id) || id == 0 ||
      id > kMaxVendorCorrelation) {
    return note(Reason::kFlowNotKept, [&] {
      return fmt::format("\"{}\" of category \"{}\"", record.name, record.category);
    });
  }
  auto times = instant(record);
  if (!times) return tl::unexpected(std::move(times).error());
  if (!times->usable()) return {};
  const bool source = record.phase == "s";
  const bool launch = kind == FlowKind::kLaunch;
  return assembler_.add(
      FlowEnd{.type = launch ? FlowEnd::Type::kLaunch : FlowEnd::Type::kForwardBackward,
              .source = source,
              .lane = launch && !source ? places_.row_lane(record) : places_.thread_lane(record),
              .at_ns = times->start_ns,
              .id = make_correlation(places_.file_process(), id)});
}

}  // namespace pasta::adapters::kineto_json
