#include "adapters/rocprof_v1_csv/rocprof_v1_csv.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "adapters/common/csv_testing.h"

namespace pasta::adapters::rocprof_v1_csv {
namespace {

using namespace common::testing;

TEST(RocprofV1Csv, ReadsKernelsAndWhenTheyWereQueued) {
  Trace trace;
  ASSERT_TRUE(read(
      R"csv("Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds","scr","arch_vgpr","accum_vgpr","sgpr","wave_size","sig","obj","GPUBusy","DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"
0,"void add(double*, int) [clone .kd]",8,0,0,20,21,1024,256,512,4,16,0,32,64,"0x0","0x7f",93.5,100,200,300,400,100
1,"fill.kd",8,1,1,20,21,256,256,0,0,12,4,32,64,"0x0","0x7f",1,0,500,600,700,100
)csv",
      trace));
  const auto kernels = of(trace, Kind::kKernel);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(name(trace, kernels[0]), "void add(double*, int)");
  EXPECT_EQ(name(trace, kernels[1]), "fill");
  EXPECT_EQ(kernels[0].kernel.grid[0], 4u);
  EXPECT_EQ(lane(trace, kernels[1]), "queue 1");
  EXPECT_EQ(device(trace, kernels[0]).ordinal, 8u);
  EXPECT_EQ(trace.dictionary_.attributes(kernels[1].kernel.attributes).registers_per_thread, 16u)
      << "12 and 4 to accumulate in";
  const auto queued = of(trace, Kind::kApi);
  ASSERT_EQ(queued.size(), 1u) << "of the second it is not known";
  EXPECT_EQ(queued[0].start_ns, 100);
  EXPECT_EQ(queued[0].correlation, kernels[0].correlation);
  EXPECT_TRUE(kernels[0].flags & kLinked);
  const auto counters = of(trace, Kind::kCounter);
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(name(trace, counters[0]), "GPUBusy");
  EXPECT_EQ(counters[0].counter.value, 93.5);
}

}  // namespace
}  // namespace pasta::adapters::rocprof_v1_csv
