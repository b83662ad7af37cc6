// The patches that a GPU can run, and what the host does for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "adapters/sanitizer/api.h"
#include "device/launch.h"
#include "device/result.h"

namespace pasta::adapters::sanitizer {

// Where a patch is called, and by which of its functions.
struct Point {
  Instruction instruction;
  std::string_view function;
};
struct Block {
  std::size_t bytes = 0;         // of the whole, zero but for its image
  std::size_t header = 0;        // where it is, which its image begins with
  std::size_t result_begin = 0;  // what travels back: [result_begin, result_end)
  std::size_t result_end = 0;
  std::vector<std::byte> image;  // what is there
};

// Calls cost where they are made, so only there.
enum class Reach : std::uint8_t { kEverywhere, kGlobalMemory };

struct PatchKind {
  std::string_view name;
  std::string_view code;  // its functions are called pasta_CODE_FUNCTION
  Reach reach;
  std::string_view format;  // of its results; "": it makes none
  // What lies around `address` of the device, which is that of its header, for a launch whose
  // objects lie on the device; with 0, how large it is.
  Block (*block)(const device::Launch& launch, std::span<const device::MemoryObject> objects,
                 std::uint64_t code, std::uint64_t address);
  // `launch` with the objects as they are on the host, and what has travelled back.
  device::PatchResult (*result)(const device::Launch& launch, std::span<std::byte> bytes,
                                const device::Names& names);
};

std::span<const PatchKind> patches();
const PatchKind* find_patch(std::string_view name);
// Where it is called; `global_only`: not for shared and local memory, though it would be.
std::vector<Point> points(const PatchKind& patch, bool global_only);

}  // namespace pasta::adapters::sanitizer
