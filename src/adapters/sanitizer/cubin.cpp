#include "adapters/sanitizer/cubin.h"

#include <algorithm>

namespace pasta::adapters::sanitizer {

std::string_view text_at(std::span<const std::byte> bytes, std::uint64_t at) {
  if (at >= bytes.size()) return {};
  const auto* text = reinterpret_cast<const char*>(bytes.data() + at);
  return {text, strnlen(text, bytes.size() - at)};
}

std::string_view kernel_of(const Cubin::Section& section) {
  constexpr std::string_view kCode = ".text.";
  if (section.type != SHT_PROGBITS || !section.name.starts_with(kCode)) return {};
  return section.name.substr(kCode.size());
}

std::optional<Cubin> Cubin::read(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  if (!read_at(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  const auto part = [&](const Elf64_Shdr& section) -> std::span<const std::byte> {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes.size()) return {};
    return bytes.subspan(section.sh_offset, std::min<std::uint64_t>(
                                                section.sh_size, bytes.size() - section.sh_offset));
  };
  Cubin cubin;
  std::vector<Elf64_Shdr> headers(header.e_shnum);
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (!read_at(bytes, header.e_shoff + i * sizeof headers[i], headers[i])) return std::nullopt;
  }
  if (header.e_shstrndx >= headers.size()) return std::nullopt;
  const auto names = part(headers[header.e_shstrndx]);
  for (const Elf64_Shdr& section : headers) {
    cubin.sections_.push_back({text_at(names, section.sh_name), section.sh_type, section.sh_link,
                               section.sh_info, part(section)});
  }
  return cubin;
}

const Cubin::Section* Cubin::find(std::string_view name) const {
  const auto found = std::ranges::find(sections_, name, &Section::name);
  return found == sections_.end() ? nullptr : &*found;
}

std::string_view Cubin::symbol(std::uint32_t index) const {
  const auto symbols = std::ranges::find(sections_, std::uint32_t{SHT_SYMTAB}, &Section::type);
  Elf64_Sym symbol;
  if (symbols == sections_.end() || symbols->link >= sections_.size() ||
      !read_at(symbols->bytes, std::uint64_t{index} * sizeof symbol, symbol)) {
    return {};
  }
  return text_at(sections_[symbols->link].bytes, symbol.st_name);
}

std::vector<std::string_view> Cubin::global_variables() const {
  std::vector<std::string_view> found;
  const auto symbols = std::ranges::find(sections_, std::uint32_t{SHT_SYMTAB}, &Section::type);
  if (symbols == sections_.end() || symbols->link >= sections_.size()) return found;
  Elf64_Sym symbol;
  for (std::uint64_t at = 0; read_at(symbols->bytes, at, symbol); at += sizeof symbol) {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0 ||
        symbol.st_shndx >= sections_.size() ||
        !sections_[symbol.st_shndx].name.starts_with(".nv.global")) {
      continue;
    }
    // PyTorch's kernels bring thousands of texts of assertions, and of objects without a state.
    const std::string_view name = text_at(sections_[symbols->link].bytes, symbol.st_name);
    const bool is_text = name.starts_with("__unnamed_") || name.starts_with('$');
    if (!name.empty() && !is_text && symbol.st_size > 1) found.push_back(name);
  }
  return found;
}

}  // namespace pasta::adapters::sanitizer
