#include "adapters/nvprof_csv/nvprof_csv.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "adapters/common/csv_testing.h"
#include "adapters/nvprof_csv/units.h"

namespace pasta::adapters::nvprof_csv {
namespace {

using namespace common::testing;

TEST(NvprofUnits, AreBinaryAndRoundToTheNearest) {
  std::uint64_t bytes = 0;
  ASSERT_TRUE(parse_size("0.000019", 1 << 20, bytes));
  EXPECT_EQ(bytes, 20u);
  ASSERT_TRUE(parse_size("65536.000000", 1, bytes));
  EXPECT_EQ(bytes, 65536u);
  ASSERT_TRUE(parse_size("1.5", 1 << 30, bytes));
  EXPECT_EQ(bytes, 3u << 29);
  EXPECT_FALSE(parse_size("-1", 1, bytes));
  EXPECT_FALSE(parse_size("x", 1, bytes));
  EXPECT_FALSE(parse_size("9000000000", std::uint64_t{1} << 40, bytes));
}

constexpr std::string_view kNvprof =
    R"csv(==77== NVPROF is profiling process 77, command: ./app "x, y
==77== Warning: 3 records have invalid timestamps due to insufficient device buffer space.
==77== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Unified Memory","Virtual Address","Name","Correlation_ID"
s,ms,,,,,,,,B,KB,MB,GB/s,,,,,,B,,,
1.183779,0.000992,,,,,,,,,,0.000019,0.018777,"Pageable","Device","TITAN Xp (1)","1","7",,,"[CUDA memcpy HtoD]",105
1.204081,,,,,,,,,,,,,,,,,,"PC 0x5e240510","0x7f54d8000000","[Unified Memory CPU page faults]",
1.801239,0.276608,,,,,,,,,,,,,,"TITAN Xp (1)",,,"18","0x7f54d8800000","[Unified Memory GPU page faults]",
1.802441,0.007360,,,,,,,,,,,,,,"TITAN Xp (1)",,,65536.000000,"0x7f54d8000000","[Unified Memory Memcpy HtoD]",
1.802356,0.362478,506,1,1,192,1,1,17,64,1.500000,,,,,"TITAN Xp (1)","1","7",,,"step(int, float*)",147
1.802300,0.004000,,,,,,,,,,,,,,,,,,,"cudaLaunch",147

==77== Unified Memory profiling result:
"Device","Count","Avg Size"
"TITAN Xp (1)",166,38.890625KB
)csv";

TEST(NvprofCsv, ReadsEachColumnInItsOwnUnit) {
  Trace trace;
  ASSERT_TRUE(read(kNvprof, trace));
  EXPECT_EQ(trace.events.size(), 7u);
  const auto copies = of(trace, Kind::kCopy);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].start_ns, 1183779000);
  EXPECT_EQ(copies[0].duration_ns(), 992);
  EXPECT_EQ(copies[0].copy.bytes, 20u);
  EXPECT_EQ(copies[0].detail, static_cast<std::uint16_t>(CopyDirection::kHostToDevice));
  EXPECT_EQ(copies[1].detail, static_cast<std::uint16_t>(CopyDirection::kMigration));
  EXPECT_EQ(copies[1].copy.bytes, 65536u);
  EXPECT_EQ(copies[1].copy.dst, 0x7f54d8000000u);
  const auto kernels = of(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(name(trace, kernels[0]), "step(int, float*)");
  EXPECT_EQ(kernels[0].kernel.grid[0], 506u) << "in blocks already";
  const LaunchAttributes launch = trace.dictionary_.attributes(kernels[0].kernel.attributes);
  EXPECT_EQ(launch.block[0], 192u);
  EXPECT_EQ(launch.static_shared_bytes, 64u);
  EXPECT_EQ(launch.dynamic_shared_bytes, 1536u);
  EXPECT_TRUE(kernels[0].flags & kLinked);
  EXPECT_EQ(device(trace, kernels[0]).ordinal, 1u);
  EXPECT_EQ(trace.dictionary_.text(device(trace, kernels[0]).name), "TITAN Xp");
}

TEST(NvprofCsv, KeepsPageFaults) {
  Trace trace;
  ASSERT_TRUE(read(kNvprof, trace));
  const auto faults = of(trace, Kind::kFault);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].memory.address, 0x7f54d8000000u);
  EXPECT_FALSE(faults[0].memory.device) << "of the processor";
  EXPECT_EQ(faults[0].flags & kInstant, kInstant);
  EXPECT_TRUE(faults[1].memory.device);
  EXPECT_EQ(faults[1].duration_ns(), 276608);
  const auto counters = of(trace, Kind::kCounter);
  ASSERT_EQ(counters.size(), 1u);
  EXPECT_EQ(counters[0].counter.value, 18) << "a row is a group of faults";
}

TEST(NvprofCsv, SaysHowPreciselyAndWhatWasLost) {
  Trace trace;
  ASSERT_TRUE(read(kNvprof, trace));
  EXPECT_EQ(trace.count(Reason::kRounded), 6u);
  EXPECT_EQ(trace.count(Reason::kCollectorWarning), 1u);
  for (const Problem& problem : trace.problems.list()) {
    if (problem.reason == Reason::kRounded) {
      EXPECT_EQ(problem.first, "line 6: Start in steps of 1000 ns, Size in steps of 1.05 B");
    }
  }
}

TEST(NvprofCsv, ReadsOldTracesOfCalls) {
  Trace trace;
  ASSERT_TRUE(
      read("======== Profiling result:\n\"Start\",\"Duration\",\"Device\",\"Stream\",\"Name\"\n"
           "us,ns,,,\n1.5,2.25,,,cuInit\n2.5,100,\"Tesla (0)\",7,\"void k(float*) [31]\"\n",
           trace));
  const auto calls = of(trace, Kind::kApi);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].start_ns, 1500);
  EXPECT_EQ(calls[0].detail, static_cast<std::uint16_t>(ApiDomain::kDriver));
  const auto kernels = of(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(name(trace, kernels[0]), "void k(float*)");
  EXPECT_EQ(kernels[0].correlation & kMaxVendorCorrelation, 31u);
}

TEST(NvprofCsv, RefusesSummariesAndText) {
  for (const std::string_view text :
       {"==7== Profiling "
        "result:\n\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Name\"\n,%,ms,,us,\n",
        "==7== Profiling result:\n\"Device\",\"Kernel\",\"Invocations\",\"Metric Name\"\n",
        "======== CPU profiling result (bottom up):\nTime(%)      Time  Name\n",
        "==7== NVPROF is profiling process 7, command: x\n==7== Profiling result:\n   Start  "
        "Duration\n"}) {
    Trace trace;
    const Status status = read(text, trace);
    ASSERT_FALSE(status) << text;
    EXPECT_NE(status.error().message.find("run nvprof with --csv"), std::string::npos);
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace pasta::adapters::nvprof_csv
