// One run of a kernel, as a patch sees it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pasta::device {

// A piece of device memory that was live when the kernel was launched.
struct MemoryObject {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t number;  // the n-th allocation of its process, from 1
};

struct Launch {
  std::uint32_t grid[3] = {1, 1, 1};      // in groups
  std::uint32_t block[3] = {1, 1, 1};     // work-items of a group
  std::span<const MemoryObject> objects;  // in order of their addresses, none in another

  // The object that holds all of these bytes; none for bytes of no object, or of several, or past
  // the end of one.
  [[nodiscard]] const MemoryObject* find(std::uint64_t address, std::uint64_t bytes) const {
    const auto after = std::upper_bound(
        objects.begin(), objects.end(), address,
        [](std::uint64_t a, const MemoryObject& object) { return a < object.address; });
    if (after == objects.begin()) return nullptr;
    const MemoryObject& object = after[-1];
    const std::uint64_t offset = address - object.address;
    return offset < object.bytes && bytes <= object.bytes - offset ? &object : nullptr;
  }
};

}  // namespace pasta::device
