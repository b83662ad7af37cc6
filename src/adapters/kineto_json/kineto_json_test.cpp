#include "adapters/kineto_json/kineto_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "adapters/kineto_json/vocabulary.h"
#include "base/input.h"

namespace pasta::adapters::kineto_json {
namespace {

// Keeps all that an adapter pushes.
class Collector final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo& info) override { source = info; }
  void push(std::span<const Event> more) override {
    events.insert(events.end(), more.begin(), more.end());
  }
  void push(Event event, std::span<const std::byte>) override { events.push_back(event); }
  void advance(std::int64_t) override {}
  void report(const Problem& problem) override { problems.push_back(problem); }

  [[nodiscard]] std::string name(const Event& e) const {
    return std::string(dictionary_.text(e.name));
  }
  // The path of an event, outermost first.
  [[nodiscard]] std::string path(const Event& e) const {
    std::string path;
    for (FrameId id = e.scope; id; id = dictionary_.frame(id).parent) {
      const std::string name(dictionary_.text(dictionary_.frame(id).name));
      path = path.empty() ? name : name + " > " + path;
    }
    return path;
  }
  [[nodiscard]] const Event& find(std::string_view name) const {
    for (const Event& e : events) {
      if (dictionary_.text(e.name) == name) return e;
    }
    static const Event kMissing{};
    ADD_FAILURE() << "no event " << name;
    return kMissing;
  }
  [[nodiscard]] std::vector<Event> of(Kind kind) const {
    std::vector<Event> found;
    for (const Event& e : events) {
      if (e.kind == kind) found.push_back(e);
    }
    return found;
  }
  [[nodiscard]] Problem problem(Reason reason) const {
    for (const Problem& p : problems) {
      if (p.reason == reason) return p;
    }
    return {};
  }

  SourceInfo source;
  std::vector<Event> events;
  std::vector<Problem> problems;

 private:
  Dictionary dictionary_;
};

Status read(std::string_view json, Collector& to, bool strict = false) {
  Input input;
  input.path = "t.json";
  input.stream = base::memory_stream(std::as_bytes(std::span(json)));
  auto adapter = open(std::move(input));
  if (!adapter) return tl::unexpected(adapter.error());
  PASTA_TRY((*adapter)->start(Plan{.kinds = KindSet::all(), .strict = strict, .scratch = {}}, to));
  for (;;) {
    auto more = (*adapter)->pump();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return {};
  }
}

TEST(KinetoJson, KernelWithItsOperatorPath) {
  Collector c;
  ASSERT_TRUE(read(R"({"deviceProperties":[{"id":2,"name":"Tesla V100","numSms":80}],
    "distributedInfo":{"backend":"nccl","rank":3,"world_size":8},"traceEvents":[
    {"ph":"X","cat":"user_annotation","name":"ProfilerStep#5","pid":9,"tid":9,"ts":0.5,"dur":100},
    {"ph":"X","cat":"user_annotation","name":"train","pid":9,"tid":9,"ts":1,"dur":90},
    {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":2,"dur":20,
     "args":{"Sequence number":0,"Input Dims":[[2, 3], []],"Input type":["float", ""]}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":3,"dur":4,
     "args":{"correlation":77}},
    {"ph":"X","cat":"kernel","name":"gemm","pid":2,"tid":7,"ts":10.0015,"dur":5,
     "args":{"device":2,"stream":7,"context":1,"correlation":77,"registers per thread":32,
             "shared memory":49152,"grid":[4,5,6],"block":[128,1,1],"priority":-1}}]})",
                   c));
  EXPECT_EQ(c.source.rank, 3);
  EXPECT_EQ(c.source.first_ns, 500);
  const Event& kernel = c.find("gemm");
  EXPECT_EQ(c.path(kernel), "train > aten::mm");
  EXPECT_EQ(kernel.start_ns, 10001);
  EXPECT_EQ(kernel.end_ns, 15001);
  EXPECT_EQ(kernel.flags, kLinked);
  EXPECT_EQ(kernel.correlation, c.find("cudaLaunchKernel").correlation);
  EXPECT_EQ(kernel.kernel.grid[2], 6u);
  const LaunchAttributes attributes = c.dictionary().attributes(kernel.kernel.attributes);
  EXPECT_EQ(attributes.block[0], 128u);
  EXPECT_EQ(attributes.registers_per_thread, 32u);
  EXPECT_EQ(attributes.dynamic_shared_bytes, 49152u);
  EXPECT_EQ(attributes.priority, -1);
  const Lane lane = c.dictionary().lane(kernel.lane);
  EXPECT_EQ(lane.native_id, 7u);
  EXPECT_EQ(c.dictionary().device(lane.device).ordinal, 2u);
  EXPECT_EQ(c.dictionary().device(lane.device).multiprocessors, 80u);
  const Event& op = c.find("aten::mm");
  EXPECT_EQ(op.range.sequence, 1u);
  EXPECT_EQ(c.dictionary().text(op.range.arguments),
            R"({"Input Dims":[[2,3],[]],"Input type":["float",""]})");
  EXPECT_EQ(c.problem(Reason::kSubNanosecond).count, 1u);
}

TEST(KinetoJson, MemoryRowsBecomeAllocFreeAndTotals) {
  Collector c;
  ASSERT_TRUE(read(R"({"traceEvents":[
    {"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":5,
     "args":{"Device Type":1,"Device Id":0,"Addr":4096,"Bytes":512,"Total Allocated":512,"Total Reserved":2097152}},
    {"ph":"i","s":"t","name":"[memory]","pid":1,"tid":"1","ts":6,
     "args":{"Device Type":0,"Device Id":-1,"Bytes":-8}}]})",
                   c));
  ASSERT_EQ(c.events.size(), 4u);
  const Event alloc = c.of(Kind::kAlloc).at(0);
  EXPECT_EQ(alloc.memory.bytes, 512u);
  EXPECT_EQ(alloc.memory.address, 4096u);
  EXPECT_TRUE(alloc.memory.device);
  const Event free = c.of(Kind::kFree).at(0);
  EXPECT_EQ(free.memory.bytes, 8u);
  EXPECT_FALSE(free.memory.device);
  EXPECT_EQ(free.lane, alloc.lane);
  EXPECT_EQ(c.find("Total Reserved").counter.value, 2097152);
}

TEST(KinetoJson, BeginsAndEnds) {
  Collector c;
  ASSERT_TRUE(read(R"([{"name":"lost end","ph":"E","ts":5,"pid":1,"tid":1},
    {"name":"outer","ph":"B","ts":10,"pid":1,"tid":1},
    {"name":"inner","ph":"B","ts":20,"pid":1,"tid":1},
    {"ph":"E","ts":30,"pid":1,"tid":1},
    {"name":"open","ph":"B","ts":40,"pid":1,"tid":1},
    {"name":"other","ph":"X","ts":45,"dur":10,"pid":1,"tid":2}])",
                   c));
  EXPECT_EQ(c.find("inner").duration_ns(), 10000);
  EXPECT_EQ(c.find("outer").duration_ns(), 45000);
  EXPECT_EQ(c.find("outer").flags, kUnfinished);
  EXPECT_EQ(c.find("open").duration_ns(), 15000);
  EXPECT_EQ(c.problem(Reason::kEndWithoutBegin).count, 1u);
  EXPECT_EQ(c.problem(Reason::kBeginWithoutEnd).count, 2u);
}

TEST(KinetoJson, TimesThatAreNone) {
  Collector c;
  ASSERT_TRUE(read(R"({"traceEvents":[
    {"ph":"X","cat":"Kernel","name":"lost","pid":0,"tid":"stream 7","ts":0,"dur":0},
    {"ph":"X","cat":"kernel","name":"first","pid":0,"tid":7,"ts":0,"dur":1},
    {"ph":"X","cat":"kernel","name":"backwards","pid":0,"tid":7,"ts":9,"dur":-1},
    {"ph":"X","cat":"kernel","name":"text","pid":0,"tid":7,"ts":"soon","dur":1},
    {"ph":"X","cat":"kernel","name":"far","pid":0,"tid":7,"ts":99999999999999999999,"dur":1}]})",
                   c));
  ASSERT_EQ(c.events.size(), 5u);
  for (const char* name : {"lost", "backwards", "text", "far"}) {
    EXPECT_EQ(c.find(name).start_ns, kNoTime) << name;
    EXPECT_TRUE(c.find(name).untimed()) << name;
  }
  EXPECT_FALSE(c.find("first").untimed());
  EXPECT_EQ(c.problem(Reason::kUntimed).count, 1u);
  EXPECT_EQ(c.problem(Reason::kNegativeDuration).count, 1u);
  EXPECT_EQ(c.problem(Reason::kUnreadableNumber).count, 1u);
  EXPECT_EQ(c.problem(Reason::kTimeOutOfRange).count, 1u);
  EXPECT_EQ(c.find("lost").lane, c.find("first").lane);
}

TEST(KinetoJson, BaseTimeAfterTheEventsIsAdded) {
  Collector c;
  ASSERT_TRUE(read(R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":20,
    "ts":1000.001,"dur":50}],"baseTimeNanoseconds":1712195490000000000})",
                   c));
  EXPECT_EQ(c.find("k").start_ns, 1712195490001000001);
  EXPECT_TRUE(c.source.absolute_clock);
}

TEST(KinetoJson, LegacyAutogradForm) {
  Collector c;
  ASSERT_TRUE(read(
      R"([{"name":"my::scale","ph":"X","ts":80,"dur":9,"tid":1,"pid":"CPU functions","args":{}},
    {"name":"scale_kernel","ph":"X","ts":90,"dur":3,"tid":0,"pid":"CUDA functions","args":{}},
    {"name":"launch","ph":"s","ts":85,"tid":1,"pid":"CPU functions","id":9,"cat":"cpu_to_cuda","args":{}},
    {"name":"launch","ph":"f","ts":90,"tid":0,"pid":"CUDA functions","id":9,"cat":"cpu_to_cuda","args":{}}])",
      c));
  const Event& kernel = c.find("scale_kernel");
  EXPECT_EQ(kernel.kind, Kind::kKernel);
  EXPECT_EQ(c.path(kernel), "my::scale");
  EXPECT_EQ(kernel.flags, kLinked);
}

TEST(KinetoJson, LargeIdsStayApart) {
  Collector c;
  ASSERT_TRUE(read(R"({"traceEvents":[
    {"name":"thread_name","pid":1,"tid":140000000000000,"ph":"M","args":{"name":"io"}},
    {"name":"A","pid":1,"tid":140000000000000,"ts":60.5,"dur":300.25,"ph":"X"},
    {"name":"B","pid":1,"tid":140004294967296,"ts":50.25,"dur":312.5,"ph":"X"},
    {"name":"P","pid":7168000000,"tid":1,"ts":1,"dur":1,"ph":"X"}]})",
                   c));
  EXPECT_NE(c.find("A").lane, c.find("B").lane);
  EXPECT_EQ(c.dictionary().text(c.dictionary().lane(c.find("A").lane).name), "io");
  EXPECT_EQ(c.dictionary().process(c.dictionary().lane(c.find("P").lane).process).native_id,
            7168000000u);
}

TEST(KinetoJson, RefusesWhatIsNoTrace) {
  for (const char* json : {"{}", "[1,2]", "{\"nodes\":[],\"schema\":\"1.0\"}", "3",
                           "{\"traceEvents\":null}", "[{\"a\":1}]"}) {
    Collector c;
    const Status status = read(json, c);
    ASSERT_FALSE(status) << json;
    EXPECT_NE(status.error().message.find("t.json"), std::string::npos);
  }
  for (const char* json : {"[]", "{\"traceEvents\":[]}", "[{}]"}) {
    Collector c;
    EXPECT_TRUE(read(json, c)) << json;
    EXPECT_EQ(c.source.first_ns, kNoTime);
  }
}

TEST(KinetoJson, StrictStopsAtTheFirstFault) {
  Collector c;
  const std::string_view json =
      R"({"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":-2}]})";
  const Status status = read(json, c, true);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("byte 16"), std::string::npos) << status.error().message;
}

TEST(Vocabulary, AllAges) {
  EXPECT_EQ(find_category("Kernel")->kind, Kind::kKernel);
  EXPECT_EQ(find_category("gpu_memset")->kind, Kind::kFill);
  EXPECT_EQ(find_category("my category"), nullptr);
  EXPECT_EQ(find_arg("Process Group Name"), Arg::kGroupName);
  EXPECT_EQ(find_arg("Process Group Description and more of it"), Arg::kOther);
  EXPECT_EQ(find_arg(""), Arg::kOther);
  EXPECT_TRUE(is_iteration_mark("ProfilerStep#17"));
  EXPECT_FALSE(is_iteration_mark("ProfilerStep#"));
  EXPECT_FALSE(is_iteration_mark("ProfilerStep#1a"));
}

}  // namespace
}  // namespace pasta::adapters::kineto_json
