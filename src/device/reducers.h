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

  // Bytes [offset, offset + bytes) of an object, which are in it; gives how many granules had not
  // been touched before.
  PASTA_DEVICE std::uint64_t mark(std::uint32_t object, std::uint64_t offset,
                                  std::uint64_t bytes) const {
    const Place place = places[object];
    const std::uint64_t last = (offset + bytes - 1) >> place.shift;
    std::uint64_t fresh = 0;
    for (std::uint64_t at = offset >> place.shift; at <= last;) {
      const std::uint64_t end = at / 64 * 64 + 63 < last ? at / 64 * 64 + 63 : last;
      const std::uint64_t bits = ~std::uint64_t{0} >> (63 - (end - at)) << at % 64;
      fresh += count_bits(set_bits(words[place.first_word + at / 64], bits));
      at = end + 1;
    }
    return fresh;
  }
  [[nodiscard]] std::uint64_t granule(std::uint32_t object) const {
    return std::uint64_t{1} << places[object].shift;
  }
};

// --- Rows by a key that nobody numbers, such as a place of a program

// Bounded: what finds no room shares one row more, behind the others, so that sums stay right.
struct KeyTable {
  std::uint64_t* keys;
  std::uint32_t capacity;  // a power of two

  static constexpr std::uint32_t kMostSteps = 64;

  // Of a key that is not 0: which row is its; `capacity` when there is no room.
  PASTA_DEVICE std::uint32_t find(std::uint64_t key) const {
    auto at = static_cast<std::uint32_t>(mix(key)) & (capacity - 1);
    for (std::uint32_t step = 0; step < kMostSteps && step < capacity; ++step) {
      if (claim(keys[at], key) == key) return at;
      at = (at + 1) & (capacity - 1);
    }
    return capacity;
  }
};

// --- Groups of a launch, of which at most so many are looked at: the first of each `apart`

struct GroupSample {
  std::uint64_t apart;
  std::uint32_t slots;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  static GroupSample of(const Launch& launch, std::uint32_t most) {
    const std::uint64_t groups = launch.groups() > 0 ? launch.groups() : 1;
    const std::uint64_t apart = (groups + most - 1) / most;
    return {apart, static_cast<std::uint32_t>((groups + apart - 1) / apart)};
  }
  PASTA_DEVICE std::uint32_t slot(std::uint64_t group) const {
    if (apart == 1) return group < slots ? static_cast<std::uint32_t>(group) : kNone;
    return group % apart == 0 && group / apart < slots ? static_cast<std::uint32_t>(group / apart)
                                                       : kNone;
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

  // How many bits became set: they add up to what `estimate` takes.
  PASTA_DEVICE std::uint64_t insert(std::uint64_t which, std::uint64_t thing) const {
    const std::uint64_t bit = mix(thing) % kBits;
    return count_bits(set_bits(words[which * kWords + bit / 64], std::uint64_t{1} << bit % 64));
  }
  // Of the bits that are set; kMostTold at most.
  static std::uint64_t estimate(std::uint64_t set);
};

}  // namespace pasta::device
