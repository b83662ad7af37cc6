// From the order of suffixes to the order of the text and back, without jumping through memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mine/large_vector.h"

namespace pasta::mine {

// One number for each position. Numbers are put in any order, but collected by block of the text
// first, so that each is stored within a cache that the core has for itself; a jump to anywhere in
// an array of 10 million costs several times as much. 8 bytes a position.
class ByPosition {
 public:
  explicit ByPosition(std::uint32_t size)
      : pairs_(size), next_((std::size_t{size} + kBlock - 1) / kBlock) {
    rewind();
  }

  // Once for each position.
  void put(std::uint32_t position, std::uint32_t number) {
    pairs_[next_[position / kBlock]++] = {position, number};
  }
  // When all were put: calls visit(first position, numbers) for each block, in the order of the
  // text. The numbers may be changed.
  template <class Visit>
  void for_each_block(Visit&& visit) {
    rewind();
    LargeVector<std::uint32_t> numbers(std::min<std::size_t>(kBlock, pairs_.size()));
    for (const std::uint32_t begin : next_) {
      const auto pairs =
          std::span(pairs_).subspan(begin, std::min<std::size_t>(kBlock, pairs_.size() - begin));
      for (const auto& [position, number] : pairs) numbers[position - begin] = number;
      visit(begin, std::span(numbers).first(pairs.size()));
      for (auto& [position, number] : pairs) number = numbers[position - begin];
    }
  }
  // The number of a position; asked for all of them, in the order in which they were put.
  std::uint32_t take(std::uint32_t position) { return pairs_[next_[position / kBlock]++].second; }

 private:
  static constexpr std::uint32_t kBlock = std::uint32_t{1} << 17U;  // half a megabyte of numbers
  void rewind() {
    for (std::size_t block = 0; block < next_.size(); ++block) {
      next_[block] = static_cast<std::uint32_t>(block) * kBlock;
    }
  }
  LargeVector<std::pair<std::uint32_t, std::uint32_t>> pairs_;  // a block's positions lie together
  std::vector<std::uint32_t> next_;                             // by block
};

}  // namespace pasta::mine
