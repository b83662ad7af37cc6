// Databases of nvprof, and sessions of the NVIDIA Visual Profiler that are such databases.
#pragma once

#include <memory>

#include "base/sqlite.h"
#include "pasta/adapter.h"

namespace pasta::adapters::nvprof_sqlite {

inline constexpr AdapterInfo kInfo{.name = "nvprof_sqlite",
                                   .help = "databases of nvprof (.nvvp, .nvprof)",
                                   .provides = Kind::kApi | Kind::kScope | Kind::kKernel |
                                               Kind::kCopy | Kind::kFill | Kind::kSync |
                                               Kind::kAlloc | Kind::kFree | Kind::kFault,
                                   .live = false};

bool recognise(const base::sqlite::Database& database);
Result<std::unique_ptr<Adapter>> open(base::sqlite::Database database);

}  // namespace pasta::adapters::nvprof_sqlite
