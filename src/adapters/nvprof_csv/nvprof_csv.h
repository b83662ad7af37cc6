// The traces that NVIDIA's nvprof prints with --csv.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters::nvprof_csv {

inline constexpr AdapterInfo kInfo{
    .name = "nvprof_csv",
    .help = "nvprof --csv with --print-gpu-trace, --print-api-trace or both",
    .provides = Kind::kApi | Kind::kScope | Kind::kKernel | Kind::kCopy | Kind::kFill |
                Kind::kFault | Kind::kCounter,
    .live = false};

// By nvprof's own lines in front, or by the columns of the header.
bool sniff(std::span<const std::byte> head);
// Whether it is a trace, not one of nvprof's summaries.
bool confirm(ByteStream& stream);
// Summaries, metrics and what was printed without --csv are refused by name.
Result<std::unique_ptr<Adapter>> open(Input input);

}  // namespace pasta::adapters::nvprof_csv
