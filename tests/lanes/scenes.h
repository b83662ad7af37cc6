// What warps ask for and what the host makes of it, for tests of what a GPU makes of it: on one
// (tests/gpu/warps.cu), and on lanes that the host makes (lanes_test.cpp). Made up, in scenes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "device/launch.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/warp.h"

namespace pasta::device::testing {

struct Case {
  std::uint64_t address[kWarpLanes];
  std::uint64_t site;
  std::uint32_t width, active;
  Space space;
  Access access;
};
struct Scene {
  std::string name;
  std::vector<MemoryObject> objects = {};  // in order of their addresses
  std::vector<Case> cases = {};
  // More places than a table holds: which of them it has is a matter of who comes first.
  bool many_sites = false;
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t most) { return random_() % most; }
  std::uint32_t any_lanes() {
    const auto made = static_cast<std::uint32_t>(random_());
    switch (below(5)) {
      case 0:
        return ~0u;
      case 1:
        return made == 0 ? 1 : made;
      case 2:
        return ~0u >> below(32);
      case 3:
        return 1u << below(32);
      default:
        return std::max<std::uint32_t>(made & static_cast<std::uint32_t>(random_() & random_()), 1);
    }
  }
  // Of global memory, at a place of a few.
  Case any(std::uint32_t width) {
    Case made{};
    made.width = width;
    made.active = any_lanes();
    made.access = static_cast<Access>(below(3));
    made.site = 16 * below(40);
    return made;
  }
  // From `begin` on; element(lane) says how many widths behind it.
  template <class Element>
  static Case& at(Case& made, std::uint64_t begin, Element element) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      made.address[lane] = begin + element(std::uint64_t{lane}) * made.width;
    }
    return made;
  }
  static std::uint64_t rounded(std::uint64_t address, std::uint32_t width) {
    return address / width * width;
  }

 private:
  std::mt19937_64 random_;
};

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Random elements, rows, columns, pieces and steps.
inline Case made_up(Maker& maker) {
  Case made = maker.any(1u << maker.below(5));
  const std::uint64_t begin = (std::uint64_t{1} << 33) + maker.below(1 << 16) * made.width;
  const std::uint64_t sort = maker.below(7), step = maker.below(40), across = 1 + maker.below(256),
                      turn = maker.below(32);
  return Maker::at(made, begin, [&](std::uint64_t lane) -> std::uint64_t {
    switch (sort) {
      case 0:
        return maker.below(across);
      case 1:
        return lane * step;
      case 2:
        return (kWarpLanes - lane) * step;
      case 3:
        return lane / 8 * 64 * (1 + step) + lane % 8;
      case 4:
        return lane ^ turn;
      case 5:  // in order, several at a time
        return lane / (1 + turn % 5) * (1 + step % 3);
      default:
        return lane % (1 + turn) * step;
    }
  });
}

// Of all sizes, some beside each other, and one 8 GiB behind, which has the same place in a table
// of pieces.
inline Scene anything(Maker& maker, unsigned count) {
  Scene made{.name = "anything"};
  const std::uint64_t first = (std::uint64_t{1} << 33) - 4096;
  for (std::uint64_t at = first; at < first + 4 * kMiB;) {
    const std::uint64_t bytes = 1 + maker.below(std::uint64_t{1} << maker.below(22));
    made.objects.push_back({at, bytes, made.objects.size() + 1});
    at += bytes + (maker.below(2) == 0 ? 0 : maker.below(1000));
  }
  made.objects.push_back({std::uint64_t{1} << 34, 3 * kMiB, made.objects.size() + 1});
  for (unsigned i = 0; i < count; ++i) made.cases.push_back(made_up(maker));
  return made;
}

// As models do: a few places, each with a width, a pitch and a way in which lanes lie, over objects
// of many MiB that begin at multiples of 512 bytes. `base`: where the first lies.
inline Scene models(Maker& maker, unsigned count, const char* name, std::uint64_t base) {
  Scene made{.name = name};
  std::uint64_t at = base + 512 * maker.below(8192);
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t bytes = 512 + 4 * maker.below(8 * kMiB);
    made.objects.push_back({at, bytes, made.objects.size() + 1});
    at += (bytes + 511) / 512 * 512 + (i % 3 == 0 ? 512 * maker.below(16384) : 0);
  }
  struct Site {
    std::uint32_t width, sort, active;
    std::uint64_t pitch, turn;
    Access access;
  };
  std::vector<Site> sites;
  for (int i = 0; i < 48; ++i) {
    constexpr std::uint64_t kPitches[] = {32, 64, 96, 128, 512, 768, 1024, 3072};
    const std::uint32_t active = i % 4 != 0 ? ~0u : maker.any_lanes();
    sites.push_back({1u << maker.below(5), static_cast<std::uint32_t>(maker.below(6)), active,
                     kPitches[maker.below(8)], 1 + maker.below(7),
                     i % 7 == 0 ? Access::kAtomic : static_cast<Access>(maker.below(2))});
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t n = maker.below(sites.size());
    const Site& site = sites[n];
    const MemoryObject& object = made.objects[(n + maker.below(2)) % made.objects.size()];
    Case one{};
    one.width = site.width;
    one.active = site.active;
    one.access = site.access;
    one.site = 16 * n;
    // Now and then the end of the object is within the warp.
    const std::uint64_t row = maker.below(object.bytes / site.width / site.pitch + 1) * site.pitch;
    made.cases.push_back(Maker::at(
        one, Maker::rounded(object.address, 512) + row * site.width, [&](std::uint64_t lane) {
          switch (site.sort) {
            case 0:  // a row
              return lane;
            case 1:  // four rows of eight lanes
              return lane / 8 * site.pitch + lane % 8;
            case 2:  // a column
              return lane * site.pitch;
            case 3:  // eight lanes of four rows, turned
              return lane / 4 * site.pitch + (lane % 4 ^ (lane / 4 & site.turn));
            case 4:  // pairs of lanes at the same
              return lane / 2;
            default:  // every second, in two pieces
              return lane / 16 * site.pitch + lane % 16 * 2;
          }
        }));
  }
  return made;
}

// Small objects side by side, at any byte: warps and single accesses lie across their borders.
inline Scene borders(Maker& maker, unsigned count) {
  Scene made{.name = "borders"};
  const std::uint64_t first = (std::uint64_t{3} << 40) + 2 * kMiB - 40'000;
  std::uint64_t at = first;
  while (at < first + 80'000) {
    const std::uint64_t bytes = 1 + maker.below(maker.below(2) == 0 ? 40 : 900);
    made.objects.push_back({at, bytes, made.objects.size() + 1});
    at += bytes + (maker.below(3) == 0 ? 1 + maker.below(40) : 0);
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(5));
    const std::uint64_t step = maker.below(4), ties = 1 + maker.below(4);
    made.cases.push_back(Maker::at(one, Maker::rounded(first + maker.below(80'000), one.width),
                                   [&](std::uint64_t lane) { return lane / ties * step; }));
  }
  return made;
}

// More than 16 bits tell apart, with some that have a piece of memory for themselves.
inline Scene many_objects(Maker& maker, unsigned count) {
  Scene made{.name = "many objects"};
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 41;
  for (std::uint64_t i = 0; i < 70'000; ++i) {
    made.objects.push_back({kFirst + i * 512, 1 + i % 512, i + 1});
  }
  for (std::uint64_t i = 0; i < 200; ++i) {
    made.objects.push_back({2 * kFirst + i * 5 * kMiB, kMiB, 70'001 + i});
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(5));
    const std::uint64_t begin = maker.below(4) != 0 ? kFirst + 512 * maker.below(70'000)
                                                    : 2 * kFirst + 5 * kMiB * maker.below(200);
    const std::uint64_t step = maker.below(3) == 0 ? 512 / one.width : maker.below(3);
    made.cases.push_back(Maker::at(one, begin, [&](std::uint64_t lane) { return lane * step; }));
  }
  return made;
}

// Addresses that are alike but for their upper halves, up to the last that GPUs have.
inline Scene far_apart(Maker& maker, unsigned count) {
  Scene made{.name = "far apart"};
  for (std::uint64_t i = 0; i < 40; ++i) {
    made.objects.push_back({(i + 1) << 37 | (i % 3) << 21, kMiB + 4096 * i, i + 1});
  }
  made.objects.push_back({(std::uint64_t{1} << 48) - 8 * kMiB, 8 * kMiB, 41});
  made.objects.push_back({(std::uint64_t{1} << 49) - 4 * kMiB, 4 * kMiB, 42});
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(5));
    one.site = 16 * maker.below(4);
    const MemoryObject& object = made.objects[maker.below(made.objects.size())];
    const MemoryObject& other = made.objects[maker.below(made.objects.size())];
    const std::uint64_t in = Maker::rounded(maker.below(object.bytes), one.width);
    const bool both = maker.below(3) == 0;
    for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::uint64_t begin = both && lane % 2 == 1 ? other.address : object.address;
      one.address[lane] = begin + in % (kMiB / 2) + lane * one.width;
    }
    made.cases.push_back(one);
  }
  return made;
}

// The same places of two objects that are 128 GiB apart and so large that a table has pieces of
// both: lanes take them in turns.
inline Scene alike(Maker& maker, unsigned count) {
  Scene made{.name = "alike"};
  constexpr std::uint64_t kBytes = 4096 * kMiB;
  for (std::uint64_t i = 0; i < 2; ++i) {
    made.objects.push_back({(std::uint64_t{1} << 42) + (i << 37), kBytes, i + 1});
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(5));
    const std::uint64_t in = maker.below(kBytes / one.width / kWarpLanes) * one.width,
                        turn = maker.below(32);
    for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) {
      one.address[lane] = made.objects[turn >> lane % 5 & 1].address + in + lane * one.width;
    }
    made.cases.push_back(one);
  }
  return made;
}

// Each warp is of its own kind: more than tables of outcomes and of what is known hold.
inline Scene many_kinds(Maker& maker, unsigned count, bool many_sites) {
  Scene made{.name = many_sites ? "many places" : "many kinds", .many_sites = many_sites};
  for (std::uint64_t i = 0; i < 8; ++i) {
    made.objects.push_back({(std::uint64_t{5} << 40) + i * 4 * kMiB, 4 * kMiB - 100 * i, i + 1});
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(5));
    // Up to and beyond what 20, 24 and 32 bits tell apart.
    one.site = many_sites
                   ? 16 * maker.below(1500) + (std::uint64_t{1} << 4 * maker.below(11)) / 16 * 16
                   : 16 * maker.below(60) + (maker.below(2) << 34) + (maker.below(2) << 24);
    one.active = static_cast<std::uint32_t>(maker.below(std::uint64_t{1} << 32)) | 1;
    if (many_sites && maker.below(4) == 0) one.space = Space::kShared;
    const std::uint64_t begin = one.space == Space::kShared ? one.width * maker.below(1024)
                                                            : made.objects[maker.below(8)].address +
                                                                  32 * maker.below(1 << 16);
    const std::uint64_t turn = maker.below(32), pieces = 1 + maker.below(12);
    made.cases.push_back(Maker::at(one, begin, [&](std::uint64_t lane) {
      return (lane ^ turn) % pieces + lane / pieces * (turn + 3);
    }));
  }
  return made;
}

// Of shared and local memory: every width, from no conflict to as many as there can be, and crowds.
inline Scene other_memory(Maker& maker, unsigned count) {
  Scene made{.name = "shared and local"};
  made.objects.push_back({std::uint64_t{1} << 33, kMiB, 1});
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << i % 5);
    if (maker.below(3) == 0) one.active = ~0u;
    one.space = maker.below(6) == 0 ? Space::kLocal : Space::kShared;
    const std::uint64_t sort = maker.below(5), step = i / 5 % 34, most = 1 + maker.below(32);
    made.cases.push_back(
        Maker::at(one, one.width * maker.below(4096), [&](std::uint64_t lane) -> std::uint64_t {
          switch (sort) {
            case 0:
              return lane * step;
            case 1:  // in a tile of 32 words, turned
              return lane * 32 + (lane ^ step) % 32;
            case 2:  // so many at one address
              return lane % most * step;
            case 3:
              return maker.below(most) * 32;
            default:
              return lane / most;
          }
        }));
  }
  return made;
}

// Atomics of global memory: from each lane at an address of its own to all at one.
inline Scene crowds(Maker& maker, unsigned count) {
  Scene made{.name = "crowds"};
  made.objects.push_back({std::uint64_t{1} << 42, 64 * kMiB, 1});
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(maker.below(2) == 0 ? 4 : 8);
    one.access = Access::kAtomic;
    one.site = 16 * maker.below(6);
    const std::uint64_t most = 1 + maker.below(32), bins = 1 + maker.below(1 << 14);
    const std::uint64_t begin = made.objects[0].address + 2 * kMiB * maker.below(16);
    const bool hot = maker.below(2) == 0;
    made.cases.push_back(Maker::at(one, begin, [&](std::uint64_t lane) {
      return hot ? lane % most : maker.below(4) == 0 ? 0 : maker.below(bins);
    }));
  }
  return made;
}

// Bulk copies: one lane's, of up to 64 KiB, also across objects.
inline Scene bulk_copies(Maker& maker, unsigned count) {
  Scene made{.name = "bulk copies"};
  std::uint64_t at = (std::uint64_t{1} << 40) + 48;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::uint64_t bytes = 16 * (1 + maker.below(8192));
    made.objects.push_back({at, bytes, i + 1});
    at += bytes + (i % 4 == 0 ? 1024 : 0);
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(16 * static_cast<std::uint32_t>(3 + maker.below(4000)));
    one.active = 1u << maker.below(32);
    one.space = maker.below(3) == 0 ? Space::kShared : Space::kGlobal;
    const MemoryObject& object = made.objects[maker.below(made.objects.size())];
    const std::uint64_t begin = one.space == Space::kShared
                                    ? 16 * maker.below(4096)
                                    : object.address + 16 * maker.below(object.bytes / 16);
    made.cases.push_back(Maker::at(one, begin, [](std::uint64_t) { return std::uint64_t{0}; }));
  }
  return made;
}

// Lanes a few bytes to many GiB apart, forwards and backwards, and in steps next to those that
// count as such: of less than 2 GiB, between first lanes that are 1, 2, 4, ... apart.
inline Scene steps(Maker& maker, unsigned count) {
  Scene made{.name = "steps"};
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  made.objects.push_back({std::uint64_t{1} << 41, 256 * kGiB, 1});
  constexpr std::uint64_t kSteps[] = {
      4, 64, kMiB, kGiB, 2 * kGiB, 2 * kGiB - 4, 2 * kGiB + 4, 4 * kGiB, 4 * kGiB + 4, 8 * kGiB};
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(4);
    one.site = 16 * maker.below(6);
    // Only of two may there be 2 GiB between all, with the same upper half.
    const bool two = maker.below(3) == 0;
    if (two) {
      one.active = 1u | 2u << maker.below(8);
    } else if (maker.below(2) == 0) {
      one.active |= 1u | 1u << (1 + maker.below(31)) | one.active << 8;
    }
    const std::uint64_t step = kSteps[maker.below(std::size(kSteps))];
    const bool back = maker.below(3) == 0, odd = maker.below(6) == 0;
    const std::uint64_t begin = made.objects[0].address + (back ? 250 : 0) * kGiB;
    for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::uint64_t further = (two ? std::min<std::uint64_t>(lane, 1) : lane) * step;
      one.address[lane] = back ? begin - further : begin + further;
      if (odd && lane == 20) one.address[lane] += 4;
    }
    // Of the last of three lanes, the lower half alone is as if it were as many steps further.
    if (maker.below(8) == 0) {
      one.active = 3u | 1u << (1 + 4 * (1 + maker.below(7)));
      for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) {
        one.address[lane] = made.objects[0].address + lane * kGiB % (4 * kGiB);
      }
    }
    made.cases.push_back(one);
  }
  return made;
}

// In order, from one object into those behind it, which have pieces of memory for themselves.
inline Scene across(Maker& maker, unsigned count) {
  Scene made{.name = "across"};
  for (std::uint64_t i = 0; i < 8; ++i) {
    made.objects.push_back({(std::uint64_t{1} << 43) + i * 4 * kMiB, 4 * kMiB, i + 1});
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(5));
    one.site = 16 * maker.below(8);
    const std::uint64_t step = maker.below(2) == 0 ? 1 + maker.below(3) : maker.below(1 << 15);
    const std::uint64_t border = made.objects[1 + maker.below(3)].address;
    made.cases.push_back(Maker::at(one, border - maker.below(kWarpLanes) * step * one.width,
                                   [&](std::uint64_t lane) { return lane * step; }));
  }
  return made;
}

// Lanes in the order of their addresses, of one object each, at any place that it may have: what a
// GPU counts without a look at each lane. Of atomics all lanes ask for the same, or none do.
inline Scene in_order(Maker& maker, unsigned count) {
  Scene made{.name = "in order"};
  for (std::uint64_t i = 0; i < 6; ++i) {
    made.objects.push_back({(std::uint64_t{1} << 42) + i * 64 * kMiB, 64 * kMiB, i + 1});
  }
  for (unsigned i = 0; i < count; ++i) {
    Case one = maker.any(1u << maker.below(6));
    const std::uint64_t most = 64 * kMiB / one.width / kWarpLanes, sort = maker.below(5);
    const std::uint64_t step = maker.below(sort == 0 ? most : 40), ties = 1 + maker.below(9);
    const bool alike = one.access == Access::kAtomic && maker.below(3) == 0;
    if (one.access == Access::kAtomic || sort == 1) one.site += 16 * 64;
    const MemoryObject& object = made.objects[maker.below(made.objects.size())];
    made.cases.push_back(Maker::at(one, object.address + maker.below(most) * one.width,
                                   [&](std::uint64_t lane) -> std::uint64_t {
                                     if (alike) return 0;
                                     if (one.access == Access::kAtomic) return lane * (1 + step);
                                     switch (sort) {
                                       case 0:
                                         return lane * step * 31 / 32;
                                       case 1:
                                         return lane;
                                       case 2:
                                         return lane / ties * step;
                                       case 3:
                                         return lane * step;
                                       default:
                                         return lane / 16 * 4096 + lane % 16;
                                     }
                                   }));
  }
  return made;
}

inline constexpr unsigned kWarps = 8;  // of a group

// As if all of the scene were one launch, group after group.
inline Launch launch_of(const Scene& scene) {
  const auto count = static_cast<std::uint32_t>(scene.cases.size());
  return {.grid = {(count + kWarps - 1) / kWarps, 1, 1},
          .block = {kWarps * kWarpLanes, 1, 1},
          .objects = scene.objects.data(),
          .object_count = static_cast<std::uint32_t>(scene.objects.size())};
}
template <class Patch>
PatchResult host_result(const Scene& scene, const Launch& launch,
                        const typename Patch::Settings& settings) {
  HostState<Patch> state(launch, settings);
  for (std::size_t i = 0; i < scene.cases.size(); ++i) {
    const Case& one = scene.cases[i];
    Warp warp;
    warp.space = one.space;
    warp.access = one.access;
    warp.site = one.site;
    warp.width = one.width;
    warp.active = one.active;
    warp.group_number = i / kWarps;
    warp.number_in_group = static_cast<std::uint32_t>(i % kWarps);
    std::memcpy(warp.address, one.address, sizeof warp.address);
    Patch::on_access(state.state(), launch, warp);
  }
  return Patch::result(launch, state.state(), {});
}

// As the adapter has them.
template <class Patch>
typename Patch::Settings settings_of(bool on_gpu) {
  typename Patch::Settings chosen{};
  if constexpr (requires { chosen.on_gpu; }) chosen.on_gpu = on_gpu;
  if constexpr (requires { chosen.copies; }) chosen.copies = on_gpu ? Patch::kCopies : 1;
  if constexpr (requires { chosen.sites; }) chosen.sites = 1024;
  if constexpr (requires { chosen.outcomes; }) chosen.outcomes = 1024;
  if constexpr (requires { chosen.marks.together; }) chosen.marks.together = 4 * kMiB;
  if constexpr (requires { chosen.most_blocks; }) chosen.most_blocks = 4096;
  return chosen;
}

// All of its sites as one, but for what is the most or the least of any.
inline PatchResult without_sites(PatchResult result) {
  for (ResultTable& table : result.tables) {
    if (table.id != TableId::kSites && table.id != TableId::kActivity) continue;
    const std::size_t rows = table.rows(), columns = table.columns;
    std::vector<std::uint64_t> sums(columns);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < columns; ++k) sums[k] += table.numbers[i * columns + k];
    }
    const bool of_access = table.id == TableId::kSites;
    const std::size_t first = of_access ? 5 : 3, last = of_access ? 21 : columns;
    table.numbers.assign(sums.begin() + static_cast<std::ptrdiff_t>(first),
                         sums.begin() + static_cast<std::ptrdiff_t>(last));
    table.columns = static_cast<std::uint32_t>(last - first);
    table.names.clear();
  }
  return result;
}

// Where two results differ first.
inline std::string first_difference(const PatchResult& found, const PatchResult& wanted) {
  for (std::size_t t = 0; t < std::max(found.tables.size(), wanted.tables.size()); ++t) {
    if (t >= found.tables.size() || t >= wanted.tables.size()) {
      return std::to_string(found.tables.size()) + " tables, not " +
             std::to_string(wanted.tables.size());
    }
    const ResultTable &there = found.tables[t], &here = wanted.tables[t];
    if (there == here) continue;
    std::string said = "table " + std::to_string(static_cast<unsigned>(here.id)) + ": " +
                       std::to_string(there.rows()) + " rows, not " + std::to_string(here.rows());
    unsigned differ = 0;
    for (std::size_t i = 0; i < std::min(there.numbers.size(), here.numbers.size()); ++i) {
      if (there.numbers[i] == here.numbers[i] || ++differ > 4) continue;
      said += "; row " + std::to_string(i / here.columns) + " column " +
              std::to_string(i % here.columns) + ": " + std::to_string(there.numbers[i]) +
              ", not " + std::to_string(here.numbers[i]);
    }
    return said;
  }
  return "";
}

}  // namespace pasta::device::testing
