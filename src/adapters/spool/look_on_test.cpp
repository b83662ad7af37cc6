#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "adapters/spool/spool.h"
#include "trace/spool_test_folder.h"

namespace pasta::adapters::spool {
namespace {

class CountingSink final : public EventSink {
 public:
  Dictionary& dictionary() override { return dictionary_; }
  void describe(const SourceInfo&) override {}
  void push(std::span<const Event> events) override {
    for (const Event& event : events) {
      ++(event.kind == Kind::kKernel ? kernels : moments);
    }
  }
  void push(Event, std::span<const std::byte>) override {}
  void advance(std::int64_t) override {}
  void report(const Problem&) override {}
  int kernels = 0, moments = 0;

 private:
  Dictionary dictionary_;
};

// A command that waits for hours holds back the trace, because it may end at any time, and with
// whatever order that has. Who only looks on sees all else, and the command when it is told of.
TEST(LookOn, SeesWhatAHoldKeepsBack) {
  trace::SpoolTestFolder folder;
  int said[2], gate[2];
  ASSERT_EQ(pipe(said), 0);
  ASSERT_EQ(pipe(gate), 0);
  const auto tell = [&] { ASSERT_EQ(write(said[1], "x", 1), 1); };
  const auto wait = [](int from) {
    char byte = 0;
    ASSERT_EQ(read(from, &byte, 1), 1);
  };
  const pid_t child = folder.begin([&] {
    const std::int64_t long_ago = trace::spool_now_ns();
    trace::work_begins();
    trace::hold_work(long_ago);
    for (int i = 0; i < 3; ++i) trace::SpoolPush().mark({.name = "moment"});
    tell();
    wait(gate[0]);
    {
      trace::SpoolPush push;
      Event event{};
      event.kind = Kind::kKernel;
      event.name = push.string("long ago");
      event.lane = push.lane();
      event.start_ns = event.end_ns = long_ago;
      push.add(event);
    }
    trace::work_ends(1);
    tell();
    wait(gate[0]);
  });
  std::atomic<bool> over = false;
  auto following = follow(folder.path(), "t", "run", over, KindSet::all());
  auto looking = look_on(folder.path(), over);
  ASSERT_TRUE(following && looking);
  CountingSink followed, seen;
  ASSERT_TRUE((*following)->start({}, followed));
  ASSERT_TRUE((*looking)->start({}, seen));
  const auto pump = [](Adapter& adapter, std::chrono::seconds most, const auto& enough) {
    const auto end = std::chrono::steady_clock::now() + most;
    while (!enough() && std::chrono::steady_clock::now() < end) {
      ASSERT_TRUE(adapter.pump().value_or(false));
      std::this_thread::yield();
    }
  };
  constexpr std::chrono::seconds kLong{60};
  wait(said[0]);
  pump(**looking, kLong, [&] { return seen.moments == 3; });
  pump(**following, std::chrono::seconds(1), [&] { return followed.moments > 0; });
  EXPECT_EQ(seen.moments, 3);
  EXPECT_EQ(followed.moments, 0);
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  wait(said[0]);
  pump(**looking, kLong, [&] { return seen.kernels == 1; });
  pump(**following, kLong, [&] { return followed.moments == 3; });
  EXPECT_EQ(seen.kernels, 1);
  EXPECT_EQ(seen.moments, 3);
  EXPECT_EQ(followed.kernels, 1);
  EXPECT_EQ(followed.moments, 3);
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  over = true;
  EXPECT_FALSE((*looking)->pump().value_or(true)) << "nothing more can come";
}

}  // namespace
}  // namespace pasta::adapters::spool
