// Samples of program counters, as they are kept in a trace: an event of kind device for each launch
// and function, with a table of SampleRow, in parts where there are many.
#pragma once

#include <cstdint>
#include <string_view>

namespace pasta::device {

// The name of such an event is the function in which the places lie: mostly the kernel, which the
// launch tells. Of code that nobody has a name for it is "code object N" or "unknown code".
inline constexpr std::string_view kSamplesFormat = "samples/1";

// What the wave did. Numbers are for ever: traces hold them.
enum class WaveState : std::uint64_t { kUnknown = 0, kIssued = 1, kStalled = 2 };
// Why nothing was issued, as rocprofiler-sdk numbers it.
inline constexpr std::string_view kStalls[] = {
    "unknown", "no instruction", "ALU",          "waitcnt", "internal",
    "barrier", "arbiter",        "pipe is full", "other",   "sleep"};

struct SampleRow {
  std::uint64_t offset = 0;  // bytes from the function's first instruction
  WaveState state = WaveState::kUnknown;
  std::uint64_t stall = 0;  // of kStalled; an index of kStalls, or a later one
  std::uint64_t samples = 0;
};

}  // namespace pasta::device
