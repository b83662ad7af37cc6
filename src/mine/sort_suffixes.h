// Sorting of suffixes, the heart of SuffixArray.
#pragma once

#include <cstdint>
#include <span>

namespace pasta::mine {

// Fills `sorted` (as long as `text`, at most 2^31 - 2) with the positions of the suffixes in
// ascending order. Symbols are below `alphabet`. Linear time; beside `sorted`, 8 bytes a
// symbol of the alphabet, and a copy of the text if its symbols fit into one or two bytes.
void sort_suffixes(std::span<const std::uint32_t> text, std::uint32_t alphabet,
                   std::span<std::uint32_t> sorted);

}  // namespace pasta::mine
