// AMD rocprofv3's own JSON.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pasta/adapter.h"

namespace pasta::adapters::rocprofv3_json {

// Fills and waits are there, as kernels and calls: tools that ask for them can answer.
inline constexpr AdapterInfo kInfo{.name = "rocprofv3_json",
                                   .help = "AMD rocprofv3 JSON (results.json), also gzip and zip",
                                   .provides = Kind::kApi | Kind::kScope | Kind::kKernel |
                                               Kind::kCopy | Kind::kAlloc | Kind::kFree |
                                               Kind::kCounter,
                                   .live = false};

// True for a JSON object whose first member is "rocprofiler-sdk-tool".
bool sniff(std::span<const std::byte> head);
Result<std::unique_ptr<Adapter>> open(Input input);

}  // namespace pasta::adapters::rocprofv3_json
