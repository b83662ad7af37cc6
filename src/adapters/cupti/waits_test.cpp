#include "adapters/cupti/waits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace pasta::adapters::cupti {
namespace {

TEST(Waits, CallsByName) {
  struct {
    const char* name;
    SyncTarget target;
    bool per_thread;
  } const rows[] = {{"cudaStreamSynchronize_v3020", SyncTarget::kStream, false},
                    {"cudaStreamSynchronize_ptsz_v7000", SyncTarget::kStream, true},
                    {"cuStreamSynchronize_ptsz", SyncTarget::kStream, true},
                    {"cudaEventSynchronize_v3020", SyncTarget::kEvent, false},
                    {"cuStreamWaitEvent", SyncTarget::kStreamWaitsEvent, false},
                    {"cudaDeviceSynchronize_v3020", SyncTarget::kContext, false},
                    {"cuCtxSynchronize_v2", SyncTarget::kContext, false},
                    {"cudaStreamQuery_v3020", SyncTarget::kUnknown, false},
                    {"cudaEventRecord_v3020", SyncTarget::kUnknown, false},
                    {"StreamSynchronize", SyncTarget::kUnknown, false},
                    {"cu", SyncTarget::kUnknown, false},
                    {"", SyncTarget::kUnknown, false}};
  for (const auto& row : rows) {
    EXPECT_EQ(wait_call(row.name).target, row.target) << row.name;
    EXPECT_EQ(wait_call(row.name).per_thread, row.per_thread) << row.name;
  }
}

TEST(Waits, EachIsTakenOnceAndNoOtherIsTakenForIt) {
  const auto waits = std::make_unique<Waits>();
  Waits::On on{};
  EXPECT_FALSE(waits->take(0, on));
  EXPECT_FALSE(waits->take(5, on));
  waits->put(5, {1, 7, 0xe0});
  EXPECT_FALSE(waits->take(6, on));
  ASSERT_TRUE(waits->take(5, on));
  EXPECT_EQ(on.context, 1u);
  EXPECT_EQ(on.stream, 7u);
  EXPECT_EQ(on.event, 0xe0u);
  EXPECT_FALSE(waits->take(5, on));
  // A later call in its place.
  waits->put(5, {1, 7, 0});
  waits->put(5 + 8192, {1, 8, 0});
  EXPECT_FALSE(waits->take(5, on));
  ASSERT_TRUE(waits->take(5 + 8192, on));
  EXPECT_EQ(on.stream, 8u);
}

TEST(Waits, OneThreadTakesWhatOthersPut) {
  constexpr std::uint32_t kCalls = 100'000;
  const auto waits = std::make_unique<Waits>();
  std::atomic<std::uint32_t> put = 0;
  std::thread program([&] {
    for (std::uint32_t call = 1; call <= kCalls; ++call) {
      waits->put(call, {call, ~call, std::uint64_t{call} << 32});
      put.store(call, std::memory_order_release);
    }
  });
  std::uint32_t taken = 0;
  for (std::uint32_t call = 1; call <= kCalls; ++call) {
    while (put.load(std::memory_order_acquire) < call) std::this_thread::yield();
    Waits::On on{};
    if (!waits->take(call, on)) continue;
    ++taken;
    ASSERT_EQ(on.context, call);
    ASSERT_EQ(on.stream, ~call);
    ASSERT_EQ(on.event, std::uint64_t{call} << 32);
  }
  program.join();
  EXPECT_GT(taken, 0u);
}

TEST(Waits, ThreadsInside) {
  const auto inside = std::make_unique<ThreadsInside>();
  EXPECT_FALSE(inside->has(1000));
  inside->enter(1000);
  EXPECT_TRUE(inside->has(1000));
  EXPECT_FALSE(inside->has(1000 + 4096));
  inside->leave(1000);
  EXPECT_FALSE(inside->has(1000));
}

}  // namespace
}  // namespace pasta::adapters::cupti
