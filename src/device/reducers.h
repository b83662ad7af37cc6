// What patches share, so that none writes its own. All of it gives the same numbers whatever the
// order of accesses, on the host and on a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device/launch.h"
#include "device/portable.h"
#include "device/warp.h"

namespace pasta::device {

class Layout;

// Granules of `1 << shift` bytes, each from a multiple of that on, of which the object has a part.
std::uint64_t granules_of(const MemoryObject& object, std::uint32_t shift);

// --- Which object holds an address, and where what a patch has of that lies: told by one read

// A patch has so many of Piece, and a Place of each object: of the objects alone, for all launches
// that see them. So what they tell is counted from what the functions on a GPU are given of their
// launch, wherever that lies.
struct Pieces {
  static constexpr std::uint32_t kBits = 21;  // a piece of memory is 2 MiB
  // How many there are: of 8 GiB at least, of 256 at most.
  static constexpr std::uint32_t kLeastCountBits = 12, kMostCountBits = 17;
  static constexpr std::uint64_t kCountForLost = 256;

  // What a patch has of an object.
  struct alignas(8) Target {
    std::uint32_t row, base;
  };
  // Bytes of a piece; above them, where it lies.
  struct alignas(8) Ends {
    std::uint32_t first, last;
  };
  // Of a piece of memory, the object that has most of it, of two the smaller one: it has few
  // others.
  struct alignas(16) Piece {
    Ends ends;
    Target target;
  };
  struct Place {
    std::uint64_t begin, bytes;
    Target target;
  };
  struct Table {
    const Piece* pieces;
    const Place* places;
    std::uint32_t last_piece;  // its number
    Target nothing;            // of bytes of no object
  };
  // In the block of what launches share. The first `told` objects have pieces, all have places.
  static Table lay_out(const Launch& objects, std::span<const Place> places, const Target& nothing,
                       Layout& layout, std::uint64_t told = ~std::uint64_t{0});
  // For all objects of a launch, of which tell(index) gives the targets.
  template <class Tell>
  static std::vector<Place> places(const Launch& launch, Tell tell) {
    std::vector<Place> made;
    for (std::uint32_t i = 0; i < launch.object_count; ++i) {
      made.push_back({launch.objects[i].address, launch.objects[i].bytes, tell(i)});
    }
    return made;
  }
  // How many: the more, the fewer find their place taken, of which each is worth kCountForLost. The
  // few may be those that a kernel works on, among many that it does not.
  static std::uint32_t count(const Launch& launch);
  // Of all of them.
  static void plan(std::span<const Place> places, std::span<Piece> pieces);

  // Which piece is of this address, and whether it tells of the object of all these bytes.
  PASTA_DEVICE static std::uint32_t index(std::uint32_t last_piece, std::uint64_t address) {
    return static_cast<std::uint32_t>(address >> kBits) & last_piece;
  }
  PASTA_DEVICE static bool holds(const Ends& ends, std::uint64_t address, std::uint32_t bytes) {
    const std::uint32_t at = static_cast<std::uint32_t>(address) & kInPiece;
    return ((ends.first >> kBits | ends.last >> kBits << kLowTagBits) ==
            static_cast<std::uint32_t>(address >> (kBits + kLeastCountBits))) &
           (at >= (ends.first & kInPiece)) & (at + bytes <= (ends.last & kInPiece) + 1);
  }
  // Of all these bytes; Table::nothing is for bytes of no object, of several, or past the end of
  // one. `here`: whether the piece told it.
  PASTA_DEVICE static Target find(const Launch& launch, const Table& table, std::uint64_t address,
                                  std::uint32_t bytes, bool& here) {
    const Piece& there = fixed(table.pieces)[index(fixed(table.last_piece), address)];
    Target found = fixed(there.target);
    here = holds(fixed(there.ends), address, bytes);
    if (!here) {
      const std::uint32_t object = launch.find(address, bytes);
      found = object == kNoObject ? fixed(table.nothing) : fixed(table.places[object].target);
    }
    return found;
  }
  PASTA_DEVICE static Target find(const Launch& launch, const Table& table, std::uint64_t address,
                                  std::uint32_t bytes) {
    bool here;
    return find(launch, table, address, bytes, here);
  }

 private:
  static constexpr std::uint32_t kInPiece = (1u << kBits) - 1;
  static constexpr std::uint32_t kLowTagBits = 32 - kBits, kTagBits = 2 * kLowTagBits;
};

// --- Which bytes of objects were touched: one bit for each granule

// Granules begin at multiples of their size, and so does each 32nd at a multiple of 32 times that:
// what a lane asks for, which begins at a multiple of its own size, is within one word of marks. Of
// an object, Pieces tell how large its granules are, in Target::row, and in Target::base the number
// of its marks, less what the address of the first is in granules.
struct Marks {
  std::uint32_t* words;  // word n has marks [32 n, 32 n + 32)

  // Bits for all objects together, and for one: small ones are marked byte by byte.
  struct Room {
    std::uint64_t together, each;
    std::uint64_t least_granule = 1;
  };
  // How large a granule of each object is: 1 << shift bytes.
  static std::vector<std::uint32_t> shifts(const Launch& launch, const Room& room);
  static constexpr std::uint32_t kMostShift = 25;
  // Words for an object that is marked so.
  static std::uint64_t words_of(const MemoryObject& object, std::uint32_t shift);

  // Of Target::row: a number that is the patch's, the shift, and whether there is an object.
  static constexpr std::uint32_t kRowBits = 26, kIsObject = 1u << 31;
  static Pieces::Target target(const MemoryObject& object, std::uint32_t shift,
                               std::uint64_t first_word, std::uint32_t row) {
    return {
        .row = row | shift << kRowBits | kIsObject,
        .base = static_cast<std::uint32_t>(first_word * 32 - (object.address >> shift) / 32 * 32)};
  }
  PASTA_DEVICE static std::uint32_t row_of(std::uint32_t row) { return row % (1u << kRowBits); }
  PASTA_DEVICE static std::uint32_t shift_of(std::uint32_t row) { return row >> kRowBits & 31; }
  PASTA_DEVICE static bool has_object(std::uint32_t row) { return (row & kIsObject) != 0; }

  static std::uint64_t granule(std::uint32_t shift) { return std::uint64_t{1} << shift; }
  // Bytes [first, second) of the object whose granules were touched, run by run. `first_word` is
  // the first of its words.
  using Run = std::pair<std::uint64_t, std::uint64_t>;
  static std::vector<Run> runs(const std::uint32_t* first_word, const MemoryObject& object,
                               std::uint32_t shift);

  // Of lanes in the order of their addresses, all within 4 GiB of one object. Each asks for an
  // aligned power of two, 1 << width_bits, or, of a patch whose granules are never smaller than
  // what lanes ask for, less. `at` is where the lane begins and `before` where the one before does,
  // if the lane is not the first, in units of 1 << unit_bits bytes.
  template <unsigned unit_bits, bool granules_are_wide, class AnyWarp>
  PASTA_DEVICE void in_order(const AnyWarp& warp, const Pieces::Target& of,
                             std::uint32_t width_bits, bool is_first, std::uint32_t at,
                             std::uint32_t before) const {
    std::uint32_t shift = shift_of(of.row), each = 1;  // marks for each lane
    std::uint32_t mark = mark_of(of, warp.address);
    if constexpr (!granules_are_wide) {
      const std::uint32_t wide = shift > width_bits ? shift : width_bits;
      each = opaque(1u << 31 >> (31 - (wide - shift)));
      mark &= 0 - each;
      shift = wide;
    }
    shift -= unit_bits;
    const std::uint32_t further = (at >> shift) - (before >> shift);
    const std::uint32_t fresh = warp.lanes_with(is_first | (further != 0));
    // Of what follows one another within a word, the first lane marks all.
    const bool begins = is_first | (further > 1) | ((further == 1) & (mark % 32 == 0));
    const std::uint32_t beginnings = warp.lanes_with(begins);
    if (begins) {
      set(mark, mark + (warp.count_until(beginnings, fresh) + 1) * each - 1);
    }
  }
  // Of lanes in any order, that may be of several objects, or of none. Each asks for what is within
  // one word of marks.
  template <class AnyWarp>
  PASTA_DEVICE void any(const AnyWarp& warp, const Pieces::Target& of) const {
    const std::uint32_t mark = opaque(has_object(of.row) ? mark_of(of, warp.address) : kNone);
    warp.runs(mark, [&](std::uint32_t first, std::uint32_t last) { set(first, last); });
  }
  // Of the calling lane.
  PASTA_DEVICE void one(const Pieces::Target& of, std::uint64_t address,
                        std::uint32_t bytes) const {
    std::uint32_t first = mark_of(of, address);
    const std::uint32_t last = mark_of(of, address + (bytes - 1));
    PASTA_ROLLED while (first <= last) {
      const std::uint32_t end = last < (first | 31) ? last : first | 31;
      set(first, end);
      first = end + 1;
    }
  }
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  // no mark

 private:
  PASTA_DEVICE static std::uint32_t mark_of(const Pieces::Target& of, std::uint64_t address) {
    return of.base + static_cast<std::uint32_t>(address >> shift_of(of.row));
  }
  // Of one word.
  PASTA_DEVICE void set(std::uint32_t first, std::uint32_t last) const {
    set_bits(words[first / 32], ~std::uint32_t{0} >> (31 - (last - first)) << first % 32);
  }
};

// --- Rows by a key that nobody numbers, such as a place of a program

// Bounded: what finds no room shares one row more, behind the others, so that sums stay right.
struct KeyTable {
  std::uint64_t* keys;
  std::uint32_t capacity;  // a power of two

  static constexpr std::uint32_t kMostSteps = 64;

  // Of a key that is not 0: which row is its; `capacity` when there is no room.
  // Whoever asks at the same time gets the same.
  PASTA_DEVICE std::uint32_t find(std::uint64_t key) const {
    // Of places, the low bits are the same; the best bits of a product are its high ones.
    const auto folded = static_cast<std::uint32_t>(key ^ key >> 32);
    auto at = folded * 0x9e3779b1u >> 16 & (capacity - 1);
    PASTA_ROLLED for (std::uint32_t step = 0; step < kMostSteps && step < capacity; ++step) {
      if (claim(keys[at], key) == key) return at;
      at = (at + 1) & (capacity - 1);
    }
    return capacity;
  }
};

// --- Groups of a launch, of which at most so many are looked at: the first of each `1 << shift`

struct GroupSample {
  std::uint32_t shift;
  std::uint32_t slots;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  static GroupSample of(const Launch& launch, std::uint32_t most) {
    const std::uint64_t groups = launch.groups() > 0 ? launch.groups() : 1;
    std::uint32_t shift = 0;
    while ((groups - 1) >> shift >= most) ++shift;
    return {shift, static_cast<std::uint32_t>((groups - 1) >> shift) + 1};
  }
  [[nodiscard]] std::uint64_t apart() const { return std::uint64_t{1} << shift; }
  PASTA_DEVICE std::uint32_t slot(std::uint64_t group) const {
    const std::uint64_t at = group >> shift;
    return at << shift == group && at < slots ? static_cast<std::uint32_t>(at) : kNone;
  }
};

// --- About how many distinct things, without keeping them

// Linear counting, which is a Bloom filter of one hash: of n things that come again and again, m
// bits tell within about 2 % up to n = 2 m, and then ever less.
struct DistinctBits {
  static constexpr std::uint32_t kWords = 128;
  static constexpr std::uint32_t kBits = kWords * 32;
  static constexpr std::uint64_t kMostTold = 5 * kBits;
  std::uint32_t words[kWords];

  PASTA_DEVICE static std::uint32_t bit_of(std::uint64_t thing) { return mix(thing) % kBits; }
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t set = 0;
    for (const std::uint32_t word : words) set += count_bits(word);
    return set;
  }
  // Of the bits that are set; kMostTold at most.
  static std::uint64_t estimate(std::uint64_t set);
};

}  // namespace pasta::device
