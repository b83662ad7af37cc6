// For tests of what writes and reads traces.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/recorder.h"
#include "trace/text_form.h"

namespace pasta::trace {

// Keeps what an adapter gives, and holds it to the contract of EventSink.
class KeepingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo& info) override {
    EXPECT_EQ(described, 0) << "described twice";
    ++described;
    source = info;
  }
  void push(std::span<const Event> pushed) override {
    EXPECT_EQ(described, 1) << "pushed before it was described";
    for (const Event& event : pushed) {
      EXPECT_GE(event.end_ns, watermark);
      watermark = event.end_ns;
      events.push_back(event);
    }
  }
  void push(Event event, std::span<const std::byte> bytes) override {
    blobs.emplace_back(bytes.begin(), bytes.end());
    event.device.blob = {static_cast<std::uint32_t>(blobs.size())};
    push(std::span(&event, 1));
  }
  void advance(std::int64_t end_ns) override {
    EXPECT_GE(end_ns, watermark);
    watermark = end_ns;
  }
  void report(const Problem& problem) override {
    problems.add(problem.reason, problem.count, problem.first);
  }

  Dictionary dictionary_;
  int described = 0;
  SourceInfo source;
  std::vector<Event> events;
  std::vector<std::vector<std::byte>> blobs;  // BlobId - 1
  Problems problems;
  std::int64_t watermark = kNoTime;

  [[nodiscard]] std::uint64_t count(Reason reason) const {
    for (const Problem& p : problems.list()) {
      if (p.reason == reason) return p.count;
    }
    return 0;
  }
};

inline Status drive(Adapter& adapter, EventSink& sink, const Plan& plan = {}) {
  PASTA_TRY(adapter.start(plan, sink));
  for (;;) {
    auto more = adapter.pump();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) return adapter.stop();
  }
}

// Gives `recorder` all that `sink` got.
inline Status replay(const KeepingSink& sink, Recorder& recorder) {
  PASTA_TRY(recorder.begin(sink.dictionary_));
  for (std::uint32_t i = 0; i < sink.blobs.size(); ++i) {
    PASTA_TRY(recorder.record_blob(BlobId{i + 1}, sink.blobs[i]));
  }
  PASTA_TRY(recorder.record(sink.events));
  const auto list = sink.problems.list();
  const std::vector<Problem> problems(list.begin(), list.end());
  return recorder.end(std::span(&sink.source, 1), std::span(&problems, 1));
}

// All that `sink` got, as text: two traces are the same if and only if this is.
inline std::string as_text(const KeepingSink& sink) {
  std::string text;
  const auto writer = make_text_writer_to(text);
  EXPECT_TRUE(replay(sink, *writer).has_value());
  return text;
}

// A folder that is gone after the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pasta-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// One event of each kind, and an entry in each table.
inline void fill_sample(KeepingSink& sink) {
  Dictionary& d = sink.dictionary_;
  const ProcessId p = d.process({.native_id = 783658,
                                 .name = d.string("python"),
                                 .host = d.string("node-1"),
                                 .rank = 1,
                                 .world_size = 2});
  const ProcessId other = d.process({.native_text = d.string("Spans"), .source = d.string("a.b")});
  const DeviceId gpu = d.device({.process = p,
                                 .ordinal = 3,
                                 .type = DeviceType::kGpu,
                                 .name = d.string("Tesla \"V100\""),
                                 .multiprocessors = 80,
                                 .compute_major = 7,
                                 .compute_minor = 0,
                                 .max_threads_per_multiprocessor = 2048,
                                 .warp_size = 32,
                                 .memory_bytes = 16944988160});
  const DeviceId unused_device = d.device({.uuid = d.string("GPU-1234")});
  static_cast<void>(unused_device);
  const LaneId thread = d.lane({.process = p, .native_id = 42, .name = d.string("main")});
  const LaneId queue = d.lane({.type = LaneType::kQueue,
                               .process = p,
                               .device = gpu,
                               .context = 1,
                               .native_id = 7,
                               .name = d.string("stream 7")});
  const LaneId spans = d.lane({.process = other, .native_text = d.string("stream \xff 7")});
  const FrameId step = d.frame({{}, d.string("train_step"), ScopeDomain::kAnnotation});
  const FrameId mm = d.frame({step, d.string("aten::mm"), ScopeDomain::kOperator});
  const CollectiveId reduce = d.collective({.name = d.string("allreduce"),
                                            .element_type = d.string("Float"),
                                            .in_elements = 1024,
                                            .out_elements = 1025,
                                            .group = d.string("0"),
                                            .ranks = d.string("[0, 1]"),
                                            .group_size = 2});
  const AttributesId attributes = d.attributes({.block = {128, 1, 1},
                                                .cluster = {2, 1, 1},
                                                .registers_per_thread = 16,
                                                .static_shared_bytes = 48,
                                                .dynamic_shared_bytes = 4096,
                                                .local_bytes_per_thread = 8,
                                                .priority = -1,
                                                .collective = reduce});
  d.fact("driver", "535.104");

  const auto add = [&](Kind kind, std::int64_t start, std::int64_t end, LaneId lane,
                       std::string_view name) -> Event& {
    Event event{};
    event.kind = kind;
    event.start_ns = start;
    event.end_ns = end;
    event.lane = lane;
    event.name = d.string(name);
    sink.events.push_back(event);
    return sink.events.back();
  };
  sink.events.reserve(32);
  Event& untimed = add(Kind::kScope, kNoTime, kNoTime, spans, "lost\ttime \x01 \xc3\xa9");
  untimed.flags = kUntimed | kInstant;
  Event& early = add(Kind::kAlloc, -5, -5, thread, "");
  early.memory = {512, 0x7f0000000000, gpu, d.string("pool")};
  Event& launch = add(Kind::kApi, 10, 20, thread, "cudaLaunchKernel");
  launch.detail = static_cast<std::uint16_t>(ApiDomain::kRuntime);
  launch.correlation = make_correlation(p, 5);
  launch.scope = mm;
  launch.api.status = -7;
  Event& kernel = add(Kind::kKernel, 30, 60, queue, "gemm<float, 3>(float const*)");
  kernel.correlation = make_correlation(p, 5);
  kernel.scope = mm;
  kernel.flags = kLinked | kSkewed;
  kernel.kernel = {{24, 2, 1}, attributes, 9, 1};
  Event& copy = add(Kind::kCopy, 60, 70, queue, "Memcpy HtoD");
  copy.detail = static_cast<std::uint16_t>(CopyDirection::kHostToDevice);
  copy.copy = {0, 0x10, 0x20};
  add(Kind::kCopy, 70, 71, queue, "unknown size").copy.bytes = kUnknownBytes;
  add(Kind::kFill, 71, 72, queue, "Memset").fill = {4096, 0x30, 255, 0};
  Event& sync = add(Kind::kSync, 60, 80, thread, "cudaStreamSynchronize");
  sync.detail = static_cast<std::uint16_t>(SyncTarget::kStream);
  sync.sync = {queue, 0, 77, 0};
  Event& range = add(Kind::kScope, 5, 90, thread, "aten::mm");
  range.detail = static_cast<std::uint16_t>(ScopeDomain::kOperator);
  range.scope = step;
  range.range = {18, d.string(R"({"shape":[2,3]})"), 4, {0, 0}};
  add(Kind::kFree, 91, 91, thread, "").memory = {512, 0x7f0000000000, {}, {}};
  add(Kind::kFault, 92, 93, queue, "page fault").memory = {65536, 0x40, gpu, {}};
  add(Kind::kCounter, 94, 94, thread, "power").counter = {0.1, d.string("W"), gpu, 0};
  sink.blobs = {{std::byte{1}, std::byte{0xfe}}, {}};
  add(Kind::kDevice, 95, 96, queue, "gemm").device = {{1}, d.string("counts"), 1, 0};
  add(Kind::kDevice, 95, 97, queue, "gemm").device = {{2}, {}, 2, 0};
  add(Kind::kGap, 98, 99, thread, "").gap.lost = 3;
  sink.described = 1;
  sink.source = {.path = "t.txt",
                 .format = "text",
                 .label = {},
                 .rank = 1,
                 .world_size = 2,
                 .first_ns = -5,
                 .absolute_clock = true};
  sink.problems.add(Reason::kLaunchNotSeen, 3, "kernel k at 12 ns");
  sink.problems.add(Reason::kDuplicate, 1, "");
}

}  // namespace pasta::trace
