// How long two suffixes agree, in constant time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "mine/suffix_array.h"

namespace pasta::mine {

// The least of any range of the shared prefixes: those of the suffix array's rows, whose least
// between two rows is what their suffixes share. A table of the least of 1, 2, 4, ... blocks in a
// row (Bender and Farach-Colton, "The LCA problem revisited", 2000, without its tables of small
// blocks: scanning one is as fast). n / 8 log n bytes; linear to build for any n below 2^32.
class RangeMinimum {
 public:
  explicit RangeMinimum(std::span<const std::uint32_t> values) : values_(values) {
    const std::size_t blocks = (values.size() + kBlock - 1) / kBlock;
    std::vector<std::uint32_t> level(blocks);
    for (std::size_t block = 0; block < blocks; ++block) {
      const auto end = std::min(values.size(), (block + 1) * kBlock);
      level[block] = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(block * kBlock),
                                       values.begin() + static_cast<std::ptrdiff_t>(end));
    }
    for (std::size_t width = 1;; width *= 2) {
      levels_.push_back(level);
      if (2 * width > blocks) break;
      for (std::size_t block = 0; block + 2 * width <= blocks; ++block) {
        level[block] = std::min(level[block], level[block + width]);
      }
      level.resize(blocks - 2 * width + 1);
    }
  }

  // Of values[first] to values[last], first <= last.
  [[nodiscard]] std::uint32_t operator()(std::uint32_t first, std::uint32_t last) const {
    const std::uint32_t first_block = first / kBlock + 1;  // the first whole one
    const std::uint32_t end_block = last / kBlock;
    if (first_block >= end_block) return scan(first, last);
    const auto level = static_cast<std::size_t>(std::bit_width(end_block - first_block) - 1);
    const auto& least = levels_[level];
    const std::uint32_t blocks = std::min(least[first_block], least[end_block - (1U << level)]);
    return std::min(
        {blocks, scan(first, first_block * kBlock - 1), scan(end_block * kBlock, last)});
  }

 private:
  static constexpr std::uint32_t kBlock = 32;
  [[nodiscard]] std::uint32_t scan(std::uint32_t first, std::uint32_t last) const {
    return *std::min_element(values_.begin() + first, values_.begin() + last + 1);
  }

  std::span<const std::uint32_t> values_;
  std::vector<std::vector<std::uint32_t>> levels_;
};

}  // namespace pasta::mine
