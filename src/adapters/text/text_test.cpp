#include "adapters/text/text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/input.h"
#include "trace/test_support.h"

namespace pasta::adapters::text {
namespace {

using trace::KeepingSink;

Status read(std::string_view text, KeepingSink& sink, bool strict = true) {
  auto adapter = open(
      {.path = "t.txt", .head = {}, .stream = base::memory_stream(std::as_bytes(std::span(text)))});
  EXPECT_TRUE(adapter.has_value());
  Plan plan;
  plan.strict = strict;
  return drive(**adapter, sink, plan);
}

std::string back_and_forth(std::string_view text) {
  KeepingSink sink;
  const Status status = read(text, sink);
  EXPECT_TRUE(status.has_value()) << status.error().message;
  return as_text(sink);
}

// What strict reading of these lines says, without the file's name.
std::string error_of(std::string_view lines) {
  KeepingSink sink;
  const Status status = read("pasta-text 1\n" + std::string(lines), sink);
  if (status.has_value()) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  EXPECT_TRUE(status.error().message.starts_with("t.txt:")) << status.error().message;
  return status.error().message.substr(6);
}

TEST(Text, EveryFieldSurvivesTheWayBack) {
  KeepingSink original;
  fill_sample(original);
  const std::string text = as_text(original);
  EXPECT_EQ(back_and_forth(text), text);
}

TEST(Text, IsWrittenAsTheManualSays) {
  constexpr std::string_view kText =
      R"(pasta-text 1
fact "driver" "535.104"
process P1 id=783658 name="python" rank=1 world_size=2
lane L1 thread process=P1 id=42
frame F1 "train_step" annotation
frame F2 in=F1 "aten::mm" operator
api 90 95 L1 "cudaLaunchKernel" runtime correlation=P1:5 scope=F2
device D1 process=P1 type=gpu name="Tesla V100" multiprocessors=80 compute=7.0
lane L2 queue process=P1 device=D1 id=7 name="stream 7"
kernel 100 130 L2 "gemm" correlation=P1:5 scope=F2 grid=24,1,1 block=128,1,1 registers=16 flags=linked
copy 140 150 L2 "Memcpy HtoD" direction=host_to_device correlation=P1:6 bytes=4096
alloc 190 190 L1 "" bytes=512 address=0x7f00 device=D1
source path="t.txt" format=text rank=1 world_size=2 first_ns=90
problem launch_not_seen count=3 first="kernel k at 12 ns"
)";
  EXPECT_EQ(back_and_forth(kText), kText);
}

TEST(Text, TheExampleOfTheManualIsReadWhole) {
  std::ifstream file(std::string(PASTA_SOURCE_DIR) + "/docs/format.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = page.find("\npasta-text 1\n");
  ASSERT_NE(begin, std::string::npos);
  KeepingSink sink;
  const Status status = read(page.substr(begin, page.find("\n```", begin) - begin), sink);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(sink.events.size(), 4u);
}

TEST(Text, IsKindToHands) {
  KeepingSink sink;
  const Status status = read(
      "# a comment, then a blank line\n\n"
      "  pasta-text 1   # the version\r\n"
      "process main\n"
      "lane q queue process=main\n"
      "kernel 10 +5 q \"late\"\r\n"
      "\tscope 0 20 - \"outer\" domain=operator   # by key as well as bare\n"
      "scope 5 20 - \"inner\" operator\n"
      "copy 1 +0 q \"c\"\n"
      "fault untimed - \"\"\n"
      "copy 2 3 q \"d\" device_to_host correlation=main:0x0",  // no end of line
      sink, false);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  ASSERT_EQ(sink.events.size(), 5u) << "the last line has no decimal number";
  EXPECT_EQ(sink.count(Reason::kRecordSkipped), 1u);
  std::vector<std::string> names;
  for (const Event& e : sink.events) names.emplace_back(sink.dictionary_.text(e.name));
  EXPECT_EQ(names, (std::vector<std::string>{"", "c", "late", "inner", "outer"}));
  EXPECT_EQ(sink.events[0].start_ns, kNoTime);
  EXPECT_EQ(sink.events[0].flags, kUntimed);
  EXPECT_EQ(sink.events[1].copy.bytes, kUnknownBytes);
  EXPECT_EQ(sink.events[2].end_ns, 15);
  EXPECT_EQ(sink.events[3].detail, sink.events[4].detail);
  EXPECT_EQ(sink.source.first_ns, 0);
}

TEST(Text, WhatIsInOrderStaysInOrder) {
  // Ends that are equal may come in any order in a trace; only what is out of order is sorted.
  constexpr std::string_view kOrdered = "pasta-text 1\nscope 0 9 - \"a\"\nscope 5 9 - \"b\"\n";
  KeepingSink sink;
  ASSERT_TRUE(read(kOrdered, sink).has_value());
  EXPECT_EQ(sink.events[0].start_ns, 0);
  EXPECT_EQ(sink.events[1].start_ns, 5);
}

TEST(Text, TellsRankOnlyWhenAllAgree) {
  KeepingSink one, two;
  ASSERT_TRUE(read("pasta-text 1\nprocess A id=1 rank=3 world_size=4\nprocess B id=2\n", one));
  EXPECT_EQ(one.source.rank, 3);
  ASSERT_TRUE(read("pasta-text 1\nprocess A id=1 rank=3\nprocess B id=2 rank=0\n", two));
  EXPECT_EQ(two.source.rank, -1);
}

TEST(Text, ErrorsNameThePlaceAndWhatWasExpected) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"kernle 1 2 - \"\"",
       "2:1: expected a table (process, device, lane, frame, collective, "
       "blob, fact, source, problem) or a kind of event, not `kernle`"},
      {"kernel", "2:7: expected a start in ns, or `untimed`"},
      {"kernel 1.5 2 - \"\"", "2:8: expected a start in whole ns, or `untimed`"},
      {"kernel 1 2", "2:11: expected the lane, or `-`"},
      {"kernel 1 0 - \"\"", "2:10: expected an end that is not before the start"},
      {"kernel 9223372036854775807 +1 - \"\"",
       "2:28: expected an end in whole ns, or + and a duration"},
      {"kernel 1 -2x - \"\"", "2:10: expected an end in whole ns, or + and a duration"},
      {"kernel 1 2 L9 \"\"", "2:12: no lane above this line is called `L9`"},
      {"kernel 1 2 - gemm", "2:14: expected the name between double quotes"},
      {"kernel 1 2 - \"gemm", "2:14: expected this string to end on its line"},
      {"kernel 1 2 - \"a\\q\"",
       R"(2:16: expected one of the escapes \" \\ \/ \b \f \n \r \t \uXXXX \xXX)"},
      {"kernel 1 2 - \"\\ud800\"",
       R"(2:15: expected one of the escapes \" \\ \/ \b \f \n \r \t \uXXXX \xXX)"},
      {"kernel 1 2 - \"a\"x", "2:17: expected a blank between words"},
      {"kernel 1 2 - \"a\" grid=1,2",
       "2:18: expected `grid` to be 3 numbers with `,` between them"},
      {"kernel 1 2 - \"a\" grid=1,2,4294967296", "2:18: expected `grid` to be numbers below 2^32"},
      {"kernel 1 2 - \"a\" bytes=4", "2:18: there is no field `bytes` here"},
      {"kernel 1 2 - \"a\" ordinal=1 ordinal=2", "2:28: `ordinal` a second time"},
      {"kernel 1 2 - \"a\" ordinal=", "2:26: expected a value after `ordinal=`"},
      {"kernel 1 2 - \"a\" ordinal=-1", "2:18: expected `ordinal` to be a whole number below 2^32"},
      {"kernel 1 2 - \"a\" correlation=5", "2:18: expected PROCESS:NUMBER, the number below 2^48"},
      {"kernel 1 2 - \"a\" correlation=-:281474976710656",
       "2:18: expected PROCESS:NUMBER, the number below 2^48"},
      {"kernel 1 2 - \"a\" correlation=P7:5", "2:18: no process above this line is called `P7`"},
      {"kernel 1 2 - \"a\" flags=linked,late", "2:18: there is no flag `late`"},
      {"kernel 1 2 - \"a\" flags=untimed", "2:18: `untimed` stands where the times would"},
      {"kernel 1 2 - \"a\" word", "2:18: unexpected `word`"},
      {"copy 1 2 - \"a\" direction=up",
       "2:16: expected one of unknown, host_to_device, device_to_host, device_to_device, "
       "host_to_host, peer_to_peer, migration"},
      {"counter 1 2 - \"a\" value=x", "2:19: expected `value` to be a number"},
      {"process 7", "2:9: expected a name for this process that begins with a letter"},
      {"process P id=1\nprocess P id=2", "3:9: `P` is another process already"},
      {"lane L fiber", "2:8: expected one of thread, queue"},
      {"frame F in=F \"f\"", "2:9: no frame above this line is called `F`"},
      {"blob B 0g", "2:8: expected pairs of hexadecimal digits"},
      {"problem bad_luck", "2:9: there is no reason `bad_luck`"},
      {"problem none", "2:9: there is no reason `none`"},
      {"\"kernel\"", "2:1: unexpected `kernel`"},
      {"a=b", "2:1: there is no field `a` here"},
  };
  for (const auto& [line, error] : kCases) EXPECT_EQ(error_of(line), error) << line;
}

TEST(Text, LenientReadingSkipsTheLineAndCounts) {
  KeepingSink sink;
  ASSERT_TRUE(read("pasta-text 1\nscope 1 2 - \"a\"\nscope 3 x - \"b\"\nscope\nscope 5 6 - \"c\"\n",
                   sink, false)
                  .has_value());
  EXPECT_EQ(sink.events.size(), 2u);
  ASSERT_EQ(sink.problems.list().size(), 1u);
  EXPECT_EQ(sink.problems.list()[0],
            (Problem{Reason::kRecordSkipped, 2,
                     "line 3, column 9: expected an end in whole ns, or + and a duration"}));
}

TEST(Text, OtherVersionsAndOtherFilesAreRefused) {
  KeepingSink sink;
  const Status newer = read("pasta-text 2\n", sink);
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(newer.error().message, "t.txt: written in text form 2; this pastaprof reads form 1");
  for (const std::string_view text : {"", "# nothing\n", "hello\n", "pasta-text\n"}) {
    const Status other = read(text, sink);
    ASSERT_FALSE(other.has_value()) << text;
    EXPECT_EQ(other.error().code, ErrorCode::kBadInput);
  }
}

TEST(Text, IsToldByItsFirstLine) {
  const auto sniffed = [](std::string_view text) { return sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffed("pasta-text 1\n"));
  EXPECT_TRUE(sniffed("# from a colleague\n\n  pasta-text 1"));
  EXPECT_FALSE(sniffed(""));
  EXPECT_FALSE(sniffed("# pasta-text 1\n"));
  EXPECT_FALSE(sniffed("{\"pasta-text\": 1}"));
}

TEST(Text, ValuesWithoutAWordAndUnusedBytesSurvive) {
  KeepingSink original;
  original.described = 1;
  original.source = {.path = "t.txt", .format = "text", .label = {}, .first_ns = 1};
  Event event{};
  event.kind = Kind::kApi;
  event.start_ns = event.end_ns = 1;
  event.detail = 999;
  event.flags = 0xc0 | kInstant;
  event.correlation = 77;  // of no process
  event.raw[0] = 0x1'0000'0000;
  event.raw[2] = ~std::uint64_t{0};
  original.events = {event};
  event.kind = Kind::kScope;
  event.raw[0] = event.raw[2] = 0;
  event.range.sequence = ~std::uint64_t{0};
  original.events.push_back(event);
  const std::string text = as_text(original);
  KeepingSink back;
  ASSERT_TRUE(read(text, back).has_value());
  EXPECT_EQ(as_text(back), text);
  ASSERT_EQ(back.events.size(), 2u);
  EXPECT_EQ(std::memcmp(back.events.data(), original.events.data(), 2 * sizeof event), 0);
}

}  // namespace
}  // namespace pasta::adapters::text
