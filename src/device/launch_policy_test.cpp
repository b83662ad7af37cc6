#include "device/launch_policy.h"

#include <gtest/gtest.h>

#include <vector>

namespace pasta::device {
namespace {

constexpr std::uint32_t kGrid[3] = {4, 1, 1}, kOther[3] = {5, 1, 1}, kBlock[3] = {64, 1, 1};

LaunchPolicy policy(std::string_view text) {
  return LaunchPolicy::parse(text).value_or(LaunchPolicy());
}

TEST(LaunchPolicy, All) {
  for (const char* text : {"", "all"}) {
    LaunchPolicy all = policy(text);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(all.take("a", kGrid, kBlock, 0));
  }
}

TEST(LaunchPolicy, FirstOfEachKernelAndShape) {
  LaunchPolicy first = policy("first:2");
  EXPECT_TRUE(first.take("a", kGrid, kBlock, 0));
  EXPECT_TRUE(first.take("b", kGrid, kBlock, 0));
  EXPECT_TRUE(first.take("a", kOther, kBlock, 0));
  EXPECT_TRUE(first.take("a", kGrid, kGrid, 0));
  EXPECT_TRUE(first.take("a", kGrid, kBlock, 0));
  EXPECT_FALSE(first.take("a", kGrid, kBlock, 0));
  EXPECT_TRUE(first.take("b", kGrid, kBlock, 0));
  EXPECT_FALSE(first.take("b", kGrid, kBlock, 0));
}

TEST(LaunchPolicy, FirstOfEachPositionInTheIteration) {
  LaunchPolicy first = policy("first:1");
  std::vector<bool> taken;
  for (std::uint64_t iteration = 1; iteration <= 2; ++iteration) {
    for (int i = 0; i < 2; ++i) taken.push_back(first.take("a", kGrid, kBlock, iteration));
  }
  EXPECT_EQ(taken, (std::vector<bool>{true, true, false, false}));
}

TEST(LaunchPolicy, WholeIterations) {
  LaunchPolicy one_in_three = policy("iterations:1/3");
  for (const std::uint64_t iteration : {0u, 1u, 2u, 3u, 4u, 299u, 300u}) {
    EXPECT_EQ(one_in_three.take("a", kGrid, kBlock, iteration), iteration % 3 == 0);
    EXPECT_EQ(one_in_three.wants_iteration(iteration), iteration % 3 == 0);
  }
}

TEST(LaunchPolicy, Names) {
  LaunchPolicy names = policy("^gemm|softmax$");
  EXPECT_TRUE(names.take("gemm_128", kGrid, kBlock, 0));
  EXPECT_TRUE(names.take("my_softmax", kGrid, kBlock, 0));
  EXPECT_FALSE(names.take("my_gemm", kGrid, kBlock, 0));
  EXPECT_TRUE(policy("^gemm\\(int\\)").take("_Z4gemmi", kGrid, kBlock, 0));
  EXPECT_TRUE(policy("^_Z4gemm").take("_Z4gemmi", kGrid, kBlock, 0));
  EXPECT_TRUE(names.wants_iteration(1));
  EXPECT_FALSE(names.leaves_out_iterations());
}

TEST(LaunchPolicy, FirstLeavesOutIterationsThatHoldNothingNew) {
  LaunchPolicy first = policy("first:1");
  std::string looked_at;
  bool wanted = true;
  for (std::uint64_t iteration = 0; iteration < 24; ++iteration) {
    // In the one that is looked at after seven that were not, there is another kernel.
    const char* const kernel = iteration == 16 ? "b" : "a";
    looked_at += !wanted ? '-' : first.take(kernel, kGrid, kBlock, iteration) ? 'x' : '0';
    wanted = first.wants_iteration(iteration + 1);
  }
  // The first does not know yet that there are iterations.
  EXPECT_EQ(looked_at, "xx0-0---0-------x0-0---0");
}

TEST(LaunchPolicy, FirstLeavesOutNothingAfterIterationsWithoutLaunches) {
  LaunchPolicy first = policy("first:1");
  for (std::uint64_t ended = 1; ended < 9; ++ended) EXPECT_TRUE(first.wants_iteration(ended));
  EXPECT_TRUE(first.leaves_out_iterations());
}

TEST(LaunchPolicy, WhatIsNone) {
  for (const char* text : {"first:", "first:0", "first:-1", "first:2x", "iterations:2",
                           "iterations:2/3", "iterations:1/0", "iterations:1/", "(", "a["}) {
    const auto parsed = LaunchPolicy::parse(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kUsage);
    EXPECT_NE(parsed.error().message.find(text), std::string::npos) << parsed.error().message;
  }
}

}  // namespace
}  // namespace pasta::device
