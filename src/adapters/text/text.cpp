#include "adapters/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/text/tokens.h"
#include "trace/common_source.h"
#include "trace/format.h"
#include "trace/table_import.h"
#include "trace/text_words.h"

namespace pasta::adapters::text {
namespace {

constexpr std::string_view kVersionWord = "pasta-text";
constexpr std::size_t kPumpEvents = 16384;
constexpr std::size_t kPumpLines = 4096;

// Gives a stream line by line.
class Lines {
 public:
  explicit Lines(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}
  // False at the end. `line` is without its end and valid until the next call.
  Result<bool> next(std::string_view& line) {
    for (std::size_t searched = 0;;) {
      const std::string_view rest = std::string_view(buffer_).substr(begin_);
      const std::size_t end = rest.find('\n', searched);
      if (end != rest.npos || (ended_ && !rest.empty())) {
        line = rest.substr(0, end);
        begin_ = std::min(buffer_.size(), begin_ + line.size() + 1);
        ++number_;
        return true;
      }
      if (ended_) return false;
      searched = rest.size();
      buffer_.erase(0, std::exchange(begin_, 0));
      const std::size_t kept = buffer_.size();
      buffer_.resize(kept + kStepBytes);
      auto got = stream_->read(std::as_writable_bytes(std::span(buffer_)).subspan(kept));
      if (!got) return tl::unexpected(std::move(got).error());
      ended_ = *got < kStepBytes;
      buffer_.resize(kept + *got);
    }
  }
  // Of the line last given, from 1.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] std::string_view damage() const { return stream_->damage(); }

 private:
  static constexpr std::size_t kStepBytes = std::size_t{1} << 16;
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::uint64_t number_ = 0;
  bool ended_ = false;
};

template <class Integer>
bool parse(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

// Handles of one table.
template <class AnyId>
class Handles {
 public:
  explicit Handles(std::string_view noun) : noun_(noun) {}

  // The handle that a row begins with.
  Token name(Tokens& tokens) const {
    Token token = tokens.word(fmt::format("a name for this {}", noun_));
    if (tokens.ok() && (token.quoted || token.value == "untimed" || !begins_well(token.value))) {
      tokens.fail(token.column,
                  fmt::format("expected a name for this {} that begins with a letter", noun_));
    }
    return token;
  }
  void define(Tokens& tokens, const Token& handle, AnyId id) {
    if (!tokens.ok()) return;
    const auto [known, is_new] = ids_.emplace(handle.value, id);
    if (!is_new && known->second != id) {
      tokens.fail(handle.column, fmt::format("`{}` is another {} already", handle.value, noun_));
    }
  }
  AnyId find(Tokens& tokens, std::size_t column, const std::string& handle) const {
    if (!tokens.ok()) return {};
    const auto found = ids_.find(handle);
    if (found != ids_.end()) return found->second;
    tokens.fail(column, fmt::format("no {} above this line is called `{}`", noun_, handle));
    return {};
  }
  // None when the line does not have `key`.
  AnyId field(Tokens& tokens, std::string_view key) const {
    const Token* token = tokens.find(key);
    return token == nullptr ? AnyId{} : find(tokens, token->column, token->value);
  }

 private:
  static bool begins_well(std::string_view word) {
    const char c = word.empty() ? '\0' : word[0];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  std::string_view noun_;
  std::unordered_map<std::string, AnyId> ids_;
};

class TextFile final : public Adapter {
 public:
  explicit TextFile(Input input) : path_(std::move(input.path)), lines_(std::move(input.stream)) {}

  const AdapterInfo& info() const override { return kInfo; }

  Status start(const Plan& plan, EventSink& sink) override {
    strict_ = plan.strict;
    sink_ = &sink;
    process_import_.emplace(sink.dictionary(), path_);
    return read_version();
  }

  Result<bool> pump() override {
    if (!read_) {
      PASTA_TRY(read_lines());
      return true;
    }
    push_events();
    return pushed_ < events_.size();
  }

  Status stop() override { return {}; }

 private:
  struct SourcedProblem {
    std::size_t source;  // number of source lines above
    Problem problem;
  };

  std::string place(std::uint64_t line, std::size_t column, std::string_view what) const {
    return fmt::format("line {}, column {}: {}", line, column, what);
  }

  Status read_version() {
    for (std::string_view line;;) {
      auto more = lines_.next(line);
      if (!more) return tl::unexpected(std::move(more).error());
      Tokens tokens(*more ? line : std::string_view(kVersionWord));
      if (*more && tokens.ok() && tokens.peek().empty()) continue;  // blank, or a comment
      const Token word = tokens.word("`pasta-text 1`");
      const Token version = tokens.word("the version of the text form, 1");
      tokens.finish();
      if (!tokens.ok() || word.value != kVersionWord) {
        return fail(ErrorCode::kBadInput,
                    fmt::format("{}:{}:1: is no text trace: expected `{}` as the first line", path_,
                                lines_.number(), trace::kTextHeader));
      }
      if (version.value == "1") return {};
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: written in text form {}; this pastaprof reads form 1", path_,
                              version.value));
    }
  }

  Status read_lines() {
    for (std::size_t i = 0; i < kPumpLines; ++i) {
      std::string_view line;
      auto more = lines_.next(line);
      if (!more) return tl::unexpected(std::move(more).error());
      if (!*more) return finish_reading();
      Tokens tokens(line);
      if (tokens.ok()) read_line(tokens);
      if (tokens.ok()) continue;
      if (strict_) {
        return fail(ErrorCode::kBadInput, fmt::format("{}:{}:{}: {}", path_, lines_.number(),
                                                      tokens.error_column(), tokens.error()));
      }
      problems_.add(Reason::kRecordSkipped,
                    [&] { return place(lines_.number(), tokens.error_column(), tokens.error()); });
    }
    return {};
  }

  // A dump is in the order of its trace already, and keeps it. What was written by hand is put in
  // order: by end, inner ranges before the outer ones that end with them.
  Status finish_reading() {
    read_ = true;
    const auto earlier = [](const Event& a, const Event& b) { return a.end_ns < b.end_ns; };
    if (!std::is_sorted(events_.begin(), events_.end(), earlier)) sort_events();
    if (!lines_.damage().empty()) {
      const std::string damage(lines_.damage());
      if (strict_) return fail(ErrorCode::kBadInput, fmt::format("{}: {}", path_, damage));
      problems_.add(Reason::kTruncated, 1, damage);
    }
    const bool several = front_sources_ > 1;
    describe(several);
    for (SourcedProblem& told : told_problems_) {
      if (several) {
        sinks_[std::max<std::size_t>(told.source, 1) - 1]->report(told.problem);
        continue;
      }
      if (sources_.size() > 1 && told.source > 0) {
        const SourceInfo& source = sources_[told.source - 1];
        told.problem.first =
            (source.label.empty() ? source.path : source.label) + ": " + told.problem.first;
      }
      sink_->report(told.problem);
    }
    for (const Problem& problem : problems_.list()) sink_->report(problem);
    return {};
  }

  void sort_events() {
    std::vector<std::size_t> order(events_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](std::size_t x, std::size_t y) {
      const Event &a = events_[x], &b = events_[y];
      return std::tie(a.end_ns, b.start_ns) < std::tie(b.end_ns, a.start_ns);
    });
    std::vector<Event> events;
    std::vector<std::uint32_t> sources;
    for (const std::size_t i : order) {
      events.push_back(events_[i]);
      if (!source_of_.empty()) sources.push_back(source_of_[i]);
    }
    events_ = std::move(events);
    source_of_ = std::move(sources);
  }

  void describe(bool several) {
    if (!several) {
      sink_->describe(describe_whole());
      sinks_ = {sink_};
      return;
    }
    for (SourceInfo info : std::span(sources_).first(front_sources_)) {
      info.path = fmt::format("{}:{}", path_, info.path);
      if (info.first_ns == kNoTime) info.first_ns = first_start(sinks_.size() + 1);
      if (sinks_.empty()) {
        sink_->describe(info);
        sinks_ = {sink_};
      } else {
        sinks_.push_back(&sink_->add_source(info));
      }
    }
  }

  // The earliest start of a source, from 1; of all when 0.
  std::int64_t first_start(std::size_t source) const {
    std::int64_t first = kNoTime;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const Event& event = events_[i];
      if (event.untimed() || (source > 0 && source_of_[i] != source)) continue;
      if (first == kNoTime || event.start_ns < first) first = event.start_ns;
    }
    return first;
  }

  SourceInfo describe_whole() const {
    SourceInfo info = trace::common_source(sources_);
    info.path = path_;
    info.format = kInfo.name;
    if (sources_.empty()) {
      info.rank = rank_.value_or(kUnknownRank);
      info.world_size = world_size_;
    }
    if (info.first_ns == kNoTime) info.first_ns = first_start(0);
    return info;
  }

  void push_events() {
    const std::size_t end = std::min(events_.size(), pushed_ + kPumpEvents);
    const bool several = sinks_.size() > 1;
    while (pushed_ < end) {
      const std::size_t begin = pushed_;
      EventSink* sink = several ? sinks_[source_of_[begin] - 1] : sink_;
      while (pushed_ < end && !has_blob(events_[pushed_]) &&
             (!several || source_of_[pushed_] == source_of_[begin])) {
        ++pushed_;
      }
      if (begin < pushed_) {
        sink->push(std::span<const Event>(events_).subspan(begin, pushed_ - begin));
      } else {
        Event event = events_[pushed_++];
        const std::vector<std::byte>& blob = blobs_[event.device.blob.value - 1];
        event.device.blob = {};
        sink->push(event, blob);
      }
    }
    if (pushed_ == 0) return;
    for (EventSink* sink : sinks_) sink->advance(events_[pushed_ - 1].end_ns);
  }
  static bool has_blob(const Event& e) { return e.kind == Kind::kDevice && e.device.blob; }

  Dictionary& dictionary() { return sink_->dictionary(); }
  StringId text_field(Tokens& tokens, std::string_view key) {
    std::string text;
    tokens.text(key, text);
    return dictionary().string(text);
  }

  void read_line(Tokens& tokens) {
    if (tokens.peek().empty()) {
      tokens.finish();  // a blank line, or one that begins oddly
      return;
    }
    const Token first = tokens.word("a row or an event");
    Kind kind{};
    const std::string& word = first.value;
    const bool times_follow = is_time(tokens.peek());
    if (word == "process") {
      process(tokens);
    } else if (word == "device" && !times_follow) {
      device(tokens);
    } else if (word == "lane") {
      lane(tokens);
    } else if (word == "frame") {
      frame(tokens);
    } else if (word == "collective") {
      collective(tokens);
    } else if (word == "blob") {
      blob(tokens);
    } else if (word == "fact") {
      fact(tokens);
    } else if (word == "source") {
      source(tokens);
    } else if (word == "problem") {
      problem(tokens);
    } else if (kind_from_name(word, kind)) {
      event(tokens, kind);
    } else {
      tokens.fail(first.column, fmt::format("expected a table (process, device, lane, frame, "
                                            "collective, blob, fact, source, problem) or a kind of "
                                            "event, not `{}`",
                                            word));
    }
  }

  static bool is_time(std::string_view word) {
    return word == "untimed" || (!word.empty() && (word[0] == '-' || word[0] == '+' ||
                                                   (word[0] >= '0' && word[0] <= '9')));
  }

  void process(Tokens& tokens) {
    const Token handle = processes_.name(tokens);
    Process p;
    tokens.number("id", p.native_id);
    p.native_text = text_field(tokens, "text");
    p.source = text_field(tokens, "source");
    p.name = text_field(tokens, "name");
    p.host = text_field(tokens, "host");
    tokens.number("rank", p.rank);
    tokens.number("world_size", p.world_size);
    tokens.finish();
    if (!tokens.ok()) return;
    processes_.define(tokens, handle, process_import_->import(p));
    if (p.rank != kUnknownRank) {
      // Only what all processes agree on can be said of the file.
      rank_ = !rank_ || *rank_ == p.rank ? p.rank : kUnknownRank;
      world_size_ = p.world_size;
    }
  }

  void device(Tokens& tokens) {
    const Token handle = devices_.name(tokens);
    Device d;
    d.process = processes_.field(tokens, "process");
    tokens.number("ordinal", d.ordinal);
    d.uuid = text_field(tokens, "uuid");
    if (const Token* type = tokens.find("type")) {
      d.type = static_cast<DeviceType>(
          tokens.word_or_number(*type, trace::kDeviceTypeWords,
                                static_cast<std::uint32_t>(DeviceType::kAccelerator) + 1));
    }
    d.name = text_field(tokens, "name");
    tokens.number("multiprocessors", d.multiprocessors);
    std::array<std::uint64_t, 2> compute{};
    tokens.numbers("compute", '.', compute);
    d.compute_major = static_cast<std::uint32_t>(compute[0]);
    d.compute_minor = static_cast<std::uint32_t>(compute[1]);
    tokens.number("max_threads", d.max_threads_per_multiprocessor);
    tokens.number("warp_size", d.warp_size);
    tokens.number("memory_bytes", d.memory_bytes);
    tokens.finish();
    if (tokens.ok()) devices_.define(tokens, handle, trace::import_device(dictionary(), d));
  }

  void lane(Tokens& tokens) {
    const Token handle = lanes_.name(tokens);
    const Token type = tokens.word("`thread` or `queue`");
    Lane l;
    l.type = static_cast<LaneType>(tokens.word_or_number(type, trace::kLaneTypeWords, 2));
    l.process = processes_.field(tokens, "process");
    l.device = devices_.field(tokens, "device");
    tokens.number("context", l.context);
    tokens.number("id", l.native_id);
    l.native_text = text_field(tokens, "text");
    l.name = text_field(tokens, "name");
    tokens.finish();
    if (tokens.ok()) lanes_.define(tokens, handle, trace::import_lane(dictionary(), l));
  }

  void frame(Tokens& tokens) {
    const Token handle = frames_.name(tokens);
    Frame f;
    f.parent = frames_.field(tokens, "in");
    f.name = dictionary().string(tokens.quoted("the name of the frame"));
    if (!tokens.peek().empty()) {
      const Token domain = tokens.word("the domain of the frame");
      f.domain = static_cast<ScopeDomain>(tokens.word_or_number(
          domain, trace::kScopeDomainWords, static_cast<std::uint32_t>(ScopeDomain::kRuntime) + 1));
    }
    tokens.finish();
    if (tokens.ok()) frames_.define(tokens, handle, dictionary().frame(f));
  }

  void collective(Tokens& tokens) {
    const Token handle = collectives_.name(tokens);
    Collective c;
    c.name = dictionary().string(tokens.quoted("the name of the collective"));
    c.element_type = text_field(tokens, "element_type");
    tokens.number("in_elements", c.in_elements);
    tokens.number("out_elements", c.out_elements);
    c.group = text_field(tokens, "group");
    c.ranks = text_field(tokens, "ranks");
    tokens.number("group_size", c.group_size);
    tokens.finish();
    if (tokens.ok()) collectives_.define(tokens, handle, dictionary().collective(c));
  }

  void blob(Tokens& tokens) {
    const Token handle = blob_names_.name(tokens);
    const Token token = tokens.word("the bytes in hexadecimal");
    tokens.finish();
    std::vector<std::byte> bytes(token.value.size() / 2);
    bool good = token.value.size() % 2 == 0;
    for (std::size_t i = 0; good && i < bytes.size(); ++i) {
      std::uint8_t value = 0;
      const char* const at = token.value.data() + 2 * i;
      const auto [end, error] = std::from_chars(at, at + 2, value, 16);
      good = error == std::errc{} && end == at + 2;
      bytes[i] = std::byte{value};
    }
    if (!good) tokens.fail(token.column, "expected pairs of hexadecimal digits");
    if (!tokens.ok()) return;
    blobs_.push_back(std::move(bytes));
    blob_names_.define(tokens, handle, BlobId{static_cast<std::uint32_t>(blobs_.size())});
  }

  void fact(Tokens& tokens) {
    const std::string key = tokens.quoted("the key of the fact");
    const std::string value = tokens.quoted("the value of the fact");
    tokens.finish();
    if (tokens.ok()) dictionary().fact(key, value);
  }

  void source(Tokens& tokens) {
    SourceInfo info;
    info.first_ns = kNoTime;
    tokens.text("path", info.path);
    tokens.text("format", info.format);
    tokens.text("label", info.label);
    tokens.number("rank", info.rank);
    tokens.number("world_size", info.world_size);
    tokens.number("first_ns", info.first_ns);
    if (const Token* clock = tokens.find("clock")) {
      if (clock->value != "absolute") tokens.fail(clock->column, "expected `absolute`");
      info.absolute_clock = true;
    }
    tokens.finish();
    if (sources_.size() == trace::kMaxSources) {
      tokens.fail(1, fmt::format("no more than {} sources are kept apart", trace::kMaxSources));
    }
    if (front_sources_ > 1 && !events_.empty()) {
      tokens.fail(1, "the sources of a trace of several stand above its first event");
    }
    if (!tokens.ok()) return;
    sources_.push_back(std::move(info));
    if (events_.empty()) ++front_sources_;
  }

  // The source that a row says it is of, from 1; 0 when it does not say.
  std::uint32_t source_number(Tokens& tokens) const {
    std::uint32_t number = 0;
    if (const Token* of = tokens.find("of")) {
      tokens.number("of", number);
      if (number == 0 || number > sources_.size()) {
        tokens.fail(of->column, fmt::format("there is no source {} above this line", of->value));
      }
    }
    return number;
  }

  void problem(Tokens& tokens) {
    const Token id = tokens.word("the reason of a problem");
    const auto rows = reasons();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const ReasonInfo& r) { return r.id == id.value; });
    if (tokens.ok() && (row == rows.end() || row->reason == Reason::kNone)) {
      tokens.fail(id.column, fmt::format("there is no reason `{}`", id.value));
    }
    SourcedProblem told{.source = sources_.size(), .problem = {Reason::kNone, 1, {}}};
    tokens.number("count", told.problem.count);
    tokens.text("first", told.problem.first);
    if (const std::uint32_t of = source_number(tokens)) told.source = of;
    tokens.finish();
    if (!tokens.ok()) return;
    told.problem.reason = row->reason;
    told_problems_.push_back(std::move(told));
  }

  void event(Tokens& tokens, Kind kind) {
    Event e{};
    e.kind = kind;
    times(tokens, e);
    const Token lane = tokens.word("the lane, or `-`");
    if (lane.value != "-" || lane.quoted) e.lane = lanes_.find(tokens, lane.column, lane.value);
    e.name = dictionary().string(tokens.quoted("the name"));
    detail(tokens, e);
    correlation(tokens, e);
    e.scope = frames_.field(tokens, "scope");
    flags(tokens, e);
    payload(tokens, e);
    std::array<std::uint64_t, 3> unused{};
    tokens.numbers("unused", ',', unused);
    for (std::size_t i = 0; i < 3; ++i) e.raw[i] |= unused[i];
    const std::uint32_t of = source_number(tokens);
    tokens.finish();
    if (!tokens.ok()) return;
    events_.push_back(e);
    if (front_sources_ > 1) source_of_.push_back(std::max(of, 1u));
  }

  void times(Tokens& tokens, Event& e) {
    const Token start = tokens.word("a start in ns, or `untimed`");
    if (start.value == "untimed") {
      e.start_ns = e.end_ns = kNoTime;
      e.flags = kUntimed;
      return;
    }
    if (tokens.ok() && (start.quoted || !parse(start.value, e.start_ns) || e.start_ns == kNoTime)) {
      tokens.fail(start.column, "expected a start in whole ns, or `untimed`");
    }
    const Token end = tokens.word("an end in ns, or + and a duration");
    if (!tokens.ok()) return;
    bool good = !end.quoted;
    if (end.value.starts_with('+')) {
      std::int64_t duration = 0;
      good = good && parse(std::string_view(end.value).substr(1), duration) && duration >= 0 &&
             !__builtin_add_overflow(e.start_ns, duration, &e.end_ns);
    } else {
      good = good && parse(end.value, e.end_ns);
    }
    if (!good) tokens.fail(end.column, "expected an end in whole ns, or + and a duration");
    if (e.end_ns < e.start_ns)
      tokens.fail(end.column, "expected an end that is not before the start");
  }

  void detail(Tokens& tokens, Event& e) {
    const trace::DetailWords words = trace::detail_words(e.kind);
    const Token* keyed = tokens.find(words.key);
    Token value;
    if (keyed != nullptr) {
      value = *keyed;
    } else if (!words.words.empty() && !tokens.peek().empty()) {
      value = tokens.word(words.key);
    } else {
      return;
    }
    e.detail = static_cast<std::uint16_t>(tokens.word_or_number(value, words.words, 1u << 16));
  }

  void correlation(Tokens& tokens, Event& e) {
    const Token* token = tokens.find("correlation");
    if (token == nullptr) return;
    const std::size_t colon = token->value.rfind(':');
    std::uint64_t number = 0;
    if (colon == std::string::npos ||
        !parse(std::string_view(token->value).substr(colon + 1), number) ||
        number > kMaxVendorCorrelation) {
      tokens.fail(token->column, "expected PROCESS:NUMBER, the number below 2^48");
      return;
    }
    ProcessId owner{};
    if (const std::string handle = token->value.substr(0, colon); handle != "-") {
      owner = processes_.find(tokens, token->column, handle);
    }
    e.correlation = std::uint64_t{owner.value} << kCorrelationBits | number;
  }

  void flags(Tokens& tokens, Event& e) {
    const Token* token = tokens.find("flags");
    if (token == nullptr) return;
    std::string_view rest = token->value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      const std::string_view word = rest.substr(0, end);
      rest.remove_prefix(std::min(rest.size(), end + 1));
      if (const auto bit = trace::find_word(trace::kFlagWords, word); bit && *bit > 0) {
        e.flags = static_cast<std::uint8_t>(e.flags | 1u << *bit);
      } else if (word == "0x40" || word == "0x80") {
        e.flags = static_cast<std::uint8_t>(e.flags | (word == "0x40" ? 0x40 : 0x80));
      } else if (bit) {
        tokens.fail(token->column, "`untimed` stands where the times would");
      } else {
        tokens.fail(token->column, fmt::format("there is no flag `{}`", word));
      }
    }
  }

  void payload(Tokens& tokens, Event& e) {
    switch (e.kind) {
      case Kind::kApi:
        tokens.number("status", e.api.status);
        break;
      case Kind::kScope:
        if (tokens.find("sequence") != nullptr) {
          tokens.number("sequence", e.range.sequence);
          ++e.range.sequence;
        }
        e.range.arguments = text_field(tokens, "arguments");
        tokens.number("forward_thread", e.range.forward_thread);
        break;
      case Kind::kKernel:
        kernel(tokens, e.kernel);
        break;
      case Kind::kCopy:
        e.copy.bytes = kUnknownBytes;
        tokens.number("bytes", e.copy.bytes);
        tokens.number("src", e.copy.src);
        tokens.number("dst", e.copy.dst);
        break;
      case Kind::kFill:
        e.fill.bytes = kUnknownBytes;
        tokens.number("bytes", e.fill.bytes);
        tokens.number("address", e.fill.address);
        tokens.number("pattern", e.fill.pattern);
        break;
      case Kind::kSync:
        e.sync.on = lanes_.field(tokens, "on");
        tokens.number("object", e.sync.object);
        break;
      case Kind::kAlloc:
      case Kind::kFree:
      case Kind::kFault:
        tokens.number("bytes", e.memory.bytes);
        tokens.number("address", e.memory.address);
        e.memory.device = devices_.field(tokens, "device");
        e.memory.pool = text_field(tokens, "pool");
        break;
      case Kind::kCounter:
        tokens.number("value", e.counter.value);
        e.counter.unit = text_field(tokens, "unit");
        e.counter.device = devices_.field(tokens, "device");
        break;
      case Kind::kDevice:
        e.device.blob = blob_names_.field(tokens, "blob");
        e.device.format = text_field(tokens, "format");
        tokens.number("launch", e.device.launch);
        break;
      case Kind::kGap:
        tokens.number("lost", e.gap.lost);
        break;
    }
  }

  void kernel(Tokens& tokens, KernelData& k) {
    tokens.triple("grid", k.grid);
    LaunchAttributes a;
    tokens.triple("block", a.block);
    tokens.triple("cluster", a.cluster);
    tokens.number("registers", a.registers_per_thread);
    tokens.number("static_shared", a.static_shared_bytes);
    tokens.number("dynamic_shared", a.dynamic_shared_bytes);
    tokens.number("local", a.local_bytes_per_thread);
    tokens.number("priority", a.priority);
    a.collective = collectives_.field(tokens, "collective");
    if (tokens.ok() && a != LaunchAttributes{}) k.attributes = dictionary().attributes(a);
    tokens.number("graph_node", k.graph_node);
    tokens.number("ordinal", k.ordinal);
  }

  std::string path_;
  Lines lines_;
  EventSink* sink_ = nullptr;
  bool strict_ = false;
  bool read_ = false;
  std::optional<trace::ProcessImport> process_import_;
  Handles<ProcessId> processes_{"process"};
  Handles<DeviceId> devices_{"device"};
  Handles<LaneId> lanes_{"lane"};
  Handles<FrameId> frames_{"frame"};
  Handles<CollectiveId> collectives_{"collective"};
  Handles<BlobId> blob_names_{"blob"};
  std::vector<std::vector<std::byte>> blobs_;  // BlobId - 1
  std::vector<EventSink*> sinks_;              // of each source; the first is `sink_`
  std::vector<SourceInfo> sources_;
  std::size_t front_sources_ = 0;         // those above the first event: two or more are kept apart
  std::vector<std::uint32_t> source_of_;  // of each event, from 1, where they are kept apart
  std::vector<SourcedProblem> told_problems_;  // of the trace
  Problems problems_;                          // of reading this file
  std::optional<std::int32_t> rank_;
  std::int32_t world_size_ = 0;
  std::vector<Event> events_;
  std::size_t pushed_ = 0;
};

}  // namespace

bool sniff(std::span<const std::byte> head) {
  std::string_view rest(reinterpret_cast<const char*>(head.data()), head.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (!line.empty() && line[0] != '#') return line.starts_with(kVersionWord);
  }
  return false;
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  return std::make_unique<TextFile>(std::move(input));
}

}  // namespace pasta::adapters::text
