#include "trace/invariants.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "trace/test_support.h"

namespace pasta::trace {
namespace {

// Violations by law, those without left out.
std::map<std::string, std::int64_t> violations(const KeepingSink& sink) {
  InvariantChecker checker;
  EXPECT_TRUE(replay(sink, checker).has_value());
  std::map<std::string, std::int64_t> found;
  const Report report = checker.report();
  std::int64_t sum = 0;
  for (const auto& row : std::get<Table>(report.parts[0]).rows) {
    const auto count = std::get<std::int64_t>(row[2]);
    if (count != 0) found[std::get<std::string>(row[0])] = count;
    EXPECT_EQ(std::holds_alternative<std::monostate>(row[3]), count == 0);
    sum += count;
  }
  EXPECT_EQ(static_cast<std::int64_t>(checker.violations()), sum);
  return found;
}

TEST(Invariants, ASoundTraceViolatesNone) {
  KeepingSink sink;
  fill_sample(sink);
  EXPECT_TRUE(violations(sink).empty());
}

TEST(Invariants, EachViolationIsToldByItsLaw) {
  const struct {
    std::string_view law;
    Kind kind;
    std::function<void(Event&)> change;
  } kCases[] = {
      {"events are in order of end", Kind::kCounter, [](Event& e) { e.start_ns = e.end_ns = -50; }},
      {"no event ends before it starts", Kind::kGap, [](Event& e) { e.start_ns = e.end_ns + 1; }},
      {"untimed events, and only they, have no times", Kind::kGap,
       [](Event& e) { e.flags = kUntimed; }},
      {"kinds are known", Kind::kGap, [](Event& e) { e.kind = Kind{12}; }},
      {"flags are known", Kind::kGap, [](Event& e) { e.flags = 64; }},
      {"details are known to their kind", Kind::kKernel, [](Event& e) { e.detail = 1; }},
      {"details are known to their kind", Kind::kSync, [](Event& e) { e.detail = 5; }},
      {"ids are in their tables", Kind::kGap, [](Event& e) { e.name = {1000}; }},
      {"ids are in their tables", Kind::kKernel, [](Event& e) { e.kernel.attributes = {9}; }},
      {"device work is on queues, host calls are on threads", Kind::kFill,
       [](Event& e) { e.lane = {}; }},
      {"device work is on queues, host calls are on threads", Kind::kApi,
       [](Event& e) { e.lane = {2}; }},
      {"correlations name a process", Kind::kSync, [](Event& e) { e.correlation = 5; }},
      {"linked device work has its launch", Kind::kApi, [](Event& e) { e.correlation = 0; }},
      {"unused payload bytes are zero", Kind::kGap, [](Event& e) { e.gap.reserved[1] = 1; }},
      {"unused payload bytes are zero", Kind::kApi, [](Event& e) { e.api.reserved[4] = 1; }},
  };
  for (const auto& c : kCases) {
    KeepingSink sink;
    fill_sample(sink);
    for (Event& event : sink.events) {
      if (event.kind != c.kind) continue;
      c.change(event);
      break;
    }
    const auto found = violations(sink);
    ASSERT_EQ(found.size(), 1u) << c.law;
    EXPECT_EQ(found.begin()->first, c.law);
    EXPECT_EQ(found.begin()->second, 1);
  }
}

TEST(Invariants, TellsTheFirstPlaceAndTheProblems) {
  KeepingSink sink;
  fill_sample(sink);
  sink.events.back().gap.reserved[0] = 7;
  InvariantChecker checker;
  ASSERT_TRUE(replay(sink, checker).has_value());
  const Report report = checker.report();
  const auto& laws = std::get<Table>(report.parts[0]).rows;
  EXPECT_EQ(laws[static_cast<std::size_t>(Law::kUnusedZero)][3],
            Cell("event 15: gap \"\" at 98 ns"));
  const auto& problems = std::get<Table>(report.parts[1]).rows;
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0], (std::vector<Cell>{"t.txt", "launch_not_seen", "note", std::int64_t{3},
                                            "kernel k at 12 ns"}));
  EXPECT_EQ(problems[1][4], Cell());
}

TEST(Invariants, ATableEntryThatRefersToNothingIsFound) {
  KeepingSink sink;
  fill_sample(sink);
  sink.dictionary_.process({.native_id = 5, .name = {999}});
  sink.dictionary_.frame({{77}, {}, ScopeDomain::kUnknown});
  const auto found = violations(sink);
  EXPECT_EQ(found, (std::map<std::string, std::int64_t>{
                       {"table entries refer to entries that are there", 1},
                       {"frames come after their parents", 1}}));
}

}  // namespace
}  // namespace pasta::trace
