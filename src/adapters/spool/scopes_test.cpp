#include "adapters/spool/scopes.h"

#include <gtest/gtest.h>

#include <array>

namespace pasta::adapters::spool {
namespace {

class ScopesTest : public testing::Test {
 protected:
  // A range on `lane_` inside `around`, and the path that it opens.
  FrameId range(std::string_view name, std::int64_t start_ns, std::int64_t end_ns,
                FrameId around = {}) {
    Event event{};
    event.kind = Kind::kScope;
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    event.name = dictionary_.string(name);
    event.lane = lane_;
    event.scope = around;
    event.start_ns = start_ns;
    event.end_ns = end_ns;
    const FrameId inside = dictionary_.frame({around, event.name, ScopeDomain::kAnnotation});
    scopes_.learn(event);
    return inside;
  }

  FrameId scope_at(std::int64_t start_ns, LaneId lane, std::int64_t lasts_ns = 1) {
    Event call{};
    call.kind = Kind::kApi;
    call.lane = lane;
    call.scope = {trace::spool::kScopeByTime};
    call.start_ns = start_ns;
    call.end_ns = start_ns + lasts_ns;
    EXPECT_TRUE(Scopes::is_by_time(call));
    const std::array<Event*, 1> calls = {&call};
    scopes_.resolve(calls);
    return call.scope;
  }
  FrameId scope_at(std::int64_t start_ns) { return scope_at(start_ns, lane_); }

  Dictionary dictionary_;
  LaneId lane_ = dictionary_.lane({.native_id = 7});
  LaneId other_ = dictionary_.lane({.native_id = 8});
  Scopes scopes_{dictionary_};
};

TEST_F(ScopesTest, TheInnermostRangeThatIsOpen) {
  const StringId step = dictionary_.string("step");
  const FrameId outer = dictionary_.frame({{}, step, ScopeDomain::kAnnotation});
  const FrameId first = range("forward", 10, 20, outer);
  const FrameId second = range("backward", 30, 40, outer);
  EXPECT_EQ(range("step", 0, 100), outer);
  EXPECT_EQ(scope_at(-1), FrameId{});
  EXPECT_EQ(scope_at(0), outer);
  EXPECT_EQ(scope_at(10), first);
  EXPECT_EQ(scope_at(19), first);
  EXPECT_EQ(scope_at(20), outer);
  EXPECT_EQ(scope_at(35), second);
  EXPECT_EQ(scope_at(40), outer);
  EXPECT_EQ(scope_at(100), FrameId{});
  EXPECT_EQ(scope_at(15, other_), FrameId{});
}

TEST_F(ScopesTest, ClocksThatAreNotTheSame) {
  const FrameId forward = range("forward", 1000, 2000);
  const FrameId backward = range("backward", 2100, 3000);
  EXPECT_EQ(scope_at(900, lane_, 600), forward) << "began before the range that it is in";
  EXPECT_EQ(scope_at(1500, lane_, 700), forward) << "ended after it";
  EXPECT_EQ(scope_at(1900, lane_, 1000), backward) << "before the range before had ended";
  EXPECT_EQ(scope_at(2900, lane_, 600), FrameId{}) << "came after the last";
}

TEST_F(ScopesTest, RangesThatAreStillOpen) {
  const FrameId epoch =
      dictionary_.frame({{}, dictionary_.string("epoch"), ScopeDomain::kAnnotation});
  const FrameId step = range("step", 50, 60, epoch);
  scopes_.open(lane_, 40, epoch);
  EXPECT_EQ(scope_at(39), FrameId{});
  EXPECT_EQ(scope_at(55), step);
  EXPECT_EQ(scope_at(1000), epoch);
  scopes_.forget_open();
  EXPECT_EQ(scope_at(1000), FrameId{});
}

TEST_F(ScopesTest, RangesWithEqualTimes) {
  const FrameId outer =
      dictionary_.frame({{}, dictionary_.string("outer"), ScopeDomain::kAnnotation});
  const FrameId inner = range("inner", 10, 20, outer);
  range("outer", 10, 20);
  EXPECT_EQ(scope_at(10), inner);
}

TEST_F(ScopesTest, WhatIsNoPathNodeHoldsNothing) {
  range("step#1", 0, 100);
  EXPECT_EQ(scope_at(50), FrameId{});
}

TEST_F(ScopesTest, Forgets) {
  const FrameId first = range("first", 0, 10);
  const FrameId second = range("second", 10, 30);
  EXPECT_EQ(scope_at(5), first);
  scopes_.forget(20);
  EXPECT_EQ(scope_at(5), FrameId{});
  EXPECT_EQ(scope_at(25), second);
}

}  // namespace
}  // namespace pasta::adapters::spool
