// What mine/ reads: one or several strings of 32-bit symbols over a dense alphabet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mine/large_vector.h"
#include "pasta/result.h"

namespace pasta::mine {

using Symbols = std::span<const std::uint32_t>;

// The strings ("lanes") one after the other. Between two lanes stands a separator that occurs
// nowhere else, so that nothing that repeats reaches from one lane into the next. Every symbol is
// kept as its rank: separators come first (rank = which one), then the values in ascending order,
// so the order of suffixes is that of the given values. 4 bytes a symbol (and 4 a distinct one), 16
// more while it is built if values are far above the number of symbols. Linear time.
class Text {
 public:
  // Of all lanes and separators together. One bit of an index stays free for the algorithms.
  static constexpr std::size_t kMaxSize = 0x7fff'fffe;

  Text() = default;  // no lane, no symbol
  // Fails when longer than kMaxSize.
  static Result<Text> of(Symbols string);
  static Result<Text> of(std::span<const Symbols> lanes);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  [[nodiscard]] Symbols ranks() const { return ranks_; }
  // Ranks are below this; those below separators() are separators.
  [[nodiscard]] std::uint32_t alphabet() const {
    return separators() + static_cast<std::uint32_t>(values_.size());
  }
  [[nodiscard]] std::uint32_t separators() const { return lanes() == 0 ? 0 : lanes() - 1; }
  [[nodiscard]] bool is_separator(std::uint32_t rank) const { return rank < separators(); }
  // The symbol as it was given; `rank` is not a separator's.
  [[nodiscard]] std::uint32_t value(std::uint32_t rank) const {
    return values_[rank - separators()];
  }

  [[nodiscard]] std::uint32_t lanes() const { return static_cast<std::uint32_t>(starts_.size()); }
  [[nodiscard]] std::uint32_t lane_begin(std::uint32_t lane) const { return starts_[lane]; }
  [[nodiscard]] std::uint32_t lane_end(std::uint32_t lane) const {
    return lane + 1 < lanes() ? starts_[lane + 1] - 1 : size();
  }
  // The lane of a position that is not a separator's. Logarithmic in the number of lanes.
  [[nodiscard]] std::uint32_t lane_of(std::uint32_t position) const;

 private:
  LargeVector<std::uint32_t> ranks_;
  std::vector<std::uint32_t> values_;  // ascending
  std::vector<std::uint32_t> starts_;
};

}  // namespace pasta::mine
