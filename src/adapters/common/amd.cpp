#include "adapters/common/amd.h"

#include <string>

namespace pasta::adapters::common {

CopyDirection copy_direction(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_') letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  const auto has = [&](std::string_view words) { return letters.find(words) != letters.npos; };
  if (has("hosttodevice")) return CopyDirection::kHostToDevice;
  if (has("devicetohost")) return CopyDirection::kDeviceToHost;
  if (has("devicetodevice")) return CopyDirection::kDeviceToDevice;
  if (has("hosttohost")) return CopyDirection::kHostToHost;
  return CopyDirection::kUnknown;
}

void set_grid(KernelData& kernel, LaunchAttributes& attributes, const WorkItems& items) {
  for (int i = 0; i < 3; ++i) {
    const std::uint32_t group = items.group[i];
    attributes.block[i] = group;
    if (group != 0) {
      kernel.grid[i] = items.grid[i] / group + (items.grid[i] % group != 0 ? 1 : 0);
    }
  }
}

std::string_view without_kd(std::string_view name) {
  if (name.ends_with(".kd")) name.remove_suffix(3);
  return name;
}

}  // namespace pasta::adapters::common
