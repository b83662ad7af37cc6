#include "tools/common/idle_time.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pasta::tools {
namespace {

// Calls of which no work is ever seen, or was before they returned, are not held for ever; what is
// still in a queue is known.
TEST(PendingLaunches, HoldsThoseThatMayStillStart) {
  Dictionary dictionary;
  PendingLaunches launches;
  const auto call = [&](const char* name, std::uint64_t correlation) {
    Event event{};
    event.kind = Kind::kApi;
    event.name = dictionary.string(name);
    event.correlation = correlation;
    event.start_ns = static_cast<std::int64_t>(correlation) * 10;
    event.end_ns = event.start_ns + 5;
    launches.add(event, dictionary);
    return event.end_ns;
  };
  const auto waited = [&](std::uint64_t correlation, std::int64_t start_ns) {
    Event event{};
    event.kind = Kind::kKernel;
    event.correlation = correlation;
    event.start_ns = start_ns;
    event.end_ns = start_ns + 5;
    return launches.waited_since(event);
  };
  std::size_t most = 0;
  constexpr std::uint64_t kLate = 1000, kCount = 10 * PendingLaunches::kKept;
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    const std::int64_t end_ns = call(i % 3 == 0 ? "cudaMemcpyAsync" : "cudaLaunchKernel", i);
    most = std::max(most, launches.held());
    if (i > kLate && i % 2 == 0) {
      ASSERT_EQ(waited(i - kLate, end_ns), end_ns - std::int64_t{kLate} * 10) << i;
    }
  }
  EXPECT_LE(most, 2 * PendingLaunches::kKept);
  // A copy may be cut into several; a kernel is there once.
  const auto end_of = [](std::uint64_t i) { return static_cast<std::int64_t>(i) * 10 + 5; };
  const std::uint64_t copy = call("cudaMemcpyAsync", kCount + 1) / 10;
  const std::uint64_t kernel = call("cudaLaunchKernel", kCount + 2) / 10;
  for (const bool first : {true, false}) {
    EXPECT_EQ(waited(copy, end_of(kCount + 9)), end_of(copy));
    EXPECT_EQ(waited(kernel, end_of(kCount + 9)), first ? end_of(kernel) : kNoTime);
  }
  EXPECT_EQ(waited(1, kCount * 20), kNoTime);
}

}  // namespace
}  // namespace pasta::tools
