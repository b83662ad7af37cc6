// The table of kernels that AMD's first rocprof writes (results.csv).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters::rocprof_v1_csv {

inline constexpr AdapterInfo kInfo{.name = "rocprof_v1_csv",
                                   .help = "results.csv of AMD's first rocprof",
                                   .provides = Kind::kApi | Kind::kKernel | Kind::kCounter,
                                   .live = false};

// By the columns of the header.
bool sniff(std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open(Input input);

}  // namespace pasta::adapters::rocprof_v1_csv
