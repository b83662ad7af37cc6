#include "pasta/dictionary.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "pasta/quality.h"

namespace pasta {
namespace {

TEST(Dictionary, NoneIsEmpty) {
  Dictionary d;
  EXPECT_EQ(d.string(""), StringId{});
  EXPECT_EQ(d.text({}), "");
  EXPECT_EQ(d.frame(FrameId{}), Frame{});
  EXPECT_EQ(d.text({12345}), "");
}

TEST(Dictionary, EqualTextHasOneIdAndTextStays) {
  Dictionary d;
  std::vector<StringId> ids;
  std::vector<std::string_view> views;
  for (int i = 0; i < 100000; ++i) {
    ids.push_back(d.string("kernel " + std::to_string(i)));
    views.push_back(d.text(ids.back()));
  }
  const std::string large(300000, 'x');
  const StringId large_id = d.string(large);
  for (int i = 0; i < 100000; ++i) {
    ASSERT_EQ(d.string("kernel " + std::to_string(i)), ids[i]);
    ASSERT_EQ(views[i], "kernel " + std::to_string(i));
  }
  EXPECT_EQ(d.text(large_id), large);
  EXPECT_EQ(d.string_count(), 100002u);
}

TEST(Dictionary, IdentityIsWhatTheHeaderSays) {
  Dictionary d;
  const ProcessId p = d.process({.native_id = 7});
  EXPECT_NE(p, d.process({.native_id = 7 + (std::uint64_t{1} << 32)}));
  EXPECT_NE(p, d.process({.native_id = 7, .source = d.string("other.json")}));
  d.update(p, {.name = d.string("python"), .rank = 3});
  EXPECT_EQ(p, d.process({.native_id = 7}));
  EXPECT_EQ(d.process(p).native_id, 7u);
  EXPECT_EQ(d.process(p).rank, 3);

  const LaneId lane = d.lane({.process = p, .native_id = 9});
  EXPECT_NE(lane, d.lane({.type = LaneType::kQueue, .process = p, .native_id = 9}));
  const auto updates = d.updates();
  d.update(lane, d.string("main"));
  EXPECT_GT(d.updates(), updates);
  EXPECT_EQ(d.text(d.lane(lane).name), "main");
  EXPECT_EQ(lane, d.lane({.process = p, .native_id = 9}));
}

TEST(Dictionary, FramesFoldIntoTheirParentBeyondTheLimit) {
  Dictionary d;
  d.limit_frames(2);
  const FrameId a = d.frame({.name = d.string("a")});
  const FrameId b = d.frame({.parent = a, .name = d.string("b")});
  EXPECT_EQ(d.frame({.parent = b, .name = d.string("c")}), b);
  EXPECT_EQ(d.frame({.parent = a, .name = d.string("b")}), b);
  EXPECT_EQ(d.folded_frames(), 1u);
  EXPECT_EQ(d.find_frame({.parent = a, .name = d.string("b")}), b);
  EXPECT_EQ(d.find_frame({.parent = b, .name = d.string("c")}), FrameId{});
}

TEST(Dictionary, ReadersNeedNoLock) {
  Dictionary d;
  const LaneId lane = d.lane({.native_id = 1});
  std::thread writer([&] {
    for (int i = 0; i < 20000; ++i) {
      d.update(lane, d.string("name " + std::to_string(i)));
    }
  });
  for (int i = 0; i < 20000; ++i) {
    const std::string_view name = d.text(d.lane(lane).name);
    ASSERT_TRUE(name.empty() || name.starts_with("name "));
  }
  writer.join();
  EXPECT_EQ(d.text(d.lane(lane).name), "name 19999");
}

TEST(Problems, CountAndKeepTheFirstPlace) {
  Problems problems;
  EXPECT_EQ(problems.worst(), Severity::kNote);
  problems.add(Reason::kEscapeKept, [] { return "byte 7"; });
  problems.add(Reason::kEscapeKept, [] { return "byte 9"; });
  problems.add(Reason::kTruncated, 1, "byte 99");
  ASSERT_EQ(problems.list().size(), 2u);
  EXPECT_EQ(problems.list()[0], (Problem{Reason::kEscapeKept, 2, "byte 7"}));
  EXPECT_EQ(problems.worst(), Severity::kDropped);
}

TEST(Kinds, NamesGoBothWays) {
  for (unsigned i = 0; i < kKindCount; ++i) {
    Kind kind{};
    ASSERT_TRUE(kind_from_name(kind_name(static_cast<Kind>(i)), kind));
    EXPECT_EQ(static_cast<unsigned>(kind), i);
  }
  Kind kind{};
  EXPECT_FALSE(kind_from_name("kernels", kind));
}

}  // namespace
}  // namespace pasta
