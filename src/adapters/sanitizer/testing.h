// What tests of the adapter share. For tests only.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace pasta::adapters::sanitizer::testing {

// A program for a GPU with one kernel, whose instructions have these lowest words.
inline std::string cubin(const std::string& kernel, const std::vector<std::uint64_t>& words) {
  const std::string names = std::string(1, '\0') + ".text." + kernel + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 2;
  header.e_shstrndx = 0;
  Elf64_Shdr sections[2] = {};
  sections[0].sh_type = SHT_STRTAB;
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = names.size();
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_PROGBITS;
  sections[1].sh_offset = sections[0].sh_offset + names.size();
  sections[1].sh_size = 16 * words.size();
  std::string made(reinterpret_cast<const char*>(&header), sizeof header);
  made.append(reinterpret_cast<const char*>(sections), sizeof sections).append(names);
  for (const std::uint64_t word : words) {
    const std::uint64_t instruction[2] = {word, ~std::uint64_t{0}};
    made.append(reinterpret_cast<const char*>(instruction), sizeof instruction);
  }
  return made;
}

}  // namespace pasta::adapters::sanitizer::testing
