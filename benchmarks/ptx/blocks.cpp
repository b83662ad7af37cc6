// What patches are given of a launch, and what they make of it, for triton_steps.py.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapters/sanitizer/patches.h"

using namespace pasta::device;
namespace sanitizer = pasta::adapters::sanitizer;

namespace {

struct Patch {
  std::vector<MemoryObject> objects;
  std::unique_ptr<sanitizer::PatchOfObjects> of;
};

Launch launch_of(const std::uint32_t* grid_and_block) {
  Launch launch;
  std::copy_n(grid_and_block, 3, launch.grid);
  std::copy_n(grid_and_block + 3, 3, launch.block);
  launch.global_only = 1;
  return launch;
}

}  // namespace

extern "C" {

struct Sizes {
  std::uint64_t bytes, header, result_begin, result_end, image;
};

// For ever; none of a patch that there is not. The objects are in order.
Patch* pasta_ptx_patch(const char* name, const MemoryObject* objects, std::uint32_t count) {
  const sanitizer::PatchKind* kind = sanitizer::find_patch(name);
  if (kind == nullptr) return nullptr;
  auto* patch = new Patch{.objects = {objects, objects + count}, .of = nullptr};
  patch->of = kind->of(patch->objects);
  return patch;
}
// What has to lie on the device, and how much it is.
const void* pasta_ptx_table(const Patch* patch, std::uint64_t* bytes) {
  *bytes = patch->of->table().size();
  return patch->of->table().data();
}
void pasta_ptx_put_table(Patch* patch, std::uint64_t address) { patch->of->put_table(address); }

// With an address, `image` is written, for which there has to be room.
void pasta_ptx_block(const Patch* patch, const std::uint32_t* grid_and_block, std::uint64_t address,
                     Sizes* sizes, unsigned char* image) {
  const sanitizer::Block block = patch->of->block(launch_of(grid_and_block), 0, address);
  *sizes = {block.bytes, block.header, block.result_begin, block.result_end, block.image.size()};
  if (address != 0) std::memcpy(image, block.image.data(), block.image.size());
}

// The numbers of the table with this number in the result; how many there are.
std::uint64_t pasta_ptx_result(const Patch* patch, const std::uint32_t* grid_and_block,
                               unsigned char* result, std::uint64_t bytes, std::uint32_t table,
                               std::uint64_t* numbers, std::uint64_t room) {
  const Names names = {.object = [](const MemoryObject&) { return std::string(); },
                       .site = [](std::uint64_t) { return std::string(); }};
  const PatchResult made = patch->of->result(
      launch_of(grid_and_block), std::span(reinterpret_cast<std::byte*>(result), bytes), names);
  if (table >= made.tables.size()) return 0;
  const auto& all = made.tables[table].numbers;
  std::copy_n(all.begin(), std::min<std::size_t>(all.size(), room), numbers);
  return all.size();
}
}
