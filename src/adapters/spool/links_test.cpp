#include "adapters/spool/links.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trace/spool.h"

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

TEST_F(LinksTest, TheOriginOfWorkIsInsideOfItsLaunch) {
  Event launch = event(Kind::kApi, thread_, 1, 100);
  launch.scope = path_;
  links_.learn(launch);
  const FrameId capture = dictionary_.frame({.name = dictionary_.string("capture")});
  const FrameId layer = dictionary_.frame({capture, dictionary_.string("layer"), {}});
  const std::uint32_t id = origins_.id(3, 17), unknown = origins_.id(4, 17);
  const auto path_of = [&](std::uint32_t origin, std::uint64_t correlation) {
    Event work = event(Kind::kKernel, queue_, correlation, 105);
    work.scope = {trace::spool::kScopeOfOrigin | origin};
    links_.link(work, problems_);
    return work.scope;
  };
  // The path may be read after the work.
  EXPECT_EQ(path_of(id, 1), path_);
  origins_.learn(id, layer);
  const FrameId inside = path_of(id, 1);
  EXPECT_EQ(dictionary_.text(dictionary_.frame(inside).name), "layer");
  const FrameId parent = dictionary_.frame(inside).parent;
  EXPECT_EQ(dictionary_.text(dictionary_.frame(parent).name), "capture");
  EXPECT_EQ(dictionary_.frame(parent).parent, path_);
  EXPECT_EQ(path_of(id, 1), inside);
  EXPECT_EQ(path_of(unknown, 1), path_);
  // Of a launch that nobody saw, the origin is known all the same.
  EXPECT_EQ(path_of(id, 99), layer);
  EXPECT_EQ(path_of(unknown + 1, 1), path_);
}

TEST_F(LinksTest, LaunchesAfterTheLastThatIsSeenAreUnseen) {
  const auto call = [&](std::uint64_t correlation, std::string_view name, std::int32_t status = 0) {
    Event made = event(Kind::kApi, thread_, correlation, 100);
    made.name = dictionary_.string(name);
    made.api.status = status;
    links_.learn(made);
  };
  for (std::uint64_t i = 1; i <= 3000; ++i) call(i, "cudaLaunchKernel");
  EXPECT_EQ(links_.unseen(process_), 3000u);
  Event work = event(Kind::kKernel, queue_, 2999, 105);
  links_.link(work, problems_);
  EXPECT_EQ(links_.unseen(process_), 1u);
  call(3001, "cudaLaunchKernel", 700);
  call(3002, "cudaMalloc");
  call(3003, "cudaLaunchHostFunc");
  call(3004, "cuLaunchKernelEx");
  EXPECT_EQ(links_.unseen(process_), 2u);
  EXPECT_EQ(links_.unseen({9}), 0u);
}

// What is held does not grow with the number of launches whose work has been linked, and nothing
// that can still come is let go.
TEST_F(LinksTest, LaunchesWhoseWorkIsLinkedAreLetGo) {
  constexpr std::int64_t kEachNs = 100'000;
  const auto launch = [&](std::uint64_t correlation, std::string_view name) {
    Event call = event(Kind::kApi, thread_, correlation, std::int64_t(correlation) * kEachNs);
    call.name = dictionary_.string(name);
    call.scope = path_;
    links_.learn(call);
  };
  const auto is_linked = [&](std::uint64_t correlation, std::int64_t at_ns) {
    Event work = event(Kind::kKernel, queue_, correlation, at_ns);
    links_.link(work, problems_);
    return (work.flags & kLinked) != 0;
  };
  launch(1, "cudaGraphLaunch");
  launch(2, "cudaLaunchKernel");  // stands in a queue for long
  EXPECT_TRUE(is_linked(1, 150'000));
  std::size_t most = 0;
  constexpr std::uint64_t kLaunches = 500'000;
  std::int64_t now_ns = 0;
  for (std::uint64_t i = 3; i < kLaunches; ++i) {
    launch(i, "cudaLaunchKernel");
    now_ns = std::int64_t(i) * kEachNs + 5'000;
    ASSERT_TRUE(is_linked(i, now_ns));
    if (i % 1000 == 0) links_.forget(now_ns);
    most = std::max(most, links_.held());
  }
  EXPECT_LT(most, kLaunches / 5);
  EXPECT_TRUE(is_linked(1, now_ns));
  EXPECT_TRUE(is_linked(2, now_ns));
  EXPECT_TRUE(problems_.list().empty());
  // The same whether it was let go already or not.
  EXPECT_FALSE(is_linked(3, now_ns));
  EXPECT_TRUE(is_linked(kLaunches - 1, now_ns + Links::kTogetherNs));
  EXPECT_FALSE(is_linked(kLaunches - 1, now_ns + 3 * Links::kTogetherNs));
  ASSERT_EQ(problems_.list().size(), 1u);
  EXPECT_EQ(problems_.list()[0].reason, Reason::kLaunchNotSeen);
  EXPECT_EQ(problems_.list()[0].count, 2u);
}

}  // namespace
}  // namespace pasta::adapters::spool
