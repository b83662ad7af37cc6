#include "adapters/rocpd/entities.h"

#include <algorithm>

namespace pasta::adapters::rocpd {

std::uint32_t Guids::number(std::string_view guid) {
  if (last_ < known_.size() && known_[last_] == guid) return last_;
  const auto it = std::ranges::find(known_, guid);
  last_ = static_cast<std::uint32_t>(it - known_.begin());
  if (it == known_.end()) known_.emplace_back(guid);
  return last_;
}

}  // namespace pasta::adapters::rocpd
