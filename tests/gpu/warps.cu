// Whether a warp of a GPU says the same of its accesses as the host does, and patches make the same
// of them: warps CASES [SEED]. Addresses and lanes are made up, in scenes: of each so many.
#pragma nv_diag_suppress 20011, 20014  // what is for both is also made for the host alone

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "device/access.h"
#include "device/divergence.h"
#include "device/gpu_patch.h"
#include "device/gpu_warp.h"
#include "device/hotpages.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/reuse.h"
#include "device/warp.h"

namespace {

using namespace pasta::device;

struct Case {
  std::uint64_t address[kWarpLanes];
  std::uint64_t site;
  std::uint32_t width, active;
  Space space;
  Access access;
};
struct Facts {
  std::uint64_t sectors, footprint[2], parts, pattern, step, span, passes[2], crowd;
  std::uint64_t groups, group_sectors, group_parts;  // of lanes that have a KiB in common
};

// Of these addresses as those of shared memory, which has fewer.
constexpr std::uint64_t kEndOfShared = 1u << 27;

// `facts` are 0; `shared` is the same warp in shared memory.
#pragma nv_exec_check_disable
template <class AnyWarp>
PASTA_DEVICE void find_facts(const AnyWarp& warp, const AnyWarp& shared, Facts& facts) {
  warp.match([](std::uint64_t address) { return static_cast<std::uint32_t>(address >> 10); },
             [&](std::uint32_t, std::uint32_t mask) {
               const std::uint32_t sectors = warp.sectors(mask), parts = warp.parts(mask);
               warp.add(mask, facts.groups, 1);
               warp.add(mask, facts.group_sectors, sectors);
               warp.add(mask, facts.group_parts, parts);
             });
  std::int64_t step = 0;
  const auto tell = [&](std::int64_t bytes) { step = bytes; };
  const Pattern pattern = warp.pattern(tell);
  const std::uint32_t sectors = warp.sectors(warp.active), parts = warp.parts(warp.active);
  const Footprint footprint = warp.footprint(warp.active);
  const Passes passes = shared.passes();
  const unsigned crowd = warp.crowd();
  warp.add(warp.active, facts.sectors, sectors);
  warp.add(warp.active, facts.footprint[0], footprint.sectors);
  warp.add(warp.active, facts.footprint[1], footprint.bytes);
  warp.add(warp.active, facts.parts, parts);
  warp.add(warp.active, facts.pattern, static_cast<std::uint32_t>(pattern));
  warp.add(warp.active, facts.step, static_cast<std::uint32_t>(step));
  warp.add(warp.active, facts.span, warp.span());
  warp.add(warp.active, facts.passes[0], passes.needed);
  warp.add(warp.active, facts.passes[1], passes.without_conflicts);
  warp.add(warp.active, facts.crowd, crowd);
}

__global__ void on_gpu(const Case* cases, Facts* facts, unsigned count) {
  const unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes;
  const unsigned lane = threadIdx.x % kWarpLanes;
  if (at >= count || (cases[at].active >> lane & 1) == 0) return;
  const std::uint64_t address = cases[at].address[lane];
  const GpuWarp<false> warp(Space::kGlobal, Access::kRead, 0, 0, address, cases[at].width,
                            cases[at].active);
  const GpuWarp<false> shared(Space::kShared, Access::kRead, 0, 0, address % kEndOfShared,
                              cases[at].width, cases[at].active);
  find_facts(warp, shared, facts[at]);
}

// --- Scenes: what warps ask for, and which objects there are

struct Scene {
  std::string name;
  std::vector<MemoryObject> objects;  // in order of their addresses
  std::vector<Case> cases;
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

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Random elements, rows, columns, pieces and steps.
Case made_up(Maker& maker) {
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
Scene anything(Maker& maker, unsigned count) {
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
Scene models(Maker& maker, unsigned count, const char* name, std::uint64_t base) {
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
Scene borders(Maker& maker, unsigned count) {
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
Scene many_objects(Maker& maker, unsigned count) {
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
Scene far_apart(Maker& maker, unsigned count) {
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

// Each warp is of its own kind: more than tables of outcomes and of what is known hold.
Scene many_kinds(Maker& maker, unsigned count, bool many_sites) {
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
Scene other_memory(Maker& maker, unsigned count) {
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
Scene crowds(Maker& maker, unsigned count) {
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
Scene bulk_copies(Maker& maker, unsigned count) {
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

Facts on_host(const Case& of) {
  Warp warp;
  warp.width = of.width;
  warp.active = of.active;
  std::memcpy(warp.address, of.address, sizeof warp.address);
  Facts facts{};
  Warp shared = warp;
  for (std::uint64_t& address : shared.address) address %= kEndOfShared;
  find_facts(warp, shared, facts);
  facts.step = static_cast<std::uint32_t>(facts.step);
  return facts;
}

constexpr unsigned kWarps = 8;  // of a group

template <class Patch>
__global__ void patched(void* given, const Case* cases, unsigned count) {
  const unsigned at = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes;
  const unsigned lane = threadIdx.x % kWarpLanes;
  if (at >= count || (cases[at].active >> lane & 1) == 0) return;
  const Case& one = cases[at];
  const std::uint64_t address = one.address[lane];
  const std::uint32_t lanes = __activemask();
  if (one.width > kSectorBytes) {
    on_access<Patch, true>(given, one.site, one.space, one.access, address, one.width, lanes);
  } else if (one.space == Space::kGlobal) {
    on_access<Patch>(given, one.site, Space::kGlobal, one.access, address, one.width, lanes);
  } else if (one.space == Space::kShared) {
    on_access<Patch>(given, one.site, Space::kShared, one.access, address, one.width, lanes);
  } else {
    on_access<Patch>(given, one.site, Space::kLocal, one.access, address, one.width, lanes);
  }
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

// Which row of a table of places is whose is a matter of who comes first, too.
void sort_places(PatchResult& result) {
  for (ResultTable& table : result.tables) {
    if (table.id != TableId::kSites) continue;
    std::vector<std::vector<std::uint64_t>> rows;
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const auto begin = table.numbers.begin() + static_cast<std::ptrdiff_t>(i * table.columns);
      rows.emplace_back(begin, begin + table.columns);
    }
    std::ranges::sort(rows);
    table.numbers.clear();
    for (const auto& row : rows) table.numbers.insert(table.numbers.end(), row.begin(), row.end());
    table.names.clear();
  }
}
// All of its sites as one, but for what is the most or the least of any.
PatchResult without_sites(PatchResult result) {
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

void say_first(const PatchResult& found, const PatchResult& wanted) {
  for (std::size_t t = 0; t < std::max(found.tables.size(), wanted.tables.size()); ++t) {
    if (t >= found.tables.size() || t >= wanted.tables.size()) {
      std::printf("  %zu tables, not %zu\n", found.tables.size(), wanted.tables.size());
      return;
    }
    const ResultTable &there = found.tables[t], &here = wanted.tables[t];
    if (there == here) continue;
    std::printf("  table %u: %zu rows, not %zu", static_cast<unsigned>(here.id), there.rows(),
                here.rows());
    unsigned said = 0;
    for (std::size_t i = 0; i < std::min(there.numbers.size(), here.numbers.size()); ++i) {
      if (there.numbers[i] == here.numbers[i] || ++said > 4) continue;
      std::printf("; row %zu column %zu: %llu, not %llu", i / here.columns, i % here.columns,
                  static_cast<unsigned long long>(there.numbers[i]),
                  static_cast<unsigned long long>(here.numbers[i]));
    }
    std::puts("");
  }
}

template <class Patch>
bool same_results(const char* name, const Scene& scene, const Case* cases_there) {
  const std::vector<Case>& cases = scene.cases;
  const auto count = static_cast<unsigned>(cases.size());
  const std::vector<MemoryObject>& here = scene.objects;
  Launch launch;
  launch.grid[0] = (count + kWarps - 1) / kWarps;
  launch.block[0] = kWarps * kWarpLanes;
  launch.object_count = static_cast<std::uint32_t>(here.size());
  launch.objects = here.data();
  HostState<Patch> state(launch, settings_of<Patch>(false));
  for (unsigned i = 0; i < count; ++i) {
    Warp warp;
    warp.space = cases[i].space;
    warp.access = cases[i].access;
    warp.site = cases[i].site;
    warp.width = cases[i].width;
    warp.active = cases[i].active;
    warp.group_number = i / kWarps;
    warp.number_in_group = i % kWarps;
    std::memcpy(warp.address, cases[i].address, sizeof warp.address);
    Patch::on_access(state.state(), launch, warp);
  }
  const typename Patch::Settings settings = settings_of<Patch>(true);
  HostBlock table;
  const auto shared =
      table.make([&](Layout& layout) { return share<Patch>(launch, settings, layout); });
  Layout sizing;
  lay_out<Patch>(launch, shared, settings, sizing);
  std::byte *given = nullptr, *objects_there = nullptr, *table_there = nullptr;
  constexpr std::size_t kBefore = bytes_before<Patch>();
  constexpr std::size_t kResultBefore = result_bytes_before<Patch>();
  const std::size_t bytes = kBefore + kHeaderBytes<Patch> + sizing.bytes();
  cudaMalloc(&given, bytes);
  cudaMalloc(&objects_there, here.size() * sizeof(MemoryObject));
  cudaMemset(given, 0, bytes);
  given += kBefore;
  cudaMalloc(&table_there, table.bytes().size() + 1);
  cudaMemcpy(table_there, table.bytes().data(), table.bytes().size(), cudaMemcpyHostToDevice);
  Layout shared_layout(std::span(table_there, table.bytes().size()));
  const auto shared_there = share<Patch>(launch, settings, shared_layout);
  Layout there(reinterpret_cast<std::uintptr_t>(given) + kHeaderBytes<Patch>);
  GpuLaunch<Patch> header = {launch, lay_out<Patch>(launch, shared_there, settings, there), 0};
  header.launch.objects = reinterpret_cast<const MemoryObject*>(objects_there);
  cudaMemcpy(objects_there, here.data(), here.size() * sizeof(MemoryObject),
             cudaMemcpyHostToDevice);
  cudaMemcpy(given, &header, sizeof header, cudaMemcpyHostToDevice);
  cudaMemcpy(given + kHeaderBytes<Patch>, there.image().data(), there.image().size(),
             cudaMemcpyHostToDevice);
  patched<Patch><<<launch.grid[0], launch.block[0]>>>(given, cases_there, count);
  // Arrays are laid out as in a block that is aligned.
  const std::size_t copied_bytes = kResultBefore + kHeaderBytes<Patch> + sizing.bytes();
  std::vector<std::byte> room(copied_bytes + Layout::kAlign);
  void* aligned = room.data();
  std::size_t left = room.size();
  std::align(Layout::kAlign, copied_bytes, aligned, left);
  const std::span<std::byte> result(static_cast<std::byte*>(aligned), copied_bytes);
  cudaMemcpy(result.data(), given - kResultBefore, copied_bytes, cudaMemcpyDeviceToHost);
  const std::span<std::byte> block = result.subspan(kResultBefore + kHeaderBytes<Patch>);
  const cudaError_t error = cudaDeviceSynchronize();
  Layout copied(block);
  PatchResult found = Patch::result(launch, lay_out<Patch>(launch, shared, settings, copied), {});
  PatchResult wanted = Patch::result(launch, state.state(), {});
  std::size_t rows = 0;
  for (const ResultTable& table : wanted.tables) rows += table.rows();
  // Of what more lanes than a table holds do at a place, too, it has those that come first.
  if (scene.many_sites || std::is_same_v<Patch, DivergencePatch>) {
    found = without_sites(std::move(found));
    wanted = without_sites(std::move(wanted));
  }
  sort_places(found);
  sort_places(wanted);
  const bool same = error == cudaSuccess && found == wanted;
  std::printf("%s: %s: %zu rows, %s%s\n", scene.name.c_str(), name, rows,
              same ? "the same on host and GPU" : "which DIFFER between host and GPU: ",
              same || error == cudaSuccess ? "" : cudaGetErrorString(error));
  if (!same) say_first(found, wanted);
  cudaFree(given - kBefore);
  cudaFree(objects_there);
  cudaFree(table_there);
  return same;
}

// What a warp says of itself.
bool same_facts(const Scene& scene, const Case* cases_there) {
  const auto count = static_cast<unsigned>(scene.cases.size());
  std::vector<Facts> facts(count);
  Facts* facts_there = nullptr;
  cudaMalloc(&facts_there, count * sizeof(Facts));
  cudaMemset(facts_there, 0, count * sizeof(Facts));
  on_gpu<<<(count + kWarps - 1) / kWarps, kWarps * kWarpLanes>>>(cases_there, facts_there, count);
  cudaMemcpy(facts.data(), facts_there, count * sizeof(Facts), cudaMemcpyDeviceToHost);
  cudaFree(facts_there);
  if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(3);
  }
  unsigned differ = 0;
  for (unsigned i = 0; i < count; ++i) {
    const Facts wanted = on_host(scene.cases[i]);
    if (std::memcmp(&wanted, &facts[i], sizeof wanted) == 0) continue;
    if (++differ > 5) continue;
    std::printf("case %u, width %u, lanes %08x:", i, scene.cases[i].width, scene.cases[i].active);
    const auto* host = reinterpret_cast<const std::uint64_t*>(&wanted);
    const auto* gpu = reinterpret_cast<const std::uint64_t*>(&facts[i]);
    for (unsigned k = 0; k < sizeof wanted / sizeof *host; ++k) {
      std::printf(" %lld/%lld", static_cast<long long>(host[k]), static_cast<long long>(gpu[k]));
    }
    std::puts("");
  }
  std::printf("%s: %u of %u cases differ between host and GPU\n", scene.name.c_str(), differ,
              count);
  return differ == 0;
}

bool same(const Scene& scene, bool has_facts) {
  Case* cases_there = nullptr;
  const std::size_t bytes = scene.cases.size() * sizeof(Case);
  cudaMalloc(&cases_there, bytes);
  cudaMemcpy(cases_there, scene.cases.data(), bytes, cudaMemcpyHostToDevice);
  bool all = !has_facts || same_facts(scene, cases_there);
  all = same_results<HotpagesPatch>("hotpages", scene, cases_there) && all;
  all = same_results<ReusePatch>("reuse", scene, cases_there) && all;
  all = same_results<DivergencePatch>("divergence", scene, cases_there) && all;
  all = same_results<AccessPatch>("access", scene, cases_there) && all;
  cudaFree(cases_there);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 20'000);
  Maker maker(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  bool all = true;
  const auto try_it = [&](Scene scene, bool has_facts = true) {
    all = same(scene, has_facts) && all;
    // The same ones again, of which what they come to is known.
    for (unsigned i = 0; i < count; ++i) scene.cases[i] = scene.cases[i % (count / 100 + 1)];
    scene.name += ", again";
    all = same(scene, false) && all;
  };
  try_it(anything(maker, count));
  try_it(models(maker, count, "models", std::uint64_t{7} << 40));
  try_it(models(maker, count, "models in low memory", 64 * kMiB));
  try_it(borders(maker, count));
  try_it(many_objects(maker, count));
  // Of what lies so far apart nobody asks for banks of shared memory.
  try_it(far_apart(maker, count), false);
  try_it(many_kinds(maker, count, false));
  try_it(many_kinds(maker, count, true));
  try_it(other_memory(maker, count));
  try_it(crowds(maker, count));
  try_it(bulk_copies(maker, count), false);
  std::puts(all ? "all the same" : "some DIFFER");
  return all ? 0 : 1;
}
