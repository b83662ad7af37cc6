#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>
#include <string>
#include <thread>

#include "adapters/spool/spool.h"
#include "trace/spool_release.h"
#include "trace/spool_test_folder.h"

namespace pasta::adapters::spool {
namespace {

class Names final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    for (const Event& event : events) ++counts[std::string(dictionary_.text(event.name))];
  }
  void push(Event, std::span<const std::byte>) override {}
  void advance(std::int64_t) override {}
  void report(const Problem& problem) override { problems[problem.reason] += problem.count; }
  std::map<std::string, std::uint64_t> counts;
  std::map<Reason, std::uint64_t> problems;

 private:
  Dictionary dictionary_;
};

// One thread fills what is taken away; another said something before, in a file of its own that
// stays. Of the time of which some is gone, nothing is told: all of it is counted.
TEST(Released, WhatIsTakenAwayAfterTheFolderWasOpenedIsToldOf) {
  constexpr std::uint64_t kMany = 100'000, kFew = 10;
  trace::SpoolTestFolder folder(std::uint64_t{8} << 20);
  const auto say = [](const char* name, std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) trace::SpoolPush().mark({.name = name});
  };
  ASSERT_TRUE(folder.write([&] {
    std::atomic<int> turn = 0;
    std::thread other([&] {
      say("few", kFew);
      turn = 1;
      turn.notify_one();
      turn.wait(1);
    });
    turn.wait(0);
    say("many", kMany);
    turn = 2;
    turn.notify_one();
    other.join();
  }));
  auto stored = open(folder.path());
  ASSERT_TRUE(stored);

  auto follower = trace::SpoolFolder::open(folder.path());
  auto release = trace::SpoolRelease::open(folder.path());
  ASSERT_TRUE(follower && release && follower->refresh());
  for (auto& [name, lane] : follower->lanes()) {
    for (auto cells = follower->read(lane); !cells.empty(); cells = follower->read(lane)) {
      release->read(name, lane.read - cells.size(), cells);
    }
  }
  ASSERT_TRUE(release->look(*follower, std::numeric_limits<std::int64_t>::max()));
  ASSERT_GT(folder.page().let_go.load(), kMany / 5);

  Names seen;
  ASSERT_TRUE((*stored)->start({}, seen));
  while ((*stored)->pump().value_or(false)) continue;
  EXPECT_EQ(seen.counts["few"], 0u);
  EXPECT_EQ(seen.counts["many"] + seen.problems[Reason::kWrittenAlready], kMany + kFew);
  EXPECT_EQ(seen.problems.size(), 1u);
}

}  // namespace
}  // namespace pasta::adapters::spool
