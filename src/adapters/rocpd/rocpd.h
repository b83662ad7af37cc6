// Databases of rocprofv3 and of ROCm Systems Profiler.
#pragma once

#include <memory>

#include "base/sqlite.h"
#include "pasta/adapter.h"

namespace pasta::adapters::rocpd {

// A fill of memory is a kernel here, and a wait is a call; that there are none besides is an
// answer.
inline constexpr AdapterInfo kInfo{
    .name = "rocpd",
    .help = "databases of rocprofv3 and ROCm Systems Profiler (rocpd)",
    .provides = Kind::kApi | Kind::kScope | Kind::kKernel | Kind::kCopy | Kind::kFill |
                Kind::kSync | Kind::kAlloc | Kind::kFree | Kind::kCounter,
    .live = false};

bool recognise(const base::sqlite::Database& database);
Result<std::unique_ptr<Adapter>> open(base::sqlite::Database database);

}  // namespace pasta::adapters::rocpd
