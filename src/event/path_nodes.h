// Which ranges are nodes of call paths (docs/correlation.md). Needs no libstdc++: this header is
// for the collector too.
#pragma once

#include <string_view>

#include "pasta/event.h"

namespace pasta::event {

// "ProfilerStep#17": each would be a path of its own.
inline bool is_numbered(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  return digits > 0 && digits != name.size() && name[digits - 1] == '#';
}

inline bool is_path_node(ScopeDomain domain, std::string_view name) {
  return domain != ScopeDomain::kIteration && !is_numbered(name);
}

}  // namespace pasta::event
