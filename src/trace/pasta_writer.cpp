#include "trace/pasta_writer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <utility>

#include "trace/common_source.h"

namespace pasta::trace {
namespace {

Uuid random_uuid() {
  std::random_device device;
  Uuid uuid;
  for (auto& byte : uuid) byte = static_cast<std::uint8_t>(device());
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0f) | 0x40);  // RFC 9562: version 4,
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3f) | 0x80);  // variant 1
  return uuid;
}

// A payload under construction.
class Payload {
 public:
  template <class Record>
  void add(const Record& record) {
    static_assert(std::is_trivially_copyable_v<Record>);
    add_bytes(std::as_bytes(std::span(&record, 1)));
  }
  void add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void add_text(std::string_view text) { add_bytes(std::as_bytes(std::span(text))); }
  void pad() { bytes_.resize(padded(bytes_.size())); }
  void clear() { bytes_.clear(), records_ = 0; }
  void end_record() { pad(), ++records_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::uint32_t records() const { return records_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t records_ = 0;
};

// Of zstd: twice as fast as its usual level, and traces are a fifteenth larger.
constexpr int kCompression = 1;

// A chunk of text records is ended when it has grown to this.
constexpr std::size_t kTextChunkBytes = std::size_t{1} << 20;

std::uint32_t text_bytes(std::string_view text) { return static_cast<std::uint32_t>(text.size()); }

ProcessRecord encode(std::uint32_t id, const Process& p) {
  return {.native_id = p.native_id,
          .id = id,
          .native_text = p.native_text.value,
          .source = p.source.value,
          .name = p.name.value,
          .host = p.host.value,
          .rank = p.rank,
          .world_size = p.world_size,
          .reserved = 0};
}
DeviceRecord encode(std::uint32_t id, const Device& d) {
  return {.memory_bytes = d.memory_bytes,
          .id = id,
          .process = d.process.value,
          .ordinal = d.ordinal,
          .uuid = d.uuid.value,
          .type = static_cast<std::uint32_t>(d.type),
          .name = d.name.value,
          .multiprocessors = d.multiprocessors,
          .compute_major = d.compute_major,
          .compute_minor = d.compute_minor,
          .max_threads_per_multiprocessor = d.max_threads_per_multiprocessor,
          .warp_size = d.warp_size,
          .reserved = 0};
}
LaneRecord encode(std::uint32_t id, const Lane& l) {
  return {.context = l.context,
          .native_id = l.native_id,
          .id = id,
          .type = static_cast<std::uint32_t>(l.type),
          .process = l.process.value,
          .device = l.device.value,
          .native_text = l.native_text.value,
          .name = l.name.value};
}
FrameRecord encode(std::uint32_t id, const Frame& f) {
  return {id, f.parent.value, f.name.value, static_cast<std::uint32_t>(f.domain)};
}
CollectiveRecord encode(std::uint32_t id, const Collective& c) {
  return {.in_elements = c.in_elements,
          .out_elements = c.out_elements,
          .id = id,
          .name = c.name.value,
          .element_type = c.element_type.value,
          .group = c.group.value,
          .ranks = c.ranks.value,
          .group_size = c.group_size};
}
AttributesRecord encode(std::uint32_t id, const LaunchAttributes& a) {
  return {.id = id,
          .block = {a.block[0], a.block[1], a.block[2]},
          .cluster = {a.cluster[0], a.cluster[1], a.cluster[2]},
          .registers_per_thread = a.registers_per_thread,
          .static_shared_bytes = a.static_shared_bytes,
          .dynamic_shared_bytes = a.dynamic_shared_bytes,
          .local_bytes_per_thread = a.local_bytes_per_thread,
          .priority = a.priority,
          .collective = a.collective.value,
          .reserved = 0};
}

// A table whose entries never change: what came since the last time.
template <class GetEntry>
void encode_new(Payload& out, std::uint32_t& written, std::uint32_t count, GetEntry&& get) {
  for (; written < count; ++written) {
    out.add(encode(written, get(written)));
    out.end_record();
  }
}

// A table whose entries are filled in later: what is new or other than the last time.
template <class Record, class GetEntry>
void encode_changed(Payload& out, std::vector<Record>& written, std::uint32_t count, bool updated,
                    GetEntry&& get) {
  const auto known = static_cast<std::uint32_t>(written.size());
  for (std::uint32_t id = updated ? 1 : known; id < count; ++id) {
    const Record record = encode(id, get(id));
    if (id < known && std::memcmp(&written[id], &record, sizeof record) == 0) continue;
    if (id < known) {
      written[id] = record;
    } else {
      written.push_back(record);
    }
    out.add(record);
    out.end_record();
  }
}

class PastaWriter final : public Recorder {
 public:
  PastaWriter(OutputFile file, const PastaWriterOptions& options)
      : file_(std::move(file)), options_(options) {
    header_.uuid = options.uuid.value_or(random_uuid());
    header_.first_ns = kNoTime;
    events_.reserve(options.chunk_events);
  }
  ~PastaWriter() override { ZSTD_freeCCtx(zstd_); }

  Status begin(const Dictionary& dictionary) override {
    dictionary_ = &dictionary;
    header_.checksum = header_checksum(header_);
    return file_.write(std::as_bytes(std::span(&header_, 1)));
  }

  // Of several, who reads the file has to know them before their events come.
  Status sources(std::span<const SourceInfo> sources) override {
    if (sources.size() < 2) return {};
    if (sources.size() > kMaxSources) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{} traces are more than the {} that a .pasta file can keep apart",
                              sources.size(), kMaxSources));
    }
    several_ = true;
    header_.minor = kFormatMinorOfSeveral;
    PASTA_TRY(write_header());
    return write_sources(sources);
  }
  void from(std::size_t source) override { source_ = static_cast<std::uint32_t>(source); }

  Status record(std::span<const Event> events) override {
    for (const Event& event : events) {
      if (!event.untimed() && (header_.first_ns == kNoTime || event.start_ns < header_.first_ns)) {
        header_.first_ns = event.start_ns;
      }
    }
    while (!events.empty()) {
      const std::size_t take = std::min(events.size(), options_.chunk_events - events_.size());
      events_.insert(events_.end(), events.begin(), events.begin() + take);
      if (several_) add_run(static_cast<std::uint32_t>(take));
      events = events.subspan(take);
      if (events_.size() == options_.chunk_events) PASTA_TRY(flush());
    }
    return {};
  }

  Status record_blob(BlobId id, std::span<const std::byte> bytes) override {
    if (bytes.size() > kMaxChunkBytes / 2) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("a device result of {} bytes is larger than a .pasta file can hold",
                              bytes.size()));
    }
    if (blobs_.size() + bytes.size() > kMaxChunkBytes / 2) {
      PASTA_TRY(write_payload(ChunkType::kBlobs, blobs_));
    }
    blobs_.add(BlobRecord{id.value, static_cast<std::uint32_t>(bytes.size())});
    blobs_.add_bytes(bytes);
    blobs_.end_record();
    return {};
  }

  Status end(std::span<const SourceInfo> sources,
             std::span<const std::vector<Problem>> problems) override {
    PASTA_TRY(flush());
    PASTA_TRY(write_tables());
    PASTA_TRY(write_facts());
    if (!several_) PASTA_TRY(write_sources(sources));
    PASTA_TRY(write_problems(problems));
    PASTA_TRY(write_chunk(ChunkType::kEnd, 1, std::as_bytes(std::span(&header_.events, 1))));
    describe(sources);
    header_.flags |= kFinished;
    PASTA_TRY(write_header());
    return file_.close();
  }

 private:
  void add_run(std::uint32_t events) {
    if (!runs_.empty() && runs_.back().source == source_) {
      runs_.back().events += events;
    } else {
      runs_.push_back({source_, events});
    }
  }

  Status write_header() {
    header_.checksum = header_checksum(header_);
    return file_.rewrite_front(std::as_bytes(std::span(&header_, 1)));
  }

  Status flush() {
    if (events_.empty()) return {};
    PASTA_TRY(write_tables());
    if (!facts_written_) PASTA_TRY(write_facts());
    PASTA_TRY(write_payload(ChunkType::kBlobs, blobs_));
    if (!runs_.empty()) {
      // Who knows nothing of it reads the file as one source.
      PASTA_TRY(write_chunk(ChunkType::kRuns, static_cast<std::uint32_t>(runs_.size()),
                            std::as_bytes(std::span(runs_)), kSkippable));
      runs_.clear();
    }
    PASTA_TRY(write_chunk(ChunkType::kEvents, static_cast<std::uint32_t>(events_.size()),
                          std::as_bytes(std::span(events_))));
    header_.events += events_.size();
    events_.clear();
    return write_header();
  }

  // All that events recorded so far can refer to. The tables grow while this runs, so each is
  // counted only after those that refer to it have been encoded.
  Status write_tables() {
    const Dictionary& d = *dictionary_;
    const std::uint64_t updates = d.updates();
    const bool updated = updates != updates_seen_;
    updates_seen_ = updates;
    Payload attributes, collectives, frames, lanes, devices, processes;
    encode_new(attributes, attributes_written_, d.attributes_count(),
               [&](std::uint32_t id) { return d.attributes(AttributesId{id}); });
    encode_new(collectives, collectives_written_, d.collective_count(),
               [&](std::uint32_t id) { return d.collective(CollectiveId{id}); });
    encode_new(frames, frames_written_, d.frame_count(),
               [&](std::uint32_t id) { return d.frame(FrameId{id}); });
    encode_changed(lanes, lanes_written_, d.lane_count(), updated,
                   [&](std::uint32_t id) { return d.lane(LaneId{id}); });
    encode_changed(devices, devices_written_, d.device_count(), updated,
                   [&](std::uint32_t id) { return d.device(DeviceId{id}); });
    encode_changed(processes, processes_written_, d.process_count(), updated,
                   [&](std::uint32_t id) { return d.process(ProcessId{id}); });
    Payload strings;
    for (const std::uint32_t count = d.string_count(); strings_written_ < count;
         ++strings_written_) {
      const std::string_view text = d.text(StringId{strings_written_});
      strings.add(StringRecord{strings_written_, text_bytes(text)});
      strings.add_text(text);
      strings.end_record();
      if (strings.size() >= kTextChunkBytes) {
        PASTA_TRY(write_payload(ChunkType::kStrings, strings));
      }
    }
    PASTA_TRY(write_payload(ChunkType::kStrings, strings));
    PASTA_TRY(write_payload(ChunkType::kProcesses, processes));
    PASTA_TRY(write_payload(ChunkType::kDevices, devices));
    PASTA_TRY(write_payload(ChunkType::kLanes, lanes));
    PASTA_TRY(write_payload(ChunkType::kFrames, frames));
    PASTA_TRY(write_payload(ChunkType::kCollectives, collectives));
    return write_payload(ChunkType::kAttributes, attributes);
  }

  Status write_facts() {
    facts_written_ = true;
    Payload payload;
    const auto facts = dictionary_->facts();
    for (; facts_count_ < facts.size(); ++facts_count_) {
      const auto& [key, value] = facts[facts_count_];
      payload.add(FactRecord{text_bytes(key), text_bytes(value)});
      payload.add_text(key);
      payload.add_text(value);
      payload.end_record();
    }
    return write_payload(ChunkType::kFacts, payload);
  }

  Status write_sources(std::span<const SourceInfo> sources) {
    Payload payload;
    for (const SourceInfo& source : sources) {
      payload.add(SourceRecord{.first_ns = source.first_ns,
                               .rank = source.rank,
                               .world_size = source.world_size,
                               .absolute_clock = source.absolute_clock ? 1u : 0u,
                               .path_bytes = text_bytes(source.path),
                               .format_bytes = text_bytes(source.format),
                               .label_bytes = text_bytes(source.label)});
      payload.add_text(source.path);
      payload.add_text(source.format);
      payload.add_text(source.label);
      payload.end_record();
    }
    return write_payload(ChunkType::kSources, payload);
  }

  Status write_problems(std::span<const std::vector<Problem>> problems) {
    Payload payload;
    for (std::uint32_t i = 0; i < problems.size(); ++i) {
      for (const Problem& problem : problems[i]) {
        payload.add(ProblemRecord{.count = problem.count,
                                  .source = i,
                                  .reason = static_cast<std::uint32_t>(problem.reason),
                                  .first_bytes = text_bytes(problem.first),
                                  .reserved = 0});
        payload.add_text(problem.first);
        payload.end_record();
      }
    }
    return write_payload(ChunkType::kProblems, payload);
  }

  void describe(std::span<const SourceInfo> sources) {
    const SourceInfo common = common_source(sources);
    header_.rank = common.rank;
    header_.world_size = common.world_size;
    if (common.first_ns != kNoTime) header_.first_ns = common.first_ns;
    if (common.absolute_clock) header_.flags |= kAbsoluteClock;
  }

  // Writes and empties `payload`, if it holds anything.
  Status write_payload(ChunkType type, Payload& payload) {
    if (payload.records() == 0) return {};
    PASTA_TRY(write_chunk(type, payload.records(), payload.bytes()));
    payload.clear();
    return {};
  }

  Status write_chunk(ChunkType type, std::uint32_t records, std::span<const std::byte> plain,
                     std::uint16_t flags = 0) {
    ChunkHeader header{
        .type = type, .flags = flags, .plain_bytes = plain.size(), .records = records};
    std::span<const std::byte> stored = plain;
    if (options_.compress) {
      if (zstd_ == nullptr) zstd_ = ZSTD_createCCtx();
      compressed_.resize(ZSTD_compressBound(plain.size()));
      const std::size_t size = ZSTD_compressCCtx(zstd_, compressed_.data(), compressed_.size(),
                                                 plain.data(), plain.size(), kCompression);
      // What does not shrink stays as it is.
      if (ZSTD_isError(size) == 0 && size < plain.size()) {
        header.flags |= kZstd;
        stored = std::span(compressed_).first(size);
      }
    }
    header.stored_bytes = stored.size();
    chunk_.resize(sizeof header + padded(stored.size()));
    std::memcpy(chunk_.data() + sizeof header, stored.data(), stored.size());
    std::fill(chunk_.begin() + static_cast<std::ptrdiff_t>(sizeof header + stored.size()),
              chunk_.end(), std::byte{0});
    seal(header, std::span(chunk_).subspan(sizeof header));
    std::memcpy(chunk_.data(), &header, sizeof header);
    return file_.write(chunk_);
  }

  OutputFile file_;
  PastaWriterOptions options_;
  const Dictionary* dictionary_ = nullptr;
  FileHeader header_;
  std::vector<Event> events_;  // of the chunk at hand
  Payload blobs_;
  bool several_ = false;         // sources are kept apart
  std::uint32_t source_ = 0;     // of the events that come
  std::vector<RunRecord> runs_;  // of `events_`, of several sources

  // What of the dictionary is in the file already. Id 0 is in no file.
  std::uint32_t strings_written_ = 1, frames_written_ = 1;
  std::uint32_t collectives_written_ = 1, attributes_written_ = 1;
  std::vector<ProcessRecord> processes_written_ = std::vector<ProcessRecord>(1);
  std::vector<DeviceRecord> devices_written_ = std::vector<DeviceRecord>(1);
  std::vector<LaneRecord> lanes_written_ = std::vector<LaneRecord>(1);
  std::uint64_t updates_seen_ = 0;
  std::size_t facts_count_ = 0;
  bool facts_written_ = false;

  ZSTD_CCtx* zstd_ = nullptr;
  std::vector<std::byte> compressed_, chunk_;
};

}  // namespace

Result<std::unique_ptr<Recorder>> make_pasta_writer(std::string path, PastaWriterOptions options) {
  auto file = OutputFile::open(
      std::move(path),
      {.overwrite = options.overwrite, .patchable = true, .keeps_partial = options.keeps_partial});
  if (!file) return tl::unexpected(std::move(file).error());
  options.chunk_events = std::clamp<std::size_t>(options.chunk_events, 1, kMaxChunkBytes / 64);
  return std::make_unique<PastaWriter>(std::move(*file), options);
}

}  // namespace pasta::trace
