#include "adapters/rocprofv3_json/rocprofv3_json.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "adapters/rocprofv3_json/record_spool.h"
#include "base/input.h"

namespace pasta::adapters::rocprofv3_json {
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

  [[nodiscard]] const Dictionary& names() const { return dictionary_; }
  [[nodiscard]] std::string_view text(StringId id) const { return dictionary_.text(id); }
  [[nodiscard]] const Event& find(std::string_view name) const {
    for (const Event& e : events) {
      if (text(e.name) == name) return e;
    }
    static const Event kMissing{};
    ADD_FAILURE() << "no event " << name;
    return kMissing;
  }
  [[nodiscard]] std::uint64_t problem(Reason reason) const {
    for (const Problem& p : problems) {
      if (p.reason == reason) return p.count;
    }
    return 0;
  }

  SourceInfo source;
  std::vector<Event> events;
  std::vector<Problem> problems;

 private:
  Dictionary dictionary_;
};

Status read(std::string_view json, Collector& to, bool strict = false) {
  EXPECT_TRUE(sniff(std::as_bytes(std::span(json))));
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

constexpr std::string_view kNames = R"json(
 "metadata":{"pid":41,"command":["./train","-v"],"node":{"hostname":"n1"}},
 "agents":[{"id":{"handle":1},"type":1,"name":"EPYC"},
  {"id":{"handle":7},"type":2,"name":"gfx942","product_name":"Instinct","logical_node_type_id":3,
   "cu_count":304,"wave_front_size":64,"max_waves_per_cu":32,"gfx_target_version":90402,
   "uuid":{"bytes":{"value0":255,"value1":1}},"mem_banks":[{"size_in_bytes":1000}]}],
 "counters":[{"id":{"handle":5},"name":"SQ_WAVES"}],
 "kernel_symbols":[{"kernel_id":9,"kernel_name":"_Z3addv.kd","formatted_kernel_name":"add()",
   "arch_vgpr_count":24,"accum_vgpr_count":8,"group_segment_size":512},
  {"kernel_id":10,"kernel_name":"mul.kd","formatted_kernel_name":""}],
 "strings":{"buffer_records":[{"kind":"NONE","operations":[]},
  {"kind":"HIP_RUNTIME_API","operations":["hipInit","hipLaunchKernel"]},
  {"kind":"MEMORY_COPY","operations":["MEMORY_COPY_NONE","MEMORY_COPY_HOST_TO_DEVICE"]},
  {"kind":"MARKER_CORE_API","operations":["roctxMarkA","roctxRangePushA","roctxRangePop"]},
  {"kind":"MEMORY_ALLOCATION","operations":["MEMORY_ALLOCATION_ALLOCATE","MEMORY_ALLOCATION_FREE"]}],
  "marker_api":[{"key":90,"value":"step"}]})json";

constexpr std::string_view kRecords = R"(
 "callback_records":{"counter_collection":[]},
 "buffer_records":{
  "kernel_dispatch":[{"thread_id":41,"correlation_id":{"internal":3,"external":0},
    "start_timestamp":2000,"end_timestamp":2500,
    "dispatch_info":{"agent_id":{"handle":7},"queue_id":{"handle":16},"kernel_id":9,"dispatch_id":1,
     "private_segment_size":128,"group_segment_size":1536,
     "workgroup_size":{"x":256,"y":1,"z":1},"grid_size":{"x":1000,"y":2,"z":1}},
    "stream_id":{"handle":4}}],
  "hip_api":[{"kind":1,"operation":1,"correlation_id":{"internal":3},"start_timestamp":1000,
    "end_timestamp":1100,"thread_id":41}],
  "marker_api":[{"kind":3,"operation":1,"correlation_id":{"internal":90},"start_timestamp":900,
    "end_timestamp":3000,"thread_id":41}],
  "memory_copy":[{"kind":2,"operation":1,"thread_id":41,"correlation_id":{"internal":8},
    "start_timestamp":2600,"end_timestamp":2700,"dst_agent_id":{"handle":7},
    "src_agent_id":{"handle":1},"bytes":4096}],
  "memory_allocation":[{"kind":4,"operation":0,"thread_id":41,"start_timestamp":10,
    "end_timestamp":20,"agent_id":{"handle":7},"address":"0x00000000000000ff","allocation_size":64},
   {"kind":4,"operation":1,"thread_id":41,"start_timestamp":30,"end_timestamp":40,
    "agent_id":{"handle":0},"address":"0xff","allocation_size":0}]})";

void check_all(const Collector& c) {
  const Event& kernel = c.find("add()");
  EXPECT_EQ(kernel.kind, Kind::kKernel);
  EXPECT_EQ(kernel.start_ns, 2000);
  EXPECT_EQ(kernel.end_ns, 2500);
  EXPECT_EQ(kernel.flags, kLinked);
  EXPECT_EQ(kernel.correlation, c.find("hipLaunchKernel").correlation);
  EXPECT_EQ(kernel.kernel.grid[0], 4u);  // the last group has 232 of 256 work-items
  EXPECT_EQ(kernel.kernel.grid[1], 2u);
  EXPECT_EQ(kernel.kernel.ordinal, 1u);
  const Dictionary& dictionary = c.names();
  const Frame path = dictionary.frame(kernel.scope);
  EXPECT_EQ(c.text(path.name), "step");
  const LaunchAttributes attributes = dictionary.attributes(kernel.kernel.attributes);
  EXPECT_EQ(attributes.block[0], 256u);
  EXPECT_EQ(attributes.registers_per_thread, 32u);
  EXPECT_EQ(attributes.static_shared_bytes, 512u);
  EXPECT_EQ(attributes.dynamic_shared_bytes, 1024u);
  EXPECT_EQ(attributes.local_bytes_per_thread, 128u);
  const Lane lane = dictionary.lane(kernel.lane);
  EXPECT_EQ(lane.native_id, 4u);
  EXPECT_EQ(lane.context, 16u);
  EXPECT_EQ(c.text(lane.name), "stream 4, queue 16");
  const Device device = dictionary.device(lane.device);
  EXPECT_EQ(c.text(device.uuid), "GPU-00000000000001ff");
  EXPECT_EQ(c.text(device.name), "Instinct");
  EXPECT_EQ(device.ordinal, 3u);
  EXPECT_EQ(device.multiprocessors, 304u);
  EXPECT_EQ(device.max_threads_per_multiprocessor, 2048u);
  EXPECT_EQ(device.compute_major, 9u);
  EXPECT_EQ(device.memory_bytes, 1000u);
  const Process process = dictionary.process(lane.process);
  EXPECT_EQ(process.native_id, 41u);
  EXPECT_EQ(c.text(process.name), "./train");
  EXPECT_EQ(c.text(process.host), "n1");
  const Event& copy = c.find("MEMORY_COPY_HOST_TO_DEVICE");
  EXPECT_EQ(copy.detail, static_cast<std::uint16_t>(CopyDirection::kHostToDevice));
  EXPECT_EQ(copy.copy.bytes, 4096u);
  EXPECT_EQ(dictionary.lane(copy.lane).device, lane.device);
  const Event& freed = c.find("MEMORY_ALLOCATION_FREE");
  EXPECT_EQ(freed.kind, Kind::kFree);
  EXPECT_EQ(freed.memory.bytes, 64u);
  EXPECT_EQ(freed.memory.device, lane.device);
  EXPECT_EQ(freed.memory.address, 255u);
}

std::string document(std::string_view first, std::string_view second) {
  return R"({"rocprofiler-sdk-tool":[{)" + std::string(first) + "," + std::string(second) + "}]}";
}

TEST(Rocprofv3Json, NamesBeforeRecords) {
  Collector c;
  ASSERT_TRUE(read(document(kNames, kRecords), c));
  check_all(c);
  EXPECT_EQ(c.source.first_ns, 10);
}

TEST(Rocprofv3Json, NamesAfterRecords) {
  Collector c;
  ASSERT_TRUE(read(document(kRecords, kNames), c));
  check_all(c);
}

TEST(Rocprofv3Json, OneProcessWithoutAnArray) {
  Collector c;
  ASSERT_TRUE(read(
      R"({"rocprofiler-sdk-tool":{)" + std::string(kNames) + "," + std::string(kRecords) + "}}",
      c));
  check_all(c);
}

TEST(Rocprofv3Json, EqualNumbersOfTwoProcessesDoNotMix) {
  const auto process = [](int pid, int start) {
    return R"({"metadata":{"pid":)" + std::to_string(pid) + R"(},"buffer_records":{
      "kernel_dispatch":[{"correlation_id":{"internal":3},"start_timestamp":)" +
           std::to_string(start) + R"(,"end_timestamp":)" + std::to_string(start + 5) +
           R"(,"dispatch_info":{"agent_id":{"handle":7},"kernel_id":9}}]}})";
  };
  Collector c;
  ASSERT_TRUE(
      read(R"({"rocprofiler-sdk-tool":[)" + process(5, 10) + "," + process(6, 20) + "]}", c));
  ASSERT_EQ(c.events.size(), 2u);
  EXPECT_EQ(c.text(c.events[0].name), "kernel 9");  // no symbol tells its name
  EXPECT_NE(c.events[0].correlation, c.events[1].correlation);
  EXPECT_NE(c.dictionary().lane(c.events[0].lane).device,
            c.dictionary().lane(c.events[1].lane).device);
  EXPECT_EQ(c.problem(Reason::kLaunchNotSeen), 2u);
}

TEST(Rocprofv3Json, CountersComeWithTheirDispatch) {
  const std::string dispatch =
      R"("dispatch_data":{"correlation_id":{"internal":3},"start_timestamp":100,"end_timestamp":150,
        "dispatch_info":{"agent_id":{"handle":7},"queue_id":{"handle":1},"kernel_id":9,"dispatch_id":1}})";
  Collector c;
  ASSERT_TRUE(
      read(document(kNames, R"("callback_records":{"counter_collection":[{)" + dispatch + R"(,
      "records":[{"counter_id":{"handle":5},"value":12.5},{"counter_id":{"handle":5},"value":3}]}]},
     "buffer_records":{"kernel_dispatch":[{"correlation_id":{"internal":3},"start_timestamp":100,
       "end_timestamp":150,"dispatch_info":{"agent_id":{"handle":7},"kernel_id":9,"dispatch_id":1},
       "stream_id":{"handle":0}}]})"),
           c));
  ASSERT_EQ(c.events.size(), 2u);  // one kernel, though two records tell of it
  const Event& counter = c.find("SQ_WAVES");
  EXPECT_EQ(counter.kind, Kind::kCounter);
  EXPECT_EQ(counter.counter.value, 15.5);
  EXPECT_EQ(counter.end_ns, 150);
  EXPECT_EQ(c.find("add()").duration_ns(), 50);
}

TEST(Rocprofv3Json, WhatIsWrongOrNotReadIsCounted) {
  const std::string json = document(kNames, R"("buffer_records":{"pc_sample_host_trap":[{},{}],
    "kernel_dispatch":[{"start_timestamp":20,"end_timestamp":10,"dispatch_info":{"kernel_id":10}},
     {"dispatch_info":{"kernel_id":10}},
     {"start_timestamp":"soon","end_timestamp":18446744073709551615}],
    "memory_allocation":[{"kind":4,"operation":1,"address":"0x1"}]})");
  Collector c;
  ASSERT_TRUE(read(json, c));
  EXPECT_EQ(c.problem(Reason::kNotAnEvent), 2u);
  EXPECT_EQ(c.problem(Reason::kNegativeDuration), 1u);
  EXPECT_EQ(c.problem(Reason::kUntimed), 1u);
  EXPECT_EQ(c.problem(Reason::kTimeOutOfRange), 1u);
  EXPECT_EQ(c.problem(Reason::kUnreadableNumber), 1u);
  EXPECT_EQ(c.problem(Reason::kRecordSkipped), 1u);
  ASSERT_EQ(c.events.size(), 3u);
  for (const Event& event : c.events) EXPECT_TRUE(event.untimed());
  Collector strict;
  EXPECT_FALSE(read(json, strict, true));
}

TEST(Rocprofv3Json, CutFileGivesWhatItHas) {
  const std::string whole = document(kNames, kRecords);
  Collector c;
  ASSERT_TRUE(read(std::string_view(whole).substr(0, whole.find("\"marker_api\":[{\"kind\"")), c));
  EXPECT_EQ(c.find("add()").kind, Kind::kKernel);
  EXPECT_EQ(c.problem(Reason::kTruncated), 1u);
  Collector nothing;
  EXPECT_FALSE(read(R"({"rocprofiler-sdk-tool":[)", nothing));
}

TEST(Rocprofv3Json, TellsItsOwnFilesFromOthers) {
  const auto told = [](std::string_view text) { return sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(told("\xEF\xBB\xBF {\n  \"rocprofiler-sdk-tool\": ["));
  EXPECT_FALSE(told(R"({"traceEvents":["rocprofiler-sdk-tool"]})"));
  EXPECT_FALSE(told(R"(["rocprofiler-sdk-tool"])"));
  EXPECT_FALSE(told("{"));
}

TEST(RecordSpool, KeepsTheOrderAcrossTheDisk) {
  RecordSpool spool({});
  constexpr std::uint64_t kCount = 40000;  // more than memory holds
  for (std::uint64_t i = 0; i < kCount; ++i) {
    Record record{};
    record.offset = i;
    ASSERT_TRUE(spool.add(record));
  }
  std::uint64_t next = 0;
  ASSERT_TRUE(spool.drain([&](const Record& record) -> Status {
    if (record.offset != next++) return fail(ErrorCode::kBadInput, "out of order");
    return {};
  }));
  EXPECT_EQ(next, kCount);
}

}  // namespace
}  // namespace pasta::adapters::rocprofv3_json
