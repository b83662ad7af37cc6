#include "trace/text_form.h"

#include <fmt/format.h>

#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/utf8.h"
#include "trace/output_file.h"
#include "trace/payload.h"
#include "trace/text_words.h"

namespace pasta::trace {
namespace {

// A JSON string; bytes that are not UTF-8, which JSON cannot hold, become \xNN.
void append_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t valid = base::utf8_valid_prefix(text);
    if (valid > 0) {
      const std::size_t quote = out.size();
      base::append_json_string(out, text.substr(0, valid));
      out.pop_back();
      out.erase(quote, 1);
      text.remove_prefix(valid);
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    }
  }
  out += '"';
}

// One line under construction.
class Line {
 public:
  explicit Line(std::string_view first) : text_(first) {}
  Line& word(std::string_view text) {
    text_ += ' ';
    text_ += text;
    return *this;
  }
  Line& quoted(std::string_view text) {
    text_ += ' ';
    append_text(text_, text);
    return *this;
  }
  template <class Value>
  Line& field(std::string_view key, const Value& value) {
    fmt::format_to(std::back_inserter(text_), " {}={}", key, value);
    return *this;
  }
  Line& quoted_field(std::string_view key, std::string_view value) {
    text_ += ' ';
    text_ += key;
    text_ += '=';
    append_text(text_, value);
    return *this;
  }
  // Nothing for the value that stands for "unset".
  template <class Value>
  Line& set_field(std::string_view key, const Value& value, const Value& unset = {}) {
    return value == unset ? *this : field(key, value);
  }
  Line& set_text(std::string_view key, std::string_view value) {
    return value.empty() ? *this : quoted_field(key, value);
  }
  Line& set_address(std::string_view key, std::uint64_t value) {
    return value == 0 ? *this : field(key, fmt::format("{:#x}", value));
  }
  Line& set_triple(std::string_view key, const std::uint32_t (&v)[3]) {
    if ((v[0] | v[1] | v[2]) == 0) return *this;
    return field(key, fmt::format("{},{},{}", v[0], v[1], v[2]));
  }
  std::string finish() {
    text_ += '\n';
    return std::move(text_);
  }

 private:
  std::string text_;
};

std::string word_or_number(Words words, std::uint32_t value) {
  return value < words.size() ? std::string(words[value]) : fmt::format("{}", value);
}

// Handles of one table: its letter and a number in order of first use.
class Handles {
 public:
  explicit Handles(char letter) : letter_(letter) {}
  [[nodiscard]] bool has(std::uint32_t id) const {
    return id < numbers_.size() && numbers_[id] != 0;
  }
  std::string make(std::uint32_t id) {
    if (numbers_.size() <= id) numbers_.resize(std::size_t{id} + 1);
    numbers_[id] = ++last_;
    return get(id);
  }
  [[nodiscard]] std::string get(std::uint32_t id) const {
    return fmt::format("{}{}", letter_, numbers_[id]);
  }

 private:
  char letter_;
  std::uint32_t last_ = 0;
  std::vector<std::uint32_t> numbers_;
};

class TextWriter : public Recorder {
 public:
  Status begin(const Dictionary& dictionary) override {
    dictionary_ = &dictionary;
    out_ += kTextHeader;
    out_ += '\n';
    return {};
  }

  Status sources(std::span<const SourceInfo> sources) override {
    if (sources.size() < 2) return {};
    several_ = true;
    for (const SourceInfo& one : sources) source(one);
    return {};
  }
  void from(std::size_t source) override { source_ = source + 1; }

  Status record(std::span<const Event> events) override {
    if (!events.empty()) facts();
    for (const Event& event : events) {
      const std::string text = line(event);  // may first write the rows that it needs
      out_ += text;
      if (out_.size() >= kFlushBytes) PASTA_TRY(flush());
    }
    return flush();
  }

  Status record_blob(BlobId id, std::span<const std::byte> bytes) override {
    std::string hex;
    for (const std::byte byte : bytes) {
      fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<unsigned>(byte));
    }
    const std::string handle = fmt::format("B{}", ++blob_count_);
    blobs_[id.value] = handle;
    out_ += Line("blob").word(handle).quoted(hex).finish();
    return {};
  }

  Status end(std::span<const SourceInfo> sources,
             std::span<const std::vector<Problem>> problems) override {
    const Dictionary& d = *dictionary_;
    facts();
    for (std::uint32_t id = 1; id < d.process_count(); ++id) process(ProcessId{id});
    for (std::uint32_t id = 1; id < d.device_count(); ++id) device(DeviceId{id});
    for (std::uint32_t id = 1; id < d.lane_count(); ++id) lane(LaneId{id});
    for (std::uint32_t id = 1; id < d.frame_count(); ++id) frame(FrameId{id});
    for (std::uint32_t id = 1; id < d.collective_count(); ++id) collective(CollectiveId{id});
    filled_in_later();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (!several_) source(sources[i]);
      if (i >= problems.size()) continue;
      for (const Problem& problem : problems[i]) {
        out_ += Line("problem")
                    .word(reason_info(problem.reason).id)
                    .field("count", problem.count)
                    .set_text("first", problem.first)
                    .set_field("of", several_ ? i + 1 : std::size_t{0})
                    .finish();
      }
    }
    return close();
  }

 protected:
  std::string& pending() { return out_; }
  // Takes what is pending.
  virtual Status flush() = 0;
  virtual Status close() = 0;

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 18;

  void facts() {
    const auto facts = dictionary_->facts();
    for (; facts_written_ < facts.size(); ++facts_written_) {
      const auto& [key, value] = facts[facts_written_];
      out_ += Line("fact").quoted(key).quoted(value).finish();
    }
  }

  std::string process_row(ProcessId id) {
    const Process p = dictionary_->process(id);
    return Line("process")
        .word(processes_.get(id.value))
        .set_field("id", p.native_id)
        .set_text("text", text(p.native_text))
        .set_text("source", text(p.source))
        .set_text("name", text(p.name))
        .set_text("host", text(p.host))
        .set_field("rank", p.rank, kUnknownRank)
        .set_field("world_size", p.world_size)
        .finish();
  }
  std::string device_row(DeviceId id) {
    const Device d = dictionary_->device(id);
    Line line("device");
    line.word(devices_.get(id.value));
    if (d.process) line.field("process", process(d.process));
    line.set_field("ordinal", d.ordinal).set_text("uuid", text(d.uuid));
    if (d.type != DeviceType::kUnknown) {
      line.field("type", word_or_number(kDeviceTypeWords, static_cast<std::uint32_t>(d.type)));
    }
    line.set_text("name", text(d.name)).set_field("multiprocessors", d.multiprocessors);
    if (d.compute_major != 0 || d.compute_minor != 0) {
      line.field("compute", fmt::format("{}.{}", d.compute_major, d.compute_minor));
    }
    return line.set_field("max_threads", d.max_threads_per_multiprocessor)
        .set_field("warp_size", d.warp_size)
        .set_field("memory_bytes", d.memory_bytes)
        .finish();
  }
  std::string lane_row(LaneId id) {
    const Lane l = dictionary_->lane(id);
    Line line("lane");
    line.word(lanes_.get(id.value))
        .word(word_or_number(kLaneTypeWords, static_cast<std::uint32_t>(l.type)));
    if (l.process) line.field("process", process(l.process));
    if (l.device) line.field("device", device(l.device));
    return line.set_field("context", l.context)
        .set_field("id", l.native_id)
        .set_text("text", text(l.native_text))
        .set_text("name", text(l.name))
        .finish();
  }

  // The handle of an entry, after its row where that has not been written. An id that no table
  // has becomes "?", which no reader accepts.
  std::string process(ProcessId id) {
    if (processes_.has(id.value)) return processes_.get(id.value);
    if (id.value >= dictionary_->process_count()) return "?";
    processes_.make(id.value);  // its row begins with it
    return keep_row(processes_.get(id.value), process_rows_, id.value, process_row(id));
  }
  std::string device(DeviceId id) {
    if (devices_.has(id.value)) return devices_.get(id.value);
    if (id.value >= dictionary_->device_count()) return "?";
    devices_.make(id.value);  // its row begins with it
    return keep_row(devices_.get(id.value), device_rows_, id.value, device_row(id));
  }
  std::string lane(LaneId id) {
    if (!id) return "-";
    if (lanes_.has(id.value)) return lanes_.get(id.value);
    if (id.value >= dictionary_->lane_count()) return "?";
    lanes_.make(id.value);  // its row begins with it
    return keep_row(lanes_.get(id.value), lane_rows_, id.value, lane_row(id));
  }
  using Rows = std::unordered_map<std::uint32_t, std::string>;
  std::string keep_row(std::string handle, Rows& rows, std::uint32_t id, std::string row) {
    out_ += row;
    rows[id] = std::move(row);
    return handle;
  }
  std::string frame(FrameId id) {
    if (frames_.has(id.value)) return frames_.get(id.value);
    if (id.value >= dictionary_->frame_count()) return "?";
    std::vector<FrameId> path;  // a loop, not a recursion: call paths can be deep
    for (FrameId at = id; at && !frames_.has(at.value); at = dictionary_->frame(at).parent) {
      path.push_back(at);
    }
    for (auto at = path.rbegin(); at != path.rend(); ++at) {
      const Frame f = dictionary_->frame(*at);
      Line line("frame");
      line.word(frames_.make(at->value));
      if (f.parent) line.field("in", frames_.get(f.parent.value));
      line.quoted(text(f.name));
      if (f.domain != ScopeDomain::kUnknown) {
        line.word(word_or_number(kScopeDomainWords, static_cast<std::uint32_t>(f.domain)));
      }
      out_ += line.finish();
    }
    return frames_.get(id.value);
  }
  std::string collective(CollectiveId id) {
    if (collectives_.has(id.value)) return collectives_.get(id.value);
    if (id.value >= dictionary_->collective_count()) return "?";
    const Collective c = dictionary_->collective(id);
    std::string handle = collectives_.make(id.value);
    out_ += Line("collective")
                .word(handle)
                .quoted(text(c.name))
                .set_text("element_type", text(c.element_type))
                .set_field("in_elements", c.in_elements)
                .set_field("out_elements", c.out_elements)
                .set_text("group", text(c.group))
                .set_text("ranks", text(c.ranks))
                .set_field("group_size", c.group_size)
                .finish();
    return handle;
  }

  // Names and the like that came after their rows had been written.
  void filled_in_later() {
    for (std::uint32_t id = 1; id < dictionary_->process_count(); ++id) {
      again(process_rows_[id], process_row(ProcessId{id}));
    }
    for (std::uint32_t id = 1; id < dictionary_->device_count(); ++id) {
      again(device_rows_[id], device_row(DeviceId{id}));
    }
    for (std::uint32_t id = 1; id < dictionary_->lane_count(); ++id) {
      again(lane_rows_[id], lane_row(LaneId{id}));
    }
  }
  void again(const std::string& before, const std::string& now) {
    if (before != now) out_ += now;
  }

  void source(const SourceInfo& s) {
    Line line("source");
    line.set_text("path", s.path)
        .field("format", s.format.empty() ? "unknown" : s.format)
        .set_text("label", s.label)
        .set_field("rank", s.rank, kUnknownRank)
        .set_field("world_size", s.world_size)
        .set_field("first_ns", s.first_ns, kNoTime);
    if (s.absolute_clock) line.field("clock", "absolute");
    out_ += line.finish();
  }

  [[nodiscard]] std::string_view text(StringId id) const { return dictionary_->text(id); }

  std::string line(const Event& e) {
    Line line(kind_name(e.kind));
    if (e.untimed()) {
      line.word("untimed");
    } else {
      line.word(fmt::format("{} {}", e.start_ns, e.end_ns));
    }
    line.word(lane(e.lane)).quoted(text(e.name));
    if (e.detail != 0) {
      const DetailWords words = detail_words(e.kind);
      const std::string value = word_or_number(words.words, e.detail);
      if (words.bare && e.detail < words.words.size()) {
        line.word(value);
      } else {
        line.field(words.key, value);
      }
    }
    if (e.correlation != 0) {
      const ProcessId owner = correlation_process(e.correlation);
      line.field("correlation", fmt::format("{}:{}", owner ? process(owner) : "-",
                                            e.correlation & kMaxVendorCorrelation));
    }
    if (e.scope) line.field("scope", frame(e.scope));
    payload(line, e);
    if (const unsigned flags = e.flags & ~unsigned{kUntimed}) {
      std::string words;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if ((flags >> bit & 1u) == 0) continue;
        if (!words.empty()) words += ',';
        words += bit < kFlagWords.size() ? std::string(kFlagWords[bit])
                                         : fmt::format("{:#x}", 1u << bit);
      }
      line.field("flags", words);
    }
    if (several_ && source_ > 1) line.field("of", source_);
    return line.finish();
  }

  void payload(Line& line, const Event& e) {
    switch (e.kind) {
      case Kind::kApi:
        line.set_field("status", e.api.status);
        break;
      case Kind::kScope:
        // Stored one higher, so that 0 is none.
        if (e.range.sequence != 0) line.field("sequence", e.range.sequence - 1);
        line.set_text("arguments", text(e.range.arguments))
            .set_field("forward_thread", e.range.forward_thread);
        break;
      case Kind::kKernel:
        kernel(line, e.kernel);
        break;
      case Kind::kCopy:
        line.set_field("bytes", e.copy.bytes, kUnknownBytes)
            .set_address("src", e.copy.src)
            .set_address("dst", e.copy.dst);
        break;
      case Kind::kFill:
        line.set_field("bytes", e.fill.bytes, kUnknownBytes)
            .set_address("address", e.fill.address)
            .set_field("pattern", e.fill.pattern);
        break;
      case Kind::kSync:
        if (e.sync.on) line.field("on", lane(e.sync.on));
        line.set_field("object", e.sync.object);
        break;
      case Kind::kAlloc:
      case Kind::kFree:
      case Kind::kFault:
        line.set_field("bytes", e.memory.bytes).set_address("address", e.memory.address);
        if (e.memory.device) line.field("device", device(e.memory.device));
        line.set_text("pool", text(e.memory.pool));
        break;
      case Kind::kCounter:
        line.field("value", e.counter.value).set_text("unit", text(e.counter.unit));
        if (e.counter.device) line.field("device", device(e.counter.device));
        break;
      case Kind::kDevice:
        if (const auto blob = blobs_.find(e.device.blob.value); blob != blobs_.end()) {
          line.field("blob", blob->second);
        }
        line.set_text("format", text(e.device.format)).set_field("launch", e.device.launch);
        break;
      case Kind::kGap:
        line.field("lost", e.gap.lost);
        break;
    }
    Event rest = e;
    clear_known_payload(rest);
    if ((rest.raw[0] | rest.raw[1] | rest.raw[2]) != 0) {
      line.field("unused", fmt::format("{:#x},{:#x},{:#x}", rest.raw[0], rest.raw[1], rest.raw[2]));
    }
  }

  void kernel(Line& line, const KernelData& k) {
    line.set_triple("grid", k.grid);
    if (k.attributes) {
      const LaunchAttributes a = dictionary_->attributes(k.attributes);
      line.set_triple("block", a.block)
          .set_triple("cluster", a.cluster)
          .set_field("registers", a.registers_per_thread)
          .set_field("static_shared", a.static_shared_bytes)
          .set_field("dynamic_shared", a.dynamic_shared_bytes)
          .set_field("local", a.local_bytes_per_thread)
          .set_field("priority", a.priority);
      if (a.collective) line.field("collective", collective(a.collective));
    }
    line.set_field("graph_node", k.graph_node).set_field("ordinal", k.ordinal);
  }

  const Dictionary* dictionary_ = nullptr;
  std::string out_;
  std::size_t facts_written_ = 0;
  bool several_ = false;    // sources are kept apart
  std::size_t source_ = 1;  // of the events that come, from 1
  Handles processes_{'P'}, devices_{'D'}, lanes_{'L'}, frames_{'F'}, collectives_{'C'};
  Rows process_rows_, device_rows_, lane_rows_;
  std::unordered_map<std::uint32_t, std::string> blobs_;
  std::uint64_t blob_count_ = 0;
};

class FileTextWriter final : public TextWriter {
 public:
  explicit FileTextWriter(OutputFile file) : file_(std::move(file)) {}

 private:
  Status flush() override {
    PASTA_TRY(file_.write(std::string_view(pending())));
    pending().clear();
    return {};
  }
  Status close() override {
    PASTA_TRY(flush());
    return file_.close();
  }
  OutputFile file_;
};

class StringTextWriter final : public TextWriter {
 public:
  explicit StringTextWriter(std::string& to) : to_(to) {}

 private:
  Status flush() override {
    to_ += pending();
    pending().clear();
    return {};
  }
  Status close() override { return flush(); }
  std::string& to_;
};

}  // namespace

Result<std::unique_ptr<Recorder>> make_text_writer(std::string path, TextWriterOptions options) {
  auto file = OutputFile::open(std::move(path), {.overwrite = options.overwrite});
  if (!file) return tl::unexpected(std::move(file).error());
  return std::make_unique<FileTextWriter>(std::move(*file));
}

std::unique_ptr<Recorder> make_text_writer_to(std::string& out) {
  return std::make_unique<StringTextWriter>(out);
}

}  // namespace pasta::trace
