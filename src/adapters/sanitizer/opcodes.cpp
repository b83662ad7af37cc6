#include "adapters/sanitizer/opcodes.h"

#include <elf.h>

#include <cstring>
#include <string_view>

namespace pasta::adapters::sanitizer {
namespace {

using device::UnseenRow;

// An instruction since Volta: 16 bytes, its operation in the lowest 9 bits; the next 3 say where
// operands come from.
constexpr std::size_t kInstructionBytes = 16;
constexpr std::uint64_t kOperation = 0x1ff;

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

template <class T>
bool read(std::span<const std::byte> bytes, std::uint64_t at, T& to) {
  if (at > bytes.size() || bytes.size() - at < sizeof to) return false;
  std::memcpy(&to, bytes.data() + at, sizeof to);
  return true;
}

}  // namespace

std::map<std::string, device::UnseenRow, std::less<>> find_unseen(
    std::span<const std::byte> cubin) {
  std::map<std::string, device::UnseenRow, std::less<>> found;
  Elf64_Ehdr header;
  if (!read(cubin, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return found;
  }
  const auto section = [&](std::uint64_t index, Elf64_Shdr& to) {
    return read(cubin, header.e_shoff + index * sizeof to, to);
  };
  Elf64_Shdr names;
  if (!section(header.e_shstrndx, names)) return found;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    constexpr std::string_view kCode = ".text.";
    Elf64_Shdr code;
    if (!section(i, code)) break;
    const std::uint64_t at = names.sh_offset + code.sh_name;
    if (code.sh_type != SHT_PROGBITS || at >= cubin.size()) continue;
    const auto* name = reinterpret_cast<const char*>(cubin.data() + at);
    const std::string_view text(name, strnlen(name, cubin.size() - at));
    if (!text.starts_with(kCode)) continue;
    UnseenRow unseen;
    for (std::uint64_t offset = 0; offset + kInstructionBytes <= code.sh_size;
         offset += kInstructionBytes) {
      std::uint64_t word = 0;
      if (!read(cubin, code.sh_offset + offset, word)) break;
      count(unseen, word);
    }
    if (unseen != UnseenRow{}) found.emplace(text.substr(kCode.size()), unseen);
  }
  return found;
}

}  // namespace pasta::adapters::sanitizer
