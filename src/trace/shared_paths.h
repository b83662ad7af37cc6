// Call paths of a whole process. A spool's numbers mean nothing in another, but a backward operator
// hangs below its forward one, which another thread ran. Needs no libstdc++: it is for the
// collector. No function allocates from the heap, takes a lock or waits.
#pragma once

#include <cstdint>
#include <string_view>

#include "pasta/event.h"

namespace pasta::trace {

// A path, below kPaths; 0 is one of which nothing is known. There is room for so many and 8 MiB of
// names.
using SharedPath = std::uint32_t;
inline constexpr std::uint32_t kPaths = 1u << 16;
inline constexpr SharedPath kNoPath = 0;
inline constexpr SharedPath kOutside = 1;  // in no range

// `key` is the same for equal names, and for no others. kNoPath when there is no room.
SharedPath shared_path(SharedPath parent, std::string_view name, std::uint64_t key,
                       ScopeDomain domain) noexcept;
struct SharedNode {
  SharedPath parent;
  ScopeDomain domain;
  std::string_view name;
};
// Of a path that is neither of the two above.
SharedNode shared_node(SharedPath path) noexcept;

// The path of the operator that was the last to begin with this number of autograd's, on the thread
// that autograd calls so. Some 200000 operators that wait for their backward pass are known at
// once.
void remember_forward(std::uint64_t thread, std::uint64_t sequence, SharedPath path) noexcept;
SharedPath forward_path(std::uint64_t thread, std::uint64_t sequence) noexcept;

}  // namespace pasta::trace
