// import(export(x)) == x, for every format that can be written.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/input.h"
#include "pasta/adapter.h"
#include "trace/chrome_writer.h"
#include "trace/pasta_writer.h"
#include "trace/test_support.h"

namespace pasta {
namespace {

using trace::KeepingSink;

void read(const std::string& path, KeepingSink& sink) {
  auto adapter = open_source(path);
  ASSERT_TRUE(adapter.has_value()) << adapter.error().message;
  const Status status = drive(**adapter, sink);
  ASSERT_TRUE(status.has_value()) << status.error().message;
}

// All of a trace but the names of its file: Kineto traces tell their processes apart by it.
std::string without_path(std::string text, const std::string& path) {
  for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos;) {
    text.replace(at, path.size(), "PATH");
  }
  return text;
}
std::string content(KeepingSink& sink, const std::string& path) {
  sink.source.path = "PATH";
  sink.source.format = "FORMAT";
  return without_path(as_text(sink), path);
}

// Without what Chrome JSON has no place for: how the original was written, and table entries that
// no event uses, which are told after the last event.
std::string events_of(KeepingSink& sink, const std::string& path) {
  sink.problems = {};
  const std::string text = content(sink, path);
  std::size_t end = 0;
  Kind kind{};
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string_view rest = std::string_view(text).substr(at);
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (kind_from_name(word, kind) && !rest.starts_with("device D")) {
      end = text.find('\n', at) + 1;
    }
  }
  return text.substr(0, end) + text.substr(text.rfind("\nsource "));
}

std::vector<std::string> kineto_traces() {
  const std::filesystem::path source = PASTA_SOURCE_DIR;
  std::vector<std::string> paths;
  for (const auto& folder :
       {source / "tests/traces", source / "../shared/corpus/hta",
        source / "../shared/corpus/kineto", source / "../shared/corpus/tracelens"}) {
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      const bool json = name.ends_with(".json") || name.ends_with(".json.gz");
      if (entry.is_regular_file() && json && entry.file_size() < 200'000) {
        paths.push_back(entry.path().string());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  const std::size_t begin = a.rfind('\n', at) == a.npos ? 0 : a.rfind('\n', at) + 1;
  return a.substr(begin, 300) + "\n---\n" + b.substr(std::min(begin, b.size()), 300);
}

TEST(RoundTrip, KinetoThroughEveryFormat) {
  std::size_t traces = 0;
  for (const std::string& path : kineto_traces()) {
    auto adapter = open_source(path);
    if (!adapter) continue;  // JSON of another kind
    KeepingSink original;
    if (!drive(**adapter, original)) continue;
    if (original.events.empty()) continue;
    ++traces;
    const trace::TempFolder folder;
    const std::string pasta = folder.file("t.pasta"), text = folder.file("t.txt"),
                      chrome = folder.file("t.json");
    const auto write = [&](Result<std::unique_ptr<Recorder>> writer) {
      ASSERT_TRUE(writer.has_value()) << writer.error().message;
      const Status status = replay(original, **writer);
      ASSERT_TRUE(status.has_value()) << status.error().message;
    };
    write(trace::make_pasta_writer(pasta));
    write(trace::make_text_writer(text));
    write(trace::make_chrome_writer(chrome));
    const std::string expected = content(original, path);
    for (const std::string& copy : {pasta, text}) {
      KeepingSink back;
      read(copy, back);
      const std::string got = content(back, path);
      EXPECT_TRUE(got == expected) << path << " as " << copy << ":\n"
                                   << first_difference(expected, got);
    }
    KeepingSink back;
    read(chrome, back);
    const std::string before = events_of(original, path), after = events_of(back, chrome);
    EXPECT_TRUE(after == before) << path << " as Chrome JSON:\n" << first_difference(before, after);
  }
  EXPECT_GT(traces, 0u) << "there are traces under tests/traces";
}

TEST(ChromeWriter, SaysWhatItLeftOut) {
  KeepingSink sample;
  fill_sample(sample);
  const trace::TempFolder folder;
  const std::string path = folder.file("t.json");
  auto writer = trace::make_chrome_writer(path);
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(replay(sample, **writer).has_value());
  KeepingSink back;
  read(path, back);
  const auto facts = back.dictionary_.facts();
  EXPECT_NE(
      std::find(facts.begin(), facts.end(),
                std::pair<std::string, std::string>("notExported", "2 device, 1 fault, 1 gap")),
      facts.end());
  EXPECT_EQ(back.events.size(), sample.events.size() - 4);
}

TEST(ChromeWriter, TimesAreExact) {
  KeepingSink sink;
  sink.described = 1;
  const std::int64_t day = 1'700'000'000'123'456'789;
  for (const std::int64_t ns : {day, day + 1, day + 10, day + 1000}) {
    Event event{};
    event.kind = Kind::kScope;
    event.name = sink.dictionary_.string("a");
    event.lane = sink.dictionary_.lane({.process = sink.dictionary_.process({.native_id = 1})});
    event.start_ns = ns;
    event.end_ns = ns + 1;
    sink.events.push_back(event);
  }
  const trace::TempFolder folder;
  const std::string path = folder.file("t.json");
  auto writer = trace::make_chrome_writer(path);
  ASSERT_TRUE(replay(sink, **writer).has_value());
  KeepingSink back;
  read(path, back);
  ASSERT_EQ(back.events.size(), sink.events.size());
  for (std::size_t i = 0; i < sink.events.size(); ++i) {
    EXPECT_EQ(back.events[i].start_ns, sink.events[i].start_ns);
    EXPECT_EQ(back.events[i].end_ns, sink.events[i].end_ns);
  }
  EXPECT_TRUE(back.source.absolute_clock);
}

}  // namespace
}  // namespace pasta
