#include "device/reducers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/layout.h"

namespace pasta::device {
namespace {

std::uint32_t shift_for(std::uint64_t bytes, std::uint64_t most_bits, std::uint64_t least_granule) {
  const auto width = [](std::uint64_t of) {
    return static_cast<std::uint32_t>(std::bit_width(of));
  };
  std::uint32_t shift = std::max(width(bytes), width(most_bits)) - width(most_bits);
  if (bytes >> shift > most_bits) ++shift;
  return std::min(std::max(shift, width(least_granule - 1)), Marks::kMostShift);
}

}  // namespace

std::uint64_t granules_of(const MemoryObject& object, std::uint32_t shift) {
  if (object.bytes == 0) return 1;
  return ((object.address + (object.bytes - 1)) >> shift) - (object.address >> shift) + 1;
}

std::vector<std::uint32_t> Marks::shifts(const Launch& launch, const Room& room) {
  std::vector<std::uint32_t> shifts(launch.object_count);
  // The largest are marked more coarsely, until all find room.
  for (std::uint64_t each = std::max<std::uint64_t>(room.each, 64);; each /= 2) {
    std::uint64_t words = 0;
    for (std::uint32_t i = 0; i < launch.object_count; ++i) {
      shifts[i] = shift_for(launch.objects[i].bytes, each, room.least_granule);
      words += (launch.objects[i].bytes >> shifts[i]) / 32 + 1;
    }
    if (each <= 64 || words <= room.together / 32) return shifts;
  }
}

std::uint64_t Marks::words_of(const MemoryObject& object, std::uint32_t shift) {
  const std::uint64_t first = object.address >> shift;
  return (first % 32 + (granules_of(object, shift) - 1)) / 32 + 1;
}

std::vector<Marks::Run> Marks::runs(const std::uint32_t* first_word, const MemoryObject& object,
                                    std::uint32_t shift) {
  // Marks are numbered from the beginning of their first word, where no granule of the object may
  // be; its first may begin before it.
  const std::uint64_t first = (object.address >> shift) % 32;
  const std::uint64_t end = first + granules_of(object, shift);
  const std::uint64_t before =
      object.address - ((object.address >> shift) - first) * granule(shift);
  const auto byte = [&](std::uint64_t mark) {
    return std::min(std::max(mark << shift, before) - before, object.bytes);
  };
  // The first from `at` on that is set, or is not; `end` when there is none.
  const auto next = [&](std::uint64_t at, bool set) {
    while (at < end) {
      const std::uint32_t word = set ? first_word[at / 32] : ~first_word[at / 32];
      const std::uint32_t rest = word >> at % 32;
      if (rest != 0) return std::min(at + lowest_bit(rest), end);
      at = (at / 32 + 1) * 32;
    }
    return end;
  };
  std::vector<Run> runs;
  for (std::uint64_t at = first;;) {
    const std::uint64_t begin = next(at, true);
    if (begin >= end) return runs;
    at = next(begin, false);
    runs.emplace_back(byte(begin), byte(at));
  }
}

std::uint32_t Pieces::count(const Launch& launch) {
  std::uint32_t best = 0;
  std::uint64_t least_cost = ~std::uint64_t{0};
  for (std::uint32_t bits = kLeastCountBits; bits <= kMostCountBits; ++bits) {
    const std::uint32_t count = 1u << bits;
    if (count >= least_cost) break;
    std::vector<std::uint64_t> taken(count / 64);  // a bit for each
    std::uint64_t lost = 0;
    std::uint64_t before = ~std::uint64_t{0};  // two objects may have one piece
    for (std::uint32_t i = 0; i < launch.object_count; ++i) {
      const MemoryObject& object = launch.objects[i];
      if (object.bytes == 0) continue;
      const std::uint64_t first = object.address >> kBits;
      const std::uint64_t last = (object.address + (object.bytes - 1)) >> kBits;
      std::uint64_t at = first == before ? first + 1 : first;
      // Of an object that has all places, more are no other.
      const std::uint64_t end = std::min(last + 1, at + count);
      lost += last + 1 - end;
      while (at < end) {
        const std::uint64_t bit = at % 64, together = std::min(64 - bit, end - at);
        const std::uint64_t wanted = ~std::uint64_t{0} >> (64 - together) << bit;
        std::uint64_t& word = taken[(at & (count - 1)) / 64];
        lost += count_bits(word & wanted);
        word |= wanted;
        at += together;
      }
      before = last;
    }
    const std::uint64_t cost = count + kCountForLost * lost;
    if (cost < least_cost) best = count;
    least_cost = std::min(least_cost, cost);
  }
  return best;
}

Pieces::Table Pieces::lay_out(const Launch& objects, std::span<const Place> places,
                              const Target& nothing, Layout& layout, std::uint64_t told) {
  const std::uint32_t pieces = count(objects);
  return {.pieces = layout.table<Piece>(
              pieces,
              [&](std::span<Piece> made) {
                plan(places.first(std::min<std::uint64_t>(places.size(), told)), made);
              }),
          .places = layout.table(places),
          .last_piece = pieces - 1,
          .nothing = nothing};
}

void Pieces::plan(std::span<const Place> places, std::span<Piece> pieces) {
  // That of nothing holds no byte.
  std::ranges::fill(pieces, Piece{.ends = {1, 0}, .target = {}});
  const auto bytes = [](const Piece& piece) {
    return (piece.ends.last & kInPiece) + 1 - (piece.ends.first & kInPiece);
  };
  std::vector<std::uint64_t> object_bytes(pieces.size());  // of the object of each
  for (const Place& place : places) {
    if (place.bytes == 0) continue;
    const std::uint64_t begin = place.begin, last = begin + (place.bytes - 1);
    const std::uint64_t first_piece = begin >> kBits, last_piece = last >> kBits;
    // What lies so high that no tag tells of it is looked for.
    if (last_piece >> (kLeastCountBits + kTagBits) != 0) continue;
    // Of an object that is larger than all pieces together, the first ones.
    for (std::uint64_t at = first_piece; at <= last_piece && at - first_piece < pieces.size();
         ++at) {
      const auto tag = static_cast<std::uint32_t>(at >> kLeastCountBits);
      Piece piece = {.ends = {tag << kBits, kInPiece | tag >> kLowTagBits << kBits},
                     .target = place.target};
      if (at == first_piece) piece.ends.first |= static_cast<std::uint32_t>(begin) & kInPiece;
      if (at == last_piece) piece.ends.last &= static_cast<std::uint32_t>(last) | ~kInPiece;
      const std::uint64_t which = at & (pieces.size() - 1);
      const std::uint32_t here = bytes(piece), there = bytes(pieces[which]);
      if (here > there || (here == there && place.bytes < object_bytes[which])) {
        pieces[which] = piece;
        object_bytes[which] = place.bytes;
      }
    }
  }
}

std::uint64_t DistinctBits::estimate(std::uint64_t set) {
  if (set >= kBits) return kMostTold;
  const double left = static_cast<double>(kBits - set) / kBits;
  const auto told = static_cast<std::uint64_t>(std::llround(-std::log(left) * kBits));
  return std::min(told, kMostTold);
}

}  // namespace pasta::device
