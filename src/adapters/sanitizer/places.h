// What the places of a kernel are called that access memory: lines of the source where the compiler
// has left them (nvcc -lineinfo; Triton does so by itself), and instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pasta::adapters::sanitizer {

class Places {
 public:
  // Of a program for a GPU; keeps nothing of its bytes. Of what is none, or damaged, as much as can
  // be read.
  static Places read(std::span<const std::byte> cubin);

  // "a.cu:12 LDG"; of a function that the compiler has put into its caller "b.h:3 from a.cu:12
  // LDG"; without lines "+0x1a0 LDG". Only "+0x1a0" of what is no place that is known.
  [[nodiscard]] std::string name(std::string_view kernel, std::uint64_t offset) const;

 private:
  struct Row {
    std::uint64_t offset;
    std::uint32_t file;    // in files_
    std::uint32_t line;    // 0: of no line
    std::uint32_t caller;  // its row in the kernel + 1; 0: it is in no other function
  };
  struct Instruction {
    std::uint32_t offset;
    std::uint16_t operation;
  };
  struct Kernel {
    std::vector<Row> rows;                  // in order of offsets
    std::vector<Instruction> instructions;  // that access memory
  };
  class Reader;

  [[nodiscard]] std::string line_of(const Kernel& kernel, std::uint64_t offset) const;

  std::vector<std::string> files_;
  std::map<std::string, Kernel, std::less<>> kernels_;
};

}  // namespace pasta::adapters::sanitizer
