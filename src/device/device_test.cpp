#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "device/access.h"
#include "device/host_runner.h"
#include "device/layout.h"
#include "device/result.h"
#include "device/testing.h"

namespace pasta::device {
namespace {

constexpr std::uint64_t kIn = 0x10000, kOut = 0x20000;

using Program = testing::Program<AccessPatch>;

std::vector<AccessRow> accesses(const Program& program) {
  return program.rows<AccessRow>(TableId::kAccesses);
}
TEST(Access, VectorAdd) {
  // 1024 items of 4 bytes: 32 warps, each 128 bytes in a row.
  Program program(64, 16, {{kIn, 4096, 1}, {kOut, 4096, 2}});
  program.run([](std::uint32_t group, std::uint32_t item, const Program::Tell& tell) {
    const std::uint64_t at = 4 * (64 * group + item);
    tell(Access::kRead, kIn + at, 4, Space::kGlobal);
    tell(Access::kWrite, kOut + at, 4, Space::kGlobal);
  });
  const std::vector<AccessRow> rows = accesses(program);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].counts, (AccessCounts{.reads = 1024,
                                          .warps = 32,
                                          .asked_bytes = 4096,
                                          .used_bytes = 4096,
                                          .sectors = 128,
                                          .touched = 4096}));
  EXPECT_EQ(rows[1].counts, (AccessCounts{.writes = 1024,
                                          .warps = 32,
                                          .asked_bytes = 4096,
                                          .used_bytes = 4096,
                                          .sectors = 128,
                                          .touched = 4096}));
  EXPECT_EQ(rows[0].granule, 1u);
}

TEST(Access, Strides) {
  for (unsigned stride = 1; stride <= 33; ++stride) {
    Program program(32, 1, {{kIn, 32 * 33 * 4, 1}});
    program.run([&](std::uint32_t, std::uint32_t item, const Program::Tell& tell) {
      tell(Access::kRead, kIn + 4 * stride * item, 4, Space::kGlobal);
    });
    // Up to 8 words apart, no sector between the first and the last is left out; from there on,
    // each lane has its own.
    const std::uint64_t sectors = stride < 8 ? 31 * 4 * stride / 32 + 1 : 32;
    EXPECT_EQ(accesses(program)[0].counts, (AccessCounts{.reads = 32,
                                                         .warps = 1,
                                                         .asked_bytes = 128,
                                                         .used_bytes = 128,
                                                         .sectors = sectors,
                                                         .touched = 128}))
        << stride;
  }
}

TEST(Access, LanesThatFollowOneAnotherWhereverTheyAre) {
  // As on a GPU, also of lanes that are 12 apart, of which no other stride is looked for.
  Warp warp;
  warp.width = 4;
  warp.active = 1u << 13 | 1u << 25;
  const auto pattern = [&](std::uint64_t second) {
    warp.address[13] = kIn + 4 * 13;
    warp.address[25] = second;
    return warp.pattern([](std::int64_t) {});
  };
  EXPECT_EQ(pattern(kIn + 4 * 25), Pattern::kUnit);
  EXPECT_EQ(pattern(kIn + 4 * 13), Pattern::kBroadcast);
  EXPECT_EQ(pattern(kIn + 8 * 25), Pattern::kGather);
}
TEST(Access, WidthsBroadcastAndMisalignment) {
  const auto counts = [](std::uint32_t width, std::uint64_t stride, std::uint64_t offset) {
    Program program(32, 1, {{kIn, 1024, 1}});
    program.run([&](std::uint32_t, std::uint32_t item, const Program::Tell& tell) {
      tell(Access::kRead, kIn + offset + stride * item, width, Space::kGlobal);
    });
    return accesses(program)[0].counts;
  };
  for (const std::uint32_t width : {1u, 2u, 4u, 8u, 16u, 32u}) {
    EXPECT_EQ(counts(width, width, 0).sectors, width);
    EXPECT_EQ(counts(width, width, 0).used_bytes, 32 * width);
  }
  EXPECT_EQ(counts(4, 0, 0).sectors, 1u);
  EXPECT_EQ(counts(4, 0, 0).asked_bytes, 128u);
  EXPECT_EQ(counts(4, 0, 0).used_bytes, 4u);
  EXPECT_EQ(counts(4, 4, 4).sectors, 5u) << "a word beside the sectors";
  EXPECT_EQ(counts(4, 0, 30).sectors, 2u) << "one access over two sectors";
  EXPECT_EQ(counts(4, 0, 30).used_bytes, 4u);
}

TEST(Access, Transposes) {
  // 64 x 64 words, tiles of 32 x 32 by groups of 32 x 8 items; in the tile a row is 32 or 33 words.
  for (const std::uint64_t row : {std::uint64_t{32}, std::uint64_t{33}}) {
    Program program(256, 4, {{kIn, 16384, 1}, {kOut, 16384, 2}});
    program.run([&](std::uint32_t group, std::uint32_t item, const Program::Tell& tell) {
      const std::uint64_t x = item % 32, y = item / 32, tile_x = group % 2 * 32,
                          tile_y = group / 2 * 32;
      for (std::uint64_t j = 0; j < 32; j += 8) {
        tell(Access::kRead, kIn + 4 * ((tile_y + y + j) * 64 + tile_x + x), 4, Space::kGlobal);
        tell(Access::kWrite, 4 * ((y + j) * row + x), 4, Space::kShared);
      }
      for (std::uint64_t j = 0; j < 32; j += 8) {
        tell(Access::kRead, 4 * (x * row + y + j), 4, Space::kShared);
        tell(Access::kWrite, kOut + 4 * ((tile_x + y + j) * 64 + tile_y + x), 4, Space::kGlobal);
      }
    });
    const std::vector<AccessRow> rows = accesses(program);
    ASSERT_EQ(rows.size(), 3u);
    // 128 warps, each 4 sectors in and 4 out.
    EXPECT_EQ(rows[0].counts.sectors, 512u);
    EXPECT_EQ(rows[1].counts.sectors, 512u);
    // 128 rows of the tile are written in one pass each. 128 columns are read: all of one bank, or
    // each word of its own.
    EXPECT_EQ(rows[2].counts, (AccessCounts{.reads = 4096,
                                            .writes = 4096,
                                            .warps = 256,
                                            .asked_bytes = 32768,
                                            .passes = row == 32 ? 128u + 128 * 32 : 256u,
                                            .passes_without_conflicts = 256}));
  }
  // Without a tile: rows in, columns out.
  Program naive(256, 16, {{kIn, 16384, 1}, {kOut, 16384, 2}});
  naive.run([](std::uint32_t group, std::uint32_t item, const Program::Tell& tell) {
    const std::uint64_t x = (256 * group + item) % 64, y = (256 * group + item) / 64;
    tell(Access::kRead, kIn + 4 * (y * 64 + x), 4, Space::kGlobal);
    tell(Access::kWrite, kOut + 4 * (x * 64 + y), 4, Space::kGlobal);
  });
  EXPECT_EQ(accesses(naive)[0].counts.sectors, 512u);
  EXPECT_EQ(accesses(naive)[1].counts.sectors, 4096u);
}

TEST(Access, BanksOfWideWords) {
  const auto passes = [](std::uint32_t width, std::uint64_t stride) {
    Warp warp;
    warp.width = width;
    warp.active = ~0u;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) warp.address[lane] = stride * lane;
    const Passes p = warp.passes();
    return std::array{p.needed, p.without_conflicts};
  };
  EXPECT_EQ(passes(4, 4), (std::array{1u, 1u}));
  EXPECT_EQ(passes(4, 0), (std::array{1u, 1u})) << "one word for all";
  EXPECT_EQ(passes(4, 8), (std::array{2u, 1u}));
  EXPECT_EQ(passes(4, 128), (std::array{32u, 1u}));
  EXPECT_EQ(passes(4, 132), (std::array{1u, 1u}));
  EXPECT_EQ(passes(1, 1), (std::array{1u, 1u}));
  EXPECT_EQ(passes(8, 8), (std::array{2u, 2u})) << "16 lanes at a time";
  EXPECT_EQ(passes(16, 16), (std::array{4u, 4u})) << "8 lanes at a time";
  EXPECT_EQ(passes(8, 16), (std::array{4u, 2u}));
}

TEST(Access, AtomicsOfAHistogram) {
  // 512 items, 16 bins of 4 bytes; all bins in turn, or one alone.
  for (const bool one : {false, true}) {
    Program program(64, 8, {{kOut, 64, 7}});
    program.run([&](std::uint32_t, std::uint32_t item, const Program::Tell& tell) {
      tell(Access::kAtomic, kOut + (one ? 0 : 4 * (item % 16)), 4, Space::kGlobal);
    });
    const AccessRow row = accesses(program)[0];
    EXPECT_EQ(row.counts, (AccessCounts{.atomics = 512,
                                        .warps = 16,
                                        .asked_bytes = 2048,
                                        .used_bytes = one ? 64u : 1024u,
                                        .sectors = one ? 16u : 32u,
                                        .touched = one ? 4u : 64u}));
    EXPECT_EQ(row.object, 7u);
  }
}

TEST(Access, WhatIsInNoObjectIsUnknown) {
  // Of an object of 64 bytes: the last word; one byte past it; the gap behind; before it.
  const std::uint64_t addresses[] = {kIn + 60, kIn + 61, kIn + 64, kIn - 1, 0};
  for (const std::uint64_t address : addresses) {
    Program program(1, 1, {{kIn, 64, 1}, {kOut, 64, 2}});
    program.run([&](std::uint32_t, std::uint32_t, const Program::Tell& tell) {
      tell(Access::kRead, address, 4, Space::kGlobal);
    });
    const std::vector<AccessRow> rows = accesses(program);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0].object == 1, address == kIn + 60) << address;
  }
}

TEST(Access, LoopsAndBranchesOfItems) {
  // Item n passes the loop n times: the k-th passes of those that have one belong together.
  struct Masks {
    struct State {
      std::vector<std::uint32_t> seen;
    };
    static void on_access(State& state, const Launch&, const Warp& warp) {
      state.seen.push_back(warp.active);
    }
  };
  const Launch launch;
  Masks::State state;
  HostRunner<Masks> runner(launch, state);
  runner.begin_group(0);
  for (std::uint32_t item = 0; item < 4; ++item) {
    for (std::uint32_t k = 0; k < item; ++k) {
      runner.access({item, 0, 4 * item, 4, Space::kGlobal, Access::kRead});
    }
  }
  // After a barrier they begin anew, together.
  runner.flush();
  for (std::uint32_t item = 0; item < 4; ++item) {
    runner.access({item, 0, 4 * item, 4, Space::kGlobal, Access::kRead});
  }
  // Item 32 is of the next warp.
  runner.access({32, 0, 0, 4, Space::kGlobal, Access::kRead});
  runner.flush();
  EXPECT_EQ(state.seen, (std::vector<std::uint32_t>{0b1110, 0b1100, 0b1000, 0b1111, 1}));
  EXPECT_EQ(runner.dropped(), 0u);
}

TEST(Access, LargeObjectsAreMarkedInPieces) {
  Program program(1, 1, {{std::uint64_t{1} << 40, std::uint64_t{1} << 36, 1}});
  program.run([&](std::uint32_t, std::uint32_t, const Program::Tell& tell) {
    tell(Access::kWrite, (std::uint64_t{1} << 40) + (std::uint64_t{1} << 36) - 4, 4,
         Space::kGlobal);
  });
  const AccessRow row = accesses(program)[0];
  EXPECT_EQ(row.granule, 8192u);
  EXPECT_EQ(row.counts.touched, 8192u);
}

TEST(Result, IsReadAsItWasWritten) {
  PatchResult result{.grid = {1, 2, 3}, .block = {4, 5, 6}, .barriers = 7, .dropped = 8};
  for (const std::uint32_t columns : {1u, 3u, 20u}) {
    ResultTable& table = result.tables.emplace_back();
    table.id = static_cast<TableId>(columns);
    table.columns = columns;
    for (std::uint64_t i = 0; i < 100; ++i) {
      for (std::uint64_t j = 0; j < columns; ++j) table.numbers.push_back(i * columns + j);
      if (columns != 3) table.names.emplace_back(i, 'x');
    }
  }
  for (const std::size_t most : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    PatchResult read;
    for (const std::string& part : write_result(result, most)) {
      EXPECT_TRUE(most < 1000 || part.size() <= most);
      auto one = read_result(std::as_bytes(std::span(part)));
      ASSERT_TRUE(one.has_value());
      if (read.tables.empty()) {
        read = *one;
        continue;
      }
      EXPECT_EQ(one->barriers + one->dropped + one->grid[0], 0u) << "said once";
      for (ResultTable& more : one->tables) {
        ResultTable& table = read.tables.back();
        if (more.id != table.id) {
          read.tables.push_back(std::move(more));
          continue;
        }
        table.numbers.insert(table.numbers.end(), more.numbers.begin(), more.numbers.end());
        table.names.insert(table.names.end(), more.names.begin(), more.names.end());
      }
    }
    EXPECT_EQ(read, result);
  }
  // A cut at any place is no result.
  const std::string whole = write_result(result, std::size_t{1} << 20)[0];
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_result(std::as_bytes(std::span(whole).first(size))).has_value()) << size;
  }
  EXPECT_EQ(write_result({}, 1000).size(), 1u);
}

TEST(Result, OfLaterVersionsHasMoreColumns) {
  struct Old {
    std::uint64_t a, b;
  };
  struct New {
    std::uint64_t a, b, c;
  };
  ResultTable table{.id = TableId::kObjects};
  append_row(table, New{1, 2, 3});
  append_row(table, New{4, 5, 6});
  const auto rows = rows_of<Old>(table);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].b, 5u);
  ResultTable old{.id = TableId::kObjects};
  append_row(old, Old{1, 2});
  EXPECT_TRUE(rows_of<New>(old).empty());
}

}  // namespace
}  // namespace pasta::device
