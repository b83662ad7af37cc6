#include "mine/text.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace pasta::mine {
namespace {

// Replaces every value by its rank among the distinct values, plus `offset`; returns those.
// Positions that hold `separator`s are told by `starts`.
std::vector<std::uint32_t> rank_by_table(std::span<const Symbols> lanes, std::uint32_t largest,
                                         std::uint32_t offset, LargeVector<std::uint32_t>& ranks) {
  std::vector<std::uint32_t> rank_of(std::size_t{largest} + 1);
  for (const Symbols lane : lanes) {
    for (const std::uint32_t value : lane) rank_of[value] = 1;
  }
  std::vector<std::uint32_t> values;
  for (std::size_t value = 0; value < rank_of.size(); ++value) {
    if (rank_of[value] == 0) continue;
    rank_of[value] = offset + static_cast<std::uint32_t>(values.size());
    values.push_back(static_cast<std::uint32_t>(value));
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lane > 0) ranks.push_back(static_cast<std::uint32_t>(lane - 1));
    for (const std::uint32_t value : lanes[lane]) ranks.push_back(rank_of[value]);
  }
  return values;
}

// The same for values too large for a table: by radix sort of (value, position).
std::vector<std::uint32_t> rank_by_sorting(std::span<const Symbols> lanes, std::uint32_t offset,
                                           LargeVector<std::uint32_t>& ranks) {
  LargeVector<std::uint64_t> keys;
  keys.reserve(ranks.capacity());
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lane > 0) ranks.push_back(static_cast<std::uint32_t>(lane - 1));
    for (const std::uint32_t value : lanes[lane]) {
      keys.push_back(std::uint64_t{value} << 32U | ranks.size());
      ranks.push_back(0);
    }
  }
  constexpr unsigned kBits = 11;
  LargeVector<std::uint64_t> sorted(keys.size());
  for (unsigned shift = 32; shift < 64; shift += kBits) {
    std::array<std::uint32_t, 1U << kBits> place{};
    const auto digit = [shift](std::uint64_t key) { return key >> shift & ((1U << kBits) - 1); };
    for (const std::uint64_t key : keys) ++place[digit(key)];
    std::uint32_t sum = 0;
    for (std::uint32_t& begin : place) sum += std::exchange(begin, sum);
    for (const std::uint64_t key : keys) sorted[place[digit(key)]++] = key;
    keys.swap(sorted);
  }
  std::vector<std::uint32_t> values;
  for (const std::uint64_t key : keys) {
    const auto value = static_cast<std::uint32_t>(key >> 32U);
    if (values.empty() || values.back() != value) values.push_back(value);
    ranks[static_cast<std::uint32_t>(key)] = offset + static_cast<std::uint32_t>(values.size() - 1);
  }
  return values;
}

}  // namespace

Result<Text> Text::of(Symbols string) { return of(std::span(&string, 1)); }

Result<Text> Text::of(std::span<const Symbols> lanes) {
  std::size_t size = lanes.empty() ? 0 : lanes.size() - 1;
  std::size_t symbols = 0;
  std::uint32_t largest = 0;
  for (const Symbols lane : lanes) {
    size += lane.size();
    symbols += lane.size();
    for (const std::uint32_t value : lane) largest = std::max(largest, value);
  }
  if (size > kMaxSize) {
    return fail(ErrorCode::kUnsupported, "a sequence of " + std::to_string(size) +
                                             " symbols cannot be searched for repeats (at most " +
                                             std::to_string(kMaxSize) + "); give a shorter range");
  }
  Text text;
  std::size_t start = 0;
  for (const Symbols lane : lanes) {
    text.starts_.push_back(static_cast<std::uint32_t>(start));
    start += lane.size() + 1;
  }
  text.ranks_.reserve(size);
  if (symbols > 0) {
    text.values_ = largest / 4 <= symbols
                       ? rank_by_table(lanes, largest, text.separators(), text.ranks_)
                       : rank_by_sorting(lanes, text.separators(), text.ranks_);
  } else {
    for (std::uint32_t i = 0; i < text.separators(); ++i) text.ranks_.push_back(i);
  }
  return text;
}

std::uint32_t Text::lane_of(std::uint32_t position) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
  return static_cast<std::uint32_t>(after - starts_.begin()) - 1;
}

}  // namespace pasta::mine
