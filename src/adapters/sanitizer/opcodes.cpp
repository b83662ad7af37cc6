#include "adapters/sanitizer/opcodes.h"

#include <string_view>

#include "adapters/sanitizer/cubin.h"

namespace pasta::adapters::sanitizer {
namespace {

using device::UnseenRow;

void count(UnseenRow& unseen, std::uint64_t word) {
  switch (word & kOperation) {
    case 0x1b4:  // UTMALDG
      ++unseen.tensor_loads;
      break;
    case 0x1b5:  // UTMASTG
    case 0x1b6:  // UTMAREDG
      ++unseen.tensor_stores;
      break;
    case 0x160:  // TEX
    case 0x161:
    case 0x163:  // TLD4
    case 0x164:
    case 0x166:  // TLD
    case 0x167:
    case 0x16c:  // TXD
    case 0x16d:
    case 0x199:  // SULD
    case 0x19d:  // SUST
      ++unseen.textures;
      break;
    default:
      break;
  }
}

}  // namespace

std::map<std::string, device::UnseenRow, std::less<>> find_unseen(
    std::span<const std::byte> cubin) {
  std::map<std::string, device::UnseenRow, std::less<>> found;
  const auto program = Cubin::read(cubin);
  if (!program) return found;
  for (const Cubin::Section& section : program->sections()) {
    const std::string_view kernel = kernel_of(section);
    if (kernel.empty()) continue;
    UnseenRow unseen;
    std::uint64_t word = 0;
    for (std::uint64_t offset = 0; read_at(section.bytes, offset, word);
         offset += kInstructionBytes) {
      count(unseen, word);
    }
    if (unseen != UnseenRow{}) found.emplace(kernel, unseen);
  }
  return found;
}

}  // namespace pasta::adapters::sanitizer
