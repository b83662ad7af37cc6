// No answer depends on how events are cut into batches: every tool, on every trace of tests/traces,
// one event at a time, a few, and as many as there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include "pasta/session.h"

namespace pasta {
namespace {

Result<Document> document(const std::string& path, std::size_t batch) {
  Session session;
  auto source = open_source(path);
  if (!source) return tl::unexpected<Error>(std::move(source).error());
  session.add(std::move(*source));
  for (const ToolEntry& entry : builtin_tools()) {
    const auto options = Options::parse(entry.name, entry.options, {});
    if (!options) return tl::unexpected<Error>(options.error());
    auto tool = entry.make(*options);
    if (!tool) return tl::unexpected<Error>(std::move(tool).error());
    session.add(entry, std::move(*tool));
  }
  session.batch_size(batch);
  PASTA_TRY(session.start());
  for (Result<bool> more = true; *more;) {
    more = session.pump();
    if (!more) return tl::unexpected<Error>(std::move(more).error());
  }
  return session.finish();
}

std::vector<std::string> traces() {
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(PASTA_SOURCE_DIR "/tests/traces")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json") || path.ends_with(".json.gz")) paths.push_back(path);
  }
  std::ranges::sort(paths);
  return paths;
}

class Batches : public ::testing::TestWithParam<std::string> {};

TEST_P(Batches, OfAnySizeGiveOneAnswer) {
  const auto expected = document(GetParam(), 1024);
  ASSERT_TRUE(expected) << expected.error().message;
  ASSERT_EQ(expected->reports.size(), builtin_tools().size());
  for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    const auto got = document(GetParam(), batch);
    ASSERT_TRUE(got) << got.error().message;
    for (std::size_t i = 0; i < expected->reports.size(); ++i) {
      EXPECT_EQ(got->reports[i], expected->reports[i])
          << expected->reports[i].tool << " in batches of " << batch;
    }
    EXPECT_EQ(got->trace, expected->trace) << "in batches of " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, Batches, ::testing::ValuesIn(traces()),
                         [](const ::testing::TestParamInfo<std::string>& trace) {
                           std::string name =
                               std::filesystem::path(trace.param).filename().string();
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return std::to_string(trace.index) + "_" + name;
                         });

}  // namespace
}  // namespace pasta
