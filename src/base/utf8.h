// UTF-8 as RFC 3629 has it: no surrogates, nothing overlong, nothing beyond U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pasta::base {

// Length of the character at the front of `text` (which is not empty), 0 when it is none.
std::size_t utf8_length(std::string_view text);
// How many bytes from the front are valid.
std::size_t utf8_valid_prefix(std::string_view text);
// Writes `code_point` (no surrogate) to `out`, which has room for 4 bytes; returns the length.
std::size_t utf8_encode(std::uint32_t code_point, char* out);

}  // namespace pasta::base
