// Series, trees and heat maps drawn with characters, indented by two blanks.
#pragma once

#include <string>

#include "pasta/report.h"
#include "report/render.h"
#include "report/text_style.h"

namespace pasta::report {

// One line: each character is the greatest value in its part of the time; a part without a point
// keeps the value before it.
void append_series(std::string& out, const Series& series, const TextOptions& options,
                   const Style& style);
// Shares are of the root's value.
void append_tree(std::string& out, const Tree& tree, const TextOptions& options,
                 const Style& style);
// Shades from the least to the greatest value; '-' is unknown.
void append_heat_map(std::string& out, const HeatMap& map, const TextOptions& options,
                     const Style& style);

}  // namespace pasta::report
