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

// One with a variable in global memory, and others in constant and shared memory.
inline std::string cubin_with_variable(const std::string& variable, std::uint64_t bytes = 4) {
  constexpr int kSections = 5;
  std::string names(1, '\0');
  const auto name = [&](const std::string& text) {
    names += text + '\0';
    return static_cast<Elf64_Word>(names.size() - text.size() - 1);
  };
  Elf64_Shdr sections[kSections] = {};
  const char* const called[] = {".strtab", ".nv.global.init", ".nv.constant3", ".nv.shared.k",
                                ".symtab"};
  for (int i = 0; i < kSections; ++i) sections[i].sh_name = name(called[i]);
  Elf64_Sym symbols[4] = {};
  for (int i = 1; i < 4; ++i) {
    symbols[i].st_name = name(i == 1 ? variable : "other" + std::to_string(i));
    symbols[i].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbols[i].st_shndx = static_cast<Elf64_Half>(i);
    symbols[i].st_size = bytes;
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  sections[0].sh_type = SHT_STRTAB;
  sections[0].sh_offset = sizeof header + sizeof sections;
  sections[0].sh_size = names.size();
  sections[4].sh_type = SHT_SYMTAB;
  sections[4].sh_offset = sections[0].sh_offset + names.size();
  sections[4].sh_size = sizeof symbols;
  std::string made(reinterpret_cast<const char*>(&header), sizeof header);
  made.append(reinterpret_cast<const char*>(sections), sizeof sections).append(names);
  return made.append(reinterpret_cast<const char*>(symbols), sizeof symbols);
}

}  // namespace pasta::adapters::sanitizer::testing
