#include "adapters/sanitizer/tensor_maps.h"

#include <algorithm>
#include <cstring>

namespace pasta::adapters::sanitizer {

void TensorMaps::encoded(std::span<const std::byte, kBytes> map, std::uint64_t address) {
  if (addresses_.size() == kMost) addresses_.clear();
  Map copy;
  std::ranges::copy(map, copy.begin());
  addresses_[copy] = address;
}

std::vector<std::uint64_t> TensorMaps::in(std::span<const std::byte> arguments) const {
  std::vector<std::uint64_t> found;
  if (addresses_.empty()) return found;
  for (std::size_t at = 0; at + kBytes <= arguments.size(); at += kAlign) {
    Map map;
    std::memcpy(map.data(), arguments.data() + at, kBytes);
    const auto known = addresses_.find(map);
    if (known == addresses_.end() || std::ranges::find(found, known->second) != found.end()) {
      continue;
    }
    found.push_back(known->second);
  }
  return found;
}

}  // namespace pasta::adapters::sanitizer
