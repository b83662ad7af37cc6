#include "stats/id_set.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

namespace pasta::stats {
namespace {

TEST(IdSet, SaysWhatASetOfNumbersSays) {
  std::mt19937_64 random(7);
  IdSet set;
  std::unordered_set<std::uint64_t> reference;
  for (int i = 0; i < 20000; ++i) {
    // Two processes whose ids follow one another, and some from anywhere.
    const std::uint64_t near = random() % 3000 + (random() % 2 << 48);
    const std::uint64_t id = random() % 10 == 0 ? random() : near;
    EXPECT_EQ(set.insert(id), reference.insert(id).second) << id;
  }
  EXPECT_TRUE(set.insert(0) == reference.insert(0).second);
  EXPECT_FALSE(set.insert(0));
  EXPECT_TRUE(set.insert(~std::uint64_t{0}) == reference.insert(~std::uint64_t{0}).second);
}

}  // namespace
}  // namespace pasta::stats
