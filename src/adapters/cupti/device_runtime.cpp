#include "adapters/cupti/device_runtime.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
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
  unsigned long long unloaded = 0;
  std::size_t index = 0;
  bool is_new = false;
  char path[PATH_MAX] = "";
};

// The loader's lock is held meanwhile, for which the program's threads would wait: files are read
// later.
int find_new(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  search.unloaded = object->dlpi_subs;
  if (search.index++ < search.seen) return 0;
  const char* path = search.index == 1 ? "/proc/self/exe" : object->dlpi_name;
  const std::size_t size = std::strlen(path) + 1;
  search.is_new = true;
  // What has no folder is no file: the kernel's own.
  const bool is_file = size <= sizeof search.path && std::strchr(path, '/') != nullptr;
  if (is_file) std::memcpy(search.path, path, size);
  return 1;
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
  bool found = false;
  for (bool is_first = true;; is_first = false) {
    Search search{.seen = seen_};
    dl_iterate_phdr(find_new, &search);
    // New ones come last, as long as none goes: then all are looked at again. What goes meanwhile
    // is seen the next time, or a program that does so all the time would keep us here.
    if (is_first && search.unloaded != unloaded_) {
      unloaded_ = search.unloaded;
      seen_ = 0;
      continue;
    }
    if (!search.is_new) return found;
    ++seen_;
    found = found || has_device_runtime(search.path);
  }
}

}  // namespace pasta::adapters::cupti
