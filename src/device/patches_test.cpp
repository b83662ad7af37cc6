#include "device/patches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/divergence.h"
#include "device/hotpages.h"
#include "device/reuse.h"
#include "device/testing.h"

namespace pasta::device {
namespace {

constexpr std::uint64_t kIn = 0x10000, kOut = 0x20000;

TEST(Hotpages, Blocks) {
  // 12 KiB from 1 KiB before a block on: a part of the first and of the last of four.
  testing::Program<HotpagesPatch> program(32, 96, {{kIn + 3072, 12288, 3}});
  using Tell = testing::Program<HotpagesPatch>::Tell;
  program.run([](std::uint32_t group, std::uint32_t lane, const Tell& tell) {
    tell(Access::kRead, kIn + 3072 + 128 * group + 4 * lane, 4, Space::kGlobal);
    if (group == 0) tell(Access::kAtomic, 16, 4, Space::kGlobal);
    if (group == 1) tell(Access::kWrite, kIn + 4096, 4, Space::kGlobal);
  });
  const auto rows = program.rows<BlockRow>(TableId::kBlocks);
  // 1 KiB is 256 words and 32 sectors; a block is 1024 and 128.
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0], (BlockRow{3, kIn, 4096, 1, {.reads = 256, .sectors = 32}}));
  EXPECT_EQ(rows[1],
            (BlockRow{3, kIn + 4096, 4096, 1, {.reads = 1024, .writes = 32, .sectors = 129}}));
  EXPECT_EQ(rows[2], (BlockRow{3, kIn + 8192, 4096, 1, {.reads = 1024, .sectors = 128}}));
  EXPECT_EQ(rows[3], (BlockRow{3, kIn + 12288, 4096, 1, {.reads = 768, .sectors = 96}}));
  EXPECT_EQ(rows[4], (BlockRow{kUnknownObject, 0, 0, 0, {.atomics = 32, .sectors = 1}}));
}

TEST(Hotpages, EqualBlocksAreOneRow) {
  testing::Program<HotpagesPatch> program(32, 4 * 32, {{kIn, 16384, 3}});
  using Tell = testing::Program<HotpagesPatch>::Tell;
  program.run([](std::uint32_t group, std::uint32_t lane, const Tell& tell) {
    tell(Access::kWrite, kIn + 128 * group + 4 * lane, 4, Space::kGlobal);
  });
  EXPECT_EQ(program.rows<BlockRow>(TableId::kBlocks),
            (std::vector<BlockRow>{{3, kIn, 4096, 4, {.writes = 1024, .sectors = 128}}}));
}

TEST(Hotpages, OfMuchMemoryBlocksAreLarger) {
  testing::Program<HotpagesPatch> program(1, 1,
                                          {{std::uint64_t{1} << 40, std::uint64_t{1} << 37, 1}});
  using Tell = testing::Program<HotpagesPatch>::Tell;
  program.run([](std::uint32_t, std::uint32_t, const Tell& tell) {
    tell(Access::kRead, (std::uint64_t{1} << 40) + (std::uint64_t{1} << 37) - 4, 4, Space::kGlobal);
  });
  const auto rows = program.rows<BlockRow>(TableId::kBlocks);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].block_bytes, std::uint64_t{1} << 20);
}

TEST(Reuse, SetsRunsAndFingerprints) {
  using Program = testing::Program<ReusePatch>;
  // Each group reads the same 4 KiB four times, and writes 128 bytes of its own, 1 KiB apart.
  Program program(32, 8, {{kIn, 8192, 1}, {kOut, 8192, 2}});
  program.run([](std::uint32_t group, std::uint32_t lane, const Program::Tell& tell) {
    for (std::uint64_t i = 0; i < 128; ++i) {
      tell(Access::kRead, kIn + 128 * (i % 32) + 4 * lane, 4, Space::kGlobal);
    }
    tell(Access::kWrite, kOut + 1024 * group + 4 * lane, 4, Space::kGlobal);
  });
  const auto sets = program.rows<SetRow>(TableId::kSets);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0], (SetRow{1, 32, 32, {8 * 128 * 128, 8 * 128 * 4, 4096}}));
  EXPECT_EQ(sets[1], (SetRow{2, 32, 32, {8 * 128, 8 * 4, 1024}}));
  const auto runs = program.rows<RunRow>(TableId::kRuns);
  ASSERT_EQ(runs.size(), 9u);
  EXPECT_EQ(runs[0], (RunRow{1, 0, 4096}));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(runs[1 + i], (RunRow{2, 1024 * i, 1024 * i + 128}));
  }
  // A group touches 128 + 4 sectors and accesses 516.
  const auto prints = program.rows<FingerprintRow>(TableId::kFingerprints);
  ASSERT_EQ(prints.size(), 1u);
  EXPECT_EQ(prints[0].groups, 8u);
  EXPECT_EQ(prints[0].sectors, 8u * 516);
  EXPECT_NEAR(static_cast<double>(prints[0].distinct), 8 * 132, 8 * 132 * 0.03);
  EXPECT_EQ(prints[0].full, 0u);
}

TEST(Reuse, ASectorOfTwoObjectsIsOfBoth) {
  using Program = testing::Program<ReusePatch>;
  // 100 and 28 bytes beside each other, of which neither begins nor ends with a sector.
  Program program(32, 1, {{kIn + 4, 100, 1}, {kIn + 104, 28, 2}});
  program.run([](std::uint32_t, std::uint32_t lane, const Program::Tell& tell) {
    tell(Access::kRead, kIn + 4 + 4 * lane, 4, Space::kGlobal);
  });
  EXPECT_EQ(program.rows<SetRow>(TableId::kSets),
            (std::vector<SetRow>{{1, 32, 32, {100, 4, 100}}, {2, 32, 32, {28, 2, 28}}}));
  EXPECT_EQ(program.rows<RunRow>(TableId::kRuns), (std::vector<RunRow>{{1, 0, 100}, {2, 0, 28}}));
  const auto prints = program.rows<FingerprintRow>(TableId::kFingerprints);
  ASSERT_EQ(prints.size(), 1u);
  EXPECT_EQ(prints[0].sectors, 6u);
  EXPECT_EQ(prints[0].distinct, 5u);
}

TEST(Reuse, GroupsThatNobodyKnewOfLeaveNoFingerprint) {
  // What a graph launches may get a larger grid on the GPU than it was laid out for.
  using Program = testing::Program<ReusePatch>;
  Program program(32, 2, {{kIn, 8192, 1}});
  const Launch launch = {.grid = {1024, 1, 1}, .block = {32, 1, 1}};
  HostRunner<ReusePatch> runner(launch, program.state());
  for (std::uint64_t group = 0; group < 1024; ++group) {
    runner.begin_group(group);
    for (std::uint32_t item = 0; item < 32; ++item) {
      runner.access({item, 0, kIn + 4 * item, 4, Space::kGlobal, Access::kRead});
    }
  }
  runner.flush();
  EXPECT_EQ(program.rows<SetRow>(TableId::kSets),
            (std::vector<SetRow>{{1, 32, 32, {1024 * 128, 1024 * 4, 128}}}));
  const auto prints = program.rows<FingerprintRow>(TableId::kFingerprints);
  ASSERT_EQ(prints.size(), 1u);
  EXPECT_EQ(prints[0].groups, 2u);
  EXPECT_EQ(prints[0].sectors, 2u * 4);
}

TEST(Reuse, ManyRunsAreKeptMoreCoarsely) {
  using Program = testing::Program<ReusePatch>;
  // Every second sector of 256 KiB.
  Program program(32, 128, {{kIn, 262144, 1}});
  program.run([](std::uint32_t group, std::uint32_t lane, const Program::Tell& tell) {
    tell(Access::kRead, kIn + 2048 * group + 64 * lane, 4, Space::kGlobal);
  });
  EXPECT_EQ(program.rows<SetRow>(TableId::kSets),
            (std::vector<SetRow>{{1, 32, 64, {16384, 4096, 131072}}}));
  EXPECT_EQ(program.rows<RunRow>(TableId::kRuns), (std::vector<RunRow>{{1, 0, 262144}}));
}

TEST(Divergence, LanesAndTails) {
  using Program = testing::Program<DivergencePatch>;
  // 40 items: a warp of 32 lanes and one of 8. At the second place only item 3 takes part.
  Program program(40, 2, {});
  program.run([](std::uint32_t, std::uint32_t item, const Program::Tell& tell) {
    tell(Access::kRead, kIn, 4, Space::kGlobal);
    if (item == 3) tell(Access::kRead, kIn, 4, Space::kGlobal);
  });
  auto rows = program.rows<ActivityRow>(TableId::kActivity);
  std::ranges::sort(rows, {}, &ActivityRow::site);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].counts, (ActivityCounts{4, 80, 80, 0, {2, 0, 0, 2}}));
  EXPECT_EQ(rows[1].counts, (ActivityCounts{2, 2, 64, 2, {2, 0, 0, 0}}));
}

TEST(Divergence, Groups) {
  using Program = testing::Program<DivergencePatch>;
  // Group n of 8 accesses memory n times, and the last 70 times.
  Program program(1, 8, {});
  program.run([](std::uint32_t group, std::uint32_t, const Program::Tell& tell) {
    for (std::uint32_t i = 0; i < (group == 7 ? 70 : group); ++i) {
      tell(Access::kRead, kIn, 4, Space::kGlobal);
    }
  });
  EXPECT_EQ(program.rows<BalanceRow>(TableId::kBalance),
            (std::vector<BalanceRow>{
                {.groups = 8, .working = 7, .total = 91, .median = 3, .most = 70, .heaviest = 7}}));
}

TEST(Patches, AreFoundByName) {
  const auto names = [](std::string_view text) {
    std::vector<std::string_view> found;
    for (const PatchEntry* patch : patches_of(text)) found.push_back(patch->name);
    return found;
  };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names(""), Names{"access"});
  EXPECT_EQ(names("reuse,divergence,reuse"), (Names{"reuse", "divergence"}));
  EXPECT_EQ(names("another,,hotpages"), Names{"hotpages"});
}

TEST(Patches, OneBesideTheOtherGivesTheSame) {
  const std::vector<MemoryObject> objects = {{kIn, 4096, 1}};
  const Launch launch{
      .grid = {2, 1, 1}, .block = {32, 1, 1}, .objects = objects.data(), .object_count = 1};
  HostPatches::State all;
  for (const PatchEntry& patch : patches()) all.push_back(patch.make(launch));
  Warp warp;
  warp.width = 4;
  warp.active = ~0u;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) warp.address[lane] = kIn + 4 * lane;
  HostPatches::on_access(all, launch, warp);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto alone = patches()[i].make(launch);
    alone->on_access(warp);
    EXPECT_EQ(all[i]->result({}), alone->result({})) << patches()[i].name;
    EXPECT_FALSE(alone->result({}).tables.empty());
  }
}

TEST(GroupSample, IsOfAllOrOfEachNth) {
  Launch launch;
  launch.grid[0] = 100;
  const GroupSample all = GroupSample::of(launch, 100);
  EXPECT_EQ(all.slots, 100u);
  EXPECT_EQ(all.slot(99), 99u);
  EXPECT_EQ(all.slot(100), GroupSample::kNone) << "there is no such group";
  const GroupSample some = GroupSample::of(launch, 30);
  EXPECT_EQ(some.apart(), 4u);
  EXPECT_EQ(some.slots, 25u);
  EXPECT_EQ(some.slot(96), 24u);
  EXPECT_EQ(some.slot(97), GroupSample::kNone);
}

TEST(Launch, FindsTheObjectAmongAnyNumber) {
  for (std::uint32_t count = 0; count <= 9; ++count) {
    std::vector<MemoryObject> objects;
    for (std::uint32_t i = 0; i < count; ++i) objects.push_back({100 * (i + 1ull), 50, i + 1ull});
    const Launch launch = {.objects = objects.data(), .object_count = count};
    for (std::uint64_t address = 0; address < 1100; ++address) {
      const std::uint64_t index = address / 100 - 1;
      const bool inside = address >= 100 && index < count && address % 100 < 47;
      EXPECT_EQ(launch.find(address, 4), inside ? index : kNoObject) << count << " " << address;
    }
  }
}

TEST(Pieces, TellTheSameAsLookingForIt) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << Pieces::kBits,
                          kHigh = std::uint64_t{1} << 40;
  constexpr std::uint32_t kCount = 1u << Pieces::kLeastCountBits;
  const std::vector<MemoryObject> objects = {
      {16, 5, 1},                                     // of no aligned size
      {kHigh, 3 * kPiece - 100, 2},                   // ends in a piece, in which others are
      {kHigh + 3 * kPiece - 100, 36, 3},              // beside it
      {kHigh + 3 * kPiece - 32, 0, 4},                // of no bytes
      {kHigh + 3 * kPiece - 31, 31 + kPiece / 2, 5},  // over the end of a piece
      {kHigh + kCount * kPiece, 2 * kPiece, 6},       // in the place of the first
      {kHigh << 4, 2 * kCount * kPiece, 7},           // larger than all pieces
      {std::uint64_t{1} << 56, 4096, 8},              // higher than tags tell
      {~std::uint64_t{0} - 4095, 4096, 9}};           // the last bytes there are
  const Launch launch = {.objects = objects.data(),
                         .object_count = static_cast<std::uint32_t>(objects.size())};
  const auto places = Pieces::places(
      launch, [](std::uint32_t i) { return Pieces::Target{.row = i, .base = 100 + i}; });
  const Pieces::Target nothing = {.row = kNoObject, .base = 5};
  for (const std::uint32_t count : {kCount, 4 * kCount}) {
    std::vector<Pieces::Piece> pieces(count);
    Pieces::plan(places, pieces);
    const Pieces::Table table = {.pieces = pieces.data(),
                                 .places = places.data(),
                                 .last_piece = count - 1,
                                 .nothing = nothing};
    for (const MemoryObject& object : objects) {
      for (const std::uint64_t edge : {object.address, object.address + object.bytes,
                                       object.address + kPiece, object.address + 5 * kPiece}) {
        for (std::uint64_t address = edge - 40; address != edge + 40; ++address) {
          for (const std::uint32_t bytes : {1u, 4u, 32u, 4096u}) {
            const auto found = Pieces::find(launch, table, address, bytes);
            const std::uint32_t wanted = launch.find(address, bytes);
            ASSERT_EQ(found.row, wanted) << address << " " << bytes;
            EXPECT_EQ(found.base, wanted == kNoObject ? 5 : 100 + wanted);
          }
        }
      }
    }
  }
  std::vector<Pieces::Piece> few(kCount);
  Pieces::plan(std::span(places).first(6), few);
  const auto piece = [&](std::uint64_t address) {
    return few[(address >> Pieces::kBits) % kCount].target.row;
  };
  EXPECT_EQ(piece(kHigh), 5u) << "the smaller of two that have all of theirs";
  EXPECT_EQ(piece(kHigh + 2 * kPiece), 1u) << "that has most of it";
  EXPECT_EQ(piece(kHigh + 3 * kPiece), 4u);
  std::vector<Pieces::Piece> more(2 * kCount);
  Pieces::plan(std::span(places).first(6), more);
  EXPECT_EQ(more[0].target.row, 1u);
  EXPECT_EQ(more[kCount].target.row, 5u) << "beside that which has its place where there are few";
}

TEST(Pieces, AreAsManyAsMemoryNeeds) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30, kBegin = 0x7000'0000'0000;
  const auto count = [](const std::vector<MemoryObject>& objects) {
    return Pieces::count(
        {.objects = objects.data(), .object_count = static_cast<std::uint32_t>(objects.size())});
  };
  EXPECT_EQ(count({}), 4096u);
  EXPECT_EQ(count({{kBegin, 8 * kGiB, 1}}), 4096u);
  EXPECT_EQ(count({{kBegin, 8 * kGiB, 1}, {kBegin + 8 * kGiB, kGiB, 2}}), 8192u);
  EXPECT_EQ(count({{kBegin, 8 * kGiB, 1}, {kBegin + 8 * kGiB, 4, 2}}), 4096u) << "one is lost";
  EXPECT_EQ(count({{kBegin, kGiB, 1}, {kBegin + 8 * kGiB, kGiB, 2}}), 8192u) << "8 GiB apart";
  EXPECT_EQ(count({{kBegin, 4, 1}, {kBegin + 8 * kGiB, 4, 2}}), 4096u) << "the same";
  EXPECT_EQ(count({{kBegin, kGiB, 1}, {kBegin + 512 * kGiB, 12 * kGiB, 2}}), 8192u)
      << "as far as they do";
  EXPECT_EQ(count({{kBegin, 128 * kGiB, 1}}), 65536u);
  EXPECT_EQ(count({{kBegin, 400 * kGiB, 1}}), 131072u);
  EXPECT_EQ(count({{kBegin, ~std::uint64_t{0} - kBegin, 1}}), 131072u) << "as fast as others";
  // Two to a piece.
  std::vector<MemoryObject> halves;
  for (std::uint64_t i = 0; i < 512; ++i) halves.push_back({kBegin + (i << 20), 1 << 20, i});
  EXPECT_EQ(count(halves), 4096u);
}

TEST(Distinct, IsAboutRight) {
  for (const std::uint64_t count : {1u, 100u, 4096u, 8192u}) {
    DistinctBits bits{};
    for (int again = 0; again < 2; ++again) {
      for (std::uint64_t thing = 0; thing < count; ++thing) {
        const std::uint32_t bit = DistinctBits::bit_of(thing);
        set_bits(bits.words[bit / 32], 1u << bit % 32);
      }
    }
    EXPECT_NEAR(static_cast<double>(DistinctBits::estimate(bits.count())),
                static_cast<double>(count), 1 + 0.06 * static_cast<double>(count));
  }
  EXPECT_EQ(DistinctBits::estimate(DistinctBits::kBits), DistinctBits::kMostTold);
}

}  // namespace
}  // namespace pasta::device
