// JSON text, piece by piece.
#pragma once

#include <string>
#include <string_view>

namespace pasta::base {

// Appends `text` as a JSON string with its quotes. Control characters become \u escapes (\n, \t,
// ... where JSON has a short form); bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace pasta::base
