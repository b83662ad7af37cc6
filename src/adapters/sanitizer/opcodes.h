// What kernels access memory with that Compute Sanitizer has no patch for: found in their code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "device/result.h"

namespace pasta::adapters::sanitizer {

struct Unseen {
  device::UnseenRow global;
  device::UnseenTooRow other;
  [[nodiscard]] bool uses_tensor_maps() const {
    return global.tensor_loads + global.tensor_stores > 0;
  }
  bool operator==(const Unseen&) const = default;
};

// By kernel, as the compiler calls it; only those with any. None of what is no program for a GPU,
// or ends early.
std::map<std::string, Unseen, std::less<>> find_unseen(std::span<const std::byte> cubin);

}  // namespace pasta::adapters::sanitizer
