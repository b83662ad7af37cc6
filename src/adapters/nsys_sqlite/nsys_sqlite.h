// SQLite exports of Nsight Systems (`nsys export --type sqlite`).
#pragma once

#include <memory>

#include "base/sqlite.h"
#include "pasta/adapter.h"

namespace pasta::adapters::nsys_sqlite {

inline constexpr AdapterInfo kInfo{
    .name = "nsys_sqlite",
    .help = "Nsight Systems SQLite exports",
    .provides = Kind::kApi | Kind::kScope | Kind::kKernel | Kind::kCopy | Kind::kFill |
                Kind::kSync | Kind::kAlloc | Kind::kFree | Kind::kFault | KindSet(Kind::kCounter),
    .live = false};

// By the table of strings and any of the tables that refer to it, whatever the version.
bool recognise(const base::sqlite::Database& database);
Result<std::unique_ptr<Adapter>> open(base::sqlite::Database database);

}  // namespace pasta::adapters::nsys_sqlite
