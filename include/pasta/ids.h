// Typed 32-bit ids into the tables of a Dictionary.
#pragma once

#include <compare>
#include <cstdint>

namespace pasta {

// An index into one table of a Dictionary. Zero is "none". Ids of different tables do not mix.
// Trivial, so that an id may sit in a union: write `StringId id{}` for none.
template <class Tag>
struct Id {
  std::uint32_t value;
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using StringId = Id<struct StringTag>;
using ProcessId = Id<struct ProcessTag>;
using DeviceId = Id<struct DeviceTag>;
using LaneId = Id<struct LaneTag>;
using FrameId = Id<struct FrameTag>;            // a node of the call-path tree
using AttributesId = Id<struct AttributesTag>;  // block, registers, shared memory, ... of a launch
using CollectiveId = Id<struct CollectiveTag>;  // what a communication kernel exchanges with whom
using BlobId = Id<struct BlobTag>;

}  // namespace pasta
