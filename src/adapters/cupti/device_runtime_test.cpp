#include "adapters/cupti/device_runtime.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace pasta::adapters::cupti {
namespace {

class File {
 public:
  explicit File(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("device_runtime_test." + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { std::filesystem::remove(path_); }
  [[nodiscard]] const char* path() const { return path_.c_str(); }

 private:
  std::filesystem::path path_;
};

template <class Fields>
void put(std::string& to, std::size_t at, const Fields& fields) {
  std::memcpy(to.data() + at, &fields, sizeof fields);
}

// A file of two sections: one of this name and these contents, and the names.
std::string elf(const std::string& section, const std::string& contents) {
  const std::string names = std::string(1, '\0') + section + '\0' + ".shstrtab" + '\0';
  constexpr std::size_t kSections = 3, kAt = sizeof(Elf64_Ehdr);
  const std::size_t contents_at = kAt + kSections * sizeof(Elf64_Shdr);
  std::string bytes(contents_at, '\0');
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = kAt;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = 2;
  put(bytes, 0, header);
  Elf64_Shdr one{}, other{};
  one.sh_name = 1;
  one.sh_offset = contents_at;
  one.sh_size = contents.size();
  other.sh_name = static_cast<Elf64_Word>(section.size() + 2);
  other.sh_offset = contents_at + contents.size();
  other.sh_size = names.size();
  put(bytes, kAt + sizeof one, one);
  put(bytes, kAt + 2 * sizeof one, other);
  return bytes + contents + names;
}

TEST(DeviceRuntime, IsNamedInItsSection) {
  const std::string id = "def _22_cuda_device_runtime_cu_3ecce0c0";
  EXPECT_TRUE(has_device_runtime(File(elf("__nv_module_id", id)).path()));
  EXPECT_FALSE(has_device_runtime(File(elf("__nv_module_id", "def _9_nested_cu_child")).path()));
  EXPECT_FALSE(has_device_runtime(File(elf("__nv_module_i", id)).path()));
  EXPECT_FALSE(has_device_runtime(File(elf("__nv_module_ids", id)).path()));
  // Where one piece that is read ends and the next begins.
  for (std::size_t before = 4060; before < 4100; ++before) {
    EXPECT_TRUE(
        has_device_runtime(File(elf("__nv_module_id", std::string(before, 'x') + id)).path()))
        << before;
  }
}

TEST(DeviceRuntime, WhatIsCutOrNoneHasNone) {
  const std::string whole = elf("__nv_module_id", "cuda_device_runtime");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    EXPECT_FALSE(has_device_runtime(File(whole.substr(0, size)).path())) << size;
  }
  EXPECT_FALSE(has_device_runtime(File("text").path()));
  EXPECT_FALSE(has_device_runtime("/nowhere"));
  EXPECT_FALSE(has_device_runtime(""));
}

TEST(DeviceRuntime, NothingLoadedHereHasIt) {
  LoadedObjects objects;
  EXPECT_FALSE(objects.find_device_runtime());
  EXPECT_FALSE(objects.find_device_runtime());
}

}  // namespace
}  // namespace pasta::adapters::cupti
