// Tables that fit a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "pasta/report.h"
#include "report/render.h"
#include "report/text_style.h"

namespace pasta::report {

// Appends `table` without its title, indented by two blanks. A table that is too wide has its
// names shortened; then, when it has fewer rows than columns, it is turned; then it is cut into
// blocks of columns, the first columns repeated that tell its rows apart.
void append_table(std::string& out, const Table& table, const TextOptions& options,
                  const Style& style);

}  // namespace pasta::report
