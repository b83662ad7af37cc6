#include "stats/interval_set.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace pasta::stats {
namespace {

// Pieces in a block. Freezing starts at twice as many and leaves one block's worth open, so a
// block that is thawed again has been paid for by that many added or swallowed pieces.
constexpr std::size_t kBlockPieces = 4096;

// Exact for any two times: the distance of two int64 fits into 64 bits without sign.
std::uint64_t distance(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

std::int64_t advance(std::int64_t from, std::uint64_t by) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + by);
}

std::int64_t saturate(std::uint64_t length) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  return length > static_cast<std::uint64_t>(kMax) ? kMax : static_cast<std::int64_t>(length);
}

void put(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<std::uint8_t>(value));
}

std::uint64_t get(const std::uint8_t* bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = bytes[at++];
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

}  // namespace

std::int64_t IntervalSet::add(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return 0;
  assert(open_.empty() || open_.back().end <= end);
  std::uint64_t swallowed = 0;
  while (!open_.empty() && open_.back().end >= begin) {
    begin = std::min(begin, open_.back().begin);
    swallowed += distance(open_.back().begin, open_.back().end);
    open_.pop_back();
    // The newest pieces must be open, since only they can be compared: below here whole blocks are
    // swallowed, and the one that is cut becomes open again.
    while (open_.empty() && !frozen_.empty() && frozen_.back().end >= begin) {
      const Block& block = frozen_.back();
      if (block.begin < begin) {
        std::size_t byte = 0;
        std::int64_t at = block.begin;
        Interval piece;
        while (decode(block, byte, at, piece)) open_.push_back(piece);
      } else {
        swallowed += block.length;
      }
      drop_newest_block();
    }
  }
  open_.push_back({begin, end});
  if (open_.size() == 2 * kBlockPieces) freeze();
  return saturate(distance(begin, end) - swallowed);
}

std::int64_t IntervalSet::length() const {
  std::uint64_t length = frozen_length_;
  for (const Interval& piece : open_) length += distance(piece.begin, piece.end);
  return saturate(length);
}

bool IntervalSet::decode(const Block& block, std::size_t& byte, std::int64_t& at,
                         Interval& piece) const {
  if (byte == block.bytes) return false;
  const std::uint8_t* const bytes = cold_->at(block.place);
  piece.begin = advance(at, get(bytes, byte));
  piece.end = at = advance(piece.begin, get(bytes, byte));
  return true;
}

void IntervalSet::freeze() {
  const auto last = open_.begin() + kBlockPieces;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kBlockPieces * 5);
  std::int64_t at = open_.front().begin;
  std::uint64_t length = 0;
  for (auto piece = open_.begin(); piece != last; ++piece) {
    put(bytes, distance(at, piece->begin));
    put(bytes, distance(piece->begin, piece->end));
    length += distance(piece->begin, piece->end);
    at = piece->end;
  }
  if (!cold_) cold_ = std::make_shared<base::ColdBytes>();
  frozen_.push_back({.begin = open_.front().begin,
                     .end = at,
                     .length = length,
                     .count = kBlockPieces,
                     .place = cold_->put(bytes),
                     .bytes = static_cast<std::uint32_t>(bytes.size())});
  frozen_length_ += length;
  frozen_pieces_ += kBlockPieces;
  open_.erase(open_.begin(), last);
}

void IntervalSet::drop_newest_block() {
  frozen_length_ -= frozen_.back().length;
  frozen_pieces_ -= frozen_.back().count;
  frozen_.pop_back();
}

std::size_t IntervalSet::held_bytes() const {
  return open_.capacity() * sizeof open_[0] + frozen_.capacity() * sizeof frozen_[0] +
         (cold_ ? cold_->held_bytes() : 0);
}

bool IntervalSet::Reader::next(Interval& piece) {
  for (; block_ < set_->frozen_.size(); ++block_, byte_ = 0) {
    const Block& block = set_->frozen_[block_];
    if (byte_ == 0) at_ = block.begin;
    if (set_->decode(block, byte_, at_, piece)) return true;
    const bool next_is_elsewhere = block_ + 1 == set_->frozen_.size() ||
                                   set_->frozen_[block_ + 1].place.part != block.place.part;
    if (next_is_elsewhere) set_->cold_->leave(block.place);
  }
  if (open_ == set_->open_.size()) return false;
  piece = set_->open_[open_++];
  return true;
}

std::int64_t intersection_length(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet::Reader read_a(a), read_b(b);
  Interval of_a, of_b;
  bool more = read_a.next(of_a) && read_b.next(of_b);
  std::uint64_t length = 0;
  while (more) {
    const std::int64_t begin = std::max(of_a.begin, of_b.begin);
    const std::int64_t end = std::min(of_a.end, of_b.end);
    if (begin < end) length += distance(begin, end);
    more = of_a.end < of_b.end ? read_a.next(of_a) : read_b.next(of_b);
  }
  return saturate(length);
}

IntervalSet unite(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet::Reader read_a(a), read_b(b);
  Interval of_a, of_b;
  bool more_a = read_a.next(of_a), more_b = read_b.next(of_b);
  IntervalSet result;
  while (more_a || more_b) {
    if (more_a && (!more_b || of_a.end <= of_b.end)) {
      result.add(of_a.begin, of_a.end);
      more_a = read_a.next(of_a);
    } else {
      result.add(of_b.begin, of_b.end);
      more_b = read_b.next(of_b);
    }
  }
  return result;
}

IntervalSet subtract(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet result;
  IntervalSet::Reader read_a(a), read_b(b);
  Interval keep, cut;
  bool more_cuts = read_b.next(cut);
  while (read_a.next(keep)) {
    while (more_cuts && cut.end <= keep.begin) more_cuts = read_b.next(cut);
    std::int64_t at = keep.begin;
    while (more_cuts && cut.begin < keep.end) {
      result.add(at, cut.begin);
      at = cut.end;
      if (cut.end > keep.end) break;  // it may cut the next piece, too
      more_cuts = read_b.next(cut);
    }
    result.add(at, keep.end);
  }
  return result;
}

}  // namespace pasta::stats
