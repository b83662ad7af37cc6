// What patches share, so that none writes its own. All of it gives the same numbers whatever the
// order of accesses, on the host and on a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/launch.h"
#include "device/portable.h"
#include "device/warp.h"

namespace pasta::device {

class Layout;

// Granules of `1 << shift` bytes, each from a multiple of that on, of which the object has a part.
std::uint64_t granules_of(const MemoryObject& object, std::uint32_t shift);

// --- Which bytes of objects were touched: one bit for each granule

struct Marks {
  struct Place {
    std::uint64_t begin, bytes;  // of the object, once more: what is read together lies together
    std::uint32_t first_word;
    std::uint32_t shift;  // a granule is 1 << shift bytes
  };
  const Place* places;  // as the objects of the launch
  std::uint32_t* words;

  // Bits for all objects together, and for one: small ones are marked byte by byte.
  struct Room {
    std::uint64_t together, each;
    std::uint64_t least_granule = 1;
  };
  // No granule is larger, whatever room there is: 32 of them, a word of marks, are what Shapes tell
  // apart by its bytes, and those who keep a shift have few bits for it.
  static constexpr std::uint32_t kMostShift = 25;
  // How large a granule of each object is: 1 << shift bytes.
  static std::vector<std::uint32_t> shifts(const Launch& launch, const Room& room);
  // The table of a layout, and how many words of scratch.
  static std::vector<Place> plan(const Launch& launch, const Room& room, std::uint64_t& words);

  // What these lanes ask for of an object, all of which is in it.
  template <class AnyWarp>
  PASTA_DEVICE void touch(const AnyWarp& warp, std::uint32_t mask, std::uint32_t object) const {
    warp.spread(mask, [&](std::uint64_t begin, std::uint32_t bytes, const auto& turns) {
      const std::uint64_t offset = begin - fixed(places[object].begin);
      const std::uint32_t shift = fixed(places[object].shift);
      mark(words, fixed(places[object].first_word), static_cast<std::uint32_t>(offset >> shift),
           static_cast<std::uint32_t>((offset + (bytes - 1)) >> shift), turns);
    });
  }
  // The same of all lanes, where it is known whether they follow one another, and that they are
  // less than 2^32 bytes behind `from`, of which the lower half is enough: the mark of its first
  // byte is the first of `first_word`.
  template <class AnyWarp>
  PASTA_DEVICE static void touch(std::uint32_t* words, const AnyWarp& warp, bool run,
                                 std::uint32_t from, std::uint32_t first_word,
                                 std::uint32_t shift) {
    warp.spread_known(run, [&](std::uint32_t begin, std::uint32_t bytes, const auto& turns) {
      const std::uint32_t offset = begin - from;
      mark(words, first_word, offset >> shift, (offset + (bytes - 1)) >> shift, turns);
    });
  }
  // Bytes of an object that were touched, in granules.
  [[nodiscard]] std::uint64_t touched(std::uint32_t index, const MemoryObject& object) const;
  [[nodiscard]] std::uint64_t granule(std::uint32_t object) const {
    return std::uint64_t{1} << places[object].shift;
  }

 private:
  // In those of their words whose turn it is. 32 bits number them all.
  template <class Turns>
  // NOLINTNEXTLINE(readability-non-const-parameter): what the turns decide is not seen by it
  PASTA_DEVICE static void mark(std::uint32_t* words, std::uint32_t first_word, std::uint32_t first,
                                std::uint32_t last, const Turns& turns) {
    if (turns.first() != 0) first = (first / 32 + turns.first()) * 32;
    PASTA_ROLLED while (first <= last) {
      const std::uint32_t end = last < (first | 31) ? last : first | 31;
      std::uint32_t& word = words[first_word + first / 32];
      const std::uint32_t bits = ~std::uint32_t{0} >> (31 - (end - first)) << first % 32;
      if (turns.are_shared()) {
        set_bits_unless_set(word, bits);
      } else {
        set_bits_once(word, bits);
      }
      first = (first / 32 + turns.step()) * 32;
    }
  }
};

// --- Which object holds an address: mostly that which was found at the same place

struct ObjectHints {
  std::uint32_t* seen;  // kCount: index in the launch + 1; 0: none
  static constexpr std::uint32_t kCount = 256;

  // Launch::find. Of each object `places` has `begin` and `bytes`.
  template <class Place>
  PASTA_DEVICE std::uint32_t find(const Launch& launch, const Place* places, std::uint64_t address,
                                  std::uint32_t bytes) const {
    const std::uint32_t told = hint(seen[slot(address)]);
    if (told != 0) {
      const Place& place = places[told - 1];
      if (is_inside(fixed(place.begin), fixed(place.bytes), address, bytes)) return told - 1;
    }
    const std::uint32_t found = launch.find(address, bytes);
    // Once: where there are several objects, they would write all the time.
    if (found != kNoObject && hint(seen[slot(address)]) == 0) {
      leave(seen[slot(address)], found + 1);
    }
    return found;
  }

 private:
  // By pieces of 2 MiB.
  PASTA_DEVICE static std::uint32_t slot(std::uint64_t address) {
    return static_cast<std::uint32_t>(address >> 21) % kCount;
  }
};

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
  struct Target {
    std::uint32_t row, base;
  };
  // Of a piece of memory, the object that has most of it, of two the smaller one: it has few
  // others.
  struct alignas(16) Piece {
    std::uint32_t first, last;  // bytes of the piece; above them, where it lies
    std::uint32_t row, base;
  };
  struct Place {
    std::uint64_t begin, bytes;
    std::uint32_t row, base;
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
      const Target target = tell(i);
      made.push_back({launch.objects[i].address, launch.objects[i].bytes, target.row, target.base});
    }
    return made;
  }
  // How many: the more, the fewer find their place taken, of which each is worth kCountForLost. The
  // few may be those that a kernel works on, among many that it does not.
  static std::uint32_t count(const Launch& launch);
  // Of all of them.
  static void plan(std::span<const Place> places, std::span<Piece> pieces);

  // Of all these bytes. `nothing` is for bytes of no object, of several, or past the end of one.
  // `here`: whether the piece told it.
  PASTA_DEVICE static Target find(const Launch& launch, const Piece* pieces,
                                  std::uint32_t last_piece, const Place* const& places,
                                  const Target& nothing, std::uint64_t address, std::uint32_t bytes,
                                  bool& here) {
    const Piece piece = fixed(pieces[static_cast<std::uint32_t>(address >> kBits) & last_piece]);
    Target found = {piece.row, piece.base};
    here = holds(piece, address, bytes);
    if (!here) {
      const std::uint32_t object = launch.find(address, bytes);
      found = object == kNoObject ? Target{fixed(nothing.row), fixed(nothing.base)}
                                  : Target{fixed(places[object].row), fixed(places[object].base)};
    }
    return found;
  }
  PASTA_DEVICE static Target find(const Launch& launch, const Piece* pieces,
                                  std::uint32_t last_piece, const Place* const& places,
                                  const Target& nothing, std::uint64_t address,
                                  std::uint32_t bytes) {
    bool here;
    return find(launch, pieces, last_piece, places, nothing, address, bytes, here);
  }
  PASTA_DEVICE static Target find(const Launch& launch, const Table& table, std::uint64_t address,
                                  std::uint32_t bytes, bool& here) {
    return find(launch, fixed(table.pieces), fixed(table.last_piece), table.places, table.nothing,
                address, bytes, here);
  }

 private:
  static constexpr std::uint32_t kInPiece = (1u << kBits) - 1;
  static constexpr std::uint32_t kLowTagBits = 32 - kBits, kTagBits = 2 * kLowTagBits;

  // Of the piece of this address, whether its object has all of these bytes.
  PASTA_DEVICE static bool holds(const Piece& piece, std::uint64_t address, std::uint32_t bytes) {
    const std::uint32_t at = static_cast<std::uint32_t>(address) & kInPiece;
    return (tag(piece) == static_cast<std::uint32_t>(address >> (kBits + kLeastCountBits))) &
           (at >= (piece.first & kInPiece)) & (at + (bytes - 1) <= (piece.last & kInPiece));
  }
  PASTA_DEVICE static std::uint32_t tag(const Piece& piece) {
    return piece.first >> kBits | piece.last >> kBits << kLowTagBits;
  }
};

// --- Warps that ask for memory as one did before

// At the same place, with the same lanes, as far apart from each other, and of global memory of the
// same object and at the same bytes of a sector: what such a warp comes to need not be found out
// again. This holds what was found, not more: what finds no room is looked at each time, with the
// same outcome.
struct Shapes {
  // Each number is 0 until it is known, and then the same for ever: so they may be seen in any
  // order.
  struct alignas(8) Head {
    std::uint32_t place;
    std::uint32_t what;  // what_of(), and above it the number of an outcome
  };
  // Of global memory: all lanes are in it.
  struct alignas(8) Part {
    std::uint32_t bytes;
    std::uint32_t marks;  // of Marked
  };
  struct Window {
    std::uint64_t begin;
    Part part;
  };
  struct Slot {
    Head head;
    std::uint64_t claimed;  // by a warp of this place and these lanes
    Window window;
  };
  // Apart from these, so that either is found by one number.
  struct Offsets {
    std::uint32_t of_lanes[kWarpLanes];  // from the last lane, + kAway
  };
  // The marks of a window.
  struct Marked {
    std::uint32_t first_word, shift;
    bool run;  // the lanes follow one another without a gap
    static constexpr unsigned kWordBits = 25;
    static_assert(Marks::kMostShift < 1u << (30 - kWordBits));
    PASTA_DEVICE static bool has_room(std::uint32_t first_word) {
      return first_word >> kWordBits == 0;
    }
    [[nodiscard]] PASTA_DEVICE std::uint32_t packed() const {
      return kThere | (run ? kRun : 0) | shift << kWordBits | first_word;
    }
    PASTA_DEVICE static Marked of(std::uint32_t packed) {
      return {packed % (1u << kWordBits), packed >> kWordBits & 31, (packed & kRun) != 0};
    }
  };
  Slot* slots;       // kSlots
  Offsets* offsets;  // as many

  static constexpr unsigned kFoundBits = 16, kWhatBits = 32 - kFoundBits;
  static constexpr std::uint32_t kCount = 4096;  // a power of two
  static constexpr std::uint32_t kWays = 2, kSlots = kCount + kWays;
  static constexpr std::uint32_t kMostOutcomes = 1u << kFoundBits;
  // Of objects beyond it, each part of so many bytes by itself: 32 bits tell where in it.
  static constexpr unsigned kWindowBits = 30;
  static_assert(Marks::kMostShift + 5 <= kWindowBits, "a window has whole words of marks");

  // Of how a warp asks, what is in a few bits; never 0.
  template <class AnyWarp>
  PASTA_DEVICE static std::uint32_t what_of(const AnyWarp& warp, std::uint32_t last) {
    // Of shared memory, a word further on everything is of the next bank.
    return warp.width << 10 | (count_bits(opaque(warp.active)) - 1) << 5 |
           last % (warp.space == Space::kGlobal ? kSectorBytes : kWordBytes);
  }
  PASTA_DEVICE static std::uint32_t width_of(std::uint32_t what) { return what >> 10 & 63; }

  // Of what a slot has.
  PASTA_DEVICE static std::uint32_t found(std::uint32_t what) { return what >> kWhatBits; }

  // Of kernels of less than 256 MiB, and of what lanes ask for one by one.
  template <class AnyWarp>
  PASTA_DEVICE static bool may_be_known(const AnyWarp& warp, std::uint64_t key) {
    return key >> 32 == 0 && (!AnyWarp::kWide || warp.width <= kSectorBytes);
  }
  PASTA_DEVICE static std::uint32_t place_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key);
  }
  // In which slot what was found of warps like this one may be, or behind it. On a GPU it may be
  // any where lanes do not run together.
  template <class AnyWarp>
  PASTA_DEVICE static std::uint32_t likely(const AnyWarp& warp, std::uint32_t place,
                                           std::uint32_t what, std::uint32_t last) {
    return slot_of(warp.lanes_here([&](std::uint64_t address) { return is_odd(address, last); }),
                   place, what);
  }
  // Whether it is there; then(outcome, window) if it is. `slots` tells where slots and offsets are,
  // `last` is the warp's last_low().
  template <class Slots, class AnyWarp, class Then>
  PASTA_DEVICE static bool look(const Slots& slots, std::uint32_t at, const AnyWarp& warp,
                                std::uint32_t place, std::uint32_t what, std::uint32_t last,
                                Then then) {
    Head head{};
    Window window{};
    return warp.if_all(
        [&](std::uint32_t lane, std::uint64_t address) {
          const std::uint32_t away = hint(slots.offsets(at)[lane]);
          head = hint(slots.slot(at).head);
          // As many lanes, each of which there was: the same lanes. All at once, so that no number
          // is asked for only when another is there.
          const std::uint32_t other = (head.place ^ place) |
                                      (head.what % (1u << kWhatBits) ^ what) |
                                      (away ^ offset(address, last));
          return other == 0 && away != 0;
        },
        [&](std::uint32_t, std::uint64_t address) {
          if (warp.space != Space::kGlobal) return true;
          const Window& there = slots.slot(late(at)).window;
          window.begin = hint(there.begin);
          window.part = hint(there.part);
          const bool is_inside = address - window.begin < window.part.bytes;
          return is_inside && window.part.marks != 0;
        },
        [&] { then(found(head.what), window); });
  }
  // For a warp of which nothing was there, as far as this multiprocessor had seen. Where what was
  // found of one like it is nevertheless; else kCount, and `ours` is where it is to be kept:
  // kCount, nowhere.
  template <class KeptWarp>
  PASTA_DEVICE std::uint32_t enter(const KeptWarp& kept, const AsideHalves& key,
                                   Aside<std::uint32_t>& ours) const {
    const Aside<std::uint32_t> last(kept.now().last_low());
    Aside<std::uint32_t> at(first_slot(kept.now(), place_of(key), what_of(kept.now(), last), last));
    PASTA_ROLLED for (std::uint32_t way = 0; way < kWays; ++way) {
      if (kept.now().once([&](std::uint64_t) {
            return replace_zero(slots[at].claimed,
                                std::uint64_t{kept.now().active} << 32 | place_of(key)) == 0;
          })) {
        kept.now().leave(offsets[at].of_lanes,
                         [&](std::uint64_t address) { return offset(address, last); });
        ours = at;
        return kCount;
      }
      // All warps come to a place at about the same time: one looks, and the others wait.
      if (latest(slots[at].claimed) == (std::uint64_t{kept.now().active} << 32 | place_of(key))) {
        await(slots[at].head.what);
      }
      const std::uint32_t alike =
          kept.now().lanes_that([&](std::uint32_t lane, std::uint64_t address) {
            const Slot& slot = slots[at];
            const std::uint64_t who = latest(slot.claimed);
            if (who != (std::uint64_t{kept.now().active} << 32 | place_of(key))) return false;
            if (latest(slot.head.what) % (1u << kWhatBits) != what_of(kept.now(), last)) {
              return false;
            }
            if (latest(offsets[at].of_lanes[lane]) != offset(address, last)) return false;
            return kept.now().space != Space::kGlobal ||
                   (address - latest(slot.window.begin) < latest(slot.window.part.bytes) &&
                    latest(slot.window.part.marks) != 0);
          });
      if (alike == kept.now().active) {
        forget_hints();
        return at;
      }
      at = at + 1;
    }
    return kCount;
  }
  // leave_window(slot, address) on one lane, with its address; whether there is room for it.
  template <class KeptWarp, class Leave>
  PASTA_DEVICE void keep(const KeptWarp& kept, const Aside<std::uint32_t>& ours,
                         const Aside<std::uint32_t>& outcome, Leave leave_window) const {
    const Aside<std::uint32_t> last(kept.now().last_low());
    kept.now().once([&](std::uint64_t address) {
      if (!leave_window(slots[ours], address)) return false;
      leave(slots[ours].head.place, static_cast<std::uint32_t>(latest(slots[ours].claimed)));
      leave(slots[ours].head.what, outcome << kWhatBits | what_of(kept.now(), last));
      return true;
    });
  }
  // Nobody is to wait for what will not be found.
  template <class KeptWarp>
  PASTA_DEVICE void leave_empty(const KeptWarp& kept, const Aside<std::uint32_t>& ours) const {
    kept.now().once([&](std::uint64_t) {
      if (latest(slots[ours].head.what) == 0) leave(slots[ours].head.what, kNothing);
      return true;
    });
  }

 private:
  static constexpr std::uint32_t kNothing = 1;  // of no width
  static constexpr std::uint32_t kThere = 1u << 31, kRun = 1u << 30;
  static constexpr std::uint32_t kAway = 1u << 31;  // further than two lanes are

  PASTA_DEVICE static std::uint32_t offset(std::uint64_t address, std::uint32_t last) {
    return static_cast<std::uint32_t>(address) - last + kAway;
  }
  // A bit of each lane: most of what lies another way apart is in another slot.
  PASTA_DEVICE static bool is_odd(std::uint64_t address, std::uint32_t last) {
    return (offset(address, last) * 0x9e3779b1u >> 31) != 0;
  }
  PASTA_DEVICE static std::uint32_t slot_of(std::uint32_t bits, std::uint32_t place,
                                            std::uint32_t what) {
    return ((bits + what) * 0x85ebca6bu + place) * 0x9e3779b1u >> 16 & (kCount - kWays);
  }
  template <class AnyWarp>
  PASTA_DEVICE static std::uint32_t first_slot(const AnyWarp& warp, std::uint32_t place,
                                               std::uint32_t what, std::uint32_t last) {
    return slot_of(warp.lanes_that(
                       [&](std::uint32_t, std::uint64_t address) { return is_odd(address, last); }),
                   place, what);
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
  PASTA_DEVICE std::uint32_t find(std::uint64_t key, std::uint32_t steps = kMostSteps) const {
    // Of places, the low bits are the same; the best bits of a product are its high ones.
    const auto folded = static_cast<std::uint32_t>(key ^ key >> 32);
    auto at = folded * 0x9e3779b1u >> 16 & (capacity - 1);
    PASTA_ROLLED for (std::uint32_t step = 0; step < steps && step < capacity; ++step) {
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
