// What kernels access memory with that Compute Sanitizer has no patch for: found in their code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "device/result.h"

namespace pasta::adapters::sanitizer {

// By kernel, as the compiler calls it; only those with any. None of what is no program for a GPU,
// or ends early.
std::map<std::string, device::UnseenRow, std::less<>> find_unseen(std::span<const std::byte> cubin);

}  // namespace pasta::adapters::sanitizer
