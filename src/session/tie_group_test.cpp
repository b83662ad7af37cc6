#include "session/tie_group.h"

#include <gtest/gtest.h>

namespace pasta::session {
namespace {

Event kernel(std::int64_t start, std::uint64_t correlation) {
  Event e{};
  e.kind = Kind::kKernel;
  e.start_ns = start;
  e.end_ns = 100;
  e.correlation = correlation;
  return e;
}

TEST(TieGroup, FindsRepeatsInSmallAndLargeGroups) {
  for (const std::uint64_t size : {1u, 31u, 32u, 33u, 500u}) {
    TieGroup group;
    for (std::uint64_t i = 1; i <= size; ++i) EXPECT_FALSE(group.add(kernel(10, i)));
    for (std::uint64_t i = 1; i <= size; ++i) EXPECT_TRUE(group.add(kernel(10, i))) << size;
    group.clear();
    EXPECT_FALSE(group.add(kernel(10, 1)));
  }
}

TEST(TieGroup, AnyDifferenceMakesTwo) {
  const Event base = kernel(10, 1);
  Event other[6] = {base, base, base, base, base, base};
  other[0].start_ns = 11;
  other[1].name = {1};
  other[2].lane = {1};
  other[3].correlation = 2;
  other[4].kind = Kind::kCopy;
  other[5].kernel.graph_node = 1;
  TieGroup group;
  EXPECT_FALSE(group.add(base));
  for (const Event& e : other) EXPECT_FALSE(group.add(e));
  Event again = base;
  again.kernel.ordinal = 9;  // a reader numbers repeats too
  EXPECT_TRUE(group.add(again));
}

TEST(TieGroup, MomentsAndUntimedEventsAreNoRepeats) {
  Event moment = kernel(100, 0);
  TieGroup group;
  EXPECT_FALSE(group.add(moment));
  EXPECT_FALSE(group.add(moment));
  Event untimed = kernel(kNoTime, 5);
  untimed.end_ns = kNoTime;
  untimed.flags = kUntimed;
  EXPECT_FALSE(group.add(untimed));
  EXPECT_FALSE(group.add(untimed));
}

}  // namespace
}  // namespace pasta::session
