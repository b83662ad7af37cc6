#include "correlate/object_names.h"

#include <gtest/gtest.h>

namespace pasta::correlate {
namespace {

constexpr ProcessId kProcess{1};
constexpr std::uint64_t kAddress = 0x1000;

class ObjectNamesTest : public testing::Test {
 protected:
  Event at(Kind kind, std::int64_t ns) {
    Event event{};
    event.kind = kind;
    event.lane = lane_;
    event.start_ns = event.end_ns = ns;
    return event;
  }
  void memory(Kind kind, std::int64_t ns, FrameId scope = {}, std::uint64_t address = kAddress) {
    Event event = at(kind, ns);
    event.scope = scope;
    event.memory.address = address;
    event.memory.bytes = 256;
    names_.take(event, dictionary_);
  }
  void tag(std::int64_t ns, const char* name, const char* arguments) {
    Event event = at(Kind::kScope, ns);
    event.name = dictionary_.string(name);
    event.range.arguments = dictionary_.string(arguments);
    names_.take(event, dictionary_);
  }
  FrameId frame(FrameId parent, const char* name, ScopeDomain domain = ScopeDomain::kOperator) {
    return dictionary_.frame({parent, dictionary_.string(name), domain});
  }
  std::string name(std::int64_t ns, const char* called = "") {
    return names_.name_of(kProcess, kAddress, 256, ns, called);
  }

  Dictionary dictionary_;
  LaneId lane_ = dictionary_.lane({.process = kProcess});
  ObjectNames names_;
};

TEST_F(ObjectNamesTest, TheCallPathOfItsAllocationAtTheTimeOfTheLaunch) {
  const FrameId first = frame({}, "load"), second = frame(frame({}, "train"), "aten::empty");
  memory(Kind::kAlloc, 10, first);
  memory(Kind::kFree, 20);
  memory(Kind::kAlloc, 30, second);
  // Results are told long after their launches, when the memory is something else's.
  EXPECT_EQ(name(9), "");
  EXPECT_EQ(name(10), "load");
  EXPECT_EQ(name(19), "load");
  EXPECT_EQ(name(25), "") << "nothing is there";
  EXPECT_EQ(name(30), "train > aten::empty");
  EXPECT_EQ(name(30, "in"), "in from train > aten::empty") << "what the kernel calls it";
  EXPECT_EQ(name(25, "in"), "in");
  EXPECT_EQ(names_.name_of(kProcess, kAddress + 255, 1, 30, ""), "train > aten::empty")
      << "a piece";
  EXPECT_EQ(names_.name_of(kProcess, kAddress + 256, 1, 30, ""), "");
  EXPECT_EQ(names_.name_of({2}, kAddress, 256, 30, ""), "") << "another process";
}

TEST_F(ObjectNamesTest, WhatWasNotSeenToBeFreed) {
  memory(Kind::kAlloc, 10, frame({}, "load"));
  memory(Kind::kAlloc, 30, frame({}, "train"));
  EXPECT_EQ(name(29), "load");
  EXPECT_EQ(name(30), "train");
}

TEST_F(ObjectNamesTest, PathsSayLineAndModule) {
  const FrameId module =
      frame(frame({}, "model", ScopeDomain::kModule), "model.mlp", ScopeDomain::kModule);
  const FrameId line = frame(module, "train.py:12 forward", ScopeDomain::kPython);
  memory(Kind::kAlloc, 10, frame(frame(frame(line, "aten::linear"), "aten::mm"), "aten::empty"));
  EXPECT_EQ(name(10), "model.mlp > train.py:12 forward > aten::empty");
  memory(Kind::kAlloc, 20, frame(frame(frame(frame({}, "a"), "b"), "c"), "d"));
  EXPECT_EQ(name(20), "b > c > d") << "the innermost three";
  memory(Kind::kAlloc, 30, line);
  EXPECT_EQ(name(30), "model.mlp > train.py:12 forward");
}

TEST_F(ObjectNamesTest, Tags) {
  memory(Kind::kAlloc, 10, frame({}, "load"));
  tag(11, "weights", R"({"address":4096,"bytes":64})");
  tag(12, "bias", R"({"address":4160,"bytes":64})");
  tag(12, "elsewhere", R"({"address":8192,"bytes":64})");
  tag(13, "no place", R"({"bytes":64})");
  EXPECT_EQ(name(10), "load") << "not yet";
  EXPECT_EQ(name(11, "in"), "weights");
  EXPECT_EQ(name(12), "weights, bias");
  tag(20, "state", R"({"address":4096,"bytes":64})");
  EXPECT_EQ(name(20), "state, bias");
  memory(Kind::kFree, 30);
  memory(Kind::kAlloc, 40, frame({}, "train"));
  EXPECT_EQ(name(29), "state, bias");
  EXPECT_EQ(name(40), "train");
  tag(41, "c", R"({"address":4100,"bytes":4})");
  tag(41, "d", R"({"address":4104,"bytes":4})");
  tag(41, "e", R"({"address":4108,"bytes":4})");
  EXPECT_EQ(name(41), "c, d, e");
  tag(41, "f", R"({"address":4112,"bytes":4})");
  EXPECT_EQ(name(41), "c, d, e, ...");
}

TEST_F(ObjectNamesTest, OfWhatIsGoneTheOldestIsForgotten) {
  const FrameId scope = frame({}, "load");
  memory(Kind::kAlloc, 10, scope);
  memory(Kind::kFree, 20);
  for (std::uint64_t i = 1; i <= 1 << 16; ++i) {
    EXPECT_EQ(name(15), "load");
    memory(Kind::kAlloc, 30, scope, kAddress + 4096 * i);
    memory(Kind::kFree, 40, {}, kAddress + 4096 * i);
  }
  EXPECT_EQ(name(15), "");
  EXPECT_EQ(names_.name_of(kProcess, kAddress + 4096, 256, 35, ""), "load");
}

TEST_F(ObjectNamesTest, WhatIsFreedAgainAndAgainIsAsOldAsItsLastEnd) {
  const FrameId scope = frame({}, "load");
  std::int64_t ns = 0;
  for (std::uint64_t i = 0; i <= 1 << 16; ++i, ns += 2) {
    memory(Kind::kAlloc, ns, scope);
    memory(Kind::kFree, ns + 1);
  }
  EXPECT_EQ(name(ns - 2), "load");
}

TEST_F(ObjectNamesTest, OfWhatIsForgottenNoMoreThanItsTagsAre) {
  // So long that where it ends lies before where it begins.
  Event event = at(Kind::kAlloc, 10);
  event.memory.address = kAddress;
  event.memory.bytes = 0 - std::uint64_t{1024};
  names_.take(event, dictionary_);
  tag(11, "in it", R"({"address":4096,"bytes":64})");
  tag(11, "before it", R"({"address":3584,"bytes":64})");
  memory(Kind::kFree, 20);
  for (std::uint64_t i = 1; i <= 1 << 16; ++i) {
    memory(Kind::kAlloc, 30, {}, kAddress + 4096 * i);
    memory(Kind::kFree, 40, {}, kAddress + 4096 * i);
  }
  EXPECT_EQ(name(15), "");
  EXPECT_EQ(names_.name_of(kProcess, 3584, 64, 15, ""), "before it");
}

}  // namespace
}  // namespace pasta::correlate
