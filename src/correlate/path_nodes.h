// Which ranges are nodes of call paths (docs/correlation.md).
#pragma once

#include <string_view>

#include "pasta/event.h"

namespace pasta::correlate {

// "ProfilerStep#17": each would be a path of its own.
inline bool is_numbered(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  return digits != std::string_view::npos && digits + 1 != name.size() && name[digits] == '#';
}

inline bool is_path_node(ScopeDomain domain, std::string_view name) {
  return domain != ScopeDomain::kIteration && !is_numbered(name);
}

}  // namespace pasta::correlate
