#include "adapters/cupti/device_runtime.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <iterator>

namespace pasta::adapters::cupti {
namespace {

constexpr char kSection[] = "__nv_module_id";
constexpr char kModule[] = "cuda_device_runtime";

bool read_at(int file, void* to, std::size_t size, std::uint64_t at) {
  return pread(file, to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
}

// Pieces overlap by what may be cut.
bool section_names_module(int file, const Elf64_Shdr& section) {
  char piece[4096];
  for (std::uint64_t at = 0; at < section.sh_size; at += sizeof piece - sizeof kModule) {
    const std::uint64_t left = section.sh_size - at;
    const std::size_t size = left < sizeof piece ? left : sizeof piece;
    if (!read_at(file, piece, size, section.sh_offset + at)) return false;
    if (memmem(piece, size, kModule, sizeof kModule - 1) != nullptr) return true;
  }
  return false;
}

bool file_has_it(int file) {
  Elf64_Ehdr header;
  if (!read_at(file, &header, sizeof header, 0) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return false;
  }
  Elf64_Shdr sections[64];
  char names[4096];
  const std::size_t count =
      header.e_shnum < std::size(sections) ? header.e_shnum : std::size(sections);
  if (header.e_shstrndx >= count ||
      !read_at(file, sections, count * sizeof sections[0], header.e_shoff)) {
    return false;
  }
  const Elf64_Shdr& texts = sections[header.e_shstrndx];
  const std::size_t size = texts.sh_size < sizeof names ? texts.sh_size : sizeof names;
  if (!read_at(file, names, size, texts.sh_offset)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = sections[i].sh_name;
    if (at + sizeof kSection <= size && std::memcmp(names + at, kSection, sizeof kSection) == 0) {
      return section_names_module(file, sections[i]);
    }
  }
  return false;
}

struct Search {
  std::size_t seen;
  unsigned long long unloaded;
  std::size_t index = 0;
  bool found = false;
};

int look_at(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  // New ones come last, as long as none goes.
  if (search.index == 0 && object->dlpi_subs != search.unloaded) search.seen = 0;
  search.unloaded = object->dlpi_subs;
  if (search.index++ < search.seen) return 0;
  const bool is_program = search.index == 1;
  search.found =
      search.found || has_device_runtime(is_program ? "/proc/self/exe" : object->dlpi_name);
  return 0;
}

}  // namespace

bool has_device_runtime(const char* path) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool has = file_has_it(file);
  close(file);
  return has;
}

bool LoadedObjects::find_device_runtime() noexcept {
  Search search{seen_, unloaded_};
  dl_iterate_phdr(look_at, &search);
  seen_ = search.index;
  unloaded_ = search.unloaded;
  return search.found;
}

}  // namespace pasta::adapters::cupti
