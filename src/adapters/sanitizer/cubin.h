// A program for a GPU as its compiler made it: an ELF file in memory.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pasta::adapters::sanitizer {

// The object at `at`; false beyond the end.
template <class T>
bool read_at(std::span<const std::byte> bytes, std::uint64_t at, T& to) {
  if (at > bytes.size() || bytes.size() - at < sizeof to) return false;
  std::memcpy(&to, bytes.data() + at, sizeof to);
  return true;
}

// All is a part of the bytes it was read from, and as they say: nothing lies beyond them.
class Cubin {
 public:
  struct Section {
    std::string_view name;
    std::uint32_t type = SHT_NULL;
    std::uint32_t link = 0, info = 0;  // as ELF has them
    std::span<const std::byte> bytes;  // none of what takes no room in the file
  };

  // None of what is no such file.
  static std::optional<Cubin> read(std::span<const std::byte> bytes);
  [[nodiscard]] std::span<const Section> sections() const { return sections_; }
  // None where there is no section of this name.
  [[nodiscard]] const Section* find(std::string_view name) const;
  // The name of the n-th symbol; "" where there is none.
  [[nodiscard]] std::string_view symbol(std::uint32_t index) const;
  // Names of its variables that lie in global memory, but texts, and what has one byte.
  [[nodiscard]] std::vector<std::string_view> global_variables() const;

 private:
  std::vector<Section> sections_;
};

// Text that ends with a 0, or with the bytes.
std::string_view text_at(std::span<const std::byte> bytes, std::uint64_t at);
// The kernel whose code a section holds; "" for another section.
std::string_view kernel_of(const Cubin::Section& section);

// An instruction since Volta: 16 bytes, its operation in the lowest 9 bits; the next 3 say where
// operands come from.
inline constexpr std::size_t kInstructionBytes = 16;
inline constexpr std::uint64_t kOperation = 0x1ff;

}  // namespace pasta::adapters::sanitizer
