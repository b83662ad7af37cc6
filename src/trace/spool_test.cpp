// Writer and reader of a spool. A process can join one run only, so whoever writes is a child.
#include "trace/spool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trace/spool_reader.h"
#include "trace/spool_release.h"
#include "trace/spool_test_folder.h"
#include "trace/spool_writer.h"

namespace pasta::trace {
namespace {

using namespace spool;
using Folder = SpoolTestFolder;

struct Contents {
  std::vector<Event> events;
  std::map<std::string, int> names;  // how many events have them
  std::uint64_t lost = 0;            // by gaps and by counts
  std::uint64_t unmatched = 0;
  std::uint64_t texts_cut = 0;
  std::uint64_t frames = 0;  // as often as they are defined
  std::size_t lanes = 0;
  std::size_t processes = 0;
  std::vector<std::string> open;
};

// After the cells that have been read of it.
void read_lane(SpoolFolder& folder, SpoolLane& lane, Contents& contents,
               std::vector<Event> cells = {}) {
  std::map<std::uint32_t, std::string> strings;
  for (auto more = folder.read(lane); !more.empty(); more = folder.read(lane)) {
    cells.insert(cells.end(), more.begin(), more.end());
  }
  EXPECT_EQ(lane.read, lane.committed);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto kind = static_cast<CellKind>(cells[i].kind);
    if (kind == CellKind::kString) {
      StringCell text{};
      std::memcpy(&text, &cells[i], sizeof text);
      ASSERT_LE(i + 1 + (text.bytes + 63) / 64, cells.size());
      strings[text.id].assign(reinterpret_cast<const char*>(&cells[i + 1]), text.bytes);
      i += (text.bytes + 63) / 64;
    } else if (kind == CellKind::kFrame) {
      ++contents.frames;
    } else if (static_cast<unsigned>(cells[i].kind) < kKindCount) {
      contents.events.push_back(cells[i]);
      if (cells[i].kind == Kind::kGap) {
        contents.lost += cells[i].gap.lost;
      } else {
        ++contents.names[strings.at(cells[i].name.value)];
      }
    }
  }
  for (const OpenRange& range : lane.open) contents.open.push_back(strings.at(range.name));
  contents.lost += lane.dropped;
  contents.texts_cut += lane.texts_cut;
}

Contents contents_of(const std::string& path) {
  Contents contents;
  auto folder = SpoolFolder::open(path);
  EXPECT_TRUE(folder);
  if (!folder || !folder->refresh()) return contents;
  EXPECT_TRUE(folder->unreadable().empty());
  contents.lanes = folder->lanes().size();
  contents.processes = folder->processes().size();
  contents.lost = folder->run().dropped;
  for (const auto& [number, process] : folder->processes()) {
    contents.lost += process.dropped;
    contents.unmatched += process.unmatched;
  }
  for (auto& [name, lane] : folder->lanes()) read_lane(*folder, lane, contents);
  return contents;
}

bool mark(std::string_view name) {
  SpoolPush push;
  if (push) push.mark({name});
  return static_cast<bool>(push);
}

std::uint64_t open(std::string_view name) {
  SpoolPush push = SpoolPush::even_stopped();
  return push ? push.open({name}) : 0;
}

void close(std::uint64_t token) {
  SpoolPush push = SpoolPush::even_stopped();
  if (push) push.close(token);
}

TEST(Spool, WhatIsPushedIsThere) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    const std::uint64_t outer = open("outer");
    mark("moment");
    close(outer);
    open("left open");
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"outer", 1}, {"moment", 1}}));
  EXPECT_EQ(contents.open, std::vector<std::string>{"left open"});
  EXPECT_EQ(contents.lost, 0U);
  EXPECT_EQ(contents.processes, 1U);
}

TEST(Spool, NamesAreTheirOwnHoweverManyThereAre) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 3000; ++i) mark(std::string(1 + i % 150, 'x') + std::to_string(i));
    }
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names.size(), 3000U);
  for (const auto& [name, count] : contents.names) EXPECT_EQ(count, 3) << name;
}

// A training step runs thousands of operators, each in a place of its own.
TEST(Spool, PathsAreDefinedOnceHoweverManyThereAre) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    for (int step = 0; step < 3; ++step) {
      for (int module = 0; module < 100; ++module) {
        const std::uint64_t outer = open("module " + std::to_string(module));
        for (int i = 0; i < 100; ++i) close(open("operator " + std::to_string(i)));
        close(outer);
      }
    }
  }));
  EXPECT_EQ(contents_of(folder.path()).frames, 100U + 100U * 100U);
}

TEST(Spool, LongTextsAreCutAndCounted) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    mark(std::string(kMaxTextBytes, 'a'));
    mark(std::string(kMaxTextBytes + 1, 'b'));
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.texts_cut, 1U);
  EXPECT_EQ(contents.names.at(std::string(kMaxTextBytes, 'b')), 1);
}

TEST(Spool, RangesBeyondTheDeepestAreCountedAndTheOthersKept) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    std::vector<std::uint64_t> tokens;
    for (std::uint32_t i = 0; i < kMaxOpen + 20; ++i) tokens.push_back(open("range"));
    for (int i = 0; i < 10; ++i) close(0);  // of those that are too deep
    for (std::uint32_t i = 0; i < 10; ++i) close(tokens[kMaxOpen + i]);
    for (std::uint32_t i = kMaxOpen; i > 0; --i) close(tokens[i - 1]);
    close(tokens[0]);  // once too often
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names.at("range"), static_cast<int>(kMaxOpen));
  EXPECT_EQ(contents.lost, 20U);
  EXPECT_EQ(contents.unmatched, 1U);
  EXPECT_TRUE(contents.open.empty());
}

TEST(Spool, ARowOfRangesEndsWithoutWhatIsOpenInThem) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    const auto open_row = [](std::uint64_t& first, std::uint64_t& last) {
      SpoolPush push;
      first = push.open({"first"});
      push.open({"second"});
      last = push.open({"third"});
    };
    const auto close_row = [](std::uint64_t first, std::uint64_t last) {
      SpoolPush push;
      push.close_row(first, last);
    };
    std::uint64_t first = 0, last = 0;
    open_row(first, last);
    const std::uint64_t inner = open("inner");
    close_row(first, last);
    mark("inside");
    close(inner);
    // The second and the third are too deep.
    for (std::uint32_t i = 1; i < kMaxOpen; ++i) open("deep");
    open_row(first, last);
    close_row(first, last);
    for (std::uint32_t i = 1; i < kMaxOpen; ++i) close(0);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"first", 2},
                                                        {"second", 1},
                                                        {"third", 1},
                                                        {"inner", 1},
                                                        {"inside", 1},
                                                        {"deep", static_cast<int>(kMaxOpen) - 1}}));
  EXPECT_EQ(contents.lost, 2U);
  EXPECT_EQ(contents.unmatched, 0U);
  EXPECT_TRUE(contents.open.empty());
}

TEST(Spool, WhatIsTooDeepEndsWithWhatItIsIn) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    for (std::uint32_t i = 1; i < kMaxOpen; ++i) open("range");
    const std::uint64_t last = open("last");
    open("too deep");
    {
      SpoolPush push;
      push.close_from(last);
    }
    close(open("after"));
    for (std::uint32_t i = 1; i < kMaxOpen; ++i) close(0);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names,
            (std::map<std::string, int>{
                {"range", static_cast<int>(kMaxOpen) - 1}, {"last", 1}, {"after", 1}}));
  EXPECT_EQ(contents.lost, 1U);
  EXPECT_EQ(contents.unmatched, 0U);
}

TEST(Spool, ARangeOfPathsAloneIsNoEvent) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    std::uint64_t module = 0;
    {
      SpoolPush push;
      module = push.open({.name = "module", .domain = ScopeDomain::kModule, .path_only = true});
      if (push.lies_in(ScopeDomain::kModule) && !push.lies_in(ScopeDomain::kOperator)) {
        push.mark({"in a module"});
      }
    }
    open("range");
    close(0);
    close(module);
    mark("outside");
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names,
            (std::map<std::string, int>{{"in a module", 1}, {"range", 1}, {"outside", 1}}));
  EXPECT_EQ(contents.frames, 2U);  // of the module, and of the range in it
  EXPECT_EQ(contents.events[0].scope, contents.events[1].scope);
  EXPECT_NE(contents.events[0].scope, contents.events[2].scope);
  EXPECT_EQ(contents.unmatched, 0U);
}

TEST(Spool, RangesEndOnTheirOwnThreadOnly) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    const std::uint64_t ours = open("ours");
    std::thread([ours] {
      open("theirs");
      close(ours);
    }).join();
    close(ours);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"ours", 1}, {"theirs", 1}}));
  EXPECT_EQ(contents.unmatched, 1U);
}

TEST(Spool, RangesThatBeginWhileStoppedAreLeftOutAndStayBalanced) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    open("before");
    stop_collection();
    open("while stopped");
    mark("while stopped");
    start_collection();
    mark("inside");
    close(0);
    mark("after");
    stop_collection();
    close(0);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names,
            (std::map<std::string, int>{{"before", 1}, {"inside", 1}, {"after", 1}}));
  EXPECT_TRUE(contents.open.empty());
  // What is inside of what was left out is inside of what is around that.
  EXPECT_EQ(contents.events[0].scope, contents.events[1].scope);
}

TEST(Spool, ThreadsTakeOverTheFilesOfThoseThatEnded) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    for (int i = 0; i < 300; ++i) {
      std::thread([] {
        open("left open");
        mark("moment");
      }).join();
    }
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.lanes, 1U);
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"left open", 300}, {"moment", 300}}));
  EXPECT_TRUE(contents.open.empty());
}

TEST(Spool, AThreadThatEndsInAPushLeavesAGoodFile) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    std::thread([] {
      alignas(SpoolPush) static unsigned char memory[sizeof(SpoolPush)];
      new (memory) SpoolPush;  // never destroyed
    }).join();
    std::thread([] { mark("next"); }).join();
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"next", 1}}));
  EXPECT_EQ(contents.lost, 0U);
}

TEST(Spool, AForkInAPushLeavesBothWhole) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    for (int i = 0; i < 100; ++i) mark("before");
    pid_t child = 0;
    {
      SpoolPush push;
      child = fork();  // as a signal handler would
      if (child == 0) after_fork();
      push.mark({"during"});
    }
    for (int i = 0; i < 2000; ++i) mark(child == 0 ? "child" : "parent");
    if (child == 0) {
      leave_run(0);
      std::_Exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) std::_Exit(3);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names,
            (std::map<std::string, int>{
                {"before", 100}, {"during", 1}, {"child", 2000}, {"parent", 2000}}));
  EXPECT_EQ(contents.processes, 2U);
  EXPECT_EQ(contents.lost, 0U);
}

TEST(Spool, AForkThatNobodyTellsOfIsFoundOut) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    open("around");
    const pid_t child = fork();
    mark(child == 0 ? "child" : "parent");
    if (child == 0) {
      leave_run(0);
      std::_Exit(0);
    }
    waitpid(child, nullptr, 0);
    close(0);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names,
            (std::map<std::string, int>{{"child", 1}, {"parent", 1}, {"around", 1}}));
  EXPECT_EQ(contents.open, std::vector<std::string>{"around"}) << "in the child";
}

std::atomic<int> g_in_handler = 0;

TEST(Spool, WhatASignalHandlerPushesIsThereOrCounted) {
  Folder folder;
  int* counts = static_cast<int*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  EXPECT_TRUE(folder.write([&] {
    std::signal(SIGALRM, [](int) {
      mark("handler");
      g_in_handler.fetch_add(1);
    });
    const itimerval often{{0, 50}, {0, 50}};
    setitimer(ITIMER_REAL, &often, nullptr);
    int pushed = 0;
    for (; g_in_handler < 300; ++pushed) mark("program");
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    counts[0] = pushed;
    counts[1] = g_in_handler;
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names.at("program"), counts[0]);
  const auto seen = contents.names.find("handler");
  const int handled = seen == contents.names.end() ? 0 : seen->second;
  EXPECT_EQ(handled + static_cast<int>(contents.lost), counts[1]);
  munmap(counts, 4096);
}

TEST(Spool, WhatFindsNoRoomIsCountedWhereItWasLost) {
  Folder folder(200 << 10);
  EXPECT_TRUE(folder.write([&] {
    for (int i = 0; i < 5000; ++i) mark("a");
    folder.page().limit_bytes = 1 << 30;
    for (int i = 0; i < 5000; ++i) mark("b");
  }));
  const Contents contents = contents_of(folder.path());
  std::uint64_t kept = 0;
  for (const auto& [name, count] : contents.names) kept += static_cast<std::uint64_t>(count);
  EXPECT_GT(contents.lost, 1000U);
  EXPECT_EQ(kept + contents.lost, 10000U);
  // There is room again, so that the newest are there.
  EXPECT_GT(contents.names.at("b"), 3900);
  const auto gap = std::find_if(contents.events.begin(), contents.events.end(),
                                [](const Event& event) { return event.kind == Kind::kGap; });
  ASSERT_NE(gap, contents.events.end());
  EXPECT_EQ(gap->gap.lost, contents.lost);
  EXPECT_GE(gap->start_ns, (gap - 1)->end_ns);
  EXPECT_LE(gap->end_ns, (gap + 1)->end_ns);
}

TEST(Spool, WithoutRoomForAProcessAllIsCounted) {
  Folder folder(0);
  EXPECT_TRUE(folder.write([] {
    for (int i = 0; i < 3000; ++i) mark("lost");
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.lanes + contents.processes, 0U);
  EXPECT_EQ(contents.lost, 3000U);
}

// The promise that a live session is built on: what was not there at a look ends after it.
void follow(bool quick) {
  constexpr int kThreads = 8, kEach = 20000;
  Folder folder(std::uint64_t{1} << 30, quick);
  EXPECT_TRUE(folder.write([&] {
    auto following = SpoolFolder::open(folder.path());
    if (!following) std::_Exit(3);
    std::atomic<int> running = kThreads;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&running] {
        for (int k = 0; k < kEach / 2; ++k) {
          open("range");
          mark("moment");
          close(0);
          if (k % 1000 == 999) std::this_thread::yield();
        }
        --running;
      });
    }
    std::map<std::string, std::int64_t> safe_ns;
    std::uint64_t events = 0;
    for (bool last = false; !last;) {
      last = running == 0;
      const auto now = following->refresh(last);
      if (!now || !following->unreadable().empty()) std::_Exit(4);
      for (auto& [name, lane] : following->lanes()) {
        for (auto cells = following->read(lane); !cells.empty(); cells = following->read(lane)) {
          for (const Event& cell : cells) {
            if (cell.kind != Kind::kScope) continue;  // texts have a 0 there
            ++events;
            if (safe_ns.contains(name) && cell.end_ns < safe_ns[name]) std::_Exit(5);
          }
        }
        if (!lane.pending) safe_ns[name] = *now;
      }
    }
    for (std::thread& thread : threads) thread.join();
    if (events != kThreads * kEach) std::_Exit(6);
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"range", kThreads * kEach / 2},
                                                        {"moment", kThreads * kEach / 2}}));
  EXPECT_EQ(contents.lost, 0U);
}

TEST(Spool, WhoeverFollowsMissesNothingAndKnowsUpToWhen) { follow(true); }
TEST(Spool, WhoeverFollowsKnowsItWithoutTicksAndBarriersToo) { follow(false); }

// What is committed between the two looks of a refresh, and ends long before it, is held back by
// what the first look has seen, or read because of what the second has.
TEST(Spool, HoldsAreLookedAtBeforeCounts) {
  for (const bool of_process : {false, true}) {
    Folder folder;
    EXPECT_TRUE(folder.write([&] {
      const std::int64_t long_ago = spool_now_ns();
      mark("first");
      if (of_process) {
        work_begins();
        hold_work(long_ago);
      } else {
        SpoolPush().hold(long_ago);
      }
      auto following = SpoolFolder::open(folder.path());
      if (!following || !following->refresh()) std::_Exit(3);
      while (spool_now_ns() - long_ago <= kClockNs) std::this_thread::yield();
      const auto now = following->refresh(false, [&] {
        SpoolPush push;
        Event event{};
        event.kind = Kind::kKernel;
        event.name = push.string("long ago");
        event.lane = push.lane();
        event.start_ns = event.end_ns = long_ago;
        push.add(event);
        if (of_process) {
          work_ends(1);
        } else {
          push.hold(kNoHold);
        }
      });
      if (!now || *now <= long_ago) std::_Exit(4);
      SpoolLane& lane = following->lanes().begin()->second;
      bool seen = false;
      for (auto cells = following->read(lane); !cells.empty(); cells = following->read(lane)) {
        for (const Event& cell : cells) seen = seen || cell.kind == Kind::kKernel;
      }
      const SpoolProcess& process = following->processes().begin()->second;
      const bool held =
          lane.hold_ns <= long_ago || (process.under_way > 0 && process.hold_ns <= long_ago);
      if (!seen && !held) std::_Exit(5);
      // It is both here; of a look that sees the count first it would be neither.
      if (!seen || !held) std::_Exit(6);
    })) << (of_process ? "of the process" : "of a lane");
  }
}

TEST(Spool, TheClockOfARunIsBounded) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    open("range");
    SpoolPush().hold(kLeast);
  }));
  for (const std::int64_t epoch_ns : {kLeast, -kMost / 2 - 1, kMost / 2 + 1, kMost}) {
    folder.page().epoch_ns = epoch_ns;
    const auto opened = SpoolFolder::open(folder.path());
    ASSERT_FALSE(opened) << epoch_ns;
    EXPECT_EQ(opened.error().code, ErrorCode::kBadInput);
    EXPECT_NE(opened.error().message.find(folder.path()), std::string::npos);
  }
  for (const std::int64_t epoch_ns : {-kMost / 2, std::int64_t{0}, kMost / 2}) {
    folder.page().epoch_ns = epoch_ns;
    EXPECT_TRUE(SpoolFolder::open(folder.path())) << epoch_ns;
  }
  const auto times = [&](std::int64_t ns) {
    folder.page().start_ns = folder.page().end_ns = ns;
    folder.page().kept_from_ns = ns;
    folder.page().over = 1;
    auto opened = SpoolFolder::open(folder.path());
    EXPECT_TRUE(opened && opened->refresh());
    const SpoolRun& run = opened->run();
    EXPECT_EQ(run.start_ns, run.end_ns);
    EXPECT_EQ(run.start_ns, run.kept_from_ns);
    EXPECT_EQ(opened->lanes().begin()->second.hold_ns, 0);
    return run.start_ns;
  };
  EXPECT_EQ(times(kLeast), 0);
  EXPECT_EQ(times(-1), 0);
  EXPECT_EQ(times(5), 5);
  EXPECT_EQ(times(kMost / 2), kMost / 2);
  EXPECT_EQ(times(kMost), kMost / 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
// Made without the C library, so that it is told apart from this one by its stack alone.
TEST(Spool, WhatAThreadThatIsNoneOfTheCLibraryPushesIsCounted) {
  Folder folder;
  EXPECT_TRUE(folder.write([] {
    mark("of the library");
    constexpr std::size_t kStack = std::size_t{8} << 20;
    void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) std::_Exit(3);
    static std::atomic<int> done = 0;
    const auto body = [](void*) -> int {
      mark("of none");
      done = 1;
      syscall(SYS_exit, 0);
      return 0;
    };
    constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    if (clone(body, static_cast<char*>(stack) + kStack, kFlags, nullptr) < 0) std::_Exit(4);
    while (done == 0) sched_yield();
    mark("of the library");
  }));
  const Contents contents = contents_of(folder.path());
  EXPECT_EQ(contents.names, (std::map<std::string, int>{{"of the library", 2}}));
  EXPECT_EQ(contents.lost, 1U);
}
#endif

TEST(Spool, AProcessWhoseFirstThreadHasEndedIsAlive) {
  Folder folder;
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = folder.begin([&] {
    std::thread([&] {
      mark("first");
      char byte = 0;
      if (read(gate[0], &byte, 1) == 1) mark("second");
      leave_run(0);
      std::_Exit(0);
    }).detach();
    syscall(SYS_exit, 0);
  });
  auto following = SpoolFolder::open(folder.path());
  ASSERT_TRUE(following);
  const auto zombie_of_one = [&] {
    const std::string file = "/proc/" + std::to_string(child) + "/stat";
    std::FILE* stat = std::fopen(file.c_str(), "r");
    char text[512] = {};
    EXPECT_GT(std::fread(text, 1, sizeof text - 1, stat), 0U);
    std::fclose(stat);
    return std::strrchr(text, ')')[2] == 'Z';
  };
  while (!zombie_of_one()) std::this_thread::yield();
  while (following->lanes().empty()) ASSERT_TRUE(following->refresh());
  EXPECT_TRUE(following->processes().begin()->second.alive);
  EXPECT_FALSE(following->lanes().begin()->second.final);
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents_of(folder.path()).names,
            (std::map<std::string, int>{{"first", 1}, {"second", 1}}));
  ::close(gate[0]);
  ::close(gate[1]);
}

// What was read and is kept elsewhere takes no disk; what stays can be read without it, also by who
// was in the middle of it.
TEST(Spool, WhatIsReleasedIsGoneAndTheRestIsWhole) {
  constexpr int kMarks = 100'000;
  constexpr std::uint64_t kLimit = std::uint64_t{8} << 20;
  Folder folder(kLimit);
  EXPECT_TRUE(folder.write([] {
    const std::uint64_t outer = open("open all the time");
    for (int i = 0; i < kMarks; ++i) {
      mark(std::string(1 + i % 150, 'x') + std::to_string(i % 300));
      if (i == kMarks / 4) mark("only once, and early");
    }
    close(outer);
  }));
  const Contents whole = contents_of(folder.path());
  ASSERT_EQ(whole.lost, 0U);

  auto follower = SpoolFolder::open(folder.path()), other = SpoolFolder::open(folder.path());
  auto release = SpoolRelease::open(folder.path());
  ASSERT_TRUE(follower && other && release);
  ASSERT_TRUE(follower->refresh() && other->refresh());
  auto& [name, lane] = *follower->lanes().begin();
  SpoolLane& others = other->lanes().begin()->second;
  const std::vector<Event> begun = other->read(others);
  for (auto cells = follower->read(lane); !cells.empty(); cells = follower->read(lane)) {
    release->read(name, lane.read - cells.size(), cells);
  }
  const std::uint64_t used = folder.page().used_bytes.load();
  ASSERT_GT(used, kLimit / 2);
  // Nothing of it is kept elsewhere, and then half of it.
  EXPECT_TRUE(release->look(*follower, whole.events.front().start_ns));
  EXPECT_EQ(folder.page().used_bytes.load(), used);
  const std::int64_t half_ns = whole.events[kMarks / 3].end_ns;
  EXPECT_TRUE(release->look(*follower, half_ns));
  const std::uint64_t gone = folder.page().let_go.load();
  EXPECT_GT(gone, kMarks / 5U);
  EXPECT_LE(folder.page().kept_from_ns.load(), half_ns);
  struct stat status {};
  ASSERT_EQ(stat(lane.path.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, status.st_size - std::int64_t(gone) * 64 + 4096);

  const Contents rest = contents_of(folder.path());
  EXPECT_EQ(rest.events.size() + gone, whole.events.size());
  ASSERT_FALSE(rest.events.empty());
  EXPECT_EQ(rest.events.front().end_ns, whole.events[gone].end_ns);
  EXPECT_EQ(rest.names.at("open all the time"), 1);
  EXPECT_EQ(rest.names.count("only once, and early"), 0U);
  EXPECT_EQ(rest.lost, 0U);
  Contents of_other;
  read_lane(*other, others, of_other, begun);
  EXPECT_LT(of_other.events.size(), whole.events.size());
  EXPECT_GT(of_other.events.size(), rest.events.size());
  // Definitions come once.
  EXPECT_GT(whole.frames, 0U);
  EXPECT_EQ(rest.frames, whole.frames);
  EXPECT_EQ(of_other.frames, whole.frames);

  // All of it is: what is in the folder then is not more than half of what it may be.
  EXPECT_TRUE(release->look(*follower, std::numeric_limits<std::int64_t>::max()));
  EXPECT_LE(folder.page().used_bytes.load(), kLimit / 2);
  const Contents little = contents_of(folder.path());
  EXPECT_EQ(little.events.size() + folder.page().let_go.load(), whole.events.size());
}

// Follows the folder to what is there now, and gives back the disk of the older part of it. `other`
// reads it at the same time: `begun` is what it has read before.
void release_half(const std::string& path, SpoolFolder& other, std::vector<Event>& begun) {
  auto follower = SpoolFolder::open(path);
  auto release = SpoolRelease::open(path);
  ASSERT_TRUE(follower && release);
  ASSERT_TRUE(follower->refresh() && other.refresh());
  auto& [name, lane] = *follower->lanes().begin();
  begun = other.read(other.lanes().begin()->second);
  for (auto cells = follower->read(lane); !cells.empty(); cells = follower->read(lane)) {
    release->read(name, lane.read - cells.size(), cells);
  }
  ASSERT_TRUE(release->look(*follower, std::numeric_limits<std::int64_t>::max()));
}

// Names of a few thousand bytes: whoever reads is nearly always in the middle of one.
TEST(Spool, WhoIsInTheMiddleOfATextThatIsReleasedReadsItsEnd) {
  constexpr int kMarks = 1500;
  constexpr std::size_t kLength = 3000;
  Folder folder(std::uint64_t{8} << 20);
  EXPECT_TRUE(folder.write([] {
    for (int i = 0; i < kMarks; ++i) mark(std::string(kLength, 'x') + std::to_string(10'000 + i));
  }));
  auto other = SpoolFolder::open(folder.path());
  ASSERT_TRUE(other);
  std::vector<Event> begun;
  release_half(folder.path(), *other, begun);
  ASSERT_GT(folder.page().let_go.load(), 300U);
  SpoolLane& lane = other->lanes().begin()->second;
  std::vector<Event> cells = begun;
  for (auto more = other->read(lane); !more.empty(); more = other->read(lane)) {
    cells.insert(cells.end(), more.begin(), more.end());
  }
  EXPECT_EQ(lane.jumps, 1U);
  std::uint32_t strings = 0, names = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (static_cast<CellKind>(cells[i].kind) != CellKind::kString) continue;
    StringCell text{};
    std::memcpy(&text, &cells[i], sizeof text);
    ASSERT_EQ(text.id, ++strings);
    const std::string_view letters(reinterpret_cast<const char*>(&cells[i + 1]), text.bytes);
    const std::size_t length = letters.find_first_not_of('x');
    names += length == kLength ? 1 : 0;
    i += (text.bytes + kCellBytes - 1) / kCellBytes;
  }
  EXPECT_EQ(names, kMarks);
}

// The bytes of a result are released with its event or not at all. What was lost stays.
TEST(Spool, WhatIsReleasedEndsBetweenResultsAndNotes) {
  constexpr std::uint64_t kResults = 1500;
  Folder folder(std::uint64_t{8} << 20);
  EXPECT_TRUE(folder.write([] {
    const std::string bytes(3000, 'x');
    for (std::uint64_t i = 0; i < kResults; ++i) {
      SpoolPush push;
      Event event{};
      event.kind = Kind::kDevice;
      event.start_ns = event.end_ns = spool_now_ns();
      push.add(event, bytes);
      if (i == 10) push.note(Reason::kNotKept, 7, "of what is released");
    }
  }));
  auto other = SpoolFolder::open(folder.path());
  ASSERT_TRUE(other);
  std::vector<Event> begun;
  release_half(folder.path(), *other, begun);
  const std::uint64_t gone = folder.page().let_go.load();
  ASSERT_GT(gone, 300U);
  auto late = SpoolFolder::open(folder.path());
  ASSERT_TRUE(late && late->refresh());
  SpoolLane& lane = late->lanes().begin()->second;
  std::vector<Event> cells;
  for (auto more = late->read(lane); !more.empty(); more = late->read(lane)) {
    cells.insert(cells.end(), more.begin(), more.end());
  }
  std::uint64_t events = 0, lost = 0;
  std::uint32_t blob = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto kind = static_cast<CellKind>(cells[i].kind);
    if (kind == CellKind::kString || kind == CellKind::kBlob) {
      StringCell text{};
      std::memcpy(&text, &cells[i], sizeof text);
      if (kind == CellKind::kBlob) blob = text.id;
      i += (text.bytes + kCellBytes - 1) / kCellBytes;
    } else if (kind == CellKind::kNote) {
      NoteCell note{};
      std::memcpy(&note, &cells[i], sizeof note);
      lost += note.count;
    } else if (cells[i].kind == Kind::kDevice) {
      ++events;
      ASSERT_EQ(cells[i].device.blob.value, blob);
    }
  }
  EXPECT_EQ(events + gone, kResults);
  EXPECT_EQ(lost, 7U);
}

}  // namespace
}  // namespace pasta::trace
