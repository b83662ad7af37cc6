#include "adapters/sanitizer/opcodes.h"

#include <string_view>

#include "adapters/sanitizer/cubin.h"

namespace pasta::adapters::sanitizer {
namespace {

// Of an instruction one operand may be a part of constant memory. Of its banks the program's own is
// the third: others are what launches give and what the compiler has put there.
bool reads_constants(std::uint64_t word) {
  constexpr std::uint64_t kBank = 3;
  const std::uint64_t form = word >> 9 & 7, operation = word & kOperation;
  const bool has_constant = form == 3 || form == 5;
  const bool is_barrier = operation == 0x11d;  // whose number lies there
  // Those of textures and surfaces say there which they are of.
  const bool has_header =
      (operation >= 0x160 && operation <= 0x16d) || (operation >= 0x199 && operation <= 0x19f);
  return has_constant && !is_barrier && !has_header && (word >> 54 & 31) == kBank;
}

void count(Unseen& unseen, std::uint64_t word) {
  if (reads_constants(word)) ++unseen.other.constants;
  switch (word & kOperation) {
    case 0x1b4:  // UTMALDG
      ++unseen.global.tensor_loads;
      break;
    case 0x1b5:  // UTMASTG
    case 0x1b6:  // UTMAREDG
      ++unseen.global.tensor_stores;
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
    case 0x19f:  // SURED
      ++unseen.global.textures;
      break;
    case 0x1a5:  // LDGMC
      ++unseen.other.multicast;
      break;
    case 0x1cb:  // UMEMSETS
      ++unseen.other.fills;
      break;
    case 0x1e7:  // UTCCP
    case 0x1ea:  // UTCHMMA and the like
    case 0x1f0:  // HGMMA
    case 0x1f1:  // IGMMA
    case 0x1f2:  // BGMMA
    case 0x1f3:  // QGMMA
      ++unseen.other.products;
      break;
    default:
      break;
  }
}

}  // namespace

std::map<std::string, Unseen, std::less<>> find_unseen(std::span<const std::byte> cubin) {
  std::map<std::string, Unseen, std::less<>> found;
  const auto program = Cubin::read(cubin);
  if (!program) return found;
  for (const Cubin::Section& section : program->sections()) {
    const std::string_view kernel = kernel_of(section);
    if (kernel.empty()) continue;
    Unseen unseen;
    std::uint64_t word = 0;
    for (std::uint64_t offset = 0; read_at(section.bytes, offset, word);
         offset += kInstructionBytes) {
      count(unseen, word);
    }
    if (unseen != Unseen{}) found.emplace(kernel, unseen);
  }
  return found;
}

}  // namespace pasta::adapters::sanitizer
