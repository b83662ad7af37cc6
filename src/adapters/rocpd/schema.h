// Which tables a rocpd database has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sqlite.h"

namespace pasta::adapters::rocpd {

// What is behind "rocpd_string" and the like in the names of one process's tables. A database that
// was merged has several sets of tables.
std::vector<std::string> suffixes(const base::sqlite::Database& database);

}  // namespace pasta::adapters::rocpd
