#include "mine/suffix_array.h"

#include <algorithm>
#include <utility>

#include "mine/by_position.h"
#include "mine/sort_suffixes.h"

namespace pasta::mine {
namespace {

constexpr std::uint32_t kAhead = 32;  // reads that jump through memory are asked for so early

// The neighbour before a suffix in sorted order shares at least one symbol less with it than the
// neighbour of the suffix that begins one symbol earlier does with that; so, in the order of the
// text, comparing goes on where it stopped.
LargeVector<std::uint32_t> shared_prefixes(std::span<const std::uint32_t> text,
                                           std::span<const std::uint32_t> positions) {
  const auto size = static_cast<std::uint32_t>(text.size());
  ByPosition by_position(size);  // first the neighbour, then what is shared with it
  for (std::uint32_t row = 0; row < size; ++row) {
    by_position.put(positions[row], row == 0 ? size : positions[row - 1]);
  }
  std::uint32_t shared = 0;
  by_position.for_each_block([&](std::uint32_t first, std::span<std::uint32_t> neighbours) {
    const auto end = static_cast<std::uint32_t>(neighbours.size());
    for (std::uint32_t i = 0; i < end; ++i) {
      if (i + kAhead < end) __builtin_prefetch(text.data() + neighbours[i + kAhead] + shared);
      const std::uint32_t at = first + i;
      const std::uint32_t neighbour = neighbours[i];
      const std::uint32_t most = size - std::max(at, neighbour);
      while (shared < most && text[at + shared] == text[neighbour + shared]) ++shared;
      if (neighbour == size) shared = 0;
      neighbours[i] = shared;
      if (shared > 0) --shared;
    }
  });
  LargeVector<std::uint32_t> lcp(size);
  for (std::uint32_t row = 0; row < size; ++row) lcp[row] = by_position.take(positions[row]);
  return lcp;
}

}  // namespace

SuffixArray::SuffixArray(Text text) : text_(std::move(text)), positions_(text_.size()) {
  sort_suffixes(text_.ranks(), text_.alphabet(), positions_);
  lcp_ = shared_prefixes(text_.ranks(), positions_);
}

}  // namespace pasta::mine
