// Kernels as what their lanes access, with numbers worked out by hand: by place of the program.
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <vector>

#include "device/access.h"
#include "device/testing.h"

namespace pasta::device {
namespace {

constexpr std::uint64_t kIn = 0x10000, kOut = 0x20000, kLarge = std::uint64_t{1} << 40;

using Program = testing::Program<AccessPatch>;
using Tell = Program::Tell;

SiteRow site(const Program& program, std::uint64_t number) {
  for (const SiteRow& row : program.rows<SiteRow>(TableId::kSites)) {
    if (row.site == number) return row;
  }
  ADD_FAILURE() << "no site " << number;
  return {};
}

// 32 lanes of one group, each with one read of 4 bytes.
SiteRow read_of_a_warp(const std::function<std::uint64_t(std::uint32_t lane)>& address) {
  Program program(32, 1, {{kIn, 0x10000, 1}});
  program.run([&](std::uint32_t, std::uint32_t lane, const Tell& tell) {
    tell(Access::kRead, address(lane), 4, Space::kGlobal);
  });
  return site(program, 0);
}

TEST(Sites, Unit) {
  const SiteRow row = read_of_a_warp([](std::uint32_t lane) { return kIn + 4 * lane; });
  EXPECT_EQ(row.counts, (SiteCounts{.warps = 1,
                                    .lanes = 32,
                                    .asked_bytes = 128,
                                    .used_bytes = 128,
                                    .sectors = 4,
                                    .needed_sectors = 4,
                                    .unit = 1}));
  EXPECT_EQ(row.width, 4u);
  EXPECT_EQ(row.object, 1u);
  EXPECT_EQ(row.space, static_cast<std::uint64_t>(Space::kGlobal));
  EXPECT_EQ(row.access, static_cast<std::uint64_t>(Access::kRead));
}

TEST(Sites, Misaligned) {
  const SiteRow row = read_of_a_warp([](std::uint32_t lane) { return kIn + 4 + 4 * lane; });
  EXPECT_EQ(row.counts, (SiteCounts{.warps = 1,
                                    .lanes = 32,
                                    .asked_bytes = 128,
                                    .used_bytes = 128,
                                    .sectors = 5,
                                    .needed_sectors = 4,
                                    .misaligned = 1,
                                    .unit = 1}));
}

TEST(Sites, Strides) {
  for (std::uint32_t stride = 2; stride <= 33; ++stride) {
    const SiteRow row =
        read_of_a_warp([&](std::uint32_t lane) { return kIn + std::uint64_t{4} * stride * lane; });
    EXPECT_EQ(row.counts, (SiteCounts{.warps = 1,
                                      .lanes = 32,
                                      .asked_bytes = 128,
                                      .used_bytes = 128,
                                      .sectors = stride < 8 ? 31 * 4 * stride / 32 + 1 : 32,
                                      .needed_sectors = 4,
                                      .strided = 1}))
        << stride;
    EXPECT_EQ(row.least_step, 4 * stride);
    EXPECT_EQ(row.most_step, 4 * stride);
  }
  const SiteRow back = read_of_a_warp([](std::uint32_t lane) { return kIn + 4 * (31 - lane); });
  EXPECT_EQ(back.counts.strided, 1u);
  EXPECT_EQ(back.least_step, -4);
  EXPECT_EQ(back.most_step, -4);
  EXPECT_EQ(back.counts.sectors, 4u);
}

TEST(Sites, BroadcastGatherAndPieces) {
  const SiteRow all = read_of_a_warp([](std::uint32_t) { return kIn; });
  EXPECT_EQ(all.counts, (SiteCounts{.warps = 1,
                                    .lanes = 32,
                                    .asked_bytes = 128,
                                    .used_bytes = 4,
                                    .sectors = 1,
                                    .needed_sectors = 1,
                                    .broadcast = 1}));
  // 5 is prime to 32: each lane has one of 32 places 64 bytes apart.
  const SiteRow gather =
      read_of_a_warp([](std::uint32_t lane) { return kIn + 64 * (lane * 5 % 32); });
  EXPECT_EQ(gather.counts, (SiteCounts{.warps = 1,
                                       .lanes = 32,
                                       .asked_bytes = 128,
                                       .used_bytes = 128,
                                       .sectors = 32,
                                       .needed_sectors = 4,
                                       .gather = 1}));
  // Rows of a tile 16 words wide.
  const SiteRow rows =
      read_of_a_warp([](std::uint32_t lane) { return kIn + 256 * (lane / 16) + 4 * (lane % 16); });
  EXPECT_EQ(rows.counts, (SiteCounts{.warps = 1,
                                     .lanes = 32,
                                     .asked_bytes = 128,
                                     .used_bytes = 128,
                                     .sectors = 4,
                                     .needed_sectors = 4,
                                     .pieces = 1}));
}

TEST(Sites, PredicatedLanesAndTails) {
  // Of 1000 items, the even ones: 31 warps with 16 lanes, one with 4.
  Program program(32, 32, {{kIn, 4096, 1}});
  program.run([](std::uint32_t group, std::uint32_t item, const Tell& tell) {
    const std::uint64_t i = 32 * group + item;
    if (i < 1000 && i % 2 == 0) tell(Access::kRead, kIn + 4 * i, 4, Space::kGlobal);
  });
  // Lanes 0, 2, ... 30 touch all 4 sectors of a warp, lanes 0, 2, 4, 6 the first. 16 words would
  // fit into 2.
  EXPECT_EQ(site(program, 0).counts, (SiteCounts{.warps = 32,
                                                 .lanes = 500,
                                                 .asked_bytes = 2000,
                                                 .used_bytes = 2000,
                                                 .sectors = 31 * 4 + 1,
                                                 .needed_sectors = 31 * 2 + 1,
                                                 .unit = 32}));
}

TEST(Sites, LanesThreeApart) {
  Program program(32, 1, {{kIn, 0x1000, 1}});
  program.run([](std::uint32_t, std::uint32_t lane, const Tell& tell) {
    if (lane % 3 != 0) return;
    tell(Access::kRead, kIn, 4, Space::kGlobal);
    tell(Access::kRead, kIn + 4 * lane, 4, Space::kGlobal);
    tell(Access::kRead, kIn + 8 * lane, 4, Space::kGlobal);
  });
  EXPECT_EQ(site(program, 0).counts.broadcast, 1u);
  EXPECT_EQ(site(program, 1).counts.unit, 1u);
  EXPECT_EQ(site(program, 2).counts.gather, 1u) << "for which it is not looked";
}

TEST(Sites, BlockReduction) {
  // 64 items: each writes a word; then 32, 16, ... 1 items read two words and write one.
  std::vector<Program::Body> steps = {[](std::uint32_t, std::uint32_t i, const Tell& tell) {
    tell(Access::kRead, kIn + 4 * i, 4, Space::kGlobal);
    tell(Access::kWrite, 4 * i, 4, Space::kShared);
  }};
  for (std::uint32_t s = 32; s > 0; s /= 2) {
    steps.emplace_back([s](std::uint32_t, std::uint32_t i, const Tell& tell) {
      if (i >= s) return;
      tell(Access::kRead, 4 * i, 4, Space::kShared);
      tell(Access::kRead, 4 * (i + s), 4, Space::kShared);
      tell(Access::kWrite, 4 * i, 4, Space::kShared);
    });
  }
  Program program(64, 1, {{kIn, 256, 1}});
  program.run(steps);
  const auto rows = program.rows<AccessRow>(TableId::kAccesses);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].object, kSharedMemory);
  EXPECT_EQ(rows[1].counts, (AccessCounts{.reads = 2 * 63,
                                          .writes = 64 + 63,
                                          .warps = 2 + 3 * 6,
                                          .asked_bytes = 4 * (3 * 63 + 64),
                                          .passes = 2 + 3 * 6,
                                          .passes_without_conflicts = 2 + 3 * 6}));
  EXPECT_EQ(site(program, 600).counts.lanes, 1u);
  EXPECT_EQ(site(program, 600).counts.single, 1u);
}

TEST(Sites, TransposesAtTheirConflicts) {
  for (const std::uint64_t row : {std::uint64_t{32}, std::uint64_t{33}}) {
    Program program(32, 1, {});
    program.run([&](std::uint32_t, std::uint32_t lane, const Tell& tell) {
      tell(Access::kWrite, 4 * lane, 4, Space::kShared);
      tell(Access::kRead, 4 * row * lane, 4, Space::kShared);
    });
    EXPECT_EQ(site(program, 0).degree, 1u);
    EXPECT_EQ(site(program, 1).degree, row == 32 ? 32u : 1u);
    EXPECT_EQ(site(program, 1).counts.passes, row == 32 ? 32u : 1u);
    EXPECT_EQ(site(program, 1).counts.passes_without_conflicts, 1u);
    EXPECT_EQ(site(program, 1).least_step, static_cast<std::int64_t>(4 * row));
    EXPECT_EQ(site(program, 1).object, kSharedMemory);
  }
}

TEST(Sites, ContentionOfAtomics) {
  for (const auto space : {Space::kGlobal, Space::kShared}) {
    // Two warps, 8 bins: 4 lanes of a warp at each; and one bin for all.
    Program program(64, 1, {{kOut, 64, 1}});
    const std::uint64_t begin = space == Space::kGlobal ? kOut : 0;
    program.run([&](std::uint32_t, std::uint32_t i, const Tell& tell) {
      tell(Access::kAtomic, begin + 4 * (i % 8), 4, space);
      tell(Access::kAtomic, begin, 4, space);
    });
    EXPECT_EQ(site(program, 0).counts.crowds, 8u);
    EXPECT_EQ(site(program, 0).crowd, 4u);
    EXPECT_EQ(site(program, 1).counts.crowds, 64u);
    EXPECT_EQ(site(program, 1).crowd, 32u);
    EXPECT_EQ(site(program, 1).counts.broadcast, 2u);
  }
}

TEST(Sites, CopiesPastRegisters) {
  // 16 bytes a lane from global to shared memory.
  Program program(32, 1, {{kIn, 512, 1}});
  program.run([](std::uint32_t, std::uint32_t lane, const Tell& tell) {
    tell(Access::kRead, kIn + 16 * lane, 16, Space::kGlobal);
    tell(Access::kWrite, 16 * lane, 16, Space::kShared);
  });
  EXPECT_EQ(site(program, 0).counts.sectors, 16u);
  EXPECT_EQ(site(program, 0).width, 16u);
  EXPECT_EQ(site(program, 1).counts.passes, 4u);
  EXPECT_EQ(site(program, 1).counts.passes_without_conflicts, 4u);
}

TEST(Sites, SpillsAreOfNoObject) {
  Program program(32, 1, {{kIn, 512, 1}});
  program.run([](std::uint32_t, std::uint32_t, const Tell& tell) {
    tell(Access::kWrite, kIn, 8, Space::kLocal);
  });
  const auto rows = program.rows<AccessRow>(TableId::kAccesses);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].object, kLocalMemory);
  EXPECT_EQ(rows[0].counts, (AccessCounts{.writes = 32, .warps = 1, .asked_bytes = 256}));
}

TEST(Sites, OfOneOrSeveralObjects) {
  Program program(32, 1, {{kIn, 64, 1}, {kOut, 64, 2}});
  program.run([](std::uint32_t, std::uint32_t lane, const Tell& tell) {
    tell(Access::kRead, (lane < 16 ? kIn : kOut) + 4 * (lane % 16), 4, Space::kGlobal);
    tell(Access::kRead, kOut + lane, 1, Space::kGlobal);
    tell(Access::kRead, kOut + 64 + lane, 1, Space::kGlobal);
    tell(Access::kRead, kOut + 48 + lane, 1, Space::kGlobal);
  });
  EXPECT_EQ(site(program, 0).object, kSeveralObjects);
  EXPECT_EQ(site(program, 1).object, 2u);
  EXPECT_EQ(site(program, 2).object, kUnknownObject);
  EXPECT_EQ(site(program, 3).object, kSeveralObjects) << "one, and what is behind its end";
}

TEST(Sites, ThatFindNoRoomAreOneRow) {
  Program program(1, 1, {}, {.sites = 4, .outcomes = 0});
  program.run([](std::uint32_t, std::uint32_t, const Tell& tell) {
    for (std::uint64_t i = 0; i < 10; ++i) tell(Access::kRead, 4 * i, 4, Space::kShared);
  });
  std::uint64_t warps = 0, others = 0;
  const auto rows = program.rows<SiteRow>(TableId::kSites);
  for (const SiteRow& row : rows) {
    warps += row.counts.warps;
    if (row.site == kOtherSites) others = row.counts.warps;
  }
  EXPECT_EQ(rows.size(), 5u);
  EXPECT_EQ(warps, 10u);
  EXPECT_EQ(others, 6u);
  EXPECT_EQ(program.rows<AccessRow>(TableId::kAccesses)[0].counts.warps, 10u);
}

// Of many kinds, at 9 places.
void many_kinds(std::uint32_t group, std::uint32_t lane, const Tell& tell) {
  const std::uint64_t i = 32 * group + lane;
  tell(Access::kRead, kIn + 4 * i, 4, Space::kGlobal);
  tell(Access::kRead, (lane < 16 ? kIn : kOut) + 4 * (i * 5 % 32), 4, Space::kGlobal);
  tell(Access::kRead, kIn + 4 + 4 * lane, 4, Space::kGlobal);
  tell(Access::kRead, kIn + 12 * lane, 12, Space::kGlobal);
  tell(Access::kRead, lane < 3 ? 8 * lane : kIn, 4, Space::kGlobal);
  tell(Access::kAtomic, kOut + 4 * (lane % (group + 1)), 4, Space::kGlobal);
  tell(Access::kWrite, 132 * lane, 4, Space::kShared);
  tell(Access::kRead, 64 * lane, 16, Space::kShared);
  if (lane % 2 == group % 2) tell(Access::kWrite, kOut + 8 * i, 8, Space::kGlobal);
}

TEST(Outcomes, AreCountedInRowsWhereTheyFindNoRoom) {
  const std::vector<MemoryObject> objects = {{kIn, 4096, 1}, {kOut, 4096, 2}};
  Program roomy(32, 4, objects), crowded(32, 4, objects, {.outcomes = 8}),
      without(32, 4, objects, {.outcomes = 0});
  for (Program* program : {&roomy, &crowded, &without}) program->run(many_kinds);
  for (const Program* program : {&crowded, &without}) {
    EXPECT_EQ(program->rows<AccessRow>(TableId::kAccesses),
              roomy.rows<AccessRow>(TableId::kAccesses));
    EXPECT_EQ(program->rows<SiteRow>(TableId::kSites), roomy.rows<SiteRow>(TableId::kSites));
  }
  EXPECT_EQ(roomy.rows<SiteRow>(TableId::kSites).size(), 9u);
}

// One after the other, as a program whose groups come again and again to the same places.
std::vector<Warp> made_up_warps() {
  std::mt19937_64 random(1);
  const auto below = [&](std::uint64_t most) { return random() % most; };
  constexpr std::uint64_t kBegins[] = {
      kIn,  kOut, kLarge, kLarge + (std::uint64_t{1} << 30) - 64, kLarge + (std::uint64_t{3} << 30),
      0x100};
  std::vector<Warp> warps;
  for (int shape = 0; shape < 400; ++shape) {
    Warp warp;
    warp.space = below(3) == 0 ? Space::kShared : Space::kGlobal;
    warp.access = static_cast<Access>(below(3));
    warp.site = below(4) * 16;
    warp.width = 1u << below(5);
    warp.active = below(2) == 0 ? ~0u : static_cast<std::uint32_t>(random() | 1);
    const std::uint64_t step = below(3) == 0 ? 1 : below(34), turn = below(2) == 0 ? 0 : below(32);
    for (int again = 0; again < 6; ++again) {
      // By multiples of what it asks for, so that it is of another bank or part of a sector.
      const std::uint64_t begin = kBegins[below(std::size(kBegins))] + warp.width * below(20);
      for (std::uint64_t lane = 0; lane < kWarpLanes; ++lane) {
        const std::uint64_t address = begin + ((lane ^ turn) * step) * warp.width;
        warp.address[lane] = warp.space == Space::kShared ? address % 0x4000 : address;
      }
      warps.push_back(warp);
      if (below(4) == 0) warp.active = warp.active >> 1 | 1;
    }
  }
  return warps;
}

TEST(Outcomes, OfMadeUpWarpsComeToTheSameInRows) {
  const std::vector<MemoryObject> objects = {
      {kIn, 0x8000, 1}, {kOut, 0x800, 2}, {kLarge, std::uint64_t{4} << 30, 3}};
  const Launch launch{.objects = objects.data(), .object_count = 3};
  // With marks of bytes, and with so little room that they are as coarse as they may be.
  for (const Marks::Room& room : {AccessPatch::Settings{}.marks, {.together = 64, .each = 64}}) {
    Program known(32, 1, objects, {.marks = room});
    Program rows(32, 1, objects, {.outcomes = 0, .marks = room});
    for (const Warp& warp : made_up_warps()) {
      for (Program* program : {&known, &rows}) {
        AccessPatch::on_access(program->state(), launch, warp);
      }
    }
    EXPECT_EQ(known.rows<AccessRow>(TableId::kAccesses), rows.rows<AccessRow>(TableId::kAccesses));
    EXPECT_EQ(known.rows<SiteRow>(TableId::kSites), rows.rows<SiteRow>(TableId::kSites));
    EXPECT_EQ(known.rows<AccessRow>(TableId::kAccesses).size(), 5u);
  }
}

TEST(Counters, DoNotWrap) {
  // As if 2^33 lanes had been there before among the outcomes, and as many in rows.
  constexpr std::uint64_t kBefore = std::uint64_t{1} << 33;
  Program program(32, 1, {{kIn, 128, 1}});
  program.state().objects[AccessPatch::kFirstObjectRow] = {
      .reads = kBefore, .warps = kBefore / 32, .asked_bytes = 4 * kBefore};
  program.run([](std::uint32_t, std::uint32_t lane, const Tell& tell) {
    tell(Access::kRead, kIn + 4 * lane, 4, Space::kGlobal);
  });
  const KeyTable& outcomes = program.state().outcomes;
  for (std::uint32_t i = 0; i < outcomes.capacity; ++i) {
    if (outcomes.keys[i] != 0) program.state().times[i] += kBefore / 32;
  }
  const PatchResult result = program.result();
  const auto parts = write_result(result, std::size_t{1} << 20);
  ASSERT_EQ(parts.size(), 1u);
  const auto read = read_result(std::as_bytes(std::span(parts[0])));
  ASSERT_TRUE(read.has_value());
  const auto rows = rows_of<AccessRow>(read->tables[1]);
  EXPECT_EQ(rows[0].counts.reads, 17'179'869'216u);
  EXPECT_EQ(rows[0].counts.warps, 536'870'913u);
  EXPECT_EQ(rows[0].counts.asked_bytes, 68'719'476'864u);
}

}  // namespace
}  // namespace pasta::device
