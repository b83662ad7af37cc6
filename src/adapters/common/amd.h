// Words and numbers that AMD's profilers share.
#pragma once

#include <cstdint>
#include <string_view>

#include "pasta/dictionary.h"
#include "pasta/event.h"

namespace pasta::adapters::common {

// From "MEMORY_COPY_HOST_TO_DEVICE", "CopyHostToDevice", "hipMemcpyHostToDevice".
CopyDirection copy_direction(std::string_view name);

// What a launch says of its grid: work-items in all, and in a group; 0 = unknown.
struct WorkItems {
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint32_t group[3] = {0, 0, 0};
};
// Sets the grid in blocks, of which the last may be smaller than the others, and the block.
void set_grid(KernelData& kernel, LaunchAttributes& attributes, const WorkItems& items);

// "name.kd", as a kernel is called in its code object, without the ending.
std::string_view without_kd(std::string_view name);

}  // namespace pasta::adapters::common
