// The patches for GPUs, called as Compute Sanitizer calls them, by lanes that the host makes: what
// they count is what the host's way counts. tests/gpu/warps.cu is the same on a GPU.
#include "lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/access.h"
#include "device/divergence.h"
#include "device/hotpages.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/reuse.h"
#include "scenes.h"

#define PASTA_ENTRIES(name)                                                                    \
  extern "C" {                                                                                 \
  int pasta_##name##_global(void*, std::uint64_t, void*, std::uint32_t, std::uint32_t,         \
                            const void*);                                                      \
  int pasta_##name##_shared(void*, std::uint64_t, void*, std::uint32_t, std::uint32_t,         \
                            const void*);                                                      \
  int pasta_##name##_local(void*, std::uint64_t, void*, std::uint32_t, std::uint32_t,          \
                           const void*);                                                       \
  int pasta_##name##_copy(void*, std::uint64_t, void*, std::uint32_t, std::uint32_t);          \
  int pasta_##name##_matrix(void*, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, \
                            std::uint32_t, const void*);                                       \
  int pasta_##name##_bulk_to_shared(void*, std::uint64_t, std::uint64_t, std::uint32_t,        \
                                    std::uint32_t, std::uint32_t, std::uint32_t);              \
  int pasta_##name##_bulk_to_global(void*, std::uint64_t, std::uint64_t, std::uint32_t,        \
                                    std::uint32_t);                                            \
  int pasta_##name##_bulk_reduce_global(void*, std::uint64_t, std::uint64_t, std::uint32_t,    \
                                        std::uint32_t);                                        \
  }                                                                                            \
  constexpr Entries k_##name = {pasta_##name##_global,         pasta_##name##_shared,          \
                                pasta_##name##_local,          pasta_##name##_copy,            \
                                pasta_##name##_matrix,         pasta_##name##_bulk_to_shared,  \
                                pasta_##name##_bulk_to_global, pasta_##name##_bulk_reduce_global};

namespace {

using namespace pasta::device;
using namespace pasta::device::testing;

struct Entries {
  using Flagged = int(void*, std::uint64_t, void*, std::uint32_t, std::uint32_t, const void*);
  using FromShared = int(void*, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t);
  Flagged *global, *shared, *local;
  int (*copy)(void*, std::uint64_t, void*, std::uint32_t, std::uint32_t);
  int (*matrix)(void*, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                const void*);
  int (*bulk_to_shared)(void*, std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t,
                        std::uint32_t, std::uint32_t);
  FromShared *bulk_to_global, *bulk_reduce_global;
};
PASTA_ENTRIES(access)
PASTA_ENTRIES(divergence)
PASTA_ENTRIES(hotpages)
PASTA_ENTRIES(reuse)

template <class Patch>
constexpr const Entries& entries() {
  if constexpr (std::is_same_v<Patch, AccessPatch>) return k_access;
  if constexpr (std::is_same_v<Patch, DivergencePatch>) return k_divergence;
  if constexpr (std::is_same_v<Patch, HotpagesPatch>) return k_hotpages;
  if constexpr (std::is_same_v<Patch, ReusePatch>) return k_reuse;
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// What the lanes of the warp that has the case of this number call.
struct Call {
  std::size_t number;
  std::uint32_t lanes;
  std::function<void(const Entries& of, void* given, unsigned lane)> code;
};
// An instruction for each case, as most are.
std::vector<Call> calls(const Scene& scene) {
  std::vector<Call> made;
  for (std::size_t i = 0; i < scene.cases.size(); ++i) {
    const Case& one = scene.cases[i];
    made.push_back({i, one.active, [&one](const Entries& of, void* given, unsigned lane) {
                      Entries::Flagged* const entry = one.space == Space::kGlobal   ? of.global
                                                      : one.space == Space::kShared ? of.shared
                                                                                    : of.local;
                      entry(given, one.site, pointer(one.address[lane]), one.width,
                            static_cast<std::uint32_t>(one.access) + 1, nullptr);
                    }});
  }
  return made;
}

// A launch in the memory of a GPU.
template <class Patch>
class LaunchOnLanes {
 public:
  LaunchOnLanes(const Launch& launch, const typename Patch::Settings& settings)
      : launch_(launch), settings_(settings) {
    shared_ = table_.make([&](Layout& to) { return share<Patch>(launch_, settings_, to); });
    block_.make([&](Layout& to) {
      to.counters<std::byte>(bytes_before<Patch>() + kHeaderBytes<Patch> + kBlockAlign);
      Layout sizing;
      lay_out<Patch>(launch_, shared_, settings_, sizing);
      to.counters<std::byte>(sizing.bytes());
      return 0;
    });
    auto* const begin = const_cast<std::byte*>(block_.bytes().data());
    given_ = begin + bytes_before<Patch>();
    // See is_given() in gpu_patch.h.
    if (static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(given_)) == 0) {
      given_ += kBlockAlign;
    }
    Layout layout(reinterpret_cast<std::uintptr_t>(given_) + kHeaderBytes<Patch>);
    const GpuLaunch<Patch> header = {launch_, lay_out<Patch>(launch_, shared_, settings_, layout),
                                     0};
    std::memcpy(given_, &header, sizeof header);
    std::ranges::copy(layout.image(), given_ + kHeaderBytes<Patch>);
    state_ = header.state;
  }
  [[nodiscard]] void* given() const { return given_; }
  [[nodiscard]] PatchResult result() const { return Patch::result(launch_, state_, {}); }

 private:
  Launch launch_;
  typename Patch::Settings settings_;
  HostBlock table_, block_;
  SharedOf<Patch> shared_;
  std::byte* given_;
  typename Patch::State state_;
};

template <class Patch>
void expect_same(const Scene& scene, const std::vector<Call>& called) {
  SCOPED_TRACE(scene.name + ", " + std::string(Patch::kFormat));
  Launch launch = launch_of(scene);
  // Of all three dimensions.
  launch.grid[0] = (launch.grid[0] + 5) / 6;
  launch.grid[1] = 3;
  launch.grid[2] = 2;
  launch.block[0] = 16;
  launch.block[1] = launch.block[2] = 4;
  static_assert(16 * 4 * 4 == kWarps * kWarpLanes);
  auto settings = settings_of<Patch>(true), of_host = settings_of<Patch>(false);
  if constexpr (requires { settings.sites; }) {
    if (scene.many_sites) settings.sites = of_host.sites = 64;
  }
  const LaunchOnLanes<Patch> there(launch, settings);
  lanes::begin();
  for (const Call& call : called) {
    const auto group = static_cast<std::uint32_t>(call.number / kWarps);
    const auto number = static_cast<std::uint32_t>(call.number % kWarps);
    lanes::run({.number = number,
                .items = {launch.block[0], launch.block[1], launch.block[2]},
                .group = {group % launch.grid[0], group / launch.grid[0] % launch.grid[1],
                          group / (launch.grid[0] * launch.grid[1])},
                .groups = {launch.grid[0], launch.grid[1], launch.grid[2]},
                .multiprocessor = group % 11,
                .backwards = call.number % 3 == 0},
               call.lanes,
               [&](unsigned lane) { call.code(entries<Patch>(), there.given(), lane); });
  }
  PatchResult found = there.result();
  PatchResult wanted = host_result<Patch>(scene, launch, of_host);
  // Of what more lanes than a table holds do at a place, too, it has those that come first.
  if (scene.many_sites || std::is_same_v<Patch, DivergencePatch>) {
    found = without_sites(std::move(found));
    wanted = without_sites(std::move(wanted));
  }
  EXPECT_TRUE(found == wanted) << first_difference(found, wanted);
  const auto is_global = [](const Case& one) { return one.space == Space::kGlobal; };
  if (std::ranges::any_of(scene.cases, is_global)) {
    EXPECT_GT(wanted.tables.back().rows(), 0u);
  }
}
void expect_same(const Scene& scene, const std::vector<Call>& called) {
  expect_same<HotpagesPatch>(scene, called);
  expect_same<ReusePatch>(scene, called);
  expect_same<DivergencePatch>(scene, called);
  expect_same<AccessPatch>(scene, called);
}
// Gives how many warps `access` did not count at once.
std::uint64_t expect_same(Scene scene) {
  expect_same(scene, calls(scene));
  const std::uint64_t looked_at = lanes::answered(lanes::Ask::kWait);
  // The same ones again, of which what they come to is known.
  const std::size_t count = scene.cases.size();
  for (std::size_t i = 0; i < count; ++i) scene.cases[i] = scene.cases[i % (count / 20 + 1)];
  scene.name += ", again";
  expect_same<AccessPatch>(scene, calls(scene));
  return looked_at;
}
// Some of both ways.
void expect_both_ways(const Scene& scene) {
  const std::uint64_t looked_at = expect_same(scene);
  EXPECT_GT(looked_at, 0u) << scene.name;
  EXPECT_LT(looked_at, scene.cases.size()) << scene.name;
}

constexpr unsigned kCases = 200;

TEST(Lanes, CountWhatTheHostCounts) {
  Maker maker(1);
  expect_same(anything(maker, 2 * kCases));
  expect_both_ways(models(maker, kCases, "models", std::uint64_t{7} << 40));
  expect_both_ways(models(maker, kCases, "models in low memory", 64 * kMiB));
  expect_both_ways(borders(maker, kCases));
  expect_both_ways(far_apart(maker, kCases));
  expect_both_ways(alike(maker, kCases));
  expect_both_ways(crowds(maker, kCases));
  expect_both_ways(steps(maker, 6 * kCases));
  expect_both_ways(across(maker, kCases));
}

// Called again for another memory, for a launch that nobody looks into, and for what is no access.
TEST(Lanes, CountNoOthers) {
  constexpr std::uint32_t kReads = 1, kPrefetches = 8;  // the vendor's
  Maker maker(8);
  const Scene scene = models(maker, kCases, "with others", std::uint64_t{7} << 40);
  std::vector<Call> called = calls(scene);
  for (Call& call : called) {
    const Case& one = scene.cases[call.number];
    call.lanes = ~0u;
    call.code = [&one, code = call.code](const Entries& of, void* given, unsigned lane) {
      if ((one.active >> lane & 1) != 0) {
        code(of, given, lane);
      } else if (lane % 2 == 0) {
        code(of, pointer(std::uint64_t{5} << 32), lane);
      } else {
        of.global(given, one.site, pointer(one.address[lane]), one.width, kPrefetches | kReads,
                  nullptr);
      }
    };
  }
  expect_same(scene, called);
}

TEST(Lanes, CountWhatTheHostCountsOfMoreThanTablesHold) {
  Maker maker(2);
  expect_same(many_objects(maker, kCases));
  expect_both_ways(many_kinds(maker, kCases, false));
  expect_both_ways(many_kinds(maker, kCases, true));
  const Scene kinds = many_kinds(maker, 2 * AccessPatch::kOutcomes, false);
  expect_same<AccessPatch>(kinds, calls(kinds));
}

TEST(Lanes, InOrderAreCountedAtOnce) {
  Maker maker(3);
  const Scene scene = in_order(maker, 2 * kCases);
  EXPECT_EQ(expect_same(scene), 0u);
  // Of those within a piece of memory `reuse` compares none, of others objects and sectors.
  expect_same<ReusePatch>(scene, calls(scene));
  const auto across = std::ranges::count_if(scene.cases, [](const Case& one) {
    const std::uint64_t first = one.address[std::countr_zero(one.active) % 32],
                        last = one.address[(31 - std::countl_zero(one.active)) % 32];
    return first >> Pieces::kBits != last >> Pieces::kBits;
  });
  EXPECT_EQ(lanes::answered(lanes::Ask::kMatch), 2u * static_cast<std::uint64_t>(across));
}

TEST(Lanes, OfSharedAndLocalMemoryAreCountedAtOnce) {
  Maker maker(4);
  EXPECT_EQ(expect_same(other_memory(maker, 2 * kCases)), 0u);
}

// Of each there are two accesses, one after the other.
TEST(Lanes, CountBulkCopies) {
  Maker maker(5);
  Scene scene = bulk_copies(maker, kCases);
  std::vector<Case> told;
  std::vector<Call> called;
  for (const Case& one : scene.cases) {
    if (one.space != Space::kGlobal) continue;
    Case global = one, shared = one;
    shared.space = Space::kShared;
    for (std::uint64_t& address : shared.address) address = 16 * (told.size() % 512);
    const std::uint64_t at = one.address[0];
    const auto to = static_cast<std::uint32_t>(shared.address[0]);
    const std::uint32_t blocks = one.width / 16;
    Call call{told.size(), ~0u, {}};
    if (one.access == Access::kRead) {
      shared.access = Access::kWrite;
      told.insert(told.end(), {global, shared});
      call.code = [=](const Entries& of, void* given, unsigned) {
        of.bulk_to_shared(given, one.site, at, to, 0, blocks, 0);
      };
    } else {
      shared.access = Access::kRead;
      told.insert(told.end(), {shared, global});
      call.code = [=](const Entries& of, void* given, unsigned) {
        const auto entry = one.access == Access::kWrite ? of.bulk_to_global : of.bulk_reduce_global;
        entry(given, one.site, at, to, blocks);
      };
    }
    called.push_back(call);
    // One lane stands for all.
    for (std::size_t i = told.size() - 2; i < told.size(); ++i) told[i].active = 1;
  }
  scene.cases = told;
  expect_same(scene, called);
}

// Lanes that only fill with zeros read nothing.
TEST(Lanes, CountCopiesFromGlobalToSharedMemory) {
  Maker maker(6);
  Scene scene = in_order(maker, kCases);
  std::vector<Case> told;
  std::vector<Call> called;
  for (Case& one : scene.cases) {
    one.width = 4u << maker.below(3);
    for (std::uint64_t& address : one.address) address = Maker::rounded(address, 16);
    const std::uint32_t filling = one.active & maker.any_lanes();
    Case read = one, written = one;
    read.access = Access::kRead;
    read.active &= ~filling;
    written.access = Access::kWrite;
    written.space = Space::kShared;
    Maker::at(written, 512 * (told.size() % 64), [](std::uint64_t lane) { return lane; });
    if (read.active == 0) continue;
    called.push_back({told.size(), one.active, [=](const Entries& of, void* given, unsigned lane) {
                        of.copy(given, read.site,
                                (filling >> lane & 1) != 0 ? nullptr : pointer(read.address[lane]),
                                static_cast<std::uint32_t>(written.address[lane]), read.width);
                      }});
    told.insert(told.end(), {read, written});
  }
  scene.cases = told;
  expect_same(scene, called);
}

// The rows of each of 1, 2 or 4 matrices, of eight lanes.
TEST(Lanes, CountMatrices) {
  Maker maker(7);
  Scene scene = other_memory(maker, kCases);
  std::vector<Case> told;
  std::vector<Call> called;
  for (Case one : scene.cases) {
    const std::uint32_t count = 1u << maker.below(3);
    one.space = Space::kShared;
    one.access = static_cast<Access>(maker.below(2));
    one.width = 16;
    one.active = count == 4 ? ~0u : (1u << 8 * count) - 1;
    Maker::at(one, 0, [&](std::uint64_t) { return maker.below(256); });
    called.push_back({told.size(), ~0u, [=](const Entries& of, void* given, unsigned lane) {
                        of.matrix(given, one.site, static_cast<std::uint32_t>(one.address[lane]),
                                  one.width, static_cast<std::uint32_t>(one.access) + 1, count,
                                  nullptr);
                      }});
    told.push_back(one);
  }
  scene.cases = told;
  expect_same<AccessPatch>(scene, called);
  expect_same<DivergencePatch>(scene, called);
}

// --- The lanes themselves

constexpr lanes::Warp kAny = {.items = {32, 1, 1}, .group = {}, .groups = {1, 1, 1}};
std::uint64_t ask(lanes::Ask what, std::uint32_t of, std::uint64_t value,
                  unsigned line = __builtin_LINE()) {
  return lanes::ask({what, of, line, value});
}

TEST(Lanes, AnswerEachOther) {
  lanes::begin();
  std::uint64_t odd[lanes::kLanes] = {}, same[lanes::kLanes] = {}, there[lanes::kLanes] = {};
  lanes::run(kAny, 0xff, [&](unsigned lane) {
    odd[lane] = ask(lanes::Ask::kBallot, 0xff, lane % 2);
    same[lane] = ask(lanes::Ask::kMatch, 0xff, lane / 3);
    if (lane < 2) return;
    // Those of a mask wait for each other, whatever others do.
    if (lane % 2 == 0) ask(lanes::Ask::kWait, 0x54, 0);
    there[lane] = ask(lanes::Ask::kActive, 0, 0);
  });
  EXPECT_EQ(odd[5], 0xaau);
  EXPECT_EQ(same[4], 0x38u);
  EXPECT_EQ(there[3], 0xa8u);
  EXPECT_EQ(there[6], 0x54u);
  EXPECT_EQ(lanes::answered(lanes::Ask::kMatch), 1u);
}

TEST(Lanes, ComplainOfLanesThatDoNotCome) {
  lanes::begin();
  const auto complaint = [](const std::function<void(unsigned)>& code) -> std::string {
    try {
      lanes::run(kAny, 0xf, code);
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  };
  const std::string left = complaint([](unsigned lane) {
    if (lane != 2) ask(lanes::Ask::kAll, 0xf, 1);
  });
  EXPECT_TRUE(left.starts_with("lane 0 in line")) << left;
  EXPECT_NE(left.find("asks lanes that have returned; there are 0:"), std::string::npos) << left;
  const std::string elsewhere = complaint([](unsigned lane) {
    if (lane == 2) ask(lanes::Ask::kWait, 0x4, 0);
    ask(lanes::Ask::kAll, 0xf, 1);
  });
  EXPECT_NE(elsewhere.find("asks lanes that are elsewhere"), std::string::npos) << elsewhere;
  const std::string for_ever = complaint([](unsigned lane) {
    if (lane == 2) {
      ask(lanes::Ask::kMatch, 0xf, 1);
    } else {
      ask(lanes::Ask::kMatch, 0xf, 2);
    }
  });
  EXPECT_NE(for_ever.find("waits for ever"), std::string::npos) << for_ever;
  const std::string of_others = complaint([](unsigned) { ask(lanes::Ask::kAll, 0xe, 1); });
  EXPECT_NE(of_others.find("lane 0 in line"), std::string::npos) << of_others;
  EXPECT_NE(of_others.find("asks others than itself"), std::string::npos) << of_others;
  EXPECT_EQ(complaint([](unsigned) { ask(lanes::Ask::kAll, 0xf, 1); }), "");
}

}  // namespace
