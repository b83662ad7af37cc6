// Reads the one-line text form (docs/format.md): small traces written by hand, and dumps.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters::text {

inline constexpr AdapterInfo kInfo{.name = "text",
                                   .help = "events as lines of text, as `pastaprof dump` prints",
                                   .provides = KindSet::all(),
                                   .live = false};

bool sniff(std::span<const std::byte> head);
// The adapter keeps all events in memory: lines may stand in any order.
Result<std::unique_ptr<Adapter>> open(Input input);

}  // namespace pasta::adapters::text
