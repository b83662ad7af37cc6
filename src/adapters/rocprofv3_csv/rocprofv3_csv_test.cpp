#include "adapters/rocprofv3_csv/rocprofv3_csv.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "adapters/common/csv_testing.h"
#include "adapters/rocprofv3_csv/tables.h"

namespace pasta::adapters::rocprofv3_csv {
namespace {

using namespace common::testing;

constexpr std::string_view kKernels =
    R"csv("Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 4",1,2,834,1,10,"void add<float>(float*, int)",7,1000100,1000300,512,16,8,0,16,64,2,1,1000,4,1
"KERNEL_DISPATCH","Agent 4",3,2,834,2,11,"mul",9,1000400,1000450,0,0,12,4,16,64,1,1,1024,1,1
)csv";
constexpr std::string_view kCalls =
    R"csv("Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API_EXT","hipLaunchKernel",42,834,7,1000000,1000050
"RCCL_API","ncclAllReduce",42,834,8,1000060,1000070
"HSA_CORE_API","hsa_init",42,834,9,1000080,1000090
)csv";

TEST(Rocprofv3Csv, ReadsKernels) {
  Trace trace;
  ASSERT_TRUE(read(kKernels, trace));
  const auto kernels = of(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  const Event& e = kernels[0];
  EXPECT_EQ(name(trace, e), "void add<float>(float*, int)");
  EXPECT_EQ(e.start_ns, 1000100);
  EXPECT_EQ(e.end_ns, 1000300);
  EXPECT_EQ(e.kernel.ordinal, 1u);
  EXPECT_EQ(e.kernel.grid[0], 16u) << "work-items in groups of 64, the last one smaller";
  EXPECT_EQ(e.kernel.grid[1], 2u);
  const LaunchAttributes launch = trace.dictionary_.attributes(e.kernel.attributes);
  EXPECT_EQ(launch.block[0], 64u);
  EXPECT_EQ(launch.block[1], 2u);
  EXPECT_EQ(launch.registers_per_thread, 8u);
  EXPECT_EQ(trace.dictionary_.attributes(kernels[1].kernel.attributes).registers_per_thread, 16u)
      << "12 and 4 to accumulate in";
  EXPECT_EQ(launch.static_shared_bytes, 512u);
  EXPECT_EQ(launch.local_bytes_per_thread, 16u);
  EXPECT_EQ(lane(trace, e), "stream 2, queue 1");
  EXPECT_NE(e.lane, kernels[1].lane) << "another queue of the hardware";
  EXPECT_EQ(device(trace, e).ordinal, 4u);
  EXPECT_EQ(trace.count(Reason::kLaunchNotSeen), 2u);
}

TEST(Rocprofv3Csv, LinksTheTablesOfARun) {
  constexpr std::string_view kAgents =
      R"csv("Node_Id","Logical_Node_Id","Agent_Type","Wave_Front_Size","Cu_Count","Max_Waves_Per_Cu","Name","Product_Name"
0,0,"CPU",0,0,0,"cpu","A CPU"
4,4,"GPU",64,304,32,"gfx942","AMD Instinct MI300X"
)csv";
  constexpr std::string_view kStats = "\"Name\",\"Calls\",\"TotalDurationNs\"\n\"add\",1,200\n";
  Trace trace;
  ASSERT_TRUE(read({{"d/42_kernel_trace.csv", kKernels},
                    {"d/42_kernel_stats.csv", kStats},
                    {"d/42_hip_api_trace.csv", kCalls},
                    {"d/42_agent_info.csv", kAgents}},
                   trace));
  EXPECT_EQ(trace.source.path, "d/42_*.csv");
  ASSERT_EQ(trace.events.size(), 5u);
  const auto calls = of(trace, Kind::kApi);
  const auto kernels = of(trace, Kind::kKernel);
  EXPECT_EQ(kernels[0].correlation, calls[0].correlation);
  EXPECT_TRUE(kernels[0].flags & kLinked);
  EXPECT_EQ(calls[0].detail, static_cast<std::uint16_t>(ApiDomain::kRuntime));
  EXPECT_EQ(calls[1].detail, static_cast<std::uint16_t>(ApiDomain::kCommunication));
  EXPECT_EQ(calls[2].detail, static_cast<std::uint16_t>(ApiDomain::kDriver));
  const Device gpu = device(trace, kernels[0]);
  EXPECT_EQ(trace.dictionary_.text(gpu.name), "AMD Instinct MI300X");
  EXPECT_EQ(gpu.multiprocessors, 304u);
  EXPECT_EQ(gpu.max_threads_per_multiprocessor, 2048u);
  EXPECT_EQ(trace.dictionary_.process(correlation_process(kernels[0].correlation)).native_id, 42u);
}

TEST(Rocprofv3Csv, ReadsMarkersCopiesAndMemory) {
  Trace trace;
  ASSERT_TRUE(read(
      {{"42_marker_api_trace.csv",
        R"csv("Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MARKER_CORE_API","step",42,834,1,10,90
"MARKER_CORE_API","here",42,834,2,20,20
"MARKER_CORE_API","whole",42,0,3,5,95
)csv"},
       {"42_memory_copy_trace.csv",
        R"csv("Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",3,"Agent 0","Agent 4",4,30,40
"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_DEVICE",3,"Agent 4","Agent 5",5,40,50
)csv"},
       {"42_memory_allocation_trace.csv",
        R"csv("Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 0",1024,"0x00007ffb26354000",6,60,61
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 4",2048,"0x10",7,62,63
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_FREE","",0,"0x10",8,64,65
"MEMORY_ALLOCATION","MEMORY_ALLOCATION_FREE","",0,"0x99",9,66,67
)csv"}},
      trace));
  const auto ranges = of(trace, Kind::kScope);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].flags & kInstant, kInstant);
  EXPECT_EQ(ranges[2].flags & kAnnotation, kAnnotation) << "a range of no thread";
  const auto copies = of(trace, Kind::kCopy);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].detail, static_cast<std::uint16_t>(CopyDirection::kHostToDevice));
  EXPECT_EQ(copies[0].copy.bytes, kUnknownBytes) << "the table has no sizes";
  EXPECT_EQ(device(trace, copies[0]).ordinal, 4u);
  EXPECT_EQ(copies[1].detail, static_cast<std::uint16_t>(CopyDirection::kPeerToPeer));
  const auto allocations = of(trace, Kind::kAlloc);
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_FALSE(allocations[0].memory.device) << "agent 0 is the host: a copy came from it";
  EXPECT_TRUE(allocations[1].memory.device);
  const auto frees = of(trace, Kind::kFree);
  ASSERT_EQ(frees.size(), 1u);
  EXPECT_EQ(frees[0].memory.bytes, 2048u);
  EXPECT_EQ(trace.count(Reason::kRecordSkipped), 1u) << "freed, but of unknown size";
}

TEST(Rocprofv3Csv, CountsADispatchOnceHoweverManyCountersItHas) {
  constexpr std::string_view kCounters =
      R"csv("Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"
7,1,"Agent 4",1,42,834,4000,10,"add",64,"SQ_WAVES",63.000000,1000100,1000300
7,1,"Agent 4",1,42,834,4000,10,"add",64,"FETCH_SIZE",10.625,1000100,1000300
)csv";
  Trace alone;
  ASSERT_TRUE(read(kCounters, alone));
  ASSERT_EQ(of(alone, Kind::kKernel).size(), 1u);
  EXPECT_EQ(of(alone, Kind::kKernel)[0].kernel.grid[0], 63u);
  const auto counters = of(alone, Kind::kCounter);
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[1].counter.value, 10.625);
  EXPECT_EQ(counters[1].start_ns, 1000300);

  Trace run;
  ASSERT_TRUE(
      read({{"42_counter_collection.csv", kCounters}, {"42_kernel_trace.csv", kKernels}}, run));
  EXPECT_EQ(of(run, Kind::kKernel).size(), 2u) << "the dispatches of kernel_trace only";
  EXPECT_EQ(of(run, Kind::kCounter).size(), 2u);
}

TEST(Rocprofv3Csv, CountsWhatIsWrongWithARow) {
  const std::string header(kCalls.substr(0, kCalls.find('\n') + 1));
  const std::string text = header +
                           "\"HIP\",\"short\",1,1,1,5\n"
                           "\"HIP\",\"long\",1,1,1,5,6,7\n"
                           "\"HIP\",\"backwards\",1,1,1,9,8\n"
                           "\"HIP\",\"lost\",1,1,1,0,0\n"
                           "\"HIP\",\"odd\",1,1,1,x,8\n"
                           "\"HIP\",\"late\",1,1,1,5,99999999999999999999\n"
                           "\"HIP\",\"no process\",?,1,1,5,6\n";
  Trace trace;
  ASSERT_TRUE(read(text, trace));
  EXPECT_EQ(trace.events.size(), 5u);
  EXPECT_EQ(trace.count(Reason::kRecordSkipped), 2u);
  EXPECT_EQ(trace.problems.list()[0].first, "line 2: 6 fields where the header has 7");
  EXPECT_EQ(trace.count(Reason::kNegativeDuration), 1u);
  EXPECT_EQ(trace.count(Reason::kUntimed), 1u);
  EXPECT_GE(trace.count(Reason::kUnreadableNumber), 2u);
  EXPECT_EQ(trace.count(Reason::kTimeOutOfRange), 1u);

  Trace strict;
  const Status status = read(text, strict, true);
  ASSERT_FALSE(status);
  EXPECT_TRUE(status.error().message.starts_with("t.csv: line 2: 6 fields"))
      << status.error().message;
}

TEST(Rocprofv3Csv, RefusesTablesWithoutATimeline) {
  Trace trace;
  const Status totals = read("\"Name\",\"Calls\",\"TotalDurationNs\"\n", trace);
  ASSERT_FALSE(totals);
  EXPECT_NE(totals.error().message.find("totals"), std::string::npos);
  const Status agents = read("\"Node_Id\",\"Agent_Type\",\"Name\"\n0,CPU,x\n", trace);
  ASSERT_FALSE(agents);
  EXPECT_NE(agents.error().message.find("agents"), std::string::npos);
}

TEST(Rocprofv3Csv, TakesTheRunFromTheNameOfTheFile) {
  EXPECT_EQ(run_name("host/4711_kernel_trace.csv"), "4711");
  EXPECT_EQ(run_name("4711_hip_api_trace.csv.gz"), "4711");
  EXPECT_EQ(run_name("out_hip_runtime_api_trace.csv"), "out");
  EXPECT_EQ(run_name("4711_domain_stats.csv"), "4711");
  EXPECT_EQ(run_name("4711_memory_allocation_trace.csv"), "4711");
  EXPECT_EQ(run_name("kernel_trace.csv"), "");
  EXPECT_EQ(run_name("decode_fetch_counter_collection.csv"), "decode_fetch");
  EXPECT_EQ(run_name("4711_results.json"), "");
}

}  // namespace
}  // namespace pasta::adapters::rocprofv3_csv
