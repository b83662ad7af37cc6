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
  explicit PastaFile(Input input)
      : path_(std::move(input.path)), reader_(std::move(input.stream)) {}

  const AdapterInfo& info() const override { return kInfo; }

  Status start(const Plan& plan, EventSink& sink) override {
    sink_ = &sink;
    strict_ = plan.strict;
    auto whole = reader_.read_header();
    if (!whole) {
      Error error = std::move(whole).error();
      error.message = path_ + ": " + error.message;
      return tl::unexpected(std::move(error));
    }
    const trace::FileHeader& header = reader_.header();
    SourceInfo source{.path = path_, .format = std::string(kInfo.name), .label = {}};
    source.rank = header.rank;
    source.world_size = header.world_size;
    source.first_ns = *whole ? header.first_ns : kNoTime;
    source.absolute_clock = (header.flags & trace::kAbsoluteClock) != 0;
    sink.describe(source);
    importer_.emplace(sink.dictionary(), trace::uuid_text(header.uuid));
    if (!*whole) return end_early(Reason::kTruncated, 1, place(0, truncation()));
    return {};
  }

  // One chunk of events, with all chunks before it.
  Result<bool> pump() override {
    while (!done_) {
      auto chunk = reader_.next();
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
    }
    return false;
  }

  Status stop() override { return {}; }

 private:
  std::string truncation() const {
    return reader_.damage().empty() ? "the file ends inside a chunk or before its last one"
                                    : std::string(reader_.damage());
  }

  Status problem(Reason reason, std::uint64_t count, const std::string& first) {
    if (strict_) return fail(ErrorCode::kBadInput, path_ + ": " + first);
    sink_->report({reason, count, first});
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
    auto more = reader_.has_trailing_data();
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
          sink_->advance(record.end_ns);
          last_end_ns_ = std::max(last_end_ns_, record.end_ns);
          return {};
        }
        case ChunkType::kSources:
          return sources(chunk);
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
    seen_ += events.size();
    const bool as_they_are = importer_->identity();
    // Events are pushed in runs, between those that need something else.
    std::size_t begin = 0;
    const auto push_until = [&](std::size_t end) {
      if (begin < end) sink_->push(std::span<const Event>(events).subspan(begin, end - begin));
      begin = end + 1;
    };
    for (std::size_t i = 0; i < events.size(); ++i) {
      Event& event = events[i];
      if (!importer_->valid(event)) {
        push_until(i);
        PASTA_TRY(problem(Reason::kRecordSkipped, 1,
                          place(chunk.offset, fmt::format("event {} of the chunk refers to what is "
                                                          "not there, or is none",
                                                          i))));
        continue;
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
        PASTA_TRY(push_with_blob(event, chunk.offset));
      }
    }
    push_until(events.size());
    if (last_end_ns_ != kNoTime) sink_->advance(last_end_ns_);
    return {};
  }

  Status push_with_blob(Event event, std::uint64_t offset) {
    const auto blob = blobs_.find(event.device.blob.value);
    event.device.blob = {};
    if (blob == blobs_.end()) {
      PASTA_TRY(problem(Reason::kMissingField, 1,
                        place(offset, "an event whose bytes are not in the file")));
      sink_->push(std::span(&event, 1));
      return {};
    }
    sink_->push(event, blob->second);
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

  // Problems name their source where the file is of several.
  Status sources(const Chunk& chunk) {
    std::span<const std::byte> rest = chunk.payload;
    for (std::uint32_t i = 0; i < chunk.header.records; ++i) {
      trace::SourceRecord record;
      if (rest.size() < sizeof record) return bad_content(chunk);
      std::memcpy(&record, rest.data(), sizeof record);
      rest = rest.subspan(sizeof record);
      const std::uint64_t bytes =
          std::uint64_t{record.path_bytes} + record.format_bytes + record.label_bytes;
      if (rest.size() < trace::padded(bytes)) return bad_content(chunk);
      const std::string_view text(reinterpret_cast<const char*>(rest.data()), bytes);
      const std::string_view label = text.substr(bytes - record.label_bytes);
      source_names_.emplace_back(label.empty() ? text.substr(0, record.path_bytes) : label);
      rest = rest.subspan(trace::padded(bytes));
    }
    return rest.empty() ? Status{} : bad_content(chunk);
  }

  Status problems(const Chunk& chunk) {
    std::span<const std::byte> rest = chunk.payload;
    for (std::uint32_t i = 0; i < chunk.header.records; ++i) {
      trace::ProblemRecord record;
      if (rest.size() < sizeof record) return bad_content(chunk);
      std::memcpy(&record, rest.data(), sizeof record);
      rest = rest.subspan(sizeof record);
      if (rest.size() < trace::padded(record.first_bytes)) return bad_content(chunk);
      if (record.source >= source_names_.size()) return bad_content(chunk);
      std::string first(reinterpret_cast<const char*>(rest.data()), record.first_bytes);
      rest = rest.subspan(trace::padded(record.first_bytes));
      if (source_names_.size() > 1)
        first = fmt::format("{}: {}", source_names_[record.source], first);
      auto reason = static_cast<Reason>(record.reason);
      if (record.reason >= static_cast<std::uint32_t>(Reason::kCount)) {
        first = fmt::format("reason {} of a newer version: {}", record.reason, first);
        reason = Reason::kRecordSkipped;
      }
      // Not problem(): they are of the trace, and the file that tells them is whole.
      sink_->report({reason, record.count, std::move(first)});
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

  std::string path_;
  trace::PastaReader reader_;
  EventSink* sink_ = nullptr;
  bool strict_ = false;
  bool done_ = false;
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
  return std::make_unique<PastaFile>(std::move(input));
}

}  // namespace pasta::adapters::pasta_file
