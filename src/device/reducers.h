// What patches share, so that none writes its own. All of it gives the same numbers whatever the
// order of accesses, on the host and on a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "device/launch.h"
#include "device/portable.h"

namespace pasta::device {

// --- Which bytes of objects were touched: one bit for each granule

struct Marks {
  struct Place {
    std::uint64_t first_word;
    std::uint64_t shift;  // a granule is 1 << shift bytes
  };
  const Place* places;  // as the objects of the launch
  std::uint64_t* words;

  // Bits for all objects together, and for one: small ones are marked byte by byte.
  struct Room {
    std::uint64_t together, each;
    std::uint64_t least_granule = 1;
  };
  // The table of a layout, and how many words of scratch.
  static std::vector<Place> plan(const Launch& launch, const Room& room, std::uint64_t& words);

  // Bytes [offset, offset + bytes) of an object, which are in it.
  PASTA_DEVICE void touch(std::uint32_t object, std::uint64_t offset, std::uint64_t bytes) const {
    const Place place = places[object];
    const std::uint64_t last = (offset + bytes - 1) >> place.shift;
    for (std::uint64_t at = offset >> place.shift; at <= last;) {
      const std::uint64_t end = at / 64 * 64 + 63 < last ? at / 64 * 64 + 63 : last;
      set_bits(words[place.first_word + at / 64], ~std::uint64_t{0} >> (63 - (end - at))
                                                                           << at % 64);
      at = end + 1;
    }
  }
  // Bytes of an object that were touched, in granules.
  [[nodiscard]] std::uint64_t touched(std::uint32_t index, const MemoryObject& object) const;
  [[nodiscard]] std::uint64_t granule(std::uint32_t object) const {
    return std::uint64_t{1} << places[object].shift;
  }
};

// --- Which object a place of the program accesses: mostly the same as before

struct ObjectHints {
  std::uint64_t* seen;  // kCount: index in the launch + 1; 0: none
  static constexpr std::uint32_t kCount = 128;

  // The object that all lanes of a warp ask of, and of no other; kNoObject: there is none.
  template <class AnyWarp>
  PASTA_DEVICE std::uint32_t find(const Launch& launch, const AnyWarp& warp) const {
    // Instructions are 16 bytes.
    std::uint64_t& last = seen[warp.site >> 4 & (kCount - 1)];
    const auto told = static_cast<std::uint32_t>(hint(last));
    if (told != 0 && holds(launch, warp, told - 1)) return told - 1;
    const std::uint32_t found =
        warp.first([&](std::uint64_t address) { return launch.find(address, warp.width); });
    if (found == kNoObject || !holds(launch, warp, found)) return kNoObject;
    leave(last, std::uint64_t{found} + 1);
    return found;
  }

 private:
  template <class AnyWarp>
  PASTA_DEVICE static bool holds(const Launch& launch, const AnyWarp& warp, std::uint32_t object) {
    return warp.all(
        [&](std::uint64_t address) { return launch.holds(object, address, warp.width); });
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
    for (std::uint32_t step = 0; step < kMostSteps && step < capacity; ++step) {
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
  std::uint64_t* words;  // of `count` x kWords
  static constexpr std::uint32_t kWords = 64;
  static constexpr std::uint32_t kBits = kWords * 64;
  static constexpr std::uint64_t kMostTold = 5 * kBits;

  PASTA_DEVICE void insert(std::uint64_t which, std::uint64_t thing) const {
    const std::uint64_t bit = mix(thing) % kBits;
    set_bits(words[which * kWords + bit / 64], std::uint64_t{1} << bit % 64);
  }
  [[nodiscard]] std::uint64_t count(std::uint64_t which) const {
    std::uint64_t set = 0;
    for (std::uint32_t i = 0; i < kWords; ++i) set += count_bits(words[which * kWords + i]);
    return set;
  }
  // Of the bits that are set; kMostTold at most.
  static std::uint64_t estimate(std::uint64_t set);
};

}  // namespace pasta::device
