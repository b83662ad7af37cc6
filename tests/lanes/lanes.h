// The lanes of a warp, made by the host: each runs code for a GPU on a stack of its own, up to
// where it asks others something or returns; then the next one does. What they ask is answered once
// all whom it is of have come to the same place. One warp at a time; nothing here is for many
// threads.
#pragma once

#include <cstdint>
#include <functional>

namespace lanes {

inline constexpr unsigned kLanes = 32;

enum class Ask : std::uint8_t { kActive, kWait, kShuffle, kShuffleUp, kBallot, kAll, kAny, kMatch };
inline constexpr unsigned kAsks = static_cast<unsigned>(Ask::kMatch) + 1;

struct Question {
  Ask what;
  std::uint32_t of;  // of which lanes
  unsigned line;     // of the source
  std::uint64_t value = 0;
  unsigned from = 0;  // how far, or of which lane
  bool operator==(const Question&) const = default;
};
// By code of a lane.
std::uint64_t ask(const Question& question);

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
// Where the calling lane is.
struct Here {
  unsigned lane = 0;
  Index item, items, group, groups;
  std::uint32_t multiprocessor = 0, warp_slot = 0;
};
const Here& here();

// What a multiprocessor has seen of memory stays so until it forgets it.
std::uint64_t glance(const void* at, std::uint64_t now);
void forget();

// A new kernel: nothing of memory has been seen, and no question asked.
void begin();
// The lanes of a mask, in turns from the first to the last or the other way round. What is no code
// for a GPU throws: lanes that are asked and do not come, or have gone another way.
struct Warp {
  std::uint32_t number = 0;  // of its group
  Index items, group, groups;
  std::uint32_t multiprocessor = 0;
  bool backwards = false;
};
void run(const Warp& warp, std::uint32_t mask, const std::function<void(unsigned lane)>& code);
// Questions of one kind that were answered since begin().
std::uint64_t answered(Ask what);

}  // namespace lanes
