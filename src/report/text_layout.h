// Text of a given width in terminal columns. A code point is taken to be one column wide.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pasta::report {

// `text` as one line that cannot act on a terminal: control characters and bytes that are not
// UTF-8 become blanks or '?'. What the functions below take must be clean.
std::string clean(std::string_view text);

// A name of the interface ("copy_bytes") as words, clean.
std::string words_of(std::string_view name);

std::size_t width_of(std::string_view text);

enum class Align : unsigned char { kLeft, kRight };
// `text` with blanks to fill `width`; longer text is left as it is.
std::string pad(std::string_view text, std::size_t width, Align align);
std::string repeat(std::string_view text, std::size_t times);

// Paragraph lines of at most `width`, broken between words, or inside one that is longer.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// `text` cut in its middle to at most `width`.
std::string shorten(std::string_view text, std::size_t width);
// All of `names` cut to at most `width`, so that different names still look different: the cut is
// moved to keep the place where they differ, or shows a running number.
void shorten_all(std::vector<std::string>& names, std::size_t width);

}  // namespace pasta::report
