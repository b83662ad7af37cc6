#include "base/cold_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace pasta::base {
namespace {

// Puts 8 MB in blocks of all sizes; gives what is held, and whether all was there at the end.
std::pair<std::size_t, bool> put_and_find() {
  ColdBytes cold;
  std::vector<std::pair<ColdBytes::Place, std::vector<std::uint8_t>>> blocks;
  for (std::size_t i = 0; i < 400; ++i) {
    std::vector<std::uint8_t> bytes(i * 7919 % 40'000 + 1, static_cast<std::uint8_t>(i));
    bytes.front() = static_cast<std::uint8_t>(i >> 8);
    const ColdBytes::Place place = cold.put(bytes);
    blocks.emplace_back(place, std::move(bytes));
  }
  const std::size_t held = cold.held_bytes();
  const auto is_there = [&](const auto& block) {
    return std::equal(block.second.begin(), block.second.end(), cold.at(block.first));
  };
  bool all = std::ranges::all_of(blocks, is_there);
  for (const auto& [place, bytes] : blocks) cold.leave(place);
  all = all && std::ranges::all_of(blocks, is_there);
  return {held, all};
}

TEST(ColdBytes, LieOnDiskAndAreThere) {
  const auto [held, all] = put_and_find();
  EXPECT_TRUE(all);
  EXPECT_LE(held, std::size_t{2} << 20);
}

TEST(ColdBytes, StayInMemoryWhereThereIsNoDisk) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no/such/folder", 1);
  const auto [held, all] = put_and_find();
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", kept.c_str(), 1);
  }
  EXPECT_TRUE(all);
  EXPECT_GT(held, std::size_t{7} << 20);
}

}  // namespace
}  // namespace pasta::base
