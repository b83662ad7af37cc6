// What people call the ranges that hold one iteration of the outermost loop. Needs no libstdc++:
// this header is for the collector too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace pasta::base {

// How PyTorch names the ranges of optimizers: the end of one is the end of an iteration.
inline constexpr std::string_view kOptimizerStep = "Optimizer.step#";

namespace iteration_name {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

template <std::size_t n>
constexpr bool is_one_of(std::string_view word, const std::array<std::string_view, n>& known) {
  for (const std::string_view other : known) {
    bool same = word.size() == other.size();
    for (std::size_t i = 0; same && i < word.size(); ++i) same = lower(word[i]) == other[i];
    if (same) return true;
  }
  return false;
}

}  // namespace iteration_name

// "Train Step 12", "iteration_7". "batch" may be part of one and "epoch" holds many: they are none.
constexpr bool names_iteration(std::string_view text) {
  using namespace iteration_name;
  constexpr std::array<std::string_view, 5> kNouns = {"iteration", "iter", "step", "timestep",
                                                      "trainstep"};
  constexpr std::array<std::string_view, 11> kOthers = {
      "train", "training", "global", "time", "main", "loop", "the", "number", "no", "model", "md"};
  bool noun = false;
  for (std::size_t i = 0; i < text.size();) {
    if (!letter(text[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < text.size() && letter(text[i])) ++i;
    const std::string_view word(text.data() + begin, i - begin);
    if (is_one_of(word, kNouns)) {
      noun = true;
    } else if (!is_one_of(word, kOthers)) {
      return false;
    }
  }
  return noun;
}

// The last number in a name: its digits are those from `begin` to `end`.
struct NumberInName {
  std::size_t begin = 0, end = 0;  // equal where there is none
  std::int64_t value = -1;         // -1: none, or too large
};
constexpr NumberInName number_in_name(std::string_view text) {
  NumberInName number;
  number.end = text.size();
  while (number.end > 0 && !iteration_name::digit(text[number.end - 1])) --number.end;
  number.begin = number.end;
  while (number.begin > 0 && iteration_name::digit(text[number.begin - 1])) --number.begin;
  if (number.begin == number.end) return number;
  number.value = 0;
  for (std::size_t i = number.begin; i < number.end; ++i) {
    const char c = text[i];
    if (number.value > (std::numeric_limits<std::int64_t>::max() - (c - '0')) / 10) {
      number.value = -1;
      return number;
    }
    number.value = number.value * 10 + (c - '0');
  }
  return number;
}

}  // namespace pasta::base
