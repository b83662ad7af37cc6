#include "adapters/pasta_file/pasta_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/pasta_file/importer.h"
#include "trace/pasta_reader.h"

namespace pasta::adapters::pasta_file {
namespace {

using trace::Chunk;
using trace::ChunkState;
using trace::ChunkType;

std::string place(std::uint64_t offset, std::string_view what) {
  return fmt::format("byte {}: {}", offset, what);
}

class PastaFile final : public Adapter {
 public:
  // One, or the parts of one trace.
  explicit PastaFile(std::vector<Input> inputs) {
    for (Input& input : inputs) {
      parts_.push_back(
          {std::move(input.path), std::make_unique<trace::PastaReader>(std::move(input.stream))});
    }
  }

  const AdapterInfo& info() const override { return kInfo; }

  Status start(const Plan& plan, EventSink& sink) override {
    sink_ = &sink;
    strict_ = plan.strict;
    for (Part& part : parts_) {
      auto whole = part.reader->read_header();
      if (!whole) {
        Error error = std::move(whole).error();
        error.message = part.path + ": " + error.message;
        return tl::unexpected(std::move(error));
      }
      part.whole_header = *whole;
    }
    const trace::FileHeader& header = parts_[0].reader->header();
    SourceInfo source{.path = parts_[0].path, .format = std::string(kInfo.name), .label = {}};
    source.rank = header.rank;
    source.world_size = header.world_size;
    source.first_ns = kNoTime;
    source.absolute_clock = (header.flags & trace::kAbsoluteClock) != 0;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (i > 0) source.path += " + " + parts_[i].path;
      const std::int64_t first_ns =
          parts_[i].whole_header ? parts_[i].reader->header().first_ns : kNoTime;
      if (first_ns == kNoTime) continue;
      source.first_ns = source.first_ns == kNoTime ? first_ns : std::min(source.first_ns, first_ns);
    }
    process_import_.emplace(sink.dictionary(), trace::uuid_text(header.uuid));
    importer_.emplace(sink.dictionary(), *process_import_, false);
    if (parts_.size() == 1 && parts_[0].whole_header) return describe(source);
    sink.describe(source);
    sinks_ = {sink_};
    return begin_part();
  }

  // One chunk of events, with all chunks before it.
  Result<bool> pump() override {
    while (!done_) {
      Result<Chunk> chunk = first_ ? *std::exchange(first_, std::nullopt) : reader().next();
      if (!chunk) return tl::unexpected(std::move(chunk).error());
      switch (chunk->state) {
        case ChunkState::kWhole: {
          PASTA_TRY(take(*chunk));
          if (chunk->header.type == ChunkType::kEvents) return !done_;
          break;
        }
        case ChunkState::kCorrupt: {
          const std::string first = place(
              chunk->offset,
              fmt::format("the checksum of chunk {} is wrong", chunk_name(chunk->header.type)));
          if (chunk->header.type == ChunkType::kEvents) {
            lost_ += chunk->header.records;
            PASTA_TRY(problem(Reason::kCorruptChunk, chunk->header.records, first));
          } else {
            // Later chunks may rest on this one.
            PASTA_TRY(end_early(Reason::kCorruptChunk, 1, first));
          }
          break;
        }
        case ChunkState::kUnreadable:
          PASTA_TRY(end_early(Reason::kCorruptChunk, 1,
                              place(chunk->offset,
                                    "the head of a chunk is damaged; all after it "
                                    "is lost")));
          break;
        case ChunkState::kTruncated:
          PASTA_TRY(end_early(Reason::kTruncated, 1, place(chunk->offset, truncation())));
          break;
        case ChunkState::kEnd:
          PASTA_TRY(check_trailing_data(chunk->offset));
          break;
      }
      PASTA_TRY(next_part());
    }
    return false;
  }

  Status stop() override { return {}; }

 private:
  struct Part {
    std::string path;
    std::unique_ptr<trace::PastaReader> reader;
    bool whole_header = false;
  };
  trace::PastaReader& reader() { return *parts_[part_].reader; }
  const trace::PastaReader& reader() const { return *parts_[part_].reader; }
  const std::string& path() const { return parts_[part_].path; }

  Status begin_part() {
    if (parts_[part_].whole_header) return {};
    PASTA_TRY(end_early(Reason::kTruncated, 1, place(0, truncation())));
    return next_part();
  }

  // Goes on with the next part once one has been read, or cannot be read further.
  Status next_part() {
    if (!done_ || part_ + 1 == parts_.size()) return {};
    ++part_;
    done_ = false;
    last_part_end_ns_ = last_end_ns_;
    seen_ = lost_ = 0;
    source_names_.clear();
    blobs_.clear();
    importer_.emplace(sink_->dictionary(), *process_import_, true);
    return begin_part();
  }

  // The sources of a file that keeps several apart stand at its front, in the order of their
  // numbers. They keep the names and formats of what they were read from: places in their problems
  // are places there.
  Status describe(const SourceInfo& whole) {
    auto chunk = reader().next();
    if (!chunk) return tl::unexpected(std::move(chunk).error());
    const bool told = chunk->state == ChunkState::kWhole &&
                      chunk->header.type == ChunkType::kSources &&
                      chunk->header.version == trace::kChunkVersion;
    std::vector<SourceInfo> infos;
    if (!told || !decode_sources(*chunk, infos) || infos.size() < 2 ||
        infos.size() > trace::kMaxSources) {
      first_ = *chunk;
      sink_->describe(whole);
      sinks_ = {sink_};
      return {};
    }
    for (SourceInfo& info : infos) {
      source_names_.push_back(info.label.empty() ? info.path : info.label);
      info.path = fmt::format("{}:{}", path(), info.path);
      if (sinks_.empty()) {
        sink_->describe(info);
        sinks_ = {sink_};
      } else {
        sinks_.push_back(&sink_->add_source(info));
      }
    }
    return {};
  }
  bool several() const { return sinks_.size() > 1; }

  std::string truncation() const {
    return reader().damage().empty() ? "the file ends inside a chunk or before its last one"
                                     : std::string(reader().damage());
  }

  Status problem(Reason reason, std::uint64_t count, const std::string& first) {
    if (strict_) return fail(ErrorCode::kBadInput, path() + ": " + first);
    // What is wrong with the file is none of its sources' fault.
    sink_->report({reason, count,
                   several() || parts_.size() > 1 ? fmt::format("{}, {}", path(), first) : first});
    return {};
  }

  Status end_early(Reason reason, std::uint64_t count, const std::string& first) {
    done_ = true;
    return problem(reason, count, first);
  }

  Status bad_content(const Chunk& chunk) {
    return end_early(Reason::kRecordSkipped, 1,
                     place(chunk.offset, fmt::format("the content of chunk {} is not what its type "
                                                     "says",
                                                     chunk_name(chunk.header.type))));
  }

  Status check_trailing_data(std::uint64_t offset) {
    done_ = true;
    auto more = reader().has_trailing_data();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) return {};
    return problem(Reason::kTrailingData, 1, place(offset, "bytes after the last chunk"));
  }

  Status take(const Chunk& chunk) {
    const trace::ChunkHeader& header = chunk.header;
    const bool known_version = header.version == trace::kChunkVersion;
    if (known_version) {
      switch (header.type) {
        case ChunkType::kEvents:
          return events(chunk);
        case ChunkType::kStrings:
        case ChunkType::kProcesses:
        case ChunkType::kDevices:
        case ChunkType::kLanes:
        case ChunkType::kFrames:
        case ChunkType::kCollectives:
        case ChunkType::kAttributes:
        case ChunkType::kFacts:
          return importer_->table(header.type, header.records, chunk.payload) ? Status{}
                                                                              : bad_content(chunk);
        case ChunkType::kBlobs:
          return blobs(chunk);
        case ChunkType::kWatermark: {
          trace::WatermarkRecord record;
          if (chunk.payload.size() != sizeof record) return bad_content(chunk);
          std::memcpy(&record, chunk.payload.data(), sizeof record);
          advance(record.end_ns);
          last_end_ns_ = std::max(last_end_ns_, record.end_ns);
          return {};
        }
        case ChunkType::kSources:
          return sources(chunk);
        case ChunkType::kRuns:
          return runs(chunk);
        case ChunkType::kProblems:
          return problems(chunk);
        case ChunkType::kEnd:
          return end(chunk);
      }
    }
    if ((header.flags & trace::kSkippable) != 0) return {};
    return end_early(Reason::kRecordSkipped, 1,
                     place(chunk.offset, fmt::format("chunk {} version {} is not known to this "
                                                     "version and may not be passed over",
                                                     chunk_name(header.type), header.version)));
  }

  Status events(const Chunk& chunk) {
    if (chunk.payload.size() != std::uint64_t{chunk.header.records} * sizeof(Event)) {
      return bad_content(chunk);
    }
    // The bytes are aligned, and an Event is any 64 of them.
    const std::span<Event> events(reinterpret_cast<Event*>(chunk.payload.data()),
                                  chunk.header.records);
    if (several() && events_in_runs_ != events.size()) {
      return end_early(Reason::kRecordSkipped, 1,
                       place(chunk.offset, "events that do not say which source they are of"));
    }
    seen_ += events.size();
    const bool as_they_are = importer_->identity();
    // Events are pushed in runs, between those that need something else.
    std::size_t begin = 0;
    EventSink* sink = sink_;
    const auto push_until = [&](std::size_t end) {
      if (begin < end) sink->push(std::span<const Event>(events).subspan(begin, end - begin));
      begin = end + 1;
    };
    const trace::RunRecord* run = runs_.data();
    std::size_t run_end = several() ? 0 : events.size();
    for (std::size_t i = 0; i < events.size(); ++i) {
      Event& event = events[i];
      for (; i == run_end; ++run) {
        push_until(i);
        begin = i;
        sink = sinks_[run->source];
        run_end += run->events;
      }
      if (!importer_->valid(event)) {
        push_until(i);
        PASTA_TRY(problem(Reason::kRecordSkipped, 1,
                          place(chunk.offset, fmt::format("event {} of the chunk refers to what is "
                                                          "not there, or is none",
                                                          i))));
        continue;
      }
      if (event.end_ns < last_part_end_ns_) {
        return fail(ErrorCode::kUsage,
                    fmt::format("{} and {} are copies of one trace, or parts of it that do not "
                                "follow each other in this order; give only one of them",
                                parts_[part_ - 1].path, path()));
      }
      if (event.end_ns < last_end_ns_) {
        push_until(i);
        PASTA_TRY(problem(Reason::kLate, 1,
                          place(chunk.offset, fmt::format("event {} of the chunk", i))));
        continue;
      }
      last_end_ns_ = event.end_ns;
      if (!as_they_are) importer_->map(event);
      if (event.kind == Kind::kDevice && event.device.blob) {
        push_until(i);
        PASTA_TRY(push_with_blob(*sink, event, chunk.offset));
      }
    }
    push_until(events.size());
    forget_runs();
    if (last_end_ns_ != kNoTime) advance(last_end_ns_);
    return {};
  }

  void advance(std::int64_t end_ns) {
    for (EventSink* sink : sinks_) sink->advance(end_ns);
  }

  Status push_with_blob(EventSink& sink, Event event, std::uint64_t offset) {
    const auto blob = blobs_.find(event.device.blob.value);
    event.device.blob = {};
    if (blob == blobs_.end()) {
      PASTA_TRY(problem(Reason::kMissingField, 1,
                        place(offset, "an event whose bytes are not in the file")));
      sink.push(std::span(&event, 1));
      return {};
    }
    sink.push(event, blob->second);
    blobs_.erase(blob);
    return {};
  }

  Status blobs(const Chunk& chunk) {
    std::span<const std::byte> rest = chunk.payload;
    for (std::uint32_t i = 0; i < chunk.header.records; ++i) {
      trace::BlobRecord record;
      if (rest.size() < sizeof record) return bad_content(chunk);
      std::memcpy(&record, rest.data(), sizeof record);
      rest = rest.subspan(sizeof record);
      if (rest.size() < trace::padded(record.bytes)) return bad_content(chunk);
      blobs_[record.id].assign(rest.begin(), rest.begin() + record.bytes);
      rest = rest.subspan(trace::padded(record.bytes));
    }
    return rest.empty() ? Status{} : bad_content(chunk);
  }

  static bool decode_sources(const Chunk& chunk, std::vector<SourceInfo>& infos) {
    std::span<const std::byte> rest = chunk.payload;
    for (std::uint32_t i = 0; i < chunk.header.records; ++i) {
      trace::SourceRecord record;
      if (rest.size() < sizeof record) return false;
      std::memcpy(&record, rest.data(), sizeof record);
      rest = rest.subspan(sizeof record);
      const std::uint64_t bytes =
          std::uint64_t{record.path_bytes} + record.format_bytes + record.label_bytes;
      if (rest.size() < trace::padded(bytes)) return false;
      const std::string_view text(reinterpret_cast<const char*>(rest.data()), bytes);
      SourceInfo& info = infos.emplace_back();
      info.path = text.substr(0, record.path_bytes);
      info.format = text.substr(record.path_bytes, record.format_bytes);
      info.label = text.substr(bytes - record.label_bytes);
      info.rank = record.rank;
      info.world_size = record.world_size;
      info.first_ns = record.first_ns;
      info.absolute_clock = record.absolute_clock != 0;
      rest = rest.subspan(trace::padded(bytes));
    }
    return rest.empty();
  }

  // Of a file that does not keep them apart. Problems name their source where there are several.
  Status sources(const Chunk& chunk) {
    std::vector<SourceInfo> infos;
    if (several() || !decode_sources(chunk, infos)) return bad_content(chunk);
    for (SourceInfo& info : infos) {
      source_names_.push_back(std::move(info.label.empty() ? info.path : info.label));
    }
    return {};
  }

  Status runs(const Chunk& chunk) {
    forget_runs();
    const std::uint64_t bytes = std::uint64_t{chunk.header.records} * sizeof(trace::RunRecord);
    if (!several() || bytes == 0 || chunk.payload.size() != bytes) return bad_content(chunk);
    runs_.resize(chunk.header.records);
    std::memcpy(runs_.data(), chunk.payload.data(), chunk.payload.size());
    for (const trace::RunRecord& run : runs_) {
      if (run.source >= sinks_.size() || run.events == 0) return bad_content(chunk);
      events_in_runs_ += run.events;
    }
    return {};
  }
  void forget_runs() {
    runs_.clear();
    events_in_runs_ = 0;
  }

  Status problems(const Chunk& chunk) {
    std::span<const std::byte> rest = chunk.payload;
    for (std::uint32_t i = 0; i < chunk.header.records; ++i) {
      trace::ProblemRecord record;
      if (rest.size() < sizeof record) return bad_content(chunk);
      std::memcpy(&record, rest.data(), sizeof record);
      rest = rest.subspan(sizeof record);
      if (rest.size() < trace::padded(record.first_bytes)) return bad_content(chunk);
      auto reason = static_cast<Reason>(record.reason);
      if (record.source >= source_names_.size() || reason == Reason::kNone) {
        return bad_content(chunk);
      }
      std::string first(reinterpret_cast<const char*>(rest.data()), record.first_bytes);
      rest = rest.subspan(trace::padded(record.first_bytes));
      if (source_names_.size() > 1 && !several()) {
        first = fmt::format("{}: {}", source_names_[record.source], first);
      }
      if (record.reason >= static_cast<std::uint32_t>(Reason::kCount)) {
        first = fmt::format("reason {} of a newer version: {}", record.reason, first);
        reason = Reason::kRecordSkipped;
      }
      // Not problem(): they are of the trace, and the file that tells them is whole.
      (several() ? sinks_[record.source] : sink_)->report({reason, record.count, std::move(first)});
    }
    return rest.empty() ? Status{} : bad_content(chunk);
  }

  Status end(const Chunk& chunk) {
    trace::EndRecord record;
    if (chunk.payload.size() != sizeof record) return bad_content(chunk);
    std::memcpy(&record, chunk.payload.data(), sizeof record);
    if (record.events == seen_ + lost_) return {};
    return problem(Reason::kCorruptChunk,
                   record.events > seen_ + lost_ ? record.events - seen_ - lost_ : 1,
                   place(chunk.offset, fmt::format("the file should hold {} events and holds {}",
                                                   record.events, seen_ + lost_)));
  }

  std::vector<Part> parts_;
  std::size_t part_ = 0;                     // that is read
  std::int64_t last_part_end_ns_ = kNoTime;  // where the parts before it end
  EventSink* sink_ = nullptr;
  std::vector<EventSink*> sinks_;       // of each source; the first is `sink_`
  std::optional<Chunk> first_;          // read ahead, by start()
  std::vector<trace::RunRecord> runs_;  // of the next chunk of events
  std::uint64_t events_in_runs_ = 0;
  bool strict_ = false;
  bool done_ = false;
  std::optional<trace::ProcessImport> process_import_;
  std::optional<Importer> importer_;
  std::int64_t last_end_ns_ = kNoTime;
  std::uint64_t seen_ = 0, lost_ = 0;
  std::unordered_map<std::uint32_t, std::vector<std::byte>> blobs_;  // not yet asked for
  std::vector<std::string> source_names_;
};

}  // namespace

bool sniff(std::span<const std::byte> head) {
  const std::size_t bytes = std::min(head.size(), trace::kMagic.size());
  return bytes > 0 && std::memcmp(head.data(), trace::kMagic.data(), bytes) == 0;
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  std::vector<Input> inputs;
  inputs.push_back(std::move(input));
  return open_run(std::move(inputs));
}

std::string run_of(std::string_view, std::span<const std::byte> head) {
  trace::FileHeader header;
  if (head.size() < sizeof header) return {};
  std::memcpy(&header, head.data(), sizeof header);
  // One of several sources is no part of anything.
  if (header.minor == trace::kFormatMinorOfSeveral || header.uuid == trace::Uuid{}) return {};
  return trace::uuid_text(header.uuid);
}

Result<std::unique_ptr<Adapter>> open_run(std::vector<Input> parts) {
  return std::make_unique<PastaFile>(std::move(parts));
}

}  // namespace pasta::adapters::pasta_file
