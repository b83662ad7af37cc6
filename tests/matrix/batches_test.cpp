// No answer depends on how events are cut into batches, or a trace into files: every tool, on every
// trace of tests/traces, one event at a time, a few, and as many as there are; whole, and as parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pasta/recorder.h"
#include "pasta/session.h"
#include "trace/pasta_writer.h"
#include "trace/test_support.h"

namespace pasta {
namespace {

// Results of patches are in live traces only; who cannot do without is refused for others.
bool for_stored(const ToolEntry& entry) { return !entry.needs.has(Kind::kDevice); }

Result<Document> document(const std::vector<std::string>& paths, std::size_t batch,
                          std::unique_ptr<Recorder> recorder = nullptr) {
  Session session;
  auto opened = open_sources(paths);
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  for (OpenedSource& source : opened->sources) session.add(std::move(source.adapter));
  if (recorder) session.add(std::move(recorder));
  for (const ToolEntry& entry : builtin_tools()) {
    if (!for_stored(entry)) continue;
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

// Writes the first events of a trace to one file and the others to the next, as a collector does
// that begins a new file when one is full.
class Cutter final : public Recorder {
 public:
  Cutter(std::vector<std::unique_ptr<Recorder>> parts, std::size_t each)
      : parts_(std::move(parts)), each_(each) {}
  Status begin(const Dictionary& dictionary) override {
    for (auto& part : parts_) PASTA_TRY(part->begin(dictionary));
    return {};
  }
  Status record_blob(BlobId id, std::span<const std::byte> bytes) override {
    for (auto& part : parts_) PASTA_TRY(part->record_blob(id, bytes));
    return {};
  }
  Status record(std::span<const Event> events) override {
    for (; !events.empty(); events = events.subspan(1)) {
      PASTA_TRY(parts_[std::min(seen_++ / each_, parts_.size() - 1)]->record(events.first(1)));
    }
    return {};
  }
  Status end(std::span<const SourceInfo> sources,
             std::span<const std::vector<Problem>> problems) override {
    const std::vector<std::vector<Problem>> none(problems.size());
    for (auto& part : parts_) {
      PASTA_TRY(part->end(sources, part == parts_.back() ? problems : std::span(none)));
    }
    return {};
  }

 private:
  std::vector<std::unique_ptr<Recorder>> parts_;
  std::size_t each_;
  std::size_t seen_ = 0;
};

// All of a report but where its trace lies.
Document without_paths(Document document) {
  for (auto& source : document.trace.sources) source.path.clear();
  for (auto& problem : document.trace.problems) problem.source.clear();
  return document;
}

class Batches : public ::testing::TestWithParam<std::string> {};

TEST_P(Batches, OfAnySizeGiveOneAnswer) {
  const auto expected = document({GetParam()}, 1024);
  ASSERT_TRUE(expected) << expected.error().message;
  ASSERT_EQ(expected->reports.size(),
            static_cast<std::size_t>(std::ranges::count_if(builtin_tools(), for_stored)));
  for (const std::size_t batch : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    const auto got = document({GetParam()}, batch);
    ASSERT_TRUE(got) << got.error().message;
    for (std::size_t i = 0; i < expected->reports.size(); ++i) {
      EXPECT_EQ(got->reports[i], expected->reports[i])
          << expected->reports[i].tool << " in batches of " << batch;
    }
    EXPECT_EQ(got->trace, expected->trace) << "in batches of " << batch;
  }
}

TEST_P(Batches, OfATraceCutIntoFilesIsTheAnswerOfTheWhole) {
  const trace::TempFolder folder;
  const auto writer = [&](const std::string& name) {
    trace::PastaWriterOptions options{.overwrite = true};
    options.uuid = trace::Uuid{1, 2, 3};
    return std::move(*trace::make_pasta_writer(folder.file(name), options));
  };
  const std::string whole = folder.file("whole.pasta");
  const auto original = document({GetParam()}, 1024, writer("whole.pasta"));
  ASSERT_TRUE(original) << original.error().message;
  std::size_t events = 0;
  for (const auto& [kind, count] : original->trace.events)
    events += static_cast<std::size_t>(count);
  const auto expected = document({whole}, 1024);
  ASSERT_TRUE(expected) << expected.error().message;
  for (const std::size_t parts : {std::size_t{2}, std::size_t{5}}) {
    std::vector<std::string> paths;
    std::vector<std::unique_ptr<Recorder>> writers;
    for (std::size_t i = 0; i < parts; ++i) {
      paths.push_back(folder.file("part" + std::to_string(i) + ".pasta"));
      writers.push_back(writer("part" + std::to_string(i) + ".pasta"));
    }
    const std::size_t each = events / parts + 1;
    ASSERT_TRUE(document({GetParam()}, 1024, std::make_unique<Cutter>(std::move(writers), each)));
    const auto cut = document(paths, 1024, writer("merged.pasta"));
    ASSERT_TRUE(cut) << cut.error().message;
    EXPECT_EQ(cut->trace.sources.size(), 1u);
    const auto merged = document({folder.file("merged.pasta")}, 1024);
    ASSERT_TRUE(merged) << merged.error().message;
    for (const auto* got : {&*cut, &*merged}) {
      for (std::size_t i = 0; i < expected->reports.size(); ++i) {
        EXPECT_EQ(got->reports[i], expected->reports[i])
            << expected->reports[i].tool << " of " << parts << " parts";
      }
      EXPECT_EQ(without_paths(*got).trace, without_paths(*expected).trace) << parts << " parts";
    }
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
