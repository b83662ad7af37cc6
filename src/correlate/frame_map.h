// From a 64-bit key to a call path and a time, for tens of millions of keys.
#pragma once

#include <cstdint>

#include "correlate/key_table.h"
#include "pasta/ids.h"

namespace pasta::correlate {

#pragma pack(push, 4)
struct FrameEntry {
  std::uint64_t key;  // 0 = free
  std::int64_t at_ns;
  FrameId frame;
};
#pragma pack(pop)
static_assert(sizeof(FrameEntry) == 20);

using FrameMap = KeyTable<FrameEntry>;

}  // namespace pasta::correlate
