// Which part of a sequence of launches repeats as a whole: the iteration, not the layers in it.
// Pure: symbols in, positions out. The rules and their reasons are in docs/iterations.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace pasta::tools {

// What sort of work a symbol is, in its two lowest bits.
enum class WorkSort : std::uint32_t { kCompute = 0, kToHost = 1, kToDevice = 2, kOther = 3 };
inline WorkSort sort_of(std::uint32_t symbol) { return static_cast<WorkSort>(symbol & 3); }

// How long the host, or else the device, stood still before a launch: eight steps an octave.
std::uint16_t pause_code(std::int64_t ns);
double pause_ns(std::uint16_t code);
// Added to a code: meanwhile the host waited for the device. Longer than any pause without.
inline constexpr std::uint16_t kHostWaited = 0x8000;

struct Launches {
  std::span<const std::uint32_t> symbols;
  std::span<const std::uint16_t> pauses;  // as many
  std::size_t first_seen = 0;  // the first launch that the host made while it was watched
  // How many pieces of device work each is, where some are more than one: graphs. Empty: all one.
  std::span<const std::uint32_t> pieces = {};
};

struct Cycle {
  // Where iterations begin, ascending. Each lasts until the next begins, the last to `end`. What
  // lies before the first and after `end` belongs to none.
  std::vector<std::size_t> starts;
  std::size_t end = 0;
  bool partial_first = false;  // the sequence begins inside the first
  bool partial_last = false;   // the sequence ends inside the last
  std::size_t period = 0;      // launches of the typical one
  std::size_t whole = 0;       // of the iterations, those that are like the typical one
  double coverage = 0;         // part of all launches that lie in these
  double confidence = 0;       // 0..1
  // Why there is none, a clause; empty when there is one.
  std::string_view abstained;
};

// Time and memory are linear, with 16 bytes for each of at most a million launches in the middle,
// where the cycle is looked for, beside the input.
Cycle find_cycle(const Launches& launches);

}  // namespace pasta::tools
