// A number of a text, for tables whose entries are compared or whose keys are more than it: by
// products that need not wait for each other, so that long names take a few cycles. Nothing in it
// withstands texts that are made to meet.
//
// Needs no libstdc++: it is for the collector.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace pasta::trace {

inline std::uint64_t quick_hash(std::string_view text) noexcept {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto word_at = [&text](std::size_t at, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, bytes);
    return word;
  };
  std::uint64_t sum = text.size(), factor = 0x9e3779b97f4a7c15u;
  if (text.size() >= kWord) {
    const std::size_t last = text.size() - kWord;
    for (std::size_t at = 0; at < last; at += kWord) {
      sum += word_at(at, kWord) * factor;
      factor += 0x3c6ef372fe94f82au;  // even: an odd one stays odd
    }
    sum += word_at(last, kWord) * factor;
  } else {
    for (const char c : text) sum = sum << 8 | static_cast<unsigned char>(c);
  }
  return (sum ^ sum >> 32) * 0x9fb21c651e98df25u;
}

}  // namespace pasta::trace
