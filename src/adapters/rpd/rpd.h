// Databases of rocmProfileData (rpd_tracer).
#pragma once

#include <memory>

#include "base/sqlite.h"
#include "pasta/adapter.h"

namespace pasta::adapters::rpd {

inline constexpr AdapterInfo kInfo{.name = "rpd",
                                   .help = "databases of rocmProfileData (.rpd)",
                                   .provides = Kind::kApi | Kind::kScope | Kind::kKernel |
                                               Kind::kCopy | Kind::kFill | Kind::kSync |
                                               Kind::kCounter,
                                   .live = false};

bool recognise(const base::sqlite::Database& database);
Result<std::unique_ptr<Adapter>> open(base::sqlite::Database database);

}  // namespace pasta::adapters::rpd
