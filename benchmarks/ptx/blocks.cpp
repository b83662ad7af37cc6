// What patches are given of a launch, and what they make of it, for triton_steps.py.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "adapters/sanitizer/patches.h"

using namespace pasta::device;
namespace sanitizer = pasta::adapters::sanitizer;

namespace {

Launch launch_of(const std::uint32_t* grid_and_block, const MemoryObject* objects,
                 std::uint32_t count) {
  Launch launch;
  std::copy_n(grid_and_block, 3, launch.grid);
  std::copy_n(grid_and_block + 3, 3, launch.block);
  launch.objects = objects;
  launch.object_count = count;
  launch.global_only = 1;
  return launch;
}

}  // namespace

extern "C" {

struct Sizes {
  std::uint64_t bytes, header, result_begin, result_end, image;
};

// `objects` on the host, and as the device has them. With an address, `image` is written, for which
// there has to be room.
int pasta_ptx_block(const char* name, const std::uint32_t* grid_and_block,
                    const MemoryObject* objects, const MemoryObject* on_device, std::uint32_t count,
                    std::uint64_t address, Sizes* sizes, unsigned char* image) {
  const sanitizer::PatchKind* patch = sanitizer::find_patch(name);
  if (patch == nullptr) return 0;
  const sanitizer::Block block = patch->block(launch_of(grid_and_block, on_device, count),
                                              std::span(objects, count), 0, address);
  *sizes = {block.bytes, block.header, block.result_begin, block.result_end, block.image.size()};
  if (address != 0) std::memcpy(image, block.image.data(), block.image.size());
  return 1;
}

// The numbers of the table with this number in the result; how many there are.
std::uint64_t pasta_ptx_table(const char* name, const std::uint32_t* grid_and_block,
                              const MemoryObject* objects, std::uint32_t count,
                              unsigned char* result, std::uint64_t bytes, std::uint32_t table,
                              std::uint64_t* numbers, std::uint64_t room) {
  const sanitizer::PatchKind* patch = sanitizer::find_patch(name);
  const Names names = {.object = [](const MemoryObject&) { return std::string(); },
                       .site = [](std::uint64_t) { return std::string(); }};
  const PatchResult made =
      patch->result(launch_of(grid_and_block, objects, count),
                    std::span(reinterpret_cast<std::byte*>(result), bytes), names);
  if (table >= made.tables.size()) return 0;
  const auto& all = made.tables[table].numbers;
  std::copy_n(all.begin(), std::min<std::size_t>(all.size(), room), numbers);
  return all.size();
}
}
