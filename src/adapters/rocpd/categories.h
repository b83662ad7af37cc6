// What a region is, by the name of its category.
#pragma once

#include <cstdint>
#include <string_view>

#include "pasta/event.h"

namespace pasta::adapters::rocpd {

struct Category {
  Kind kind = Kind::kScope;
  std::uint16_t detail = 0;  // ApiDomain or ScopeDomain
  bool mark = false;         // of the program itself: ROCTx
};

// "HIP_RUNTIME_API_EXT", "rocm_hip_api": the names differ between profilers and versions, but for
// the word that matters. Of a name without any such word, a plain range.
Category category_of(std::string_view name);

}  // namespace pasta::adapters::rocpd
