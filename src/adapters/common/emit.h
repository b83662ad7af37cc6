// How readers of files end.
#pragma once

#include <cstdint>

#include "correlate/assembler.h"
#include "pasta/adapter.h"
#include "pasta/quality.h"

namespace pasta::adapters::common {

// Pushes a bounded part of what was assembled. After the last event it reports the problems and
// returns false.
Result<bool> emit_events(correlate::Assembler& assembler, const Problems& problems,
                         EventSink& sink);

// Whether this time is one since 1970: those since a machine's start are smaller.
inline bool since_1970(std::int64_t ns) {
  constexpr std::int64_t kYear2001Ns = 1'000'000'000'000'000'000;
  return ns >= kYear2001Ns;
}

}  // namespace pasta::adapters::common
