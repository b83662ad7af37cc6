// What kernels reach through tensor maps, whose loads and stores no patch sees: a program has maps
// encoded by the driver, and hands them to kernels among their arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace pasta::adapters::sanitizer {

class TensorMaps {
 public:
  static constexpr std::size_t kBytes = 128;  // of a map
  static constexpr std::size_t kAlign = 64;   // of it, among arguments, too
  // Programs that encode a map for each launch have as many as they like: then the first are
  // forgotten.
  static constexpr std::size_t kMost = 65536;

  // A map that the driver has encoded, of memory that begins here.
  void encoded(std::span<const std::byte, kBytes> map, std::uint64_t address);
  // Addresses of the maps among these arguments, each once.
  [[nodiscard]] std::vector<std::uint64_t> in(std::span<const std::byte> arguments) const;
  [[nodiscard]] bool empty() const { return addresses_.empty(); }

 private:
  using Map = std::array<std::byte, kBytes>;
  std::map<Map, std::uint64_t> addresses_;
};

}  // namespace pasta::adapters::sanitizer
