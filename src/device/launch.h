// One run of a kernel, as a patch sees it. Plain data: a GPU has a copy of it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/portable.h"

namespace pasta::device {

// A piece of device memory that was live when the kernel was launched.
struct MemoryObject {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t number;  // the n-th allocation of its process, from 1
};

inline constexpr std::uint32_t kNoObject = ~std::uint32_t{0};

PASTA_DEVICE inline bool is_inside(std::uint64_t begin, std::uint64_t size, std::uint64_t address,
                                   std::uint64_t bytes) {
  const std::uint64_t offset = address - begin;
  return offset < size && bytes <= size - offset;
}

struct Launch {
  std::uint32_t grid[3] = {1, 1, 1};      // in groups
  std::uint32_t block[3] = {1, 1, 1};     // work-items of a group
  const MemoryObject* objects = nullptr;  // in order of their addresses, none in another
  std::uint32_t object_count = 0;
  std::uint32_t global_only = 0;  // on a GPU: other memory is left out, also where a copy ends

  // Whether the index-th object holds all of these bytes.
  [[nodiscard]] PASTA_DEVICE bool holds(std::uint32_t index, std::uint64_t address,
                                        std::uint64_t bytes) const {
    return is_inside(fixed(objects[index].address), fixed(objects[index].bytes), address, bytes);
  }
  // Which object holds all of these bytes; kNoObject for bytes of none, or of several, or past the
  // end of one.
  [[nodiscard]] PASTA_DEVICE std::uint32_t find(std::uint64_t address, std::uint64_t bytes) const {
    // In steps of halves: the last one that does not begin behind the address.
    std::uint32_t first = 0;
    PASTA_ROLLED for (std::uint32_t step =
                          object_count > 1 ? 1u << highest_bit(object_count - 1) : 0;
                      step != 0; step /= 2) {
      const std::uint32_t next = first + step;
      if (next < object_count && fixed(objects[next].address) <= address) first = next;
    }
    return object_count != 0 && holds(first, address, bytes) ? first : kNoObject;
  }
  // Work-items of a group.
  [[nodiscard]] PASTA_DEVICE std::uint64_t items() const {
    return std::uint64_t{block[0]} * block[1] * block[2];
  }
  [[nodiscard]] PASTA_DEVICE std::uint64_t groups() const {
    return std::uint64_t{grid[0]} * grid[1] * grid[2];
  }
};
static_assert(std::is_trivially_copyable_v<Launch>);

}  // namespace pasta::device
