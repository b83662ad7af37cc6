#include "base/natural_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace pasta::base {
namespace {

TEST(NaturalOrder, NumbersCountAsNumbers) {
  const std::vector<std::string> sorted = {"",
                                           "a",
                                           "a1b2",
                                           "a1b10",
                                           "a2",
                                           "a002b",
                                           "a10",
                                           "a10.x",
                                           "rank9",
                                           "rank10",
                                           "rank010",
                                           "rank99999999999999999999998",
                                           "rank99999999999999999999999",
                                           "x/1/2",
                                           "x/1/10"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j) {
      if (sorted[i] == "rank10" && sorted[j] == "rank010") continue;
      if (sorted[i] == "rank010" && sorted[j] == "rank10") continue;
      EXPECT_EQ(natural_less(sorted[i], sorted[j]), i < j) << sorted[i] << " and " << sorted[j];
    }
  }
  EXPECT_NE(natural_less("rank10", "rank010"), natural_less("rank010", "rank10"));
}

}  // namespace
}  // namespace pasta::base
