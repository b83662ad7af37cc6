#include "trace/sorted_runs.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <limits>
#include <random>
#include <span>
#include <tuple>
#include <vector>

namespace pasta::trace {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::vector<Event> make(const std::vector<std::pair<std::int64_t, std::int64_t>>& times) {
  std::vector<Event> events;
  for (const auto& [start, end] : times) {
    Event event{};
    event.start_ns = start;
    event.end_ns = end;
    event.raw[0] = events.size();  // arrival
    events.push_back(event);
  }
  return events;
}

// What the orders mean, said a second time.
std::vector<Event> reference(std::vector<Event> events, SortedRuns::Order order) {
  std::stable_sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
    return order == SortedRuns::Order::kByStart
               ? std::tie(a.start_ns, b.end_ns) < std::tie(b.start_ns, a.end_ns)
               : std::tie(a.end_ns, b.start_ns) < std::tie(b.end_ns, a.start_ns);
  });
  return events;
}

std::vector<Event> sorted(const std::vector<Event>& events, SortedRuns::Order order,
                          std::uint64_t budget, bool expect_runs) {
  SortedRuns runs(order, {.memory_budget_bytes = budget, .scratch = {}});
  for (const Event& event : events) EXPECT_TRUE(runs.add(event));
  EXPECT_TRUE(runs.finish());
  EXPECT_EQ(runs.runs() > 1, expect_runs);
  std::vector<Event> out;
  std::vector<Event> batch(7);
  for (;;) {
    const auto n = runs.read(batch);
    EXPECT_TRUE(n.has_value());
    out.insert(out.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(*n));
    if (*n < batch.size()) break;
  }
  EXPECT_EQ(runs.read(batch).value(), 0u);
  return out;
}

void check(const std::vector<Event>& events) {
  for (const auto order : {SortedRuns::Order::kByStart, SortedRuns::Order::kByEnd}) {
    const std::vector<Event> expected = reference(events, order);
    for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      const bool to_disk = budget == 0 && events.size() > 16;
      const std::vector<Event> out = sorted(events, order, budget, to_disk);
      ASSERT_EQ(out.size(), expected.size());
      EXPECT_TRUE(
          std::ranges::equal(std::as_bytes(std::span(out)), std::as_bytes(std::span(expected))))
          << "budget " << budget;
    }
  }
}

TEST(SortedRuns, Nothing) { check({}); }

TEST(SortedRuns, SortedReversedAndNearlySorted) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ascending, nearly;
  for (int i = 0; i < 1000; ++i) ascending.emplace_back(i * 10, i * 10 + 5);
  check(make(ascending));
  check(make({ascending.rbegin(), ascending.rend()}));
  nearly = ascending;
  std::swap(nearly[3], nearly[900]);
  check(make(nearly));
}

TEST(SortedRuns, TiesKeepTheOrderOfArrivalAcrossRuns) {
  std::mt19937 random(1);
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t start = random() % 5;
    times.emplace_back(start, start + random() % 3);
  }
  check(make(times));
}

TEST(SortedRuns, WholeRangeOfTimesWithUntimedFirst) {
  std::mt19937_64 random(2);
  std::vector<std::pair<std::int64_t, std::int64_t>> times = {
      {kMax, kMax}, {kNoTime, kNoTime}, {0, kMax}, {kMin + 1, kMin + 1},
      {-1, 0},      {kNoTime, kNoTime}, {0, 0},    {kMin + 1, kMax}};
  for (int i = 0; i < 500; ++i) {
    const auto a = static_cast<std::int64_t>(random());
    const auto b = static_cast<std::int64_t>(random());
    times.emplace_back(std::min(a, b), std::max(a, b));
  }
  check(make(times));
}

TEST(SortedRuns, RangesThatDifferOnlyInHighBits) {
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  for (int i = 0; i < 100; ++i) times.emplace_back(std::int64_t{i * 7 % 100} << 50, kMax - i);
  check(make(times));
}

TEST(SortedRuns, AFolderThatIsNotThereIsNamed) {
  SortedRuns runs(SortedRuns::Order::kByEnd,
                  {.memory_budget_bytes = 0, .scratch = "/nonexistent/folder"});
  Status status;
  for (int i = 0; i < 100 && status; ++i) status = runs.add(Event{});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_NE(status.error().message.find("/nonexistent/folder"), std::string::npos);
}

// A limit on the size of files stands for the full disk: write() fails in the same way.
TEST(SortedRuns, AFullDiskIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  SortedRuns runs(SortedRuns::Order::kByEnd, {.memory_budget_bytes = 0, .scratch = {}});
  Status status;
  for (int i = 0; i < 1000 && status; ++i) status = runs.add(Event{});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_NE(status.error().message.find("too large"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace pasta::trace
