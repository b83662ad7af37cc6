#include "tools/common/api_role.h"

#include <gtest/gtest.h>

namespace pasta::tools {
namespace {

TEST(ApiRole, WhatIssuesWorkReturnsAtOnceOrNot) {
  for (const char* name : {"cudaLaunchKernel", "cuLaunchKernelEx", "hipModuleLaunchKernel",
                           "hipExtModuleLaunchKernel", "cudaMemsetAsync", "cuMemsetD32_v2"}) {
    EXPECT_TRUE(api_role(name).issues) << name;
    EXPECT_TRUE(api_role(name).launches_one()) << name;
    EXPECT_FALSE(api_role(name).waits) << name;
  }
  EXPECT_TRUE(api_role("cudaGraphLaunch").issues);
  EXPECT_TRUE(api_role("cudaGraphLaunch").graph);
  EXPECT_FALSE(api_role("hipGraphLaunch").launches_one());
}

TEST(ApiRole, CopiesWaitUnlessTheyAreAsynchronous) {
  for (const char* name :
       {"cudaMemcpy", "cuMemcpyDtoH_v2", "hipMemcpyWithStream", "cudaMemcpy2D"}) {
    EXPECT_TRUE(api_role(name).waits) << name;
    EXPECT_TRUE(api_role(name).issues) << name;
  }
  for (const char* name : {"cudaMemcpyAsync", "cuMemcpyHtoDAsync_v2", "urEnqueueMemcpy"}) {
    EXPECT_FALSE(api_role(name).waits) << name;
    EXPECT_TRUE(api_role(name).copies) << name;
    EXPECT_FALSE(api_role(name).launches_one()) << name;
  }
}

TEST(ApiRole, WaitsAndQuestions) {
  for (const char* name :
       {"cudaDeviceSynchronize", "cuStreamSynchronize", "hipEventSynchronize", "cuCtxSynchronize",
        "zeEventHostSynchronize", "hsa_signal_wait_scacquire"}) {
    EXPECT_TRUE(api_role(name).waits) << name;
    EXPECT_FALSE(api_role(name).issues) << name;
    EXPECT_FALSE(api_role(name).may_launch) << name;
  }
  EXPECT_TRUE(api_role("cudaEventQuery").asks);
  // In the queue, not on the host.
  EXPECT_FALSE(api_role("cudaStreamWaitEvent").waits);
}

TEST(ApiRole, CallsThatBuildAGraphRunNothing) {
  for (const char* name : {"cudaGraphAddMemcpyNode", "cudaGraphAddKernelNode",
                           "cudaGraphExecMemcpyNodeSetParams", "cudaGraphInstantiate"}) {
    EXPECT_FALSE(api_role(name).issues) << name;
    EXPECT_FALSE(api_role(name).waits) << name;
  }
}

TEST(ApiRole, WorkMayNameACallOfAnUnknownSort) {
  EXPECT_TRUE(api_role("vendorDoSomething").may_launch);
  EXPECT_FALSE(api_role("cudaDeviceGetAttribute").may_launch);
}

}  // namespace
}  // namespace pasta::tools
