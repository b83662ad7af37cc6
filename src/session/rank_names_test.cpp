#include "session/rank_names.h"

#include <gtest/gtest.h>

namespace pasta::session {
namespace {

std::vector<int> ranks(const std::vector<std::string>& paths) {
  std::vector<int> found;
  for (const NamedRank& named : ranks_in_names(paths)) found.push_back(named.rank);
  return found;
}
int rank(const std::string& path) { return ranks({path, "x"})[0]; }

TEST(RankNames, WordsAndTheirNumbers) {
  for (const char* name :
       {"rank3.json", "rank_3.json", "RANK-3", "rank.3.json", "rank=3", "trace_rank03.json.gz",
        "worker3.pt.trace.json", "worker_3", "r3.json", "step12_r3.json", "rank3_step12.pasta",
        "worker7_rank3", "rank3-of-8.json", "3of8.json", "t_3_of_8.json", "local_rank0_rank3",
        "a/rank3/trace.json", "rank3/deep/trace.json", "rank1/rank3.json"}) {
    EXPECT_EQ(rank(name), 3) << name;
  }
}

TEST(RankNames, WhatSaysNoRank) {
  for (const char* name : {"",
                           "trace.json",
                           "host_4711.json",
                           "dlrm_8rank.json",
                           "local_rank3.json",
                           "frank3.json",
                           "rank.json",
                           "rankx3",
                           "rank3b",
                           "t3of8.json",
                           "r3d.json",
                           "br3.json",
                           "2r3.json",
                           "rank0_rank1.json",
                           "rank12345678901.json",
                           "9of8.json",
                           "3of.json",
                           "3ofx8",
                           "top3.json",
                           "rank-"}) {
    EXPECT_EQ(rank(name), -1) << name;
  }
}

TEST(RankNames, FoldersOfAllSayNothing) {
  EXPECT_EQ(ranks({"rank5/a.json", "rank5/b.json"}), (std::vector{-1, -1}));
  EXPECT_EQ(ranks({"x/rank5/a.json", "x/rank6/a.json"}), (std::vector{5, 6}));
  EXPECT_EQ(ranks({"rank5/a.json"}), (std::vector{-1}));
}

TEST(RankNames, NumbersOfANumberCountFromOneWhereTheLastOneShowsIt) {
  EXPECT_EQ(ranks({"t_1of8", "t_8of8"}), (std::vector{0, 7}));
  EXPECT_EQ(ranks({"t_1of8", "t_7of8"}), (std::vector{1, 7}));
  EXPECT_EQ(ranks({"t_0of2", "t_2of2"}), (std::vector{-1, 1}));
  EXPECT_EQ(ranks_in_names(std::vector<std::string>{"t_1of8", "x"})[0].world_size, 8);
}

TEST(RankNames, Labels) {
  EXPECT_EQ(rank_in_label("rank 12"), 12);
  for (const char* label :
       {"rank", "rank ", "rank x", "rank 1 old", "Rank 1", "before", "rank -1"}) {
    EXPECT_EQ(rank_in_label(label), std::nullopt) << label;
  }
}

}  // namespace
}  // namespace pasta::session
