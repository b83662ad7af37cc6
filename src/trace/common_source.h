// What one file says of the several sources it was written from.
#pragma once

#include <span>

#include "pasta/quality.h"

namespace pasta::trace {

// Rank, world size and clock that all `sources` share, and the earliest of their starts. Without
// path, format and label.
SourceInfo common_source(std::span<const SourceInfo> sources);

}  // namespace pasta::trace
