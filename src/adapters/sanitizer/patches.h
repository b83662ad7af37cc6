// The patches that a GPU can run, and what the host does for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

// A patch for all launches that see the same objects, of which each has a block, and all one table.
class PatchOfObjects {
 public:
  virtual ~PatchOfObjects() = default;
  // What lies on the device, the same wherever it does.
  [[nodiscard]] virtual std::span<const std::byte> table() const = 0;
  // Where that is; before the first block.
  virtual void put_table(std::uint64_t address) = 0;
  // What lies around `address` of the device, which is that of its header; with 0, how large it is.
  // The launch need not tell of its objects.
  [[nodiscard]] virtual Block block(const device::Launch& launch, std::uint64_t code,
                                    std::uint64_t address) const = 0;
  // Of what has travelled back.
  [[nodiscard]] virtual device::PatchResult result(const device::Launch& launch,
                                                   std::span<std::byte> bytes,
                                                   const device::Names& names) const = 0;
};

// Calls cost where they are made, so only there.
enum class Reach : std::uint8_t { kEverywhere, kGlobalMemory };

struct PatchKind {
  std::string_view name;
  std::string_view code;  // its functions are called pasta_CODE_FUNCTION
  Reach reach;
  std::string_view format;  // of its results; "": it makes none
  // `objects` outlive what is made.
  std::unique_ptr<PatchOfObjects> (*of)(std::span<const device::MemoryObject> objects);
  [[nodiscard]] bool has_results() const { return !format.empty(); }
};

std::span<const PatchKind> patches();
const PatchKind* find_patch(std::string_view name);
// Where it is called; `global_only`: not for shared and local memory, though it would be.
std::vector<Point> points(const PatchKind& patch, bool global_only);

}  // namespace pasta::adapters::sanitizer
