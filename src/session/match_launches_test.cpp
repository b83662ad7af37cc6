#include "session/match_launches.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pasta::session {
namespace {

// A letter is a kernel; in `some`, '.' is a launch that was left out.
std::vector<LaunchKey> launches(std::string_view letters, std::uint32_t grid = 4) {
  std::vector<LaunchKey> keys;
  for (const char letter : letters)
    keys.push_back({.kernel = static_cast<std::uint32_t>(letter), .grid = {grid, 1, 1}});
  return keys;
}
std::vector<NumberedLaunch> analysed(std::string_view letters, std::uint32_t grid = 4) {
  std::vector<NumberedLaunch> some;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (letters[i] == '.') continue;
    some.push_back(
        {{.kernel = static_cast<std::uint32_t>(letters[i]), .grid = {grid, 1, 1}}, i + 1});
  }
  return some;
}
using Indices = std::vector<std::size_t>;

TEST(MatchLaunches, OfEqualRunsEachWithItself) {
  EXPECT_EQ(match_launches(launches("abca"), analysed("abca")), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(match_launches(launches(""), analysed("a")), (Indices{kNoMatch}));
  EXPECT_TRUE(match_launches(launches("ab"), analysed("")).empty());
}

TEST(MatchLaunches, KernelsChosenByMeasuringAreOneMoreOrLess) {
  EXPECT_EQ(match_launches(launches("abcabc"), analysed("abxcabc")),
            (Indices{0, 1, kNoMatch, 2, 3, 4, 5}));
  EXPECT_EQ(match_launches(launches("abxcabc"), analysed("abcabc")), (Indices{0, 1, 3, 4, 5, 6}));
  EXPECT_EQ(match_launches(launches("abxca"), analysed("abyca")), (Indices{0, 1, kNoMatch, 3, 4}));
}

TEST(MatchLaunches, OfSomeTheirNumbersSayWhichTheyAre) {
  // As "aaa" alone they would be the first three.
  EXPECT_EQ(match_launches(launches("aaaabaaaa"), analysed("....ba.a")), (Indices{4, 5, 7}));
  EXPECT_EQ(match_launches(launches("bababacbaba"), analysed("......cb")), (Indices{6, 7}));
}

TEST(MatchLaunches, WhereOnlyAPartWasCollectedOfBothNumbersSayNothing) {
  EXPECT_EQ(match_launches(launches("abc"), analysed("......abc")), (Indices{0, 1, 2}));
}

TEST(MatchLaunches, WhatWasNotAnalysedIsNobodyElses) {
  // Which of many it is, only the numbers could tell.
  EXPECT_EQ(match_launches(launches("bbbb"), analysed("a..b")), (Indices{kNoMatch, 3}));
}

TEST(MatchLaunches, InTheirIterations) {
  const auto in = [](auto keys, std::uint32_t iteration) {
    for (auto& key : keys) key.iteration = iteration;
    return keys;
  };
  std::vector<LaunchKey> all;
  for (const std::uint32_t iteration : {0, 1, 2}) {
    for (LaunchKey& key : in(launches("aab"), iteration)) all.push_back(std::move(key));
  }
  auto some = analysed("aab");
  for (NumberedLaunch& launch : some) launch.key.iteration = 2;
  EXPECT_EQ(match_launches(all, some), (Indices{6, 7, 8})) << "numbers alone would say the first";
  some[2].key.iteration = 7;
  EXPECT_EQ(match_launches(all, some), (Indices{6, 7, kNoMatch}));
  all[0].iteration = LaunchKey::kNoIteration;
  EXPECT_EQ(match_launches(all, some), (Indices{0, 1, 2})) << "not all say it";
}

TEST(MatchLaunches, TheGridCountsUnlessItIsUnknown) {
  EXPECT_EQ(match_launches(launches("ab", 4), analysed("ab", 8)), (Indices{kNoMatch, kNoMatch}));
  EXPECT_EQ(match_launches(launches("ab", 0), analysed("ab", 8)), (Indices{0, 1}));
}

TEST(MatchLaunches, ThreadsThatTakeAnotherTurn) {
  EXPECT_EQ(match_launches(launches("abcabc"), analysed("bacabc")), (Indices{1, 0, 2, 3, 4, 5}));
  // More than can be aligned: all of the one before all of the other.
  std::string turns, blocks;
  for (int i = 0; i < 5000; ++i) turns += "ab";
  blocks = std::string(5000, 'a') + std::string(5000, 'b');
  const auto matches = match_launches(launches(turns), analysed(blocks));
  for (std::size_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(matches[i], 2 * i);
    ASSERT_EQ(matches[5000 + i], 2 * i + 1);
  }
}

// A digit behind each letter is the stream.
std::vector<LaunchKey> on_streams(std::string_view letters) {
  std::vector<LaunchKey> keys;
  for (std::size_t i = 0; i < letters.size(); i += 2) {
    keys.push_back({.kernel = static_cast<std::uint32_t>(letters[i]),
                    .stream = static_cast<std::uint32_t>(letters[i + 1] - '0')});
  }
  return keys;
}
// As above, of which those in capitals were left out.
std::vector<NumberedLaunch> analysed_on_streams(std::string_view letters) {
  std::vector<NumberedLaunch> some;
  std::map<char, std::uint64_t> in_stream;
  for (std::size_t i = 0; i < letters.size(); i += 2) {
    const std::uint64_t place = ++in_stream[letters[i + 1]];
    if (letters[i] < 'a') continue;
    some.push_back({on_streams(letters.substr(i, 2))[0], i / 2 + 1, place});
  }
  return some;
}

TEST(MatchLaunches, OnTheirStreams) {
  // Threads launch the same kernels, each on a stream of its own, and get other turns.
  EXPECT_EQ(match_launches(on_streams("a1a1a2a2"), analysed_on_streams("a1a2a1a2")),
            (Indices{0, 2, 1, 3}));
  // The third of the second stream alone: the fifth of all, in either run another.
  EXPECT_EQ(match_launches(on_streams("a1a1a2a2a2"), analysed_on_streams("A2A2A1A1a2")),
            (Indices{4}));
  EXPECT_EQ(match_launches(on_streams("a2a2a2a1a1"), analysed_on_streams("A1A2A1A2a2")),
            (Indices{2}));
  // One stream has a launch more.
  EXPECT_EQ(match_launches(on_streams("a1b2a1b2"), analysed_on_streams("b2a1a1a1b2")),
            (Indices{1, 0, 2, kNoMatch, 3}));
}

TEST(MatchLaunches, WhereStreamsAreNumberedOtherwiseAllAreAlignedTogether) {
  EXPECT_EQ(match_launches(on_streams("a1b2c1"), analysed_on_streams("a2b1c2")),
            (Indices{0, 1, 2}));
  // Only one run knows them.
  EXPECT_EQ(match_launches(on_streams("a1b2c1"), analysed("abc", 0)), (Indices{0, 1, 2}));
}

TEST(MatchLaunches, PlacesThatCannotBeAreNoHarm) {
  auto some = analysed_on_streams("a1a1b2");
  some[0].in_stream = 9;
  some[1].in_stream = 2;
  EXPECT_EQ(match_launches(on_streams("a1a1b2"), some), (Indices{0, 1, 2}));
  some[0].in_stream = 0;
  EXPECT_EQ(match_launches(on_streams("a1a1b2"), some), (Indices{0, 1, 2}));
}

}  // namespace
}  // namespace pasta::session
