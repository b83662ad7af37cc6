#include "adapters/pasta_file/pasta_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>

#include "base/input.h"
#include "trace/format.h"
#include "trace/pasta_writer.h"
#include "trace/test_support.h"

namespace pasta::adapters::pasta_file {
namespace {

using trace::ChunkFlag;
using trace::ChunkHeader;
using trace::ChunkType;
using trace::FileHeader;
using trace::KeepingSink;
using Bytes = std::vector<std::byte>;

Bytes written(const KeepingSink& from, trace::PastaWriterOptions options = {}) {
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  auto writer = trace::make_pasta_writer(path, options);
  EXPECT_TRUE(writer.has_value());
  const Status status = replay(from, **writer);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return trace::read_file(path);
}

Bytes sample(std::size_t chunk_events = 1, bool compress = false) {
  KeepingSink sink;
  fill_sample(sink);
  return written(sink,
                 {.compress = compress, .chunk_events = chunk_events, .uuid = trace::Uuid{1}});
}

// Reads `bytes`; the reader must take every cut and every damage as data, not as an error.
Status read(const Bytes& bytes, KeepingSink& sink, bool strict = false) {
  auto adapter = open({.path = "t.pasta", .head = {}, .stream = base::memory_stream(bytes)});
  EXPECT_TRUE(adapter.has_value());
  Plan plan;
  plan.strict = strict;
  return drive(**adapter, sink, plan);
}

struct Place {
  ChunkHeader header;
  std::size_t begin = 0, end = 0;
};
std::vector<Place> chunks_of(const Bytes& bytes) {
  std::vector<Place> places;
  for (std::size_t at = sizeof(FileHeader); at < bytes.size();) {
    Place place;
    place.begin = at;
    std::memcpy(&place.header, bytes.data() + at, sizeof place.header);
    at += sizeof place.header + trace::padded(place.header.stored_bytes);
    place.end = at;
    places.push_back(place);
  }
  return places;
}

Bytes chunk(ChunkHeader header, Bytes payload) {
  if (header.stored_bytes == 0) header.stored_bytes = header.plain_bytes = payload.size();
  payload.resize(trace::padded(payload.size()));
  seal(header, payload);
  Bytes bytes(sizeof header + payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), bytes.begin() + sizeof header);
  return bytes;
}
Bytes with_inserted(Bytes bytes, std::size_t at, const Bytes& more) {
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  return bytes;
}

// Without what says which file it was.
std::string content(KeepingSink& sink) {
  sink.source.path = "t.txt";
  sink.source.format = "text";
  return as_text(sink);
}

// The hex dump of docs/format.md, without its notes.
Bytes documented_file() {
  std::ifstream page(std::string(PASTA_SOURCE_DIR) + "/docs/format.md");
  Bytes bytes;
  for (std::string line; std::getline(page, line);) {
    if (line.size() < 12 || line.find(": ") != 8) continue;
    std::size_t offset = 0;
    if (std::sscanf(line.c_str(), "%8zx:", &offset) != 1) continue;
    EXPECT_EQ(offset, bytes.size()) << line;
    unsigned byte = 0;
    for (std::size_t at = 10; at < line.size() && line[at] != ' '; at += 3) {
      EXPECT_EQ(std::sscanf(line.c_str() + at, "%2x", &byte), 1) << line;
      bytes.push_back(static_cast<std::byte>(byte));
    }
  }
  return bytes;
}

TEST(PastaFile, IsWrittenByteForByteAsDocumented) {
  KeepingSink sink;
  Dictionary& d = sink.dictionary_;
  const ProcessId p = d.process({.native_id = 42});
  const DeviceId device = d.device({.process = p, .type = DeviceType::kGpu});
  Event event{};
  event.kind = Kind::kKernel;
  event.start_ns = 100;
  event.end_ns = 130;
  event.lane = d.lane({.type = LaneType::kQueue, .process = p, .device = device, .native_id = 7});
  event.name = d.string("gemm");
  event.kernel = {{24, 1, 1}, {}, 0, 0};
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  trace::Uuid uuid;
  for (std::uint8_t i = 0; i < uuid.size(); ++i) uuid[i] = i;
  auto writer = trace::make_pasta_writer(path, {.uuid = uuid});
  ASSERT_TRUE((*writer)->begin(d).has_value());
  ASSERT_TRUE((*writer)->record(std::span(&event, 1)).has_value());
  ASSERT_TRUE((*writer)->end({}, {}).has_value());
  EXPECT_EQ(trace::read_file(path), documented_file());
}

class RoundTrip : public testing::TestWithParam<std::tuple<std::size_t, bool>> {};

TEST_P(RoundTrip, KeepsEverything) {
  const auto [chunk_events, compress] = GetParam();
  KeepingSink original;
  fill_sample(original);
  KeepingSink back;
  const Bytes bytes = sample(chunk_events, compress);
  ASSERT_TRUE(sniff(bytes));
  ASSERT_TRUE(read(bytes, back, true).has_value());
  EXPECT_EQ(content(back), content(original));
  // Into an empty dictionary even the ids are the same.
  ASSERT_EQ(back.events.size(), original.events.size());
  EXPECT_EQ(std::memcmp(back.events.data(), original.events.data(),
                        original.events.size() * sizeof(Event)),
            0);
}
INSTANTIATE_TEST_SUITE_P(Chunks, RoundTrip,
                         testing::Combine(testing::Values(1u, 3u, 8192u), testing::Bool()));

TEST(PastaFile, GivesIdsOfASessionThatHasOthers) {
  KeepingSink original;
  fill_sample(original);
  KeepingSink back;
  Dictionary& d = back.dictionary_;
  const ProcessId other = d.process({.native_id = 1, .name = d.string("other")});
  const DeviceId device = d.device({.process = other, .name = d.string("gpu")});
  d.lane({.type = LaneType::kQueue, .process = other, .device = device});
  d.frame({{}, d.string("frame"), ScopeDomain::kModule});
  d.attributes({.block = {1, 1, 1}, .collective = d.collective({.name = d.string("gather")})});
  ASSERT_TRUE(read(sample(), back, true).has_value());
  EXPECT_EQ(correlation_process(back.events[2].correlation), ProcessId{2});

  std::string expected = content(original), got = content(back);
  // The strangers are told at the end, and all handles of the trace are the same.
  const std::size_t before_source = expected.find("device D2");
  ASSERT_NE(before_source, std::string::npos);
  EXPECT_EQ(got.substr(0, before_source), expected.substr(0, before_source));
  EXPECT_NE(got, expected);
}

TEST(PastaFile, EqualProcessesOfDifferentFilesStayApart) {
  KeepingSink both;
  ASSERT_TRUE(read(sample(), both, true).has_value());
  const std::size_t events = both.events.size();
  both.described = 0;
  both.watermark = kNoTime;
  ASSERT_TRUE(read(sample(), both, true).has_value());
  for (std::size_t i = 0; i < events; ++i) {
    const Dictionary& d = both.dictionary_;
    const LaneId a = both.events[i].lane, b = both.events[events + i].lane;
    EXPECT_NE(a, b);
    EXPECT_EQ(d.lane(a).native_id, d.lane(b).native_id);
    EXPECT_NE(d.lane(a).process, d.lane(b).process);
  }
}

TEST(PastaFile, ACutAnywhereGivesTheExactPrefix) {
  const Bytes whole = sample();
  KeepingSink all;
  ASSERT_TRUE(read(whole, all, true).has_value());
  const std::vector<Place> places = chunks_of(whole);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const Bytes bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut));
    const auto expected =
        static_cast<std::size_t>(std::count_if(places.begin(), places.end(), [&](const Place& p) {
          return p.header.type == ChunkType::kEvents && p.end <= cut;
        }));
    KeepingSink sink;
    const Status status = read(bytes, sink);
    ASSERT_TRUE(status.has_value()) << cut << ": " << status.error().message;
    ASSERT_EQ(sink.events.size(), expected) << cut;
    ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(sink.events)),
                                   std::as_bytes(std::span(all.events).first(expected))))
        << cut;
    ASSERT_EQ(sink.count(Reason::kTruncated), 1u) << cut;
    ASSERT_EQ(sink.described, 1) << cut;
    // The start of the trace is known as soon as the header is there.
    ASSERT_EQ(sink.source.first_ns, cut < sizeof(FileHeader) ? kNoTime : all.source.first_ns);
    KeepingSink strict;
    ASSERT_FALSE(read(bytes, strict, true).has_value()) << cut;
  }
}

void expect_flips_are_found(const Bytes& whole) {
  const std::vector<Place> places = chunks_of(whole);
  KeepingSink all;
  ASSERT_TRUE(read(whole, all, true).has_value());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const std::size_t bit : {at % 8, 7 - at % 8}) {
      Bytes bytes = whole;
      bytes[at] ^= std::byte{1} << static_cast<int>(bit);
      KeepingSink sink;
      const Status status = read(bytes, sink);
      if (at < sizeof(FileHeader)) {
        ASSERT_FALSE(status.has_value()) << at;
        continue;
      }
      ASSERT_TRUE(status.has_value()) << at << ": " << status.error().message;
      ASSERT_GE(sink.count(Reason::kCorruptChunk), 1u) << at;
      ASSERT_LE(sink.events.size(), all.events.size()) << at;
      // What is given is what was written: damage never becomes an event.
      auto from = all.events.begin();
      for (const Event& event : sink.events) {
        from = std::find_if(from, all.events.end(), [&](Event e) {
          // The sink numbers blobs as they come.
          if (e.kind == Kind::kDevice) e.device.blob = event.device.blob;
          return std::memcmp(&e, &event, sizeof e) == 0;
        });
        ASSERT_NE(from, all.events.end()) << at;
        ++from;
      }
      KeepingSink strict;
      ASSERT_FALSE(read(bytes, strict, true).has_value()) << at;
    }
  }
}
TEST(PastaFile, OneFlippedBitAnywhereIsFound) { expect_flips_are_found(sample()); }
TEST(PastaFile, OneFlippedBitAnywhereIsFoundCompressed) { expect_flips_are_found(sample(5, true)); }

TEST(PastaFile, ADamagedChunkOfEventsCostsOnlyItsEvents) {
  Bytes bytes = sample(4);
  const std::vector<Place> places = chunks_of(bytes);
  const auto events = std::find_if(places.begin(), places.end(), [](const Place& p) {
    return p.header.type == ChunkType::kEvents;
  });
  bytes[events->begin + sizeof(ChunkHeader) + 100] ^= std::byte{1};
  KeepingSink sink;
  ASSERT_TRUE(read(bytes, sink).has_value());
  KeepingSink original;
  fill_sample(original);
  EXPECT_EQ(sink.count(Reason::kCorruptChunk), 4u);
  EXPECT_EQ(sink.events.size(), original.events.size() - 4);
  EXPECT_EQ(sink.count(Reason::kLaunchNotSeen), 3u) << "what follows is read";
}

TEST(PastaFile, ADamagedTableEndsTheReading) {
  Bytes bytes = sample(4);
  const std::vector<Place> places = chunks_of(bytes);
  ASSERT_EQ(places[0].header.type, ChunkType::kStrings);
  bytes[places[0].begin + sizeof(ChunkHeader)] ^= std::byte{1};
  KeepingSink sink;
  ASSERT_TRUE(read(bytes, sink).has_value());
  EXPECT_EQ(sink.count(Reason::kCorruptChunk), 1u);
  EXPECT_TRUE(sink.events.empty());
}

TEST(PastaFile, ALostChunkIsMissed) {
  const Bytes bytes = sample(4);
  const std::vector<Place> places = chunks_of(bytes);
  const auto events = std::find_if(places.begin(), places.end(), [](const Place& p) {
    return p.header.type == ChunkType::kEvents;
  });
  Bytes without = bytes;
  without.erase(without.begin() + static_cast<std::ptrdiff_t>(events->begin),
                without.begin() + static_cast<std::ptrdiff_t>(events->end));
  KeepingSink sink;
  ASSERT_TRUE(read(without, sink).has_value());
  EXPECT_EQ(sink.count(Reason::kCorruptChunk), 4u);
}

TEST(PastaFile, ANewerVersionIsRefusedByName) {
  Bytes bytes = sample();
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.major = 2;
  header.checksum = header_checksum(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  KeepingSink sink;
  const Status status = read(bytes, sink);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(status.error().message,
            "t.pasta: written by a newer pastaprof, format 2.x; this one reads up to 1.x");

  header.major = 1;
  header.minor = 9;  // only adds what may be passed over
  header.checksum = header_checksum(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  KeepingSink newer;
  EXPECT_TRUE(read(bytes, newer, true).has_value());
}

TEST(PastaFile, UnknownChunksArePassedOverOnlyWhenTheySaySo) {
  const Bytes whole = sample();
  const ChunkHeader unknown{.type = ChunkType{trace::four_letters("NEWS")}, .records = 1};
  ChunkHeader skippable = unknown;
  skippable.flags = ChunkFlag::kSkippable;
  ChunkHeader newer_events{.type = ChunkType::kEvents, .version = 2, .records = 1};

  KeepingSink all, some, none, newer;
  ASSERT_TRUE(read(whole, all, true).has_value());
  ASSERT_TRUE(read(with_inserted(whole, sizeof(FileHeader), chunk(skippable, Bytes(3))), some, true)
                  .has_value());
  EXPECT_EQ(content(some), content(all));
  ASSERT_TRUE(
      read(with_inserted(whole, sizeof(FileHeader), chunk(unknown, Bytes(3))), none).has_value());
  EXPECT_EQ(none.count(Reason::kRecordSkipped), 1u);
  EXPECT_TRUE(none.events.empty());
  ASSERT_TRUE(read(with_inserted(whole, sizeof(FileHeader), chunk(newer_events, Bytes(64))), newer)
                  .has_value());
  EXPECT_EQ(newer.count(Reason::kRecordSkipped), 1u);
}

TEST(PastaFile, HugeLengthsTakeNoMemory) {
  const Bytes whole = sample();
  for (const std::uint64_t length : {trace::kMaxChunkBytes, trace::kMaxChunkBytes + 1,
                                     ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    for (const std::uint16_t flags : {std::uint16_t{0}, std::uint16_t{ChunkFlag::kZstd}}) {
      ChunkHeader header{.type = ChunkType::kStrings,
                         .flags = flags,
                         .stored_bytes = length,
                         .plain_bytes = length,
                         .records = ~0u};
      Bytes bytes(whole.begin(), whole.begin() + sizeof(FileHeader));
      const Bytes huge = chunk(header, Bytes(16));
      bytes.insert(bytes.end(), huge.begin(), huge.end());
      KeepingSink sink;
      ASSERT_TRUE(read(bytes, sink).has_value());
      EXPECT_EQ(sink.problems.list().size(), 1u);
      EXPECT_TRUE(sink.events.empty());
    }
  }
}

TEST(PastaFile, HostileContentUnderRightChecksumsIsNotBelieved) {
  const Bytes whole = sample();
  const auto u32 = [](std::initializer_list<std::uint32_t> values) {
    const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
    return Bytes(bytes.begin(), bytes.end());
  };
  const struct {
    ChunkType type;
    std::uint32_t records;
    Bytes payload;
  } kCases[] = {
      {ChunkType::kStrings, 1, u32({0xffffffff, 0})},  // an id far away
      {ChunkType::kStrings, 1, u32({1, 0xffffffff})},  // a length far away
      {ChunkType::kStrings, 1000000, u32({1, 0})},     // more records than there are
      {ChunkType::kStrings, 1, u32({0, 0})},           // none has no text
      {ChunkType::kFrames, 1, u32({1, 1, 0, 0})},      // its own parent
      {ChunkType::kFrames, 1, u32({1, 0, 99, 0})},     // a name that is not there
      {ChunkType::kLanes, 1, Bytes(39)},               // no whole record
      {ChunkType::kFacts, 1, u32({0xffffffff, 0xffffffff})},
      {ChunkType::kBlobs, 1, u32({1, 0xfffffff9})},
      {ChunkType::kSources, 1, Bytes(31)},
      {ChunkType::kProblems, 1, u32({1, 0, 7, 1, 0, 0})},  // of a source that is not there
      {ChunkType::kEvents, 2, Bytes(64)},
      {ChunkType::kEnd, 1, Bytes(7)},
      {ChunkType::kWatermark, 1, Bytes(9)},
  };
  for (const auto& c : kCases) {
    KeepingSink sink;
    const Bytes bad = chunk({.type = c.type, .records = c.records}, c.payload);
    ASSERT_TRUE(read(with_inserted(whole, sizeof(FileHeader), bad), sink).has_value());
    EXPECT_EQ(sink.count(Reason::kRecordSkipped), 1u) << chunk_name(c.type);
    EXPECT_TRUE(sink.events.empty()) << chunk_name(c.type);
  }
}

TEST(PastaFile, AProblemOfNoReasonIsNone) {
  const Bytes whole = sample();
  const struct {
    std::uint64_t count = 3;
    std::uint32_t source = 0, reason = 0, first_bytes = 0, reserved = 0;
  } record;
  const auto bytes = std::as_bytes(std::span(&record, 1));
  const Bytes bad =
      chunk({.type = ChunkType::kProblems, .records = 1}, {bytes.begin(), bytes.end()});
  KeepingSink sink;
  // Before the end, where the source is known.
  ASSERT_TRUE(read(with_inserted(whole, chunks_of(whole).back().begin, bad), sink).has_value());
  EXPECT_EQ(sink.count(Reason::kNone), 0u);
  EXPECT_EQ(sink.count(Reason::kRecordSkipped), 1u);
}

TEST(PastaFile, EventsThatReferToNothingAreDroppedAndCounted) {
  KeepingSink original;
  fill_sample(original);
  const auto events_with = [&](auto&& change) {
    Event event = original.events.back();
    change(event);
    Bytes payload(sizeof event);
    std::memcpy(payload.data(), &event, sizeof event);
    const Bytes whole = sample();
    const Bytes bad = chunk({.type = ChunkType::kEvents, .records = 1}, payload);
    // Before the last three chunks: sources, problems, end.
    const auto places = chunks_of(whole);
    auto sink = std::make_unique<KeepingSink>();
    EXPECT_TRUE(
        read(with_inserted(whole, places[places.size() - 3].begin, bad), *sink).has_value());
    return sink;
  };
  EXPECT_EQ(events_with([](Event&) {})->events.size(), original.events.size() + 1);
  const auto expect_skipped = [&](auto&& change) {
    const auto sink_events = events_with(change);
    EXPECT_EQ(sink_events->count(Reason::kRecordSkipped), 1u);
    EXPECT_EQ(sink_events->events.size(), original.events.size());
  };
  expect_skipped([](Event& e) { e.name = {1u << 30}; });
  expect_skipped([](Event& e) { e.lane = {99}; });
  expect_skipped([](Event& e) { e.scope = {99}; });
  expect_skipped([](Event& e) { e.correlation = ~std::uint64_t{0}; });
  expect_skipped([](Event& e) { e.kind = Kind{200}; });
  expect_skipped([](Event& e) { e.flags = kUntimed; });
  expect_skipped([](Event& e) { e.end_ns = e.start_ns - 1; });
  expect_skipped([](Event& e) { e.kind = Kind::kKernel, e.kernel.attributes = {99}; });
  const auto late = events_with([](Event& e) { e.start_ns = e.end_ns = 1; });
  EXPECT_EQ(late->count(Reason::kLate), 1u);
}

TEST(PastaFile, BytesAfterTheEndAreCounted) {
  Bytes bytes = sample();
  bytes.push_back(std::byte{0});
  KeepingSink sink;
  ASSERT_TRUE(read(bytes, sink).has_value());
  EXPECT_EQ(sink.count(Reason::kTrailingData), 1u);
}

TEST(PastaFile, AWatermarkAdvances) {
  const Bytes whole = sample();
  std::int64_t end_ns = -100;
  Bytes payload(sizeof end_ns);
  std::memcpy(payload.data(), &end_ns, sizeof end_ns);
  KeepingSink sink;
  const Bytes mark = chunk({.type = ChunkType::kWatermark, .records = 1}, payload);
  // The untimed event that follows is late now.
  ASSERT_TRUE(read(with_inserted(whole, sizeof(FileHeader), mark), sink).has_value());
  EXPECT_EQ(sink.count(Reason::kLate), 1u);
}

TEST(PastaFile, SeveralSourcesBecomeOneAndKeepTheirNames) {
  KeepingSink original;
  fill_sample(original);
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  const std::vector<SourceInfo> sources = {{.path = "a.json",
                                            .format = "kineto",
                                            .label = "rank 0",
                                            .rank = 0,
                                            .world_size = 2,
                                            .first_ns = 5,
                                            .absolute_clock = true},
                                           {.path = "b.json",
                                            .format = "kineto",
                                            .label = {},
                                            .rank = 1,
                                            .world_size = 2,
                                            .first_ns = kNoTime,
                                            .absolute_clock = false}};
  const std::vector<std::vector<Problem>> problems = {{{Reason::kDuplicate, 2, "x"}},
                                                      {{Reason::kUntimed, 1, "y"}}};
  auto writer = trace::make_pasta_writer(path);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE((*writer)->begin(original.dictionary_).has_value());
  ASSERT_TRUE((*writer)->end(sources, problems).has_value());
  KeepingSink back;
  ASSERT_TRUE(read(trace::read_file(path), back, true).has_value());
  EXPECT_EQ(back.source.rank, -1);
  EXPECT_EQ(back.source.world_size, 2);
  EXPECT_EQ(back.source.first_ns, 5);
  EXPECT_FALSE(back.source.absolute_clock);
  ASSERT_EQ(back.problems.list().size(), 2u);
  EXPECT_EQ(back.problems.list()[0], (Problem{Reason::kDuplicate, 2, "rank 0: x"}));
  EXPECT_EQ(back.problems.list()[1], (Problem{Reason::kUntimed, 1, "b.json: y"}));
}

// Tells the sources of a file apart.
class Apart final : public EventSink {
 public:
  Apart() : dictionary_(std::make_shared<Dictionary>()) {}
  explicit Apart(const Apart& first) : dictionary_(first.dictionary_) {}
  Dictionary& dictionary() override { return *dictionary_; }
  void describe(const SourceInfo& described) override { info = described; }
  EventSink& add_source(const SourceInfo& described) override {
    more.push_back(std::make_unique<Apart>(*this));
    more.back()->describe(described);
    return *more.back();
  }
  void push(std::span<const Event> pushed) override {
    for (const Event& event : pushed) ends.push_back(event.end_ns);
  }
  void push(Event event, std::span<const std::byte>) override { push(std::span(&event, 1)); }
  void advance(std::int64_t end_ns) override { watermark = end_ns; }
  void report(const Problem& problem) override { problems.push_back(problem); }

  SourceInfo info;
  std::vector<std::int64_t> ends;
  std::vector<Problem> problems;
  std::int64_t watermark = kNoTime;
  std::vector<std::unique_ptr<Apart>> more;

 private:
  std::shared_ptr<Dictionary> dictionary_;
};

// Its events in turns from three sources, of which the second has only a problem.
Bytes of_several(const KeepingSink& original, std::size_t chunk_events) {
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  std::vector<SourceInfo> sources(3);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    sources[i].path = fmt::format("{}.json", i);
    sources[i].format = "kineto_json";
    sources[i].rank = static_cast<std::int32_t>(i);
    sources[i].label = fmt::format("rank {}", i);
  }
  auto writer = trace::make_pasta_writer(path, {.chunk_events = chunk_events});
  Recorder& out = **writer;
  EXPECT_TRUE(out.begin(original.dictionary_).has_value());
  EXPECT_TRUE(out.sources(sources).has_value());
  for (std::uint32_t i = 0; i < original.blobs.size(); ++i) {
    EXPECT_TRUE(out.record_blob(BlobId{i + 1}, original.blobs[i]).has_value());
  }
  for (std::size_t i = 0; i < original.events.size(); ++i) {
    out.from(i % 3 == 0 ? 0 : 2);
    EXPECT_TRUE(out.record(std::span(original.events).subspan(i, 1)).has_value());
  }
  const std::vector<std::vector<Problem>> problems = {{}, {{Reason::kDuplicate, 2, "x"}}, {}};
  EXPECT_TRUE(out.end(sources, problems).has_value());
  return trace::read_file(path);
}

TEST(PastaFile, SourcesThatWereMergedStayApart) {
  KeepingSink original;
  fill_sample(original);
  for (const std::size_t chunk_events : {std::size_t{1}, std::size_t{4}, std::size_t{1000}}) {
    const Bytes bytes = of_several(original, chunk_events);
    Apart first;
    auto adapter = open({.path = "t.pasta", .head = {}, .stream = base::memory_stream(bytes)});
    ASSERT_TRUE(trace::drive(**adapter, first).has_value());
    ASSERT_EQ(first.more.size(), 2u);
    const std::array<Apart*, 3> all = {&first, first.more[0].get(), first.more[1].get()};
    std::vector<std::int64_t> ends[3];
    for (std::size_t i = 0; i < original.events.size(); ++i) {
      ends[i % 3 == 0 ? 0 : 2].push_back(original.events[i].end_ns);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i]->ends, ends[i]);
      EXPECT_EQ(all[i]->info.path, fmt::format("t.pasta:{}.json", i));
      EXPECT_EQ(all[i]->info.format, "kineto_json");
      EXPECT_EQ(all[i]->info.rank, static_cast<std::int32_t>(i));
      EXPECT_EQ(all[i]->info.label, fmt::format("rank {}", i));
      EXPECT_EQ(all[i]->watermark, original.events.back().end_ns);
      EXPECT_EQ(all[i]->problems.size(), i == 1 ? 1u : 0u);
    }
    EXPECT_EQ(all[1]->problems[0], (Problem{Reason::kDuplicate, 2, "x"}));
    EXPECT_EQ(run_of("t.pasta", bytes), "") << "it is no part of anything";
  }
}

TEST(PastaFile, OfSeveralSourcesAnyCutAndAnyDamageIsSaid) {
  KeepingSink original;
  fill_sample(original);
  const Bytes whole = of_several(original, 3);
  for (std::size_t size = sizeof(FileHeader); size < whole.size(); ++size) {
    KeepingSink sink;
    ASSERT_TRUE(read(Bytes(whole.begin(), whole.begin() + size), sink).has_value());
    EXPECT_FALSE(sink.problems.list().empty()) << "cut at " << size;
  }
  for (std::size_t at = sizeof(FileHeader); at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= std::byte{0x10};
    KeepingSink sink;
    ASSERT_TRUE(read(damaged, sink).has_value());
    EXPECT_GT(sink.problems.list().size(), 0u) << "damaged at " << at;
  }
}

TEST(PastaFile, RunsOfNoEventsAreDamage) {
  KeepingSink original;
  fill_sample(original);
  const Bytes whole = of_several(original, 3);
  const Bytes bad = chunk({.type = ChunkType::kRuns, .records = 0}, {});
  KeepingSink sink;
  ASSERT_TRUE(read(with_inserted(whole, chunks_of(whole).back().begin, bad), sink).has_value());
  EXPECT_EQ(sink.count(Reason::kRecordSkipped), 1u);
}

TEST(PastaFile, CopiesOfATraceAreNoPartsOfIt) {
  const Bytes bytes = sample();
  EXPECT_NE(run_of("t.pasta", bytes), "");
  std::vector<Input> inputs;
  for (const char* path : {"a.pasta", "b.pasta"}) {
    inputs.push_back({.path = path, .head = bytes, .stream = base::memory_stream(bytes)});
  }
  auto adapter = open_run(std::move(inputs));
  ASSERT_TRUE(adapter.has_value());
  KeepingSink sink;
  const Status status = drive(**adapter, sink);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  EXPECT_NE(status.error().message.find("a.pasta and b.pasta"), std::string::npos)
      << status.error().message;
}

TEST(PastaWriter, ADeadWriterLeavesAReadableFileButNotUnderItsName) {
  KeepingSink original;
  fill_sample(original);
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  {
    auto writer = trace::make_pasta_writer(path, {.chunk_events = 4});
    ASSERT_TRUE((*writer)->begin(original.dictionary_).has_value());
    ASSERT_TRUE((*writer)->record(std::span(original.events).first(9)).has_value());
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_EQ(folder.files(), 1u);
    std::string temporary;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(path).parent_path())) {
      temporary = entry.path().string();
    }
    EXPECT_TRUE(temporary.starts_with(path + ".tmp-")) << temporary;
    KeepingSink sink;
    ASSERT_TRUE(read(trace::read_file(temporary), sink).has_value());
    EXPECT_EQ(sink.events.size(), 8u);
    EXPECT_EQ(sink.count(Reason::kTruncated), 1u);
    EXPECT_EQ(sink.source.first_ns, -5) << "the header was kept up to date";
  }
  EXPECT_EQ(folder.files(), 0u);
}

TEST(PastaWriter, DoesNotOverwriteUnlessTold) {
  KeepingSink original;
  fill_sample(original);
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  std::ofstream(path) << "mine";
  const auto refused = trace::make_pasta_writer(path);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(trace::read_file(path).size(), 4u);
  auto writer = trace::make_pasta_writer(path, {.overwrite = true});
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(replay(original, **writer).has_value());
  EXPECT_TRUE(sniff(trace::read_file(path)));

  const std::string raced = folder.file("raced.pasta");
  auto second = trace::make_pasta_writer(raced);
  std::ofstream(raced) << "mine";
  EXPECT_FALSE(replay(original, **second).has_value());
  EXPECT_EQ(trace::read_file(raced).size(), 4u);
  EXPECT_FALSE(trace::make_pasta_writer(folder.file("")).has_value()) << "a folder";
  EXPECT_FALSE(trace::make_pasta_writer(folder.file("no/such/t.pasta")).has_value());
}

TEST(PastaWriter, ADeviceFileIsWrittenNotReplaced) {
  KeepingSink original;
  fill_sample(original);
  auto writer = trace::make_pasta_writer("/dev/null");
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(replay(original, **writer).has_value());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(PastaWriter, NamesThatComeLaterAreKept) {
  KeepingSink original;
  Dictionary& d = original.dictionary_;
  const ProcessId p = d.process({.native_id = 1});
  const LaneId lane = d.lane({.process = p, .native_id = 2});
  Event event{};
  event.lane = lane;
  event.name = d.string("a");
  const trace::TempFolder folder;
  const std::string path = folder.file("t.pasta");
  auto writer = trace::make_pasta_writer(path, {.chunk_events = 1});
  ASSERT_TRUE((*writer)->begin(d).has_value());
  ASSERT_TRUE((*writer)->record(std::span(&event, 1)).has_value());
  d.update(p, {.name = d.string("python"), .rank = 3, .world_size = 4});
  d.update(lane, d.string("main"));
  ASSERT_TRUE((*writer)->end({}, {}).has_value());
  KeepingSink back;
  ASSERT_TRUE(read(trace::read_file(path), back, true).has_value());
  const Lane read_lane = back.dictionary_.lane(back.events[0].lane);
  EXPECT_EQ(back.dictionary_.text(read_lane.name), "main");
  EXPECT_EQ(back.dictionary_.text(back.dictionary_.process(read_lane.process).name), "python");
  EXPECT_EQ(back.dictionary_.process(read_lane.process).rank, 3);
}

}  // namespace
}  // namespace pasta::adapters::pasta_file
