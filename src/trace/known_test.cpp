#include "trace/known.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

namespace pasta::trace {
namespace {

struct Number {
  std::uint32_t value;
  bool operator==(const Number&) const = default;
};
// Many share a place.
std::uint64_t key_hash(const Number& key) { return key.value / 3; }

using Numbers = Known<Number, std::uint32_t, 1024>;

TEST(Known, FindsAllThatWereAddedAndNothingElse) {
  const auto numbers = std::make_unique<Numbers>();
  EXPECT_EQ(numbers->find({0}), nullptr);
  for (std::uint32_t i = 0; i < 1024; ++i) numbers->add({i}, i + 1);
  EXPECT_EQ(numbers->count(), 1024U);
  for (std::uint32_t i = 0; i < 1024; ++i) {
    auto* found = numbers->find({i});
    ASSERT_NE(found, nullptr) << i;
    EXPECT_EQ(found->value, i + 1);
    EXPECT_EQ(numbers->index_of(found), i);
    EXPECT_EQ(numbers->at(i), found);
  }
  EXPECT_EQ(numbers->find({1024}), nullptr);
  EXPECT_EQ(numbers->at(1024), nullptr);
}

TEST(Known, ForgetsAllWhenItIsFull) {
  const auto numbers = std::make_unique<Numbers>();
  for (std::uint32_t i = 0; i < 1025; ++i) numbers->add({i}, i);
  EXPECT_EQ(numbers->count(), 1U);
  EXPECT_EQ(numbers->find({5}), nullptr);
  ASSERT_NE(numbers->find({1024}), nullptr);
  EXPECT_EQ(numbers->find({1024})->value, 1024U);
}

}  // namespace
}  // namespace pasta::trace
