#include "adapters/kineto_json/kineto_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/kineto_json/vocabulary.h"
#include "base/decimal.h"
#include "base/json_reader.h"
#include "correlate/assembler.h"

namespace pasta::adapters {

using namespace kineto;

const AdapterInfo kKinetoJsonInfo = {
    .name = "kineto_json",
    .help = "PyTorch profiler (Kineto) and other Chrome JSON traces, also gzip and zip",
    .provides = Kind::kApi | Kind::kScope | Kind::kKernel | Kind::kCopy | Kind::kFill |
                Kind::kSync | Kind::kAlloc | Kind::kFree | Kind::kCounter,
    .live = false,
};

namespace {

using base::JsonCursor;
using base::JsonReader;
using base::JsonType;
using base::RecordOutcome;

// Text of the three numbers of "grid" or "block".
using Triple = std::array<std::string_view, 3>;

// One record as it stands in the file. Views into the reader's window.
struct Record {
  bool is_object = false;
  bool has_members = false;
  std::string_view phase, category, name, pid, tid, time, duration, id, scope;
  std::array<std::string_view, kArgCount> args;
  Triple grid, block;

  [[nodiscard]] std::string_view arg(Arg a) const { return args[static_cast<std::size_t>(a)]; }
  [[nodiscard]] bool has(Arg a) const { return !arg(a).empty(); }
};

void read_triple(JsonCursor& cursor, Triple& triple) {
  std::size_t n = 0;
  if (!cursor.enter_array()) return;
  while (cursor.next_element()) {
    const std::string_view number = cursor.number();
    if (n < triple.size()) triple[n] = number;
    ++n;
  }
}

void read_args(JsonCursor& cursor, Record& record) {
  if (!cursor.enter_object()) return;
  std::string_view key;
  while (cursor.next_member(key)) {
    switch (const Arg arg = find_arg(key)) {
      case Arg::kOther:
        cursor.skip();
        break;
      case Arg::kGrid:
        read_triple(cursor, record.grid);
        break;
      case Arg::kBlock:
        read_triple(cursor, record.block);
        break;
      case Arg::kInputDims:
      case Arg::kInputTypes:
        record.args[static_cast<std::size_t>(arg)] = cursor.skip();
        break;
      default:
        record.args[static_cast<std::size_t>(arg)] = cursor.string();
    }
  }
}

// The args of a counter are its series: any names, numbers as values.
struct CounterSeries {
  std::string_view name, value;
};

void read_record(JsonCursor& cursor, Record& record, std::vector<CounterSeries>& series) {
  record = {};
  series.clear();
  if (!cursor.enter_object()) return;
  record.is_object = true;
  std::string_view key;
  while (cursor.next_member(key)) {
    record.has_members = true;
    switch (find_field(key)) {
      case Field::kPhase:
        record.phase = cursor.string();
        break;
      case Field::kCategory:
        record.category = cursor.string();
        break;
      case Field::kName:
        record.name = cursor.string();
        break;
      case Field::kPid:
        record.pid = cursor.string();
        break;
      case Field::kTid:
        record.tid = cursor.string();
        break;
      case Field::kTime:
        record.time = cursor.string();
        break;
      case Field::kDuration:
        record.duration = cursor.string();
        break;
      case Field::kId:
        record.id = cursor.string();
        break;
      case Field::kScope:
        record.scope = cursor.string();
        break;
      case Field::kArgs:
        if (record.phase == "C" && cursor.enter_object()) {
          while (cursor.next_member(key)) {
            const std::string_view name = key;
            series.push_back({name, cursor.number()});
          }
        } else if (record.phase != "C") {
          read_args(cursor, record);
        }
        break;
      case Field::kOther:
        cursor.skip();
        break;
    }
  }
}

// pid and tid are numbers, numbers in quotes, or names ("Spans", "stream 7").
struct Token {
  bool is_number = false;
  std::uint64_t number = 0;
  std::string_view text;  // when not a number
  friend bool operator==(const Token&, const Token&) = default;
};
Token token_of(std::string_view text) {
  Token token;
  token.is_number = !text.empty() && base::parse_unsigned(text, token.number);
  if (!token.is_number) token.text = text;
  return token;
}
// 7 for "stream 7" and "stream 7 ".
std::optional<std::uint64_t> number_after_last_blank(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::uint64_t number = 0;
  if (!base::parse_unsigned(text.substr(text.find_last_of(' ') + 1), number)) return std::nullopt;
  return number;
}

// A small set of the last answers, newest in front: rows of one thread or queue follow each other.
template <class Key, class Value, std::size_t kSize>
class RecentlyUsed {
 public:
  template <class Make>
  Value get(const Key& key, Make&& make) {
    for (std::size_t i = 0; i < used_; ++i) {
      if (entries_[i].first == key) {
        if (i != 0) std::swap(entries_[i], entries_[i - 1]);
        return entries_[i == 0 ? 0 : i - 1].second;
      }
    }
    const Value value = make();
    if (used_ < kSize) ++used_;
    entries_[used_ - 1] = {key, value};
    return value;
  }

 private:
  std::array<std::pair<Key, Value>, kSize> entries_{};
  std::size_t used_ = 0;
};

// Names repeat: a direct-mapped table of the last ones spares hashing whole names.
class NameCache {
 public:
  StringId get(Dictionary& dictionary, std::string_view text) {
    if (text.empty()) return {};
    Entry& entry = entries_[slot(text)];
    if (entry.text != text) {
      entry.id = dictionary.string(text);
      entry.text = dictionary.text(entry.id);
    }
    return entry.id;
  }

 private:
  struct Entry {
    std::string_view text;
    StringId id{};
  };
  static std::size_t slot(std::string_view text) {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    const std::size_t n = std::min<std::size_t>(text.size(), sizeof first);
    std::memcpy(&first, text.data(), n);
    std::memcpy(&last, text.data() + text.size() - n, n);
    std::uint64_t middle = 0;
    if (text.size() >= 24) std::memcpy(&middle, text.data() + text.size() / 2, sizeof middle);
    const std::uint64_t mixed = (first ^ last * 3 ^ middle * 5 ^ text.size()) * 0x9E3779B97F4A7C15u;
    return mixed >> (64 - kBits);
  }
  static constexpr unsigned kBits = 11;
  std::array<Entry, std::size_t{1} << kBits> entries_{};
};

// What tells the lanes of one file apart.
struct LaneKey {
  bool queue = false;
  std::uint64_t device = 0, context = 0, stream = 0;
  std::uint64_t pid = 0, tid = 0;  // numbers, or ids of their text
  bool operator==(const LaneKey&) const = default;
};

class KinetoJson final : public Adapter {
 public:
  explicit KinetoJson(Input input)
      : path_(std::move(input.path)), stream_(std::move(input.stream)) {}

  [[nodiscard]] const AdapterInfo& info() const override { return kKinetoJsonInfo; }
  Status start(const Plan& plan, EventSink& sink) override;
  Result<bool> pump() override;
  Status stop() override { return {}; }

 private:
  enum class Phase : std::uint8_t { kDocument, kEvents, kEmit, kEnded };

  Result<bool> read_document();
  Result<bool> read_events();
  Status finish_reading();
  Status close_at_end(std::vector<Event>& open);

  // One record.
  Status take(std::uint64_t offset);
  Status take_complete();
  Status take_begin();
  Status take_end();
  Status take_async();
  Status take_instant();
  Status take_memory();
  Status take_counter();
  Status take_metadata();
  Status take_flow();

  // Parts of a record.
  struct Times {
    std::int64_t start_ns = kNoTime;
    std::int64_t end_ns = kNoTime;
    bool usable = false;
  };
  Result<std::optional<std::int64_t>> time(std::string_view text, std::string_view what);
  Result<Times> times();
  Status set_times(Event& event, const Times& times);
  Result<std::uint64_t> correlation(Arg arg);
  std::uint64_t unsigned_arg(Arg arg, std::uint64_t fallback = 0);
  void fill_kernel(Event& event);
  void fill_copy(Event& event);
  StringId arguments();
  const Category& category();

  // Who and where.
  StringId string(std::string_view text) { return names_.get(*dictionary_, text); }
  ProcessId process(const Token& pid);
  LaneId thread_lane(std::string_view pid, std::string_view tid);
  LaneId queue_lane();
  LaneId async_lane();
  DeviceId device(std::uint64_t ordinal, StringId name_of_unnumbered);

  // Facts beside the events.
  Status read_device_properties();
  Status read_distributed_info();
  Status read_fact(const std::string& key);
  void apply_names();

  // Counts a problem of the record at hand; in strict mode one that is more than a note is an
  // error.
  Status note(Reason reason, std::string_view detail);
  std::string place(std::string_view detail) const {
    return fmt::format("byte {}: {}", record_offset_, detail);
  }

  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  Plan plan_;
  EventSink* sink_ = nullptr;
  Dictionary* dictionary_ = nullptr;
  Problems problems_;
  std::unique_ptr<JsonReader> reader_;
  std::unique_ptr<correlate::Assembler> assembler_;
  Phase phase_ = Phase::kDocument;
  bool array_form_ = false;
  bool events_seen_ = false;         // the member traceEvents, or the array itself
  std::uint64_t event_records_ = 0;  // records that have a phase
  std::uint64_t metadata_records_ = 0;
  std::uint64_t other_records_ = 0;
  std::string other_document_;  // what a document without traceEvents seems to be

  Record record_;
  std::vector<CounterSeries> series_;
  std::uint64_t record_offset_ = 0;
  NameCache names_;
  std::string scratch_;
  std::unordered_map<std::string, std::uint64_t> unknown_categories_;

  // Device rows do not say which process they belong to, and a file is the trace of one: devices
  // and correlations of the file belong to this process of its own.
  ProcessId file_process_{};
  StringId source_{};
  RecentlyUsed<LaneKey, LaneId, 16> lanes_;
  std::vector<ProcessId> processes_;  // host processes met
  bool launch_flows_wanted_ = true;

  std::unordered_map<std::uint32_t, std::vector<Event>> open_;      // by lane
  std::unordered_map<std::string, std::vector<Event>> open_async_;  // by category and id

  struct RowName {
    bool of_process = false;
    std::string pid, tid, name;
  };
  std::vector<RowName> row_names_;
  std::unordered_map<std::string, LaneId> rows_;  // "pid\ntid" of device rows, to name their lanes

  std::optional<std::int64_t> base_ns_;
  std::int64_t last_end_ns_ = kNoTime;
  std::int32_t rank_ = kUnknownRank;
  std::int32_t world_size_ = 0;
};

Status KinetoJson::start(const Plan& plan, EventSink& sink) {
  plan_ = plan;
  sink_ = &sink;
  dictionary_ = &sink.dictionary();
  JsonReader::Options options;
  options.strict = plan.strict;
  options.on_problem = [this](const base::JsonProblem& problem) {
    problems_.add(problem.reason,
                  [&] { return fmt::format("byte {}: {}", problem.offset, problem.text); });
  };
  reader_ = std::make_unique<JsonReader>(*stream_, std::move(options));
  assembler_ = std::make_unique<correlate::Assembler>(
      *dictionary_, problems_,
      correlate::Assembler::Options{.memory_budget_bytes = plan.memory_budget_bytes,
                                    .scratch = plan.scratch});
  source_ = dictionary_->string(path_);
  file_process_ = dictionary_->process({.source = source_});
  return {};
}

Result<bool> KinetoJson::pump() {
  switch (phase_) {
    case Phase::kDocument:
      return read_document();
    case Phase::kEvents:
      return read_events();
    case Phase::kEmit: {
      auto more = assembler_->emit(*sink_, 1u << 16);
      if (!more) return tl::unexpected(std::move(more).error());
      if (!*more) {
        for (const Problem& problem : problems_.list()) sink_->report(problem);
        phase_ = Phase::kEnded;
      }
      return *more;
    }
    case Phase::kEnded:
      return false;
  }
  return false;
}

// --- the document

Result<bool> KinetoJson::read_document() {
  if (!events_seen_ && !array_form_ && reader_->offset() == 0) {
    auto type = reader_->open();
    if (!type) return tl::unexpected(std::move(type).error());
    if (*type == JsonType::kArray) {
      array_form_ = events_seen_ = true;
      phase_ = Phase::kEvents;
      return true;
    }
    if (*type != JsonType::kObject) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("{}: not a trace: the JSON document is neither an object nor an array",
                      path_));
    }
  }
  std::string key;
  for (;;) {
    auto more = reader_->next_member(key);
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) break;
    if (key == "traceEvents") {
      auto type = reader_->type();
      if (!type) return tl::unexpected(std::move(type).error());
      if (*type != JsonType::kArray) {
        return fail(ErrorCode::kBadInput, fmt::format("{}: byte {}: traceEvents is not an array",
                                                      path_, reader_->offset()));
      }
      PASTA_TRY(reader_->enter());
      events_seen_ = true;
      phase_ = Phase::kEvents;
      return true;
    }
    if (key == "deviceProperties") {
      PASTA_TRY(read_device_properties());
    } else if (key == "distributedInfo") {
      PASTA_TRY(read_distributed_info());
    } else {
      PASTA_TRY(read_fact(key));
    }
  }
  PASTA_TRY(finish_reading());
  return true;
}

Result<bool> KinetoJson::read_events() {
  // Bounded work, so that several files can be read in turns.
  for (int i = 0; i < 4096; ++i) {
    auto more = reader_->next_element();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) {
      if (array_form_) {
        PASTA_TRY(finish_reading());
      } else {
        phase_ = Phase::kDocument;
      }
      return true;
    }
    const std::uint64_t offset = reader_->offset();
    auto outcome =
        reader_->record([this](JsonCursor& cursor) { read_record(cursor, record_, series_); });
    if (!outcome) return tl::unexpected(std::move(outcome).error());
    if (*outcome == RecordOutcome::kRead) PASTA_TRY(take(offset));
  }
  return true;
}

Status KinetoJson::read_device_properties() {
  struct Properties {
    std::string_view id, name, memory, major, minor, multiprocessors, warp_size, max_threads;
  };
  std::vector<Properties> devices;
  auto outcome = reader_->record([&](JsonCursor& cursor) {
    devices.clear();
    if (!cursor.enter_array()) return;
    while (cursor.next_element()) {
      Properties p;
      if (!cursor.enter_object()) continue;
      std::string_view key;
      while (cursor.next_member(key)) {
        const std::string_view value = cursor.string();
        if (key == "id") p.id = value;
        if (key == "name") p.name = value;
        if (key == "totalGlobalMem") p.memory = value;
        if (key == "computeMajor") p.major = value;
        if (key == "computeMinor") p.minor = value;
        if (key == "numSms") p.multiprocessors = value;
        if (key == "warpSize") p.warp_size = value;
        if (key == "maxThreadsPerMultiprocessor") p.max_threads = value;
      }
      devices.push_back(p);
    }
  });
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  if (*outcome != RecordOutcome::kRead) return {};
  const auto number = [](std::string_view text) {
    std::uint64_t value = 0;
    base::parse_unsigned(text, value);
    return value;
  };
  for (const Properties& p : devices) {
    std::uint64_t id = 0;
    if (!base::parse_unsigned(p.id, id)) continue;
    Device facts;
    facts.name = dictionary_->string(p.name);
    facts.multiprocessors = static_cast<std::uint32_t>(number(p.multiprocessors));
    facts.compute_major = static_cast<std::uint32_t>(number(p.major));
    facts.compute_minor = static_cast<std::uint32_t>(number(p.minor));
    facts.max_threads_per_multiprocessor = static_cast<std::uint32_t>(number(p.max_threads));
    facts.warp_size = static_cast<std::uint32_t>(number(p.warp_size));
    facts.memory_bytes = number(p.memory);
    dictionary_->update(device(id, {}), facts);
  }
  return {};
}

Status KinetoJson::read_distributed_info() {
  std::string_view rank;
  std::string_view world_size;
  auto outcome = reader_->record([&](JsonCursor& cursor) {
    if (!cursor.enter_object()) return;
    std::string_view key;
    while (cursor.next_member(key)) {
      if (key == "rank") {
        rank = cursor.string();
      } else if (key == "world_size") {
        world_size = cursor.string();
      } else {
        cursor.skip();
      }
    }
  });
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  std::uint64_t value = 0;
  if (base::parse_unsigned(rank, value) && value < 0x7fffffff) {
    rank_ = static_cast<std::int32_t>(value);
  }
  if (base::parse_unsigned(world_size, value) && value < 0x7fffffff) {
    world_size_ = static_cast<std::int32_t>(value);
  }
  return {};
}

Status KinetoJson::read_fact(const std::string& key) {
  auto type = reader_->type();
  if (!type) return tl::unexpected(std::move(type).error());
  if (*type == JsonType::kObject || *type == JsonType::kArray) {
    if (key == "rocprofiler-sdk-tool") other_document_ = "rocprofv3 output";
    if (key == "nodes" || key == "schema") {
      other_document_ = "a PyTorch execution trace (operators and tensors, no times of the device)";
    }
    return reader_->skip();
  }
  std::string_view text;
  auto outcome = reader_->record([&](JsonCursor& cursor) { text = cursor.string(); });
  if (!outcome) return tl::unexpected(std::move(outcome).error());
  if (*outcome != RecordOutcome::kRead || text.empty()) return {};
  if (key == "baseTimeNanoseconds") {
    record_offset_ = reader_->offset();
    std::int64_t base = 0;
    switch (base::parse_decimal(text, 0, base)) {
      case base::DecimalStatus::kExact:
      case base::DecimalStatus::kCut:
        base_ns_ = base;
        break;
      default:
        return note(Reason::kUnreadableNumber,
                    fmt::format("baseTimeNanoseconds is \"{}\"", text.substr(0, 40)));
    }
    return {};
  }
  if (key == "displayTimeUnit") return {};  // of the viewer; ts and dur are microseconds always
  dictionary_->fact(key, text);
  return {};
}

Status KinetoJson::finish_reading() {
  if (!events_seen_) {
    if (reader_->truncated()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: the file ends at byte {} before any trace event", path_,
                              reader_->offset()));
    }
    return fail(
        ErrorCode::kUnsupported,
        other_document_.empty()
            ? fmt::format("{}: JSON, but not a trace: there is no \"traceEvents\" in it", path_)
            : fmt::format("{}: this is {}, not a timeline with \"traceEvents\"; "
                          "it cannot be read yet",
                          path_, other_document_));
  }
  if (event_records_ == 0 && other_records_ > 0) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: JSON, but not a trace: none of its {} records has a phase (\"ph\")", path_,
                    other_records_));
  }
  for (auto& [lane, stack] : open_) PASTA_TRY(close_at_end(stack));
  for (auto& [id, stack] : open_async_) PASTA_TRY(close_at_end(stack));
  if (plan_.strict && problems_.worst() > Severity::kNote) {
    const Problem& first = problems_.list().front();
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}: {}", path_, first.first, reason_info(first.reason).help));
  }
  for (const auto& [name, count] : unknown_categories_) {
    problems_.add(Reason::kUnknownCategory, count, fmt::format("\"{}\"", name));
  }
  apply_names();
  PASTA_TRY(assembler_->finish(base_ns_.value_or(0)));

  SourceInfo info;
  info.path = path_;
  info.format = kKinetoJsonInfo.name;
  info.rank = rank_;
  info.world_size = world_size_;
  info.first_ns = assembler_->first_ns();
  // Before baseTimeNanoseconds, times were microseconds since 1970 themselves; uptimes are smaller.
  constexpr std::int64_t kYear2001 = 1'000'000'000'000'000'000;
  info.absolute_clock = base_ns_.has_value() || info.first_ns >= kYear2001;
  sink_->describe(info);
  phase_ = Phase::kEmit;
  return {};
}

Status KinetoJson::close_at_end(std::vector<Event>& open) {
  for (Event& event : open) {
    event.end_ns = std::max(last_end_ns_, event.start_ns);
    event.flags |= kUnfinished;
    problems_.add(Reason::kBeginWithoutEnd, [&] {
      return fmt::format("\"{}\" at {} ns", dictionary_->text(event.name), event.start_ns);
    });
    PASTA_TRY(assembler_->add(event));
  }
  return {};
}

void KinetoJson::apply_names() {
  for (const RowName& row : row_names_) {
    const Token pid = token_of(row.pid);
    if (row.of_process) {
      // Kineto names a row for each device it could have seen; those that no event is of are no
      // processes.
      const bool has_events = std::any_of(processes_.begin(), processes_.end(), [&](ProcessId id) {
        const Process p = dictionary_->process(id);
        return pid.is_number ? !p.native_text && p.native_id == pid.number
                             : dictionary_->text(p.native_text) == pid.text;
      });
      if (!has_events && event_records_ > metadata_records_) continue;
      Process facts;
      const ProcessId id = process(pid);
      facts.name = dictionary_->string(row.name);
      dictionary_->update(id, facts);
    } else {
      std::string name = row.name;
      while (name.ends_with(' ')) name.pop_back();
      const auto it = rows_.find(row.pid + '\n' + row.tid);
      const LaneId lane = it != rows_.end() ? it->second : thread_lane(row.pid, row.tid);
      dictionary_->update(lane, dictionary_->string(name));
    }
  }
  if (rank_ == kUnknownRank) return;
  processes_.push_back(file_process_);
  for (const ProcessId id : processes_) {
    Process facts = dictionary_->process(id);
    facts.rank = rank_;
    facts.world_size = world_size_;
    dictionary_->update(id, facts);
  }
}

// --- who and where

ProcessId KinetoJson::process(const Token& pid) {
  Process key;
  key.source = source_;
  if (pid.is_number) {
    key.native_id = pid.number;
  } else {
    key.native_text = string(pid.text.empty() ? std::string_view("(no pid)") : pid.text);
  }
  const ProcessId id = dictionary_->process(key);
  if (std::find(processes_.begin(), processes_.end(), id) == processes_.end()) {
    processes_.push_back(id);
  }
  return id;
}

LaneId KinetoJson::thread_lane(std::string_view pid_text, std::string_view tid_text) {
  const Token pid = token_of(pid_text);
  const Token tid = token_of(tid_text);
  // Text ids lie above every id of a table, so numbers and texts do not meet in the key.
  constexpr std::uint64_t kText = std::uint64_t{1} << 63;
  const LaneKey key = {.pid = pid.is_number ? pid.number : kText + string(pid.text).value,
                       .tid = tid.is_number ? tid.number : kText + string(tid.text).value};
  return lanes_.get(key, [&] {
    Lane lane;
    lane.process = process(pid);
    if (tid.is_number) {
      lane.native_id = tid.number;
    } else {
      lane.native_text = string(tid.text);
    }
    return dictionary_->lane(lane);
  });
}

DeviceId KinetoJson::device(std::uint64_t ordinal, StringId name_of_unnumbered) {
  Device key;
  key.process = file_process_;
  key.ordinal = static_cast<std::uint32_t>(ordinal);
  key.uuid = name_of_unnumbered;
  key.type = DeviceType::kGpu;
  return dictionary_->device(key);
}

LaneId KinetoJson::queue_lane() {
  const Token pid = token_of(record_.pid);
  const Token tid = token_of(record_.tid);
  // args say it plainly; the row's pid and tid say the same in older and other writers' files.
  std::uint64_t ordinal = 0;
  StringId unnumbered{};
  if (!base::parse_unsigned(record_.arg(Arg::kDevice), ordinal)) {
    if (pid.is_number) {
      ordinal = pid.number;
    } else if (pid.text == "CUDA functions") {  // autograd profiler: the row is the device
      ordinal = tid.number;
    } else {
      unnumbered = string(pid.text);
    }
  }
  std::uint64_t stream = 0;
  if (!base::parse_unsigned(record_.arg(Arg::kStream), stream)) {
    if (pid.text == "CUDA functions") {
      stream = 0;
    } else if (tid.is_number) {
      stream = tid.number;
    } else {
      stream = number_after_last_blank(tid.text).value_or(0);
    }
  }
  const LaneKey key = {.queue = true,
                       .device = ordinal,
                       .context = unsigned_arg(Arg::kContext),
                       .stream = stream,
                       .pid = unnumbered.value};
  return lanes_.get(key, [&] {
    Lane lane;
    lane.type = LaneType::kQueue;
    lane.process = file_process_;
    lane.device = device(ordinal, unnumbered);
    lane.native_id = stream;
    const LaneId id = dictionary_->lane(lane);
    std::string row(record_.pid);
    row += '\n';
    row += record_.tid;
    rows_.emplace(std::move(row), id);
    return id;
  });
}

LaneId KinetoJson::async_lane() {
  Lane lane;
  lane.process = process(token_of(record_.pid));
  scratch_.assign("async ");
  scratch_ += record_.category;
  lane.native_text = string(scratch_);
  return dictionary_->lane(lane);
}

// --- parts of a record

Status KinetoJson::note(Reason reason, std::string_view detail) {
  problems_.add(reason, [&] { return place(detail); });
  if (plan_.strict && reason_info(reason).severity > Severity::kNote) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {}", path_, place(detail)));
  }
  return {};
}

Result<std::optional<std::int64_t>> KinetoJson::time(std::string_view text, std::string_view what) {
  std::int64_t ns = 0;
  switch (base::parse_decimal(text, 3, ns)) {
    case base::DecimalStatus::kExact:
      return ns;
    case base::DecimalStatus::kCut:
      PASTA_TRY(note(Reason::kSubNanosecond, fmt::format("{} of {} us", what, text)));
      return ns;
    case base::DecimalStatus::kOutOfRange:
      PASTA_TRY(note(Reason::kTimeOutOfRange, fmt::format("{} of {} us", what, text)));
      return std::nullopt;
    case base::DecimalStatus::kInvalid:
      PASTA_TRY(
          note(Reason::kUnreadableNumber, fmt::format("{} is \"{}\"", what, text.substr(0, 40))));
      return std::nullopt;
  }
  return std::nullopt;
}

Result<KinetoJson::Times> KinetoJson::times() {
  Times result;
  if (record_.time.empty()) {
    PASTA_TRY(note(Reason::kUntimed, fmt::format("\"{}\" has no ts", record_.name)));
    return result;
  }
  auto start = time(record_.time, "ts");
  if (!start) return tl::unexpected(std::move(start).error());
  if (!*start) return result;
  std::int64_t duration = 0;
  if (!record_.duration.empty()) {
    auto value = time(record_.duration, "dur");
    if (!value) return tl::unexpected(std::move(value).error());
    if (!*value) return result;
    duration = **value;
  }
  if (duration < 0) {
    PASTA_TRY(note(Reason::kNegativeDuration,
                   fmt::format("\"{}\" has dur {}", record_.name, record_.duration)));
    return result;
  }
  std::int64_t end = 0;
  if (**start == kNoTime || __builtin_add_overflow(**start, duration, &end)) {
    PASTA_TRY(note(Reason::kTimeOutOfRange, fmt::format("\"{}\"", record_.name)));
    return result;
  }
  result.start_ns = **start;
  result.end_ns = end;
  result.usable = true;
  return result;
}

Status KinetoJson::set_times(Event& event, const Times& times) {
  event.start_ns = times.start_ns;
  event.end_ns = times.end_ns;
  if (!times.usable) {
    event.flags |= kUntimed;
  } else {
    last_end_ns_ = std::max(last_end_ns_, times.end_ns);
  }
  return {};
}

Result<std::uint64_t> KinetoJson::correlation(Arg arg) {
  std::uint64_t id = 0;
  const std::string_view text = record_.arg(arg);
  if (text.empty()) return 0;
  if (!base::parse_unsigned(text, id)) {
    // -1 is how some versions say none.
    if (!text.starts_with('-')) {
      PASTA_TRY(note(Reason::kUnreadableNumber,
                     fmt::format("correlation is \"{}\"", text.substr(0, 40))));
    }
    return 0;
  }
  if (id > kMaxVendorCorrelation) {
    PASTA_TRY(note(Reason::kCorrelationRange, fmt::format("correlation {}", id)));
    return 0;
  }
  return make_correlation(file_process_, id);
}

std::uint64_t KinetoJson::unsigned_arg(Arg arg, std::uint64_t fallback) {
  std::uint64_t value = 0;
  return record_.has(arg) && base::parse_unsigned(record_.arg(arg), value) ? value : fallback;
}

void KinetoJson::fill_kernel(Event& event) {
  const auto triple = [](const Triple& text, std::uint32_t(&to)[3]) {
    for (std::size_t i = 0; i < 3; ++i) {
      std::uint64_t value = 0;
      to[i] = base::parse_unsigned(text[i], value) ? static_cast<std::uint32_t>(value) : 0;
    }
  };
  LaunchAttributes attributes;
  triple(record_.grid, event.kernel.grid);
  triple(record_.block, attributes.block);
  attributes.registers_per_thread = static_cast<std::uint32_t>(unsigned_arg(Arg::kRegisters));
  // Kineto gives the sum of static and dynamic shared memory.
  attributes.dynamic_shared_bytes = static_cast<std::uint32_t>(unsigned_arg(Arg::kSharedMemory));
  std::int64_t priority = 0;
  if (record_.has(Arg::kPriority) && base::parse_decimal(record_.arg(Arg::kPriority), 0,
                                                         priority) == base::DecimalStatus::kExact) {
    attributes.priority = static_cast<std::int32_t>(priority);
  }
  if (record_.has(Arg::kCollective)) {
    Collective c;
    c.name = string(record_.arg(Arg::kCollective));
    c.element_type = string(record_.arg(Arg::kElementType));
    c.in_elements = unsigned_arg(Arg::kInElements);
    c.out_elements = unsigned_arg(Arg::kOutElements);
    c.group = string(record_.arg(Arg::kGroupName));
    c.ranks = string(record_.arg(Arg::kGroupRanks));
    c.group_size = static_cast<std::uint32_t>(unsigned_arg(Arg::kGroupSize));
    attributes.collective = dictionary_->collective(c);
  }
  if (attributes != LaunchAttributes{}) {
    event.kernel.attributes = dictionary_->attributes(attributes);
  }
  event.kernel.graph_node = static_cast<std::uint32_t>(unsigned_arg(Arg::kGraphNode));
}

void KinetoJson::fill_copy(Event& event) {
  CopyDirection direction = copy_direction(record_.name);
  if (direction == CopyDirection::kUnknown) direction = copy_direction(record_.arg(Arg::kCopyKind));
  event.detail = static_cast<std::uint16_t>(direction);
  event.copy.bytes = unsigned_arg(Arg::kBytes, kUnknownBytes);
  event.copy.src = unsigned_arg(Arg::kSource);
  event.copy.dst = unsigned_arg(Arg::kDestination);
}

// {"Input Dims":[[2,3]],"Input type":["float"]} without blanks, so that equal shapes are equal
// text however the file was indented.
StringId KinetoJson::arguments() {
  if (!record_.has(Arg::kInputDims) && !record_.has(Arg::kInputTypes)) return {};
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
  append("Input Dims", record_.arg(Arg::kInputDims));
  append("Input type", record_.arg(Arg::kInputTypes));
  scratch_ += '}';
  return string(scratch_);
}

const Category& KinetoJson::category() {
  static constexpr Category kPlain = {"", Kind::kScope, 0, false};
  static constexpr Category kLegacyKernel = {"", Kind::kKernel, 0, true};
  if (record_.category.empty()) {
    // The autograd profiler's own export has no categories; its device row has this name.
    return record_.pid == "CUDA functions" ? kLegacyKernel : kPlain;
  }
  if (const Category* known = find_category(record_.category)) return *known;
  ++unknown_categories_[std::string(record_.category)];
  return kPlain;
}

// --- records by phase

Status KinetoJson::take(std::uint64_t offset) {
  record_offset_ = offset;
  if (!record_.is_object) {
    ++other_records_;
    return note(Reason::kNotAnEvent, "not an object");
  }
  if (!record_.has_members) return {};  // "[ {}, ...": some writers begin so, to have a comma
  if (record_.phase.size() != 1) {
    ++other_records_;
    return note(Reason::kNotAnEvent, fmt::format("phase \"{}\"", record_.phase.substr(0, 20)));
  }
  ++event_records_;
  switch (record_.phase.front()) {
    case 'X':
      return take_complete();
    case 'B':
      return take_begin();
    case 'E':
      return take_end();
    case 'b':
    case 'e':
    case 'n':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
      return take_async();
    case 'i':
    case 'I':
    case 'R':
      return take_instant();
    case 'C':
      return take_counter();
    case 'M':
      return take_metadata();
    case 's':
    case 't':
    case 'f':
      return take_flow();
    default:
      return note(Reason::kNotAnEvent, fmt::format("phase \"{}\"", record_.phase));
  }
}

Status KinetoJson::take_complete() {
  const Category& what = category();
  Event event{};
  event.kind = what.kind;
  event.detail = what.detail;
  event.name = string(record_.name);
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  if (what.name.data() != nullptr && !what.name.empty() && when->usable && when->start_ns == 0 &&
      when->end_ns == 0) {
    // CUPTI lost the times of this record; no profiled program runs at the zero of its clock.
    PASTA_TRY(note(Reason::kUntimed, fmt::format("\"{}\" has ts 0 and dur 0", record_.name)));
    *when = {};
  }
  PASTA_TRY(set_times(event, *when));
  if (what.on_device) {
    event.lane = queue_lane();
  } else {
    event.lane = thread_lane(record_.pid, record_.tid);
  }
  switch (what.kind) {
    case Kind::kKernel:
      fill_kernel(event);
      break;
    case Kind::kCopy:
      fill_copy(event);
      break;
    case Kind::kFill:
      event.fill.bytes = unsigned_arg(Arg::kBytes, kUnknownBytes);
      break;
    case Kind::kSync: {
      const std::string_view target =
          record_.has(Arg::kSyncKind) ? record_.arg(Arg::kSyncKind) : record_.name;
      event.detail = static_cast<std::uint16_t>(sync_target(target));
      event.sync.object = unsigned_arg(Arg::kWaitOnEvent);
      break;
    }
    case Kind::kScope:
      if (what.on_device) {
        event.flags |= kAnnotation;
      } else {
        std::int64_t sequence = 0;
        if (record_.has(Arg::kSequence) &&
            base::parse_decimal(record_.arg(Arg::kSequence), 0, sequence) ==
                base::DecimalStatus::kExact &&
            sequence >= 0) {
          event.range.sequence = static_cast<std::uint64_t>(sequence) + 1;
          event.range.forward_thread =
              static_cast<std::uint32_t>(unsigned_arg(Arg::kForwardThread));
        }
        event.range.arguments = arguments();
      }
      if (is_iteration_mark(record_.name)) {
        event.detail = static_cast<std::uint16_t>(ScopeDomain::kIteration);
      } else if (record_.name.starts_with("nn.Module: ")) {
        event.detail = static_cast<std::uint16_t>(ScopeDomain::kModule);
      }
      break;
    default:
      break;
  }
  if (what.kind != Kind::kScope) {
    auto id = correlation(Arg::kCorrelation);
    if (!id) return tl::unexpected(std::move(id).error());
    event.correlation = *id;
    if (*id != 0 && what.on_device && launch_flows_wanted_) {
      launch_flows_wanted_ = false;
      assembler_->drop_launch_flows();
    }
  }
  return assembler_->add(event);
}

Status KinetoJson::take_begin() {
  Event event{};
  event.kind = Kind::kScope;
  event.detail = category().detail;
  event.name = string(record_.name);
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  event.lane = thread_lane(record_.pid, record_.tid);
  if (!when->usable) {
    PASTA_TRY(set_times(event, *when));
    return assembler_->add(event);
  }
  last_end_ns_ = std::max(last_end_ns_, when->start_ns);
  event.start_ns = event.end_ns = when->start_ns;
  open_[event.lane.value].push_back(event);
  return {};
}

Status KinetoJson::take_end() {
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  const LaneId lane = thread_lane(record_.pid, record_.tid);
  auto& stack = open_[lane.value];
  // An end without a name ends the innermost range; one with a name ends the innermost of that
  // name, and what was opened inside it and never ended ends with it.
  std::size_t at = stack.size();
  if (record_.name.empty()) {
    if (at != 0) --at;
  } else {
    const StringId name = string(record_.name);
    while (at != 0 && stack[at - 1].name != name) --at;
    at = at == 0 ? stack.size() : at - 1;
  }
  if (at == stack.size() || !when->usable) {
    return note(Reason::kEndWithoutBegin, record_.name.empty()
                                              ? std::string("an end without a name")
                                              : fmt::format("\"{}\"", record_.name));
  }
  last_end_ns_ = std::max(last_end_ns_, when->start_ns);
  for (std::size_t i = at; i < stack.size(); ++i) {
    Event& event = stack[i];
    event.end_ns = when->start_ns;
    if (i != at) {
      event.flags |= kUnfinished;
      PASTA_TRY(
          note(Reason::kBeginWithoutEnd,
               fmt::format("\"{}\" at {} ns", dictionary_->text(event.name), event.start_ns)));
    }
    if (event.end_ns < event.start_ns) {
      PASTA_TRY(note(Reason::kNegativeDuration,
                     fmt::format("\"{}\" ends before it begins", dictionary_->text(event.name))));
      event.start_ns = event.end_ns = kNoTime;
      event.flags |= kUntimed;
    }
    PASTA_TRY(assembler_->add(event));
  }
  stack.resize(at);
  return {};
}

// Ranges that are tied to an id, not to a thread. They need not nest, so they lie on a lane of
// their category and take no part in call paths.
Status KinetoJson::take_async() {
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kAnnotation;
  event.name = string(record_.name);
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  event.lane = async_lane();
  const char phase = record_.phase.front();
  if (!when->usable || phase == 'n' || phase == 'T' || phase == 'p') {
    if (when->usable) {
      event.flags |= kInstant;
      when->end_ns = when->start_ns;
    }
    PASTA_TRY(set_times(event, *when));
    return assembler_->add(event);
  }
  last_end_ns_ = std::max(last_end_ns_, when->start_ns);
  std::string key = fmt::format("{}\n{}\n{}", event.lane.value, record_.id, record_.scope);
  if (phase == 'S' || phase == 'F') {
    key += '\n';
    key += record_.name;
  }
  auto& stack = open_async_[key];
  if (phase == 'b' || phase == 'S') {
    event.start_ns = event.end_ns = when->start_ns;
    stack.push_back(event);
    return {};
  }
  if (stack.empty()) {
    return note(Reason::kEndWithoutBegin, fmt::format("asynchronous \"{}\"", record_.name));
  }
  event = stack.back();
  stack.pop_back();
  if (stack.empty()) open_async_.erase(key);
  event.end_ns = when->start_ns;
  if (event.end_ns < event.start_ns) {
    PASTA_TRY(
        note(Reason::kNegativeDuration, fmt::format("\"{}\" ends before it begins", record_.name)));
    event.start_ns = event.end_ns = kNoTime;
    event.flags |= kUntimed;
  }
  return assembler_->add(event);
}

Status KinetoJson::take_instant() {
  if (record_.name == "[memory]") return take_memory();
  Event event{};
  event.kind = Kind::kScope;
  event.flags = kInstant;
  event.detail = category().detail;
  event.name = string(record_.name);
  record_.duration = {};
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  PASTA_TRY(set_times(event, *when));
  event.lane = thread_lane(record_.pid, record_.tid);
  return assembler_->add(event);
}

// One row of the caching allocator: a signed number of bytes, and since 2022 the totals after it.
Status KinetoJson::take_memory() {
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  std::int64_t bytes = 0;
  if (base::parse_decimal(record_.arg(Arg::kMemoryBytes), 0, bytes) !=
      base::DecimalStatus::kExact) {
    return note(Reason::kMissingField, "a [memory] record without Bytes");
  }
  DeviceId where{};
  if (unsigned_arg(Arg::kDeviceType) != 0) where = device(unsigned_arg(Arg::kDeviceId), {});
  Event event{};
  event.kind = bytes < 0 ? Kind::kFree : Kind::kAlloc;
  event.lane = thread_lane(record_.pid, record_.tid);
  PASTA_TRY(set_times(event, *when));
  event.memory.bytes =
      bytes < 0 ? 0 - static_cast<std::uint64_t>(bytes) : static_cast<std::uint64_t>(bytes);
  event.memory.address = unsigned_arg(Arg::kAddress);
  event.memory.device = where;
  PASTA_TRY(assembler_->add(event));

  for (const auto& [arg, name] : {std::pair(Arg::kTotalAllocated, "Total Allocated"),
                                  std::pair(Arg::kTotalReserved, "Total Reserved")}) {
    std::uint64_t total = 0;
    if (!record_.has(arg) || !base::parse_unsigned(record_.arg(arg), total)) continue;
    Event counter{};
    counter.kind = Kind::kCounter;
    counter.name = string(name);
    counter.lane = event.lane;
    counter.start_ns = event.start_ns;
    counter.end_ns = event.end_ns;
    counter.flags = event.flags;
    counter.counter.value = static_cast<double>(total);
    counter.counter.unit = string("bytes");
    counter.counter.device = where;
    PASTA_TRY(assembler_->add(counter));
  }
  return {};
}

Status KinetoJson::take_counter() {
  record_.duration = {};
  auto when = times();
  if (!when) return tl::unexpected(std::move(when).error());
  const LaneId lane = thread_lane(record_.pid, record_.tid);
  for (const CounterSeries& one : series_) {
    Event event{};
    event.kind = Kind::kCounter;
    event.lane = lane;
    PASTA_TRY(set_times(event, *when));
    if (!base::parse_double(one.value, event.counter.value)) {
      PASTA_TRY(note(Reason::kUnreadableNumber,
                     fmt::format("counter \"{}\" is no number", record_.name)));
      continue;
    }
    if (one.name == "value") {
      event.name = string(record_.name);
    } else {
      scratch_.assign(record_.name);
      scratch_ += '.';
      scratch_ += one.name;
      event.name = string(scratch_);
    }
    PASTA_TRY(assembler_->add(event));
  }
  return {};
}

Status KinetoJson::take_metadata() {
  ++metadata_records_;
  const std::string_view name = record_.arg(Arg::kMetadataName);
  if (name.empty()) return {};  // labels and sort orders
  if (record_.name == "process_name" || record_.name == "thread_name") {
    row_names_.push_back({.of_process = record_.name == "process_name",
                          .pid = std::string(record_.pid),
                          .tid = std::string(record_.tid),
                          .name = std::string(name)});
  }
  return {};
}

Status KinetoJson::take_flow() {
  const FlowKind kind = flow_kind(record_.category);
  if (kind == FlowKind::kLaunch && !launch_flows_wanted_) return {};
  const bool source = record_.phase.front() == 's';
  std::uint64_t id = 0;
  if (kind == FlowKind::kNone || record_.phase.front() == 't' ||
      !base::parse_unsigned(record_.id, id) || id == 0 || id > kMaxVendorCorrelation) {
    return note(Reason::kFlowNotKept,
                fmt::format("\"{}\" of category \"{}\"", record_.name, record_.category));
  }
  auto at = time(record_.time, "ts");
  if (!at) return tl::unexpected(std::move(at).error());
  if (!*at) return {};
  correlate::FlowEnd flow;
  flow.type = kind == FlowKind::kLaunch ? correlate::FlowEnd::Type::kLaunch
                                        : correlate::FlowEnd::Type::kForwardBackward;
  flow.source = source;
  flow.at_ns = **at;
  flow.id = make_correlation(file_process_, id);
  // The far end of a launch lies on the device's row; its lane is known by that row.
  if (kind == FlowKind::kLaunch && !source) {
    const std::string row = std::string(record_.pid) + '\n' + std::string(record_.tid);
    const auto it = rows_.find(row);
    flow.lane = it != rows_.end() ? it->second : queue_lane();
  } else {
    flow.lane = thread_lane(record_.pid, record_.tid);
  }
  return assembler_->add(flow);
}

}  // namespace

bool sniff_kineto_json(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && (text[first] == '{' || text[first] == '[');
}

Result<std::unique_ptr<Adapter>> open_kineto_json(Input input) {
  return std::make_unique<KinetoJson>(std::move(input));
}

}  // namespace pasta::adapters
