// Reading a .pasta file that lies in the page cache: to nothing, and through a session to tools.
// What a stored trace costs to ask again.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/session.h"
#include "trace/pasta_writer.h"

namespace pasta {
namespace {

constexpr std::size_t kEvents = 2'000'000;
constexpr unsigned kOperators = 200;

// As in a PyTorch trace: of 16 events, 8 are ranges of the host, 4 are calls, and 2 are kernels on
// one of two queues, launched by calls within operators; and an allocation and its free. Names,
// frames and launch attributes repeat.
class Made {
 public:
  explicit Made(Dictionary& dictionary) {
    const ProcessId process = dictionary.process(Process{.native_id = 1});
    Device device;
    device.process = process;
    device.type = DeviceType::kGpu;
    device_ = dictionary.device(device);
    thread_ = dictionary.lane(Lane{.process = process, .native_id = 1});
    for (const std::uint64_t stream : {7, 20}) {
      queues_.push_back(dictionary.lane(Lane{
          .type = LaneType::kQueue, .process = process, .device = device_, .native_id = stream}));
    }
    launch_ = dictionary.string("cudaLaunchKernel");
    for (unsigned i = 0; i < kOperators; ++i) {
      operators_.push_back(dictionary.string("aten::op" + std::to_string(i)));
      frames_.push_back(dictionary.frame({.parent = frames_.empty() ? FrameId{} : frames_[i / 2],
                                          .name = operators_.back(),
                                          .domain = ScopeDomain::kOperator}));
      kernels_.push_back(
          dictionary.string("void at::native::kernel" + std::to_string(i) + "<float, 4>(int)"));
    }
    LaunchAttributes attributes;
    attributes.block[0] = attributes.block[1] = attributes.block[2] = 1;
    attributes_ = dictionary.attributes(attributes);
  }

  // The n-th event; ends ascend.
  [[nodiscard]] Event event(std::size_t n) const {
    const std::size_t round = n / 16, op = round * 7 % kOperators;
    Event event{};
    event.end_ns = static_cast<std::int64_t>(n) * 500 + 10'000;
    event.start_ns = event.end_ns - 400;
    event.lane = thread_;
    event.scope = frames_[op];
    switch (n % 16) {
      case 0:
      case 15:
        event.kind = n % 16 == 0 ? Kind::kAlloc : Kind::kFree;
        event.start_ns = event.end_ns;
        event.memory = {.bytes = 512 * (1 + op),
                        .address = 4096 + round % 64 * 65536,
                        .device = device_,
                        .pool = {}};
        break;
      case 3:
      case 5:
      case 9:
      case 11:
        event.kind = Kind::kApi;
        event.name = launch_;
        event.detail = static_cast<std::uint16_t>(ApiDomain::kRuntime);
        event.correlation = n % 4 == 3 ? round * 2 + n % 16 / 8 + 1 : 0;
        break;
      case 4:
      case 12:
        event.kind = Kind::kKernel;
        event.name = kernels_[op];
        event.lane = queues_[n % 16 / 8];
        event.correlation = round * 2 + n % 16 / 8 + 1;
        event.flags = kLinked;
        event.start_ns = event.end_ns - 4'000;
        event.kernel.attributes = attributes_;
        break;
      default:
        event.kind = Kind::kScope;
        event.detail = static_cast<std::uint16_t>(ScopeDomain::kOperator);
        event.name = operators_[op];
    }
    return event;
  }

 private:
  DeviceId device_{};
  LaneId thread_{};
  std::vector<LaneId> queues_;
  StringId launch_{};
  std::vector<StringId> operators_, kernels_;
  std::vector<FrameId> frames_;
  AttributesId attributes_{};
};

// The file, made once and removed at the end of the program.
class File {
 public:
  explicit File(bool compress)
      : path_(std::filesystem::temp_directory_path() /
              ("pasta_file_benchmark." + std::to_string(::getpid()) + (compress ? ".zstd" : "") +
               ".pasta")) {
    if (!write(compress)) std::abort();
  }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::uintmax_t bytes() const { return std::filesystem::file_size(path_); }

 private:
  Status write(bool compress) {
    auto writer = trace::make_pasta_writer(path(), {.overwrite = true, .compress = compress});
    if (!writer) return tl::unexpected<Error>(std::move(writer).error());
    Dictionary dictionary;
    const Made made(dictionary);
    PASTA_TRY((*writer)->begin(dictionary));
    std::vector<Event> events(1000);
    for (std::size_t n = 0; n < kEvents;) {
      for (Event& event : events) event = made.event(n++);
      PASTA_TRY((*writer)->record(events));
    }
    const SourceInfo source{.path = "made", .format = "made", .label = {}};
    const std::vector<Problem> none;
    return (*writer)->end({&source, 1}, {&none, 1});
  }

  std::filesystem::path path_;
};

const File& file(bool compress) {
  static const File plain(false), compressed(true);
  return compress ? compressed : plain;
}

class Counting final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    events_ += events.size();
    last_ns_ = events.back().end_ns;
  }
  void push(Event, std::span<const std::byte>) override { ++events_; }
  void advance(std::int64_t) override {}
  void report(const Problem&) override { ++problems_; }
  [[nodiscard]] bool all() const { return events_ == kEvents && problems_ == 0 && last_ns_ > 0; }

 private:
  Dictionary dictionary_;
  std::size_t events_ = 0, problems_ = 0;
  std::int64_t last_ns_ = 0;
};

void report_rate(benchmark::State& state, const File& read) {
  const auto events = state.iterations() * static_cast<std::int64_t>(kEvents);
  state.SetItemsProcessed(events);
  state.counters["ns/event"] =
      benchmark::Counter(static_cast<double>(events) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["file_bytes"] = static_cast<double>(read.bytes());
}

void to_nothing(benchmark::State& state, bool compress) {
  const File& read = file(compress);
  for (auto _ : state) {
    auto source = open_source(read.path());
    Counting sink;
    if (!source || !(*source)->start({}, sink)) std::abort();
    while (*(*source)->pump()) {
    }
    if (!(*source)->stop() || !sink.all()) state.SkipWithError("events are missing");
  }
  report_rate(state, read);
}
BENCHMARK_CAPTURE(to_nothing, plain, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(to_nothing, zstd, true)->Unit(benchmark::kMillisecond);

void to_tools(benchmark::State& state, std::vector<std::string_view> names) {
  const File& read = file(false);
  for (auto _ : state) {
    Session session;
    auto source = open_source(read.path());
    if (!source) std::abort();
    session.add(std::move(*source));
    for (const ToolEntry& entry : builtin_tools()) {
      if (std::ranges::find(names, entry.name) == names.end()) continue;
      session.add(entry, *entry.make(*Options::parse(entry.name, entry.options, {})));
    }
    if (!session.start()) std::abort();
    while (*session.pump()) {
    }
    const auto document = session.finish();
    std::int64_t events = 0;
    if (document) {
      for (const auto& [kind, count] : document->trace.events) events += count;
    }
    if (events != kEvents || document->reports.size() != names.size()) {
      state.SkipWithError("events or reports are missing");
    }
  }
  report_rate(state, read);
}
using Names = std::vector<std::string_view>;
BENCHMARK_CAPTURE(to_tools, none, Names{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(to_tools, summary_kernels, Names{"summary", "kernels"})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(to_tools, four, Names{"summary", "kernels", "idle", "memory"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pasta
