// Reads .pasta files (docs/format.md).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters::pasta_file {

inline constexpr AdapterInfo kInfo{
    .name = "pasta", .help = "PASTA's own trace file", .provides = KindSet::all(), .live = false};

bool sniff(std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open(Input input);

}  // namespace pasta::adapters::pasta_file
