// Databases of rocprof, the profiler of ROCm before rocprofv3.
#pragma once

#include <memory>

#include "base/sqlite.h"
#include "pasta/adapter.h"

namespace pasta::adapters::rocprof_v1 {

inline constexpr AdapterInfo kInfo{.name = "rocprof_v1",
                                   .help = "databases of rocprof (results.db)",
                                   .provides = Kind::kApi | Kind::kScope | Kind::kKernel |
                                               Kind::kCopy | Kind::kFill | Kind::kSync |
                                               Kind::kCounter,
                                   .live = false};

bool recognise(const base::sqlite::Database& database);
Result<std::unique_ptr<Adapter>> open(base::sqlite::Database database);

}  // namespace pasta::adapters::rocprof_v1
