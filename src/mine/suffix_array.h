// The index that everything about repeats is read from.
//
// An enhanced suffix array: the sorted suffixes with the lengths of the prefixes that neighbours
// share. Its LCP intervals are the inner nodes of the suffix tree (Abouelhoda, Kurtz, Ohlebusch,
// "Replacing suffix trees with enhanced suffix arrays", 2004), at 8 bytes a symbol instead of a
// tree's 20 and more, and read in one pass from front to back instead of by following pointers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mine/text.h"

namespace pasta::mine {

class SuffixArray {
 public:
  // Linear time. 20 bytes a symbol while building, the text included, and 8 bytes a distinct
  // symbol; 12 bytes a symbol afterwards. Suffixes are sorted by induction (Nong, Zhang, Chan,
  // "Linear suffix array construction by almost pure induced-sorting", 2009), the shared prefixes
  // found in the order of the text (Karkkainen, Manzini, Puglisi, "Permuted longest-common-prefix
  // array", 2009).
  explicit SuffixArray(Text text);

  [[nodiscard]] const Text& text() const { return text_; }
  [[nodiscard]] std::uint32_t size() const { return text_.size(); }
  // positions()[row] is where the row-th smallest suffix begins; a suffix that is a prefix of
  // another is the smaller one.
  [[nodiscard]] std::span<const std::uint32_t> positions() const { return positions_; }
  // lcp()[row] is how many symbols the suffixes of rows row-1 and row share; lcp()[0] is 0.
  [[nodiscard]] std::span<const std::uint32_t> lcp() const { return lcp_; }

 private:
  Text text_;
  LargeVector<std::uint32_t> positions_;
  LargeVector<std::uint32_t> lcp_;
};

}  // namespace pasta::mine
