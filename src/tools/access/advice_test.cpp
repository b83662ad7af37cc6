#include "tools/access/advice.h"

#include <gtest/gtest.h>

namespace pasta::tools {
namespace {

using device::SiteCounts;

// 10 warps, all of one pattern, each of which touches so many sectors.
SiteSum site(std::uint64_t SiteCounts::*pattern, std::uint64_t lanes, std::uint64_t sectors,
             std::uint64_t needed, std::uint64_t used, std::int64_t step = 0) {
  SiteSum sum;
  sum.width = 4;
  sum.least_step = sum.most_step = step;
  sum.counts = {.warps = 10,
                .lanes = 10 * lanes,
                .used_bytes = 10 * used,
                .sectors = 10 * sectors,
                .needed_sectors = 10 * needed};
  sum.counts.*pattern = 10;
  return sum;
}

struct Case {
  const char* name;
  SiteSum sum;
  Fault fault;
  const char* advice;
};

TEST(Advice, OfEachFault) {
  SiteSum shifted = site(&SiteCounts::unit, 32, 5, 4, 128);
  shifted.counts.misaligned = 10;
  SiteSum few_shifted = site(&SiteCounts::unit, 6, 2, 1, 24);
  few_shifted.counts.misaligned = 10;
  SiteSum several_strides = site(&SiteCounts::strided, 32, 16, 4, 128, 16);
  several_strides.most_step = 2048;
  SiteSum at_times_three = site(&SiteCounts::unit, 2, 1, 1, 8);
  at_times_three.counts.lanes = 25;
  at_times_three.counts.used_bytes = 100;
  const Case cases[] = {
      {"in order", site(&SiteCounts::unit, 32, 4, 4, 128), Fault::kNone, ""},
      {"off a sector", shifted, Fault::kMisaligned,
       "let rows begin at multiples of 32 bytes, by padding them or by beginning earlier: 1.2 "
       "times "
       "fewer sectors"},
      {"off a sector, most of which is not used", few_shifted, Fault::kMisaligned,
       "2.0 times fewer"},
      {"broadcast", site(&SiteCounts::broadcast, 32, 1, 1, 4), Fault::kBroadcast,
       "all lanes access the same 4 B, 5.0 times in each warp: let each read another element and "
       "pass it on through shared memory, or read several at once: up to 8.0 times fewer sectors"},
      {"one lane", site(&SiteCounts::single, 1, 1, 1, 4), Fault::kFew,
       "one lane of a warp accesses 4 B of a sector of 32 bytes: let the warp's lanes share the "
       "work, up to 8.0 times fewer sectors"},
      {"two lanes", site(&SiteCounts::unit, 2, 1, 1, 8), Fault::kFew,
       "2.0 lanes of a warp access 8 B of a sector of 32 bytes"},
      {"two lanes, and three", at_times_three, Fault::kFew,
       "2.5 lanes of a warp access 10 B of a sector of 32 bytes"},
      {"every fourth lane", site(&SiteCounts::unit, 8, 4, 1, 32), Fault::kGaps,
       "8.0 lanes of a warp take part, with others between them that do not"},
      {"fields", site(&SiteCounts::strided, 32, 12, 4, 128, 12), Fault::kStructures,
       "lanes are 12 B apart, as in structures of which a field is accessed: keep each field in an "
       "array of its own, or read structures as a whole, through a tile in shared memory: 3.0 "
       "times "
       "fewer sectors"},
      {"columns, upwards", site(&SiteCounts::strided, 32, 32, 4, 128, -2048), Fault::kRows,
       "row pitch 512 elements of 4 bytes: a warp touches 32.0 sectors; swap the loops so that "
       "lanes "
       "next to each other access elements next to each other, or go through a tile in shared "
       "memory: 8.0 times fewer sectors"},
      {"strides of several launches", several_strides, Fault::kMixed,
       "up to 4.0 times fewer sectors"},
      {"gather", site(&SiteCounts::gather, 32, 32, 4, 128), Fault::kGather,
       "a warp touches 32.0 sectors: sort the indices"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(fault_of(c.sum), c.fault);
    if (c.fault == Fault::kNone) continue;
    const std::string advice = sector_advice(c.sum, 5);
    EXPECT_NE(advice.find(c.advice), std::string::npos) << advice;
  }
  EXPECT_EQ(fault_of(SiteSum()), Fault::kNone);
  EXPECT_EQ(sector_advice(cases[3].sum, 1).find("times in each warp"), std::string::npos);
}

SiteSum conflicts(std::uint64_t width, std::int64_t step) {
  SiteSum sum = site(&SiteCounts::strided, 32, 0, 0, 0, step);
  sum.width = width;
  sum.counts.passes = 320;
  sum.counts.passes_without_conflicts = 10;
  return sum;
}

TEST(Advice, OfBankConflicts) {
  EXPECT_EQ(
      conflict_advice(conflicts(4, 128)),
      "lanes are 32 words apart: pad rows to 33, so that each lane has a bank of its own: 32.0 "
      "times fewer passes");
  EXPECT_EQ(conflict_advice(conflicts(1, 8)).substr(0, 40),
            "lanes are 2 words apart: pad rows to 3, ");
  // 16 lanes at a time have two banks each.
  EXPECT_EQ(conflict_advice(conflicts(8, 256)).substr(0, 57),
            "lanes are 32 elements of 8 bytes apart: pad rows to 33, s");
  EXPECT_EQ(conflict_advice(conflicts(16, 64)).substr(0, 56),
            "lanes are 4 elements of 16 bytes apart: pad rows to 5, s");
  // A stride that does without padding, and none.
  EXPECT_EQ(conflict_advice(conflicts(4, 132)).substr(0, 24), "let the lanes of a warp ");
  EXPECT_EQ(conflict_advice(site(&SiteCounts::gather, 32, 0, 0, 0)).substr(0, 24),
            "let the lanes of a warp ");
}

TEST(Advice, OfContention) {
  SiteSum sum = site(&SiteCounts::broadcast, 32, 1, 1, 4);
  sum.counts.crowds = 320;
  EXPECT_EQ(
      contention_advice(sum, 64),
      "reduce within the warp first, and let one lane do the atomic operation: 32.0 times fewer; "
      "or within the group: 64.0 times fewer at each address");
  sum.counts.broadcast = 0;
  sum.counts.gather = 10;
  sum.counts.crowds = 40;
  EXPECT_EQ(
      contention_advice(sum, 0),
      "4.0 of 32.0 lanes wait for one another: keep a copy for each group in shared memory, and "
      "add them up at the end");
}

}  // namespace
}  // namespace pasta::tools
