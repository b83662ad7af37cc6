// SA-IS: Nong, Zhang, Chan, "Linear suffix array construction by almost pure induced-sorting"
// (DCC 2009).
//
// A suffix is of type S if it is smaller than the one after it, else of type L; the (virtual) empty
// suffix at the end is the smallest of all. An LMS position is one of type S after one of type L.
// If the LMS suffixes are in order, two scans put all others in order: from the front, each suffix
// tells the place of the L suffix before it; from the back, each tells the place of the S suffix
// before it. The LMS suffixes get into order by the same two scans, which sort the pieces between
// LMS positions, and if some pieces are equal, by recursion on the string of the pieces' names.
//
// Types are never stored. When a suffix is placed, the symbol before it is at hand and says whether
// the suffix before will be induced by the current scan or not; the topmost bit of the entry keeps
// that until the scan comes by. An entry 0 is an empty place: suffix 0 has none before it and
// induces nothing.
#include "mine/sort_suffixes.h"

#include <algorithm>
#include <vector>

#include "mine/large_vector.h"

namespace pasta::mine {
namespace {

using Index = std::uint32_t;

constexpr Index kWaits = Index{1} << 31U;  // what comes before it is for the other scan

// How many entries ahead of a scan its reads of the text are asked for; they jump through all of
// it, and without that each waits for memory.
constexpr Index kAhead = 32;

template <class Symbol>
class Sorter {
 public:
  Sorter(const Symbol* text, Index size, Index alphabet, Index* sorted)
      : text_(text), size_(size), sorted_(sorted), counts_(alphabet), place_(alphabet) {}

  void sort();

 private:
  void to_begins();
  void to_ends();
  template <bool kKeep>
  void induce_l();
  template <bool kKeep>
  void induce_s();
  template <class Visit>
  void for_each_lms_backwards(Visit&& visit) const;
  Index name_pieces(Index lms_count);
  [[nodiscard]] bool same_piece(Index a, Index b, Index length) const;
  void ask_for(Index entry) const { __builtin_prefetch(text_ + (entry & ~kWaits)); }

  const Symbol* text_;
  Index size_;
  Index* sorted_;
  std::vector<Index> counts_;
  std::vector<Index> place_;  // next free place of each symbol's bucket
};

template <class Symbol>
void Sorter<Symbol>::to_begins() {
  Index sum = 0;
  for (std::size_t symbol = 0; symbol < counts_.size(); ++symbol) {
    place_[symbol] = sum;
    sum += counts_[symbol];
  }
}

template <class Symbol>
void Sorter<Symbol>::to_ends() {
  Index sum = 0;
  for (std::size_t symbol = 0; symbol < counts_.size(); ++symbol) {
    sum += counts_[symbol];
    place_[symbol] = sum;
  }
}

// kKeep: all suffixes stay where they were placed (the last induction); otherwise only those that
// the next scan needs.
template <class Symbol>
template <bool kKeep>
void Sorter<Symbol>::induce_l() {
  to_begins();
  const auto place = [this](Index at) {
    const Index symbol = text_[at];
    const bool goes_on = at > 0 && text_[at - 1] >= symbol;
    sorted_[place_[symbol]++] = goes_on ? at : at | kWaits;
  };
  place(size_ - 1);  // comes before the empty suffix
  for (Index i = 0; i < size_; ++i) {
    if (i + kAhead < size_) ask_for(sorted_[i + kAhead]);
    const Index entry = sorted_[i];
    if constexpr (kKeep) {
      sorted_[i] = entry ^ kWaits;
    } else {
      sorted_[i] = (entry & kWaits) != 0 ? entry ^ kWaits : 0;
    }
    if (entry != 0 && (entry & kWaits) == 0) place(entry - 1);
  }
}

template <class Symbol>
template <bool kKeep>
void Sorter<Symbol>::induce_s() {
  to_ends();
  for (Index i = size_; i-- > 0;) {
    if (i >= kAhead) ask_for(sorted_[i - kAhead]);
    const Index entry = sorted_[i];
    if (entry == 0) continue;
    if ((entry & kWaits) != 0) {
      if constexpr (kKeep) sorted_[i] = entry ^ kWaits;
      continue;
    }
    if constexpr (!kKeep) sorted_[i] = 0;
    const Index at = entry - 1;
    const Index symbol = text_[at];
    Index& free = place_[symbol];
    --free;
    if (at == 0) {
      sorted_[free] = kKeep ? kWaits : 0;
    } else {
      sorted_[free] = text_[at - 1] <= symbol ? at : at | kWaits;
    }
  }
}

template <class Symbol>
template <class Visit>
void Sorter<Symbol>::for_each_lms_backwards(Visit&& visit) const {
  bool after_is_s = false;  // the last suffix is of type L
  for (Index i = size_ - 1; i-- > 0;) {
    const bool is_s = text_[i] < text_[i + 1] || (text_[i] == text_[i + 1] && after_is_s);
    if (after_is_s && !is_s) visit(i + 1);
    after_is_s = is_s;
  }
}

template <class Symbol>
bool Sorter<Symbol>::same_piece(Index a, Index b, Index length) const {
  // The last piece ends with the end of the text and is like no other.
  if (length > size_ - std::max(a, b)) return false;
  return std::equal(text_ + a, text_ + a + length, text_ + b);
}

// sorted_[0, lms_count) holds the LMS positions ordered by piece. Afterwards the last lms_count
// entries hold the names of the pieces in the order of the text; returns how many names there are.
template <class Symbol>
Index Sorter<Symbol>::name_pieces(Index lms_count) {
  // No two LMS positions are neighbours, so half a position is a unique place.
  Index* by_half = sorted_ + lms_count;
  std::fill(by_half, sorted_ + size_, 0);
  Index next = size_;
  for_each_lms_backwards([&](Index at) {
    by_half[at / 2] = next - at + 1;  // the next LMS position belongs to the piece
    next = at;
  });
  Index names = 0;
  Index previous = 0;
  Index previous_length = 0;
  for (Index i = 0; i < lms_count; ++i) {
    if (i + kAhead < lms_count) {
      ask_for(sorted_[i + kAhead]);
      __builtin_prefetch(by_half + sorted_[i + kAhead] / 2);
    }
    const Index at = sorted_[i];
    const Index length = by_half[at / 2];
    if (length != previous_length || !same_piece(previous, at, length)) {
      ++names;
      previous = at;
      previous_length = length;
    }
    by_half[at / 2] = names;  // from 1: 0 is no piece
  }
  Index end = size_;
  for (Index i = size_; i-- > lms_count;) {
    const Index name = sorted_[i];
    if (name != 0) sorted_[--end] = name - 1;
  }
  return names;
}

template <class Symbol>
void Sorter<Symbol>::sort() {
  for (Index i = 0; i < size_; ++i) ++counts_[text_[i]];

  // Order of the pieces between LMS positions.
  std::fill(sorted_, sorted_ + size_, 0);
  to_ends();
  Index lms_count = 0;
  for_each_lms_backwards([&](Index at) {
    sorted_[--place_[text_[at]]] = at;
    ++lms_count;
  });
  if (lms_count > 1) {
    induce_l<false>();
    induce_s<false>();
    Index kept = 0;
    for (Index i = 0; i < size_; ++i) {
      if (sorted_[i] != 0) sorted_[kept++] = sorted_[i] & ~kWaits;
    }
    const Index names = name_pieces(lms_count);
    Index* reduced = sorted_ + (size_ - lms_count);
    if (names < lms_count) {
      sort_suffixes({reduced, lms_count}, names, {sorted_, lms_count});
    } else {
      for (Index i = 0; i < lms_count; ++i) sorted_[reduced[i]] = i;
    }
    Index* positions = sorted_ + size_;
    for_each_lms_backwards([&](Index at) { *--positions = at; });
    for (Index i = 0; i < lms_count; ++i) sorted_[i] = positions[sorted_[i]];

    std::fill(sorted_ + lms_count, sorted_ + size_, 0);
    to_ends();
    for (Index i = lms_count; i-- > 0;) {
      const Index at = sorted_[i];
      sorted_[i] = 0;
      sorted_[--place_[text_[at]]] = at;
    }
  }
  induce_l<true>();
  induce_s<true>();
}

// Most texts have few different symbols, and of a copy in fewer bytes more lies in the cache.
template <class Symbol>
void sort_narrow(std::span<const std::uint32_t> text, Index alphabet, std::span<Index> sorted) {
  LargeVector<Symbol> narrow(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) narrow[i] = static_cast<Symbol>(text[i]);
  Sorter<Symbol>(narrow.data(), static_cast<Index>(text.size()), alphabet, sorted.data()).sort();
}

}  // namespace

void sort_suffixes(std::span<const std::uint32_t> text, std::uint32_t alphabet,
                   std::span<std::uint32_t> sorted) {
  if (text.empty()) return;
  if (alphabet <= 1U << 8U) {
    sort_narrow<std::uint8_t>(text, alphabet, sorted);
  } else if (alphabet <= 1U << 16U) {
    sort_narrow<std::uint16_t>(text, alphabet, sorted);
  } else {
    Sorter<Index>(text.data(), static_cast<Index>(text.size()), alphabet, sorted.data()).sort();
  }
}

}  // namespace pasta::mine
