#include "base/iteration_counter.h"

#include <gtest/gtest.h>

namespace pasta::base {
namespace {

using enum IterationMark;

TEST(IterationCounter, OneMarkIsNoIterationYet) {
  IterationCounter counter;
  EXPECT_FALSE(counter.mark(kForward, 1));
  EXPECT_TRUE(counter.mark(kForward, 1));
  EXPECT_EQ(counter.ended(), 1u);
  EXPECT_TRUE(counter.mark(kForward, 1));
  EXPECT_EQ(counter.ended(), 2u);
}

TEST(IterationCounter, WhatCameTwiceFirst) {
  IterationCounter counter;
  for (const std::uint64_t warm_up : {7u, 8u, 9u}) EXPECT_FALSE(counter.mark(kForward, warm_up));
  EXPECT_FALSE(counter.mark(kForward, 1));
  EXPECT_FALSE(counter.mark(kForward, 2));
  EXPECT_TRUE(counter.mark(kForward, 1));
  EXPECT_FALSE(counter.mark(kForward, 2)) << "another of the same loop";
  EXPECT_TRUE(counter.mark(kForward, 1));
}

TEST(IterationCounter, AStrongerMarkCountsAnew) {
  IterationCounter counter;
  for (int i = 0; i < 5; ++i) counter.mark(kForward, 1);
  EXPECT_FALSE(counter.mark(kOptimizer, 1));
  EXPECT_TRUE(counter.mark(kForward, 1)) << "as long as there was only one";
  EXPECT_TRUE(counter.mark(kOptimizer, 1));
  EXPECT_EQ(counter.ended(), 1u);
  EXPECT_FALSE(counter.mark(kForward, 1));
  EXPECT_FALSE(counter.mark(kRange, 3));
  EXPECT_TRUE(counter.mark(kRange, 3));
  EXPECT_TRUE(counter.mark(kStep, 0)) << "at once";
  EXPECT_EQ(counter.ended(), 1u);
  EXPECT_FALSE(counter.mark(kRange, 3));
  EXPECT_TRUE(counter.mark(kStep, 0));
  EXPECT_EQ(counter.ended(), 2u);
}

TEST(IterationCounter, AnUsualLoopHasOneKindFromTheFirst) {
  // Forward, optimizer, pasta_step(): nothing counts before the step does.
  IterationCounter counter;
  for (std::uint64_t iteration = 1; iteration < 4; ++iteration) {
    EXPECT_FALSE(counter.mark(kForward, 1));
    EXPECT_FALSE(counter.mark(kOptimizer, 2));
    EXPECT_EQ(counter.ended(), iteration - 1);
    EXPECT_TRUE(counter.mark(kStep, 0));
  }
}

TEST(IterationCounter, OfManyNamesTheFirstAreKnown) {
  IterationCounter counter;
  for (std::uint64_t name = 0; name < 100; ++name) EXPECT_FALSE(counter.mark(kRange, name));
  EXPECT_TRUE(counter.mark(kRange, 3));
}

}  // namespace
}  // namespace pasta::base
