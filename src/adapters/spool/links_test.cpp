#include "adapters/spool/links.h"

#include <gtest/gtest.h>

namespace pasta::adapters::spool {
namespace {

class LinksTest : public testing::Test {
 protected:
  Event event(Kind kind, LaneId lane, std::uint64_t correlation, std::int64_t start_ns) {
    Event made{};
    made.kind = kind;
    made.lane = lane;
    made.correlation = make_correlation(process_, correlation);
    made.start_ns = start_ns;
    made.end_ns = start_ns + 10;
    return made;
  }

  Dictionary dictionary_;
  ProcessId process_ = dictionary_.process({.native_id = 7});
  LaneId thread_ = dictionary_.lane({.process = process_, .native_id = 7});
  LaneId queue_ = dictionary_.lane({.type = LaneType::kQueue, .process = process_, .native_id = 1});
  FrameId path_ = dictionary_.frame({.name = dictionary_.string("step")});
  Problems problems_;
  Origins origins_{dictionary_};
  Links links_{dictionary_, origins_};
};

TEST_F(LinksTest, WorkGetsThePathOfItsLaunch) {
  Event launch = event(Kind::kApi, thread_, 1, 100);
  launch.scope = path_;
  links_.learn(launch);
  for (const Kind kind : {Kind::kKernel, Kind::kCopy, Kind::kFill, Kind::kSync}) {
    Event work = event(kind, queue_, 1, 105);
    links_.link(work, problems_);
    EXPECT_EQ(work.scope, path_);
    EXPECT_EQ(work.flags, kLinked);
  }
  EXPECT_TRUE(problems_.list().empty());
}

TEST_F(LinksTest, WorkThatStartsBeforeItsLaunchIsCounted) {
  links_.learn(event(Kind::kApi, thread_, 1, 100));
  Event work = event(Kind::kKernel, queue_, 1, 99);
  links_.link(work, problems_);
  EXPECT_EQ(work.flags, kLinked | kSkewed);
  ASSERT_EQ(problems_.list().size(), 1u);
  EXPECT_EQ(problems_.list()[0].reason, Reason::kStartsBeforeLaunch);
}

TEST_F(LinksTest, WithoutALaunchNothingIsClaimed) {
  Event unseen = event(Kind::kKernel, queue_, 2, 99), unnamed = event(Kind::kFill, queue_, 0, 99);
  unseen.scope = path_;
  links_.link(unseen, problems_);
  links_.link(unnamed, problems_);
  EXPECT_EQ(unseen.flags | unnamed.flags, 0);
  EXPECT_FALSE(unseen.scope);
  ASSERT_EQ(problems_.list().size(), 2u);
  EXPECT_EQ(problems_.list()[0].reason, Reason::kLaunchNotSeen);
  EXPECT_EQ(problems_.list()[1].reason, Reason::kNoCorrelation);
}

TEST_F(LinksTest, WhatIsOfTheHostIsLeftAlone) {
  Event wait = event(Kind::kSync, thread_, 0, 99);
  wait.scope = path_;
  links_.link(wait, problems_);
  EXPECT_EQ(wait.scope, path_);
  EXPECT_TRUE(problems_.list().empty());
}

}  // namespace
}  // namespace pasta::adapters::spool
