#include "adapters/common/python/source_locations.h"

#include <gtest/gtest.h>

#include <string>

namespace pasta::adapters::common::python {
namespace {

std::string place(std::string_view locations, std::size_t room = 1024) {
  char memory[1024];
  return std::string(place_of_locations(locations, memory, room));
}

// As XLA writes it, but for the folders.
TEST(SourceLocations, EachStackHasItsInnermostOfTheUsers) {
  EXPECT_EQ(place("\n- /m/vae.py:143[&lt;module&gt;]\n"
                  "-- /m/vae.py:127[run_epoch]\n"
                  "--- /m/vae.py:125[body_fun]\n"
                  "---- /m/vae.py:124[&lt;lambda&gt;]\n"
                  "----- /m/vae.py:122[body_fun] transpose[permutation=(1, 0)]\n"
                  "--- /m/vae.py:126[body_fun] add\n"
                  "--- /m/vae.py:126[body_fun] mul\n"
                  "--- /m/vae.py:126[body_fun] sub\n"),
            "/m/vae.py(122, 126): body_fun");
  EXPECT_EQ(place("\n- /m/a.py:12:8[forward] dot_general\n- /m/b.py:3:1[f] tanh\n"
                  "- /m/a.py:9:8[forward] add\n- /m/b.py:3:7[g]\n"),
            "/m/a.py(12, 9): forward + /m/b.py(3): f + /m/b.py(3): g");
  EXPECT_EQ(place("\n- /m/train.py:4[step]\n-- /v/lib/python3.12/site-packages/flax/linear.py:90"
                  "[__call__] dot\n"),
            "/m/train.py(4): step");
  EXPECT_EQ(place("\n- /v/lib/python3.12/site-packages/flax/linear.py:90[__call__] dot\n"),
            "flax/linear.py(90): __call__");
}

TEST(SourceLocations, WhatAModuleHasInCommonIsOneStack) {
  EXPECT_EQ(place("\n/m/train.py:31:4[&lt;module&gt;]\n/m/train.py:7:9[train]\n"
                  "/v/lib/python3.12/site-packages/optax/update.py:5:2[apply]\n"),
            "/m/train.py(7): train");
}

TEST(SourceLocations, WithoutStacksThereAreLinesAlone) {
  EXPECT_EQ(place("\n- /m/a b:c.py:12 dot\n- /m/a b:c.py:13\n"), "/m/a b:c.py(12, 13)");
  for (const auto* const none :
       {"", "\n", "[error]", "\n- no line\n", "\n- :12[f]\n", "[invalid common_prefix]",
        "\n- /m/a.py:99999999999999999999[f]\n"}) {
    EXPECT_EQ(place(none), "") << none;
  }
}

TEST(SourceLocations, WhatHasNoRoomIsNotToldByHalves) {
  const std::string two = "\n- /m/a.py:12[f]\n- /m/b.py:3[g]\n";
  const std::string whole = place(two);
  EXPECT_EQ(whole, "/m/a.py(12): f + /m/b.py(3): g");
  for (std::size_t room = 0; room <= whole.size(); ++room) {
    const std::string told = place(two, room);
    EXPECT_EQ(told, room == whole.size() ? whole : room >= 14 ? "/m/a.py(12): f" : "") << room;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "\n" + std::string(static_cast<std::size_t>(i), '-') + " /m/a.py:" + std::to_string(i) +
            "[f]";
  }
  EXPECT_NE(place(many), "");
}

}  // namespace
}  // namespace pasta::adapters::common::python
