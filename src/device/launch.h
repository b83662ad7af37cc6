// One run of a kernel, as a patch sees it. Plain data: a GPU has a copy of it.
#pragma once

#include <cstddef>
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

// What the functions on a GPU are given of their launch; none of a launch that is not analysed. The
// block of the state (layout.h) lies kHeaderBytes behind where it begins, so that nothing has to be
// read to find what the block begins with.
template <class Patch>
struct GpuLaunch {
  Launch launch;
  typename Patch::State state;
  std::uint64_t code;  // address of the kernel's code, from which places are counted
};
inline constexpr std::uint32_t kBlockAlign = 256;  // of the block and of each of its arrays
constexpr std::uint32_t rounded_to_block(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes + kBlockAlign - 1) / kBlockAlign * kBlockAlign);
}
// What a patch has before the header, so that there, too, nothing has to be read to find it.
template <class Patch>
constexpr std::uint32_t bytes_before() {
  if constexpr (requires { Patch::kBytesBefore; }) return Patch::kBytesBefore;
  return 0;
}
// Of them, so many bytes, the last, are a part of the result.
template <class Patch>
constexpr std::uint32_t result_bytes_before() {
  if constexpr (requires { Patch::kResultBytesBefore; }) return Patch::kResultBytesBefore;
  return 0;
}
template <class Patch>
inline constexpr std::uint32_t kHeaderBytes =
    (sizeof(GpuLaunch<Patch>) + kBlockAlign - 1) / kBlockAlign* kBlockAlign;
#ifdef PASTA_ON_GPU
// Where the header begins. Of a pointer, compilers see where it comes from.
template <class Patch>
__device__ char* header_of(const typename Patch::State& state) {
  return reinterpret_cast<char*>(const_cast<typename Patch::State*>(&state)) -
         offsetof(GpuLaunch<Patch>, state);
}
#endif
// What lies so many bytes behind where the header begins. On the host there is only the block.
template <class Patch, class T>
PASTA_DEVICE T* behind_header(const typename Patch::State& state,
                              [[maybe_unused]] const void* block, std::uint64_t bytes) {
#ifdef PASTA_ON_GPU
  return reinterpret_cast<T*>(header_of<Patch>(state) + bytes);
#else
  static_cast<void>(state);
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(block) +
                              (bytes - kHeaderBytes<Patch>));
#endif
}

}  // namespace pasta::device
