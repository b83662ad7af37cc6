#include "adapters/rocprofiler/tables.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <unordered_map>

namespace pasta::adapters::rocprofiler {
namespace {

TEST(RocprofilerTables, AllocationsAreFoundHoweverManyLieInTheirWay) {
  const auto table = std::make_unique<Allocations>();
  std::unordered_map<std::uint64_t, std::uint64_t> expected;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t address = (1 + random() % 60'000) << 8;
    Allocations::Allocation found{};
    if (random() % 2 == 0 && expected.size() < 45'000) {
      ASSERT_TRUE(table->add({address, static_cast<std::uint64_t>(i) + 1, 7}));
      expected[address] = static_cast<std::uint64_t>(i) + 1;
    } else {
      const auto known = expected.find(address);
      ASSERT_EQ(table->take(address, found), known != expected.end()) << i;
      if (known == expected.end()) continue;
      EXPECT_EQ(found.bytes, known->second);
      EXPECT_EQ(found.agent, 7u);
      expected.erase(known);
    }
  }
}

TEST(RocprofilerTables, AllocationsThatFindNoRoomAreNotKept) {
  const auto table = std::make_unique<Allocations>();
  std::uint64_t kept = 0;
  for (std::uint64_t i = 1; i <= 100'000; ++i) kept += table->add({i << 8, 1, 7}) ? 1 : 0;
  EXPECT_EQ(kept, 49'152u);
  Allocations::Allocation found{};
  EXPECT_TRUE(table->take(1 << 8, found));
  EXPECT_FALSE(table->take(100'000u << 8, found));
  // Nothing lies at 0.
  EXPECT_FALSE(table->add({0, 1, 7}));
  EXPECT_FALSE(table->take(0, found));
}

TEST(RocprofilerTables, TextsStay) {
  Texts texts;
  const std::string large(300'000, 'x');
  const char* first = texts.keep("first");
  const char* second = texts.keep(large.c_str());
  const char* third = texts.keep("");
  EXPECT_STREQ(first, "first");
  EXPECT_EQ(large, second);
  EXPECT_STREQ(third, "");
  EXPECT_EQ(texts.keep(nullptr), nullptr);
}

TEST(RocprofilerTables, SymbolsByNumber) {
  const auto symbols = std::make_unique<Symbols>();
  EXPECT_EQ(symbols->find(5), nullptr);
  Symbol* made = symbols->make(5);
  ASSERT_NE(made, nullptr);
  made->name = "k";
  EXPECT_STREQ(symbols->find(5)->name, "k");
  EXPECT_EQ(symbols->find(6)->name, nullptr);
  EXPECT_EQ(symbols->make(~std::uint64_t{0}), nullptr);
  EXPECT_EQ(symbols->find(~std::uint64_t{0}), nullptr);
}

TEST(RocprofilerTables, DispatchesAndRanges) {
  const auto dispatches = std::make_unique<Dispatches>();
  EXPECT_TRUE(dispatches->is_new(1));
  EXPECT_TRUE(dispatches->is_new(2));
  EXPECT_FALSE(dispatches->is_new(1));
  EXPECT_TRUE(dispatches->is_new(1 + (1u << 14)));  // where 1 was

  const auto ranges = std::make_unique<Ranges>();
  ranges->add(3, 30);
  EXPECT_EQ(ranges->take(4), 0u);
  EXPECT_EQ(ranges->take(3), 30u);
  EXPECT_EQ(ranges->take(3), 0u);
}

}  // namespace
}  // namespace pasta::adapters::rocprofiler
