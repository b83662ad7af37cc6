// A set of many ids that mostly follow one another.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

namespace pasta::stats {

// Pages of bits: dense ids, such as a runtime's correlation ids, take about a bit each.
class IdSet {
 public:
  // False when `id` was there.
  bool insert(std::uint64_t id) {
    if (id / kPage != number_ || page_ == nullptr) {
      number_ = id / kPage;
      page_ = &pages_[number_];  // stays where it is when the map grows
    }
    std::uint64_t& word = (*page_)[id % kPage / 64];
    const std::uint64_t bit = std::uint64_t{1} << id % 64;
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }

 private:
  static constexpr std::uint64_t kPage = 256;
  std::unordered_map<std::uint64_t, std::array<std::uint64_t, kPage / 64>> pages_;
  std::uint64_t number_ = 0;                               // of the page used last
  std::array<std::uint64_t, kPage / 64>* page_ = nullptr;  // that page
};

}  // namespace pasta::stats
