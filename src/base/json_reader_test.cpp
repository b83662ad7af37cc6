#include "base/json_reader.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/input.h"

namespace pasta::base {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// --- What a walk over a document saw, as lines that can be compared ---

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (scan::is_control(c)) {
      out += "<" + std::to_string(static_cast<unsigned char>(c)) + ">";
    } else {
      out += c;
    }
  }
  return out;
}

// With `doubles` numbers are shown as simdjson gives them, else as they are written.
void walk_value(JsonCursor& cursor, std::string& out, bool doubles = false) {
  switch (cursor.type()) {
    case JsonType::kObject: {
      out += '{';
      std::string_view key;
      if (cursor.enter_object()) {
        while (cursor.next_member(key)) {
          out += escaped(key) + '=';
          walk_value(cursor, out, doubles);
          out += ' ';
        }
      }
      out += '}';
      break;
    }
    case JsonType::kArray:
      out += '[';
      if (cursor.enter_array()) {
        while (cursor.next_element()) {
          walk_value(cursor, out, doubles);
          out += ' ';
        }
      }
      out += ']';
      break;
    case JsonType::kString:
      out += '"' + escaped(cursor.string()) + '"';
      break;
    case JsonType::kNumber: {
      const std::string text(cursor.number());
      out += '#' + (doubles && !text.empty() ? std::to_string(std::stod(text)) : text);
      break;
    }
    case JsonType::kTrue:
    case JsonType::kFalse:
    case JsonType::kNull:
      out += cursor.string();
      break;
    case JsonType::kAbsent:
      out += '~' + escaped(cursor.string());
      break;
    case JsonType::kEnd:
      cursor.skip();
      break;
  }
}

struct Seen {
  std::string text;                   // of the document, the array of events one record a line
  std::vector<std::string> problems;  // "reason@offset"
  std::vector<std::string> words;     // the problems' texts
  bool truncated = false;
  std::string error;
};

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kCommaRepaired:
      return "comma";
    case Reason::kEscapeKept:
      return "escape";
    case Reason::kControlCharacter:
      return "control";
    case Reason::kBareToken:
      return "bare";
    case Reason::kUnreadableNumber:
      return "number";
    case Reason::kRecordSkipped:
      return "skipped";
    case Reason::kTruncated:
      return "truncated";
    case Reason::kTrailingData:
      return "trailing";
    case Reason::kInvalidUtf8:
      return "utf8";
    default:
      return "?";
  }
}

struct How {
  std::size_t window = std::size_t{1} << 20;
  std::size_t max_record = std::size_t{64} << 20;
  bool strict = false;
  bool skip = false;  // skip() the document's members instead of reading them
};

void read_record(JsonReader& reader, Seen& seen) {
  std::string line;
  auto outcome = reader.record([&](JsonCursor& cursor) {
    line.clear();
    walk_value(cursor, line);
  });
  if (!outcome) {
    seen.error = outcome.error().message;
  } else if (*outcome == RecordOutcome::kRead) {
    seen.text += line + '\n';
  } else {
    seen.text += *outcome == RecordOutcome::kSkipped ? "(skipped)\n" : "(truncated)\n";
  }
}

void read_elements(JsonReader& reader, Seen& seen) {
  while (seen.error.empty()) {
    auto more = reader.next_element();
    if (!more) {
      seen.error = more.error().message;
    } else if (*more) {
      read_record(reader, seen);
      continue;
    }
    return;
  }
}

Seen read_document(std::unique_ptr<ByteStream> stream, How how = {}) {
  Seen seen;
  JsonReader reader(*stream, {.strict = how.strict,
                              .window_bytes = how.window,
                              .max_record_bytes = how.max_record,
                              .on_problem = [&](const JsonProblem& problem) {
                                seen.problems.push_back(std::string(reason_name(problem.reason)) +
                                                        "@" + std::to_string(problem.offset));
                                seen.words.emplace_back(problem.text);
                              }});
  auto type = reader.open();
  if (!type) {
    seen.error = type.error().message;
  } else if (*type == JsonType::kArray) {
    read_elements(reader, seen);
  } else if (*type == JsonType::kObject) {
    std::string key;
    while (seen.error.empty()) {
      auto more = reader.next_member(key);
      if (!more) seen.error = more.error().message;
      if (!more || !*more) break;
      if (how.skip) {
        if (auto passed = reader.skip(); !passed) seen.error = passed.error().message;
        continue;
      }
      seen.text += escaped(key) + ": ";
      auto value = reader.type();
      if (value && *value == JsonType::kArray) {
        seen.text += "[\n";
        if (auto entered = reader.enter(); !entered) seen.error = entered.error().message;
        read_elements(reader, seen);
        seen.text += "]\n";
      } else {
        read_record(reader, seen);
      }
    }
  } else if (*type != JsonType::kEnd) {
    read_record(reader, seen);
  }
  seen.truncated = reader.truncated();
  return seen;
}

Seen read_text(std::string_view text, How how = {}) {
  return read_document(memory_stream(bytes_of(text)), how);
}

using Problems = std::vector<std::string>;

// Reads with a large window and with all small ones, which must see the same.
Seen read_all_ways(std::string_view text) {
  const Seen seen = read_text(text);
  for (std::size_t window = 1; window <= 64; ++window) {
    const Seen other = read_text(text, {.window = window});
    EXPECT_EQ(other.text, seen.text) << "window " << window << " on " << text;
    EXPECT_EQ(other.problems, seen.problems) << "window " << window << " on " << text;
    EXPECT_EQ(other.words, seen.words) << "window " << window << " on " << text;
    EXPECT_EQ(other.truncated, seen.truncated) << "window " << window << " on " << text;
    EXPECT_EQ(other.error, seen.error) << "window " << window << " on " << text;
  }
  // Whatever is a problem is an error in strict mode, at that byte.
  const Seen strict = read_text(text, {.strict = true});
  if (seen.problems.empty()) {
    EXPECT_EQ(strict.text, seen.text) << text;
  } else {
    EXPECT_NE(strict.error, "") << text;
  }
  EXPECT_EQ(read_text(text, {.window = 3, .strict = true}).error, strict.error) << text;
  return seen;
}

void expect_clean(std::string_view text, std::string_view walked) {
  const Seen seen = read_all_ways(text);
  EXPECT_EQ(seen.text, walked) << text;
  EXPECT_EQ(seen.problems, Problems{}) << text;
  EXPECT_FALSE(seen.truncated) << text;
}

void expect_problems(std::string_view text, std::string_view walked, const Problems& problems) {
  const Seen seen = read_all_ways(text);
  EXPECT_EQ(seen.text, walked) << text;
  EXPECT_EQ(seen.problems, problems) << text;
}

// --- Valid documents ---

TEST(JsonReader, ReadsRecordsOfAnArray) {
  expect_clean(R"([{"a":1,"b":"x"}, {} ,{"c":[1,2,{"d":null}],"e":true,"f":false}])",
               "{a=#1 b=\"x\" }\n{}\n{c=[#1 #2 {d=null } ] e=true f=false }\n");
}

TEST(JsonReader, ReadsMembersOfAnObject) {
  expect_clean("{\"schemaVersion\": 1,\n \"traceEvents\" :\t[ {\"ph\":\"X\"} ],\r\n\"z\":[]}\n",
               "schemaVersion: #1\ntraceEvents: [\n{ph=\"X\" }\n]\nz: [\n]\n");
}

TEST(JsonReader, ReadsScalarsAlone) {
  expect_clean("42", "#42\n");
  expect_clean(" -0.5e+7 ", "#-0.5e+7\n");
  expect_clean("\"x\"", "\"x\"\n");
  expect_clean("null", "null\n");
}

TEST(JsonReader, PassesAByteOrderMarkAndTrailingZeros) {
  expect_clean("\xef\xbb\xbf[1]", "#1\n");
  expect_clean(std::string_view("[1]\n\0\0 \0", 8), "#1\n");
}

TEST(JsonReader, KeepsNumbersAsWritten) {
  expect_clean("[1712195495406752.750, -0, 10159970886766084423, 1e400, 0.10]",
               "#1712195495406752.750\n#-0\n#10159970886766084423\n#1e400\n#0.10\n");
}

TEST(JsonReader, DecodesEscapesSideBySide) {
  std::vector<std::string> kept;
  const std::string text =
      R"([{"a\tb":"\"\\\/\b\f\n\r\t","u":"\u0041\u00e9\u20ac\ud83d\ude00","long)" +
      std::string(100, 'x') + R"(":"end\u0000"}])";
  for (const std::size_t window : {1, 7, 64, 4096}) {
    auto stream = memory_stream(bytes_of(text));
    JsonReader reader(*stream, {.window_bytes = window, .on_problem = {}});
    ASSERT_TRUE(reader.open());
    ASSERT_TRUE(*reader.next_element());
    // All strings of a record stay valid together.
    std::vector<std::string_view> views;
    ASSERT_TRUE(reader.record([&](JsonCursor& cursor) {
      views.clear();
      std::string_view key;
      cursor.enter_object();
      while (cursor.next_member(key)) {
        views.push_back(key);
        views.push_back(cursor.string());
      }
      kept.assign(views.begin(), views.end());
    }));
    EXPECT_EQ(kept,
              (std::vector<std::string>{"a\tb", "\"\\/\b\f\n\r\t", "u", "A\u00e9\u20ac\U0001f600",
                                        "long" + std::string(100, 'x'), std::string("end\0", 4)}));
  }
}

TEST(JsonCursor, StringAndNumberOfOtherTypes) {
  auto stream = memory_stream(bytes_of(
      R"([{"a":12,"b":"12.5","c":"x","d":true,"e":{"f":1},"g":[1],"h":" 7 ","i":"0x1f"}])"));
  JsonReader reader(*stream, {});
  ASSERT_TRUE(reader.open());
  ASSERT_TRUE(*reader.next_element());
  std::vector<std::string> strings;
  auto outcome = reader.record([&](JsonCursor& cursor) {
    std::string_view key;
    ASSERT_TRUE(cursor.enter_object());
    while (cursor.next_member(key)) {
      strings.emplace_back(key == "d" || key == "e" ? cursor.string() : cursor.number());
    }
  });
  EXPECT_EQ(*outcome, RecordOutcome::kRead);
  EXPECT_EQ(strings, (std::vector<std::string>{"12", "12.5", "", "true", "", "", " 7 ", ""}));
}

TEST(JsonCursor, SkipGivesTheTextAsWritten) {
  auto stream = memory_stream(bytes_of(R"([{"a": {"b" : [1, "\n"]} ,"c":"\"","d": -1.5e3 }])"));
  JsonReader reader(*stream, {});
  ASSERT_TRUE(reader.open());
  ASSERT_TRUE(*reader.next_element());
  std::vector<std::string> texts;
  ASSERT_TRUE(reader.record([&](JsonCursor& cursor) {
    std::string_view key;
    cursor.enter_object();
    while (cursor.next_member(key)) texts.emplace_back(cursor.skip());
  }));
  EXPECT_EQ(texts, (std::vector<std::string>{R"({"b" : [1, "\n"]})", R"("\"")", "-1.5e3"}));
}

TEST(JsonCursor, WhatIsNotReadIsPassed) {
  auto stream = memory_stream(bytes_of(R"([{"a":{"b":[1,2]},"c":3,"d":[{"e":5},6]},{"f":7}])"));
  JsonReader reader(*stream, {});
  ASSERT_TRUE(reader.open());
  ASSERT_TRUE(*reader.next_element());
  std::string keys;
  ASSERT_EQ(*reader.record([&](JsonCursor& cursor) {
    std::string_view key;
    cursor.enter_object();
    while (cursor.next_member(key)) {
      keys += key;
      if (key == "d") {
        cursor.enter_array();
        cursor.next_element();
        return;  // two levels open, a value unread
      }
    }
  }),
            RecordOutcome::kRead);
  EXPECT_EQ(keys, "acd");
  ASSERT_TRUE(*reader.next_element());
  ASSERT_EQ(*reader.record([](JsonCursor&) {}), RecordOutcome::kRead);
  EXPECT_FALSE(*reader.next_element());
}

TEST(JsonCursor, EnterOfAnotherTypeSkips) {
  auto stream = memory_stream(bytes_of(R"([{"a":5,"b":[1],"c":{"d":1}}])"));
  JsonReader reader(*stream, {});
  ASSERT_TRUE(reader.open());
  ASSERT_TRUE(*reader.next_element());
  int members = 0;
  ASSERT_EQ(*reader.record([&](JsonCursor& cursor) {
    std::string_view key;
    ASSERT_TRUE(cursor.enter_object());
    while (cursor.next_member(key)) {
      ++members;
      EXPECT_FALSE(key == "c" ? cursor.enter_array() : cursor.enter_object());
    }
  }),
            RecordOutcome::kRead);
  EXPECT_EQ(members, 3);
}

TEST(JsonReader, OffsetsCountFromTheStart) {
  auto stream = memory_stream(bytes_of(R"([{"a":1}, {"b":2}])"));
  JsonReader reader(*stream, {.window_bytes = 2, .on_problem = {}});
  ASSERT_TRUE(reader.open());
  EXPECT_EQ(reader.offset(), 1u);
  ASSERT_TRUE(*reader.next_element());
  ASSERT_TRUE(reader.skip());
  ASSERT_TRUE(*reader.next_element());
  EXPECT_EQ(reader.offset(), 10u);
  std::uint64_t at = 0;
  ASSERT_TRUE(reader.record([&](JsonCursor& cursor) {
    std::string_view key;
    cursor.enter_object();
    cursor.next_member(key);
    at = cursor.offset();
  }));
  EXPECT_EQ(at, 15u);
}

// --- Repairs ---

TEST(JsonReader, RepairsCommas) {
  expect_problems("[,{\"a\":1,},,{\"b\":2},]", "{a=#1 }\n{b=#2 }\n",
                  {"comma@1", "comma@8", "comma@11", "comma@19"});
  expect_problems("{,\"a\":1,,\"b\":[1,,2,]\"c\":3,}", "a: #1\nb: [\n#1\n#2\n]\nc: #3\n",
                  {"comma@1", "comma@8", "comma@16", "comma@18", "comma@20", "comma@25"});
  expect_problems("[{\"a\":1}{\"b\":2} {\"c\":[1 2]}]", "{a=#1 }\n{b=#2 }\n{c=[#1 #2 ] }\n",
                  {"comma@8", "comma@16", "comma@24"});
  expect_problems(R"([{"a":"x" "b":1}])", "{a=\"x\" b=#1 }\n", {"comma@10"});
}

TEST(JsonReader, KeepsAStringWithAnInvalidEscapeAsWritten) {
  expect_problems(R"([{"n":"D:\Work\mlp\train.py(7): step"},{"m":"a\tb"}])",
                  "{n=\"D:\\Work\\mlp\\train.py(7): step\" }\n{m=\"a<9>b\" }\n", {"escape@9"});
  // The end of a string is found before its escapes are judged.
  expect_problems(R"(["\q\"z"])", "\"\\q\\\"z\"\n", {"escape@2"});
  expect_problems(R"(["\u12g4"])", "\"\\u12g4\"\n", {"escape@2"});
  expect_problems(R"(["\ud83d"])", "\"\\ud83d\"\n", {"escape@2"});
  expect_problems(R"(["\ude00\ud83d"])", "\"\\ude00\\ud83d\"\n", {"escape@2"});
  expect_problems(R"([{"k\x":1}])", "{k\\x=#1 }\n", {"escape@4"});
}

TEST(JsonReader, KeepsControlCharacters) {
  expect_problems(std::string_view("[\"a\x01\tb\n\"]"), "\"a<1><9>b<10>\"\n",
                  {"control@3", "control@4", "control@6"});
  expect_problems(std::string_view("[\"a\0b\"]", 7), "\"a<0>b\"\n", {"control@3"});
}

TEST(JsonReader, KeepsBytesThatAreNotUtf8) {
  expect_problems("[\"caf\xe9 \xff\",\"\xc3\xa9\"]", "\"caf\xe9 \xff\"\n\"\xc3\xa9\"\n",
                  {"utf8@5"});
  expect_problems("[\"\xed\xa0\x80\"]", "\"\xed\xa0\x80\"\n", {"utf8@2"});
  expect_problems("[\"\xc0\xaf\"]", "\"\xc0\xaf\"\n", {"utf8@2"});
  expect_problems("[\"\xf4\x90\x80\x80\"]", "\"\xf4\x90\x80\x80\"\n", {"utf8@2"});
}

TEST(JsonReader, TakesBareWordsAsAbsent) {
  expect_problems(R"([{"a":inf,"b":-inf,"c":NaN ,"d":N/A,"e":[nan,Infinity,-]}])",
                  "{a=~inf b=~-inf c=~NaN d=~N/A e=[~nan ~Infinity ~- ] }\n",
                  {"bare@6", "bare@14", "bare@23", "bare@32", "bare@41", "bare@45", "bare@54"});
  expect_problems(R"([{"a":,"b":}])", "{a=~ b=~ }\n", {"bare@6", "bare@11"});
  expect_problems(R"([{"a":nullx,"b":None}])", "{a=~nullx b=~None }\n", {"bare@6", "bare@16"});
}

TEST(JsonReader, GivesNumbersThatAreNone) {
  const Seen seen = read_text("[1.2.3, 0x1f, 0012, +5, .5, 5., 00, 12abc, 1e, -.5, - ]");
  EXPECT_EQ(seen.text, "#1.2.3\n#0x1f\n#0012\n#+5\n#.5\n#5.\n#00\n#12abc\n#1e\n#-.5\n~-\n");
  EXPECT_EQ(seen.problems, (Problems{"number@1", "number@8", "number@36", "number@43", "bare@52"}));
  for (const std::string_view text : {"[0012]", "[+5]", "[.5]", "[5.]", "[00]"}) {
    EXPECT_EQ(read_text(text).problems, Problems{}) << text;
    EXPECT_NE(read_text(text, {.strict = true}).error, "") << text;
  }
}

// --- Records that cannot be read ---

TEST(JsonReader, SkipsARecordWithAnUnescapedQuote) {
  expect_problems(
      "{\"traceEvents\":[\n"
      "{\"ph\":\"X\",\"name\":\"before\",\"pid\":1},\n"
      "{\"ph\":\"X\",\"name\":\"run \"inner\" part\",\"pid\":1},\n"
      "{\"ph\":\"X\",\"name\":\"after\",\"pid\":1}],\"z\":5}",
      "traceEvents: [\n{ph=\"X\" name=\"before\" pid=#1 }\n(skipped)\n"
      "{ph=\"X\" name=\"after\" pid=#1 }\n]\nz: #5\n",
      {"skipped@76"});
}

TEST(JsonReader, LosesNoNeighbourOfABrokenRecord) {
  const std::vector<std::string> broken = {
      R"({"n":"he said "hi", then left","t":1})",
      R"({"n":"one " two","t":1})",
      R"({"n":"","" ","t":1})",
      R"({"n":"C:\dir\","t":1})",
      R"({"n":"unterminated,"t":1})",
      "{\"n\":\"unterminated\n}",
      R"({"n":"a","x":{"y":1})",
      R"({"n":"a","x":[1,2})",
      R"({"n":"a","x":[1,{"y":2},"b"c"]})",
      R"({"n":"a"],"t":1})",
      R"({"n" "a","t":1})",
      R"({"n":"a":1})",
      R"({n:"a","t":1})",
      R"({"n":"a"}})",
      R"({"n":"a"]})",
      R"({"n":"has [ and { in "it" ","t":1})",
      R"({"n":"),({"x":1},({"x" y","t":1})",
      R"({"x":[{"p":1},{"q":2}],"n":"a"b"})",
      R"({"n":"a"b","x":[{"p":1},{"q":2}]})",
      R"({"n":"a" "b" "c"})",
      "{\"n\":\"a\x01\" \x01}",
  };
  for (const std::string& record : broken) {
    for (const std::string_view gap : {",", ",\n  ", " , "}) {
      const std::string text = "[{\"g\":1}" + std::string(gap) + record + std::string(gap) +
                               "{\"g\":\"x y\",\"h\":{\"i\":[2]}}" + std::string(gap) +
                               "{\"g\":3}]";
      const Seen seen = read_all_ways(text);
      EXPECT_TRUE(seen.text.starts_with("{g=#1 }\n")) << text << "\n" << seen.text;
      EXPECT_TRUE(seen.text.ends_with("{g=\"x y\" h={i=[#2 ] } }\n{g=#3 }\n")) << text << "\n"
                                                                               << seen.text;
      EXPECT_NE(seen.problems, Problems{}) << text;
      EXPECT_FALSE(seen.truncated) << text;
    }
  }
}

TEST(JsonReader, FindsTheMembersBehindABrokenOne) {
  expect_problems(R"({"d":[{"n":"a "b" c","o":1},{"p":2}],"e":[{"f":1}],"g":2})",
                  "d: [\n(skipped)\n{p=#2 }\n]\ne: [\n{f=#1 }\n]\ng: #2\n", {"skipped@15"});
  expect_problems(R"({"d":{"n":"a "b" c","o":1},"e":[{"f":1}]})",
                  "d: (skipped)\ne: [\n{f=#1 }\n]\n", {"skipped@14"});
  expect_problems(R"({"d" 1,"e":[{"f":1}]})", "e: [\n{f=#1 }\n]\n", {"skipped@5"});
}

TEST(JsonReader, SkipPassesWholeMembersAndSeesTheirProblems) {
  const std::string text =
      R"({"a":[{"b":1,},{"c":"x"y"},{"d":{"e":[1]}}],"f":{"g":[1,2],"h":inf},"i":1})";
  for (const std::size_t window : {1, 5, 4096}) {
    const Seen seen = read_text(text, {.window = window, .skip = true});
    EXPECT_EQ(seen.problems, (Problems{"comma@12", "skipped@23", "bare@63"})) << window;
    EXPECT_EQ(seen.error, "");
  }
}

TEST(JsonReader, SkipsWhatIsNestedTooDeeply) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  const std::string fine = "[" + nested(256) + ",1]";
  EXPECT_EQ(read_text(fine).problems, Problems{});
  const std::string deep = "[" + nested(257) + ",{\"a\":1}]";
  const Seen seen = read_text(deep);
  EXPECT_EQ(seen.text, "(skipped)\n{a=#1 }\n");
  EXPECT_EQ(seen.problems, Problems{"skipped@257"});
  // Far too deep is no danger to the stack.
  EXPECT_TRUE(read_text(std::string(1 << 20, '[')).truncated);
}

TEST(JsonReader, SkipsWhatIsTooLarge) {
  const std::string text = "[{\"a\":1},{\"b\":\"" + std::string(200, 'x') + "\"},{\"c\":3}]";
  for (const std::size_t window : {1, 10, 100, 4096}) {
    const Seen seen = read_text(text, {.window = window, .max_record = 100});
    EXPECT_EQ(seen.text, "{a=#1 }\n(skipped)\n{c=#3 }\n");
    EXPECT_EQ(seen.problems, Problems{"skipped@9"});
  }
}

// --- Ends ---

TEST(JsonReader, SaysWhereTheInputEnds) {
  expect_problems(R"({"r":{"rank":2},"traceEvents":[{"a":1},{"b":"x)",
                  "r: {rank=#2 }\ntraceEvents: [\n{a=#1 }\n(truncated)\n]\n", {"truncated@46"});
  expect_problems(R"({"traceEvents":[{"a":1},)", "traceEvents: [\n{a=#1 }\n]\n", {"truncated@24"});
  expect_problems(R"({"traceEvents":[{"a":1}])", "traceEvents: [\n{a=#1 }\n]\n", {"truncated@24"});
  expect_problems(R"({"traceEve)", "", {"truncated@10"});
  expect_problems("[", "", {"truncated@1"});
  expect_problems("", "", {"truncated@0"});
  expect_problems("  \n", "", {"truncated@3"});
  expect_problems("\"abc", "(truncated)\n", {"truncated@4"});
}

TEST(JsonReader, EveryPrefixGivesThePrefixOfTheRecords) {
  const std::string text = R"({"s":1,"e":[{"a":"\u00e9\\"},{"b":[1,-2.5,true]}],"z":"q"})";
  const std::string whole = read_text(text).text;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const Seen seen = read_all_ways(text.substr(0, size));
    EXPECT_TRUE(seen.truncated) << size;
    EXPECT_EQ(seen.problems, Problems{"truncated@" + std::to_string(size)}) << size;
  }
}

TEST(JsonReader, AnArrayOfEventsNeedNotBeClosed) {
  expect_clean("[{\"a\":1},\n{\"b\":2}", "{a=#1 }\n{b=#2 }\n");
  expect_clean("[{\"a\":1},\n", "{a=#1 }\n");
  expect_problems("[{\"a\":1},{\"b\"", "{a=#1 }\n(truncated)\n", {"truncated@13"});
  expect_problems("[12", "(truncated)\n", {"truncated@3"});
}

TEST(JsonReader, CountsWhatFollowsTheDocument) {
  expect_problems("[1] x", "#1\n", {"trailing@4"});
  expect_problems("{\"a\":1}{\"b\":2}", "a: #1\n", {"trailing@7"});
  expect_problems("1 2", "#1\n", {"trailing@2"});
}

class Damaged final : public ByteStream {
 public:
  explicit Damaged(std::string_view text) : inner_(memory_stream(bytes_of(text))) {}
  Result<std::size_t> read(std::span<std::byte> to) override { return inner_->read(to); }
  [[nodiscard]] std::string_view damage() const override { return "gzip stream ends early"; }

 private:
  std::unique_ptr<ByteStream> inner_;
};

TEST(JsonReader, SaysWhatTheStreamSaysOfItsEnd) {
  for (const std::string_view text : {"[{\"a\":1},{\"b", "[{\"a\":1}", "[{\"a\":1}]"}) {
    const Seen seen = read_document(std::make_unique<Damaged>(text));
    EXPECT_TRUE(seen.truncated);
    ASSERT_EQ(seen.problems, Problems{"truncated@" + std::to_string(text.size())});
    EXPECT_NE(seen.words.front().find("gzip stream ends early"), std::string::npos);
  }
}

class Failing final : public ByteStream {
 public:
  Result<std::size_t> read(std::span<std::byte> to) override {
    if (std::exchange(failed_, true)) return fail(ErrorCode::kIo, "the disk is on fire");
    std::fill(to.begin(), to.end(), std::byte{'['});
    return to.size();
  }
  [[nodiscard]] std::string_view damage() const override { return {}; }

 private:
  bool failed_ = false;
};

TEST(JsonReader, PassesOnErrorsOfTheStream) {
  EXPECT_EQ(read_document(std::make_unique<Failing>(), {.window = 16}).error,
            "the disk is on fire");
}

TEST(JsonReader, StrictModeNamesTheByte) {
  EXPECT_EQ(read_text(R"([{"a":1},{"b":inf}])", {.strict = true}).error,
            "byte 14: a bare word in place of a value: inf}]");
}

// --- Against simdjson ---

void walk_simdjson(simdjson::dom::element element, std::string& out) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::OBJECT:
      out += '{';
      for (auto [key, value] : simdjson::dom::object(element)) {
        out += escaped(key) + '=';
        walk_simdjson(value, out);
        out += ' ';
      }
      out += '}';
      break;
    case element_type::ARRAY:
      out += '[';
      for (auto value : simdjson::dom::array(element)) {
        walk_simdjson(value, out);
        out += ' ';
      }
      out += ']';
      break;
    case element_type::STRING:
      out += '"' + escaped(std::string_view(element)) + '"';
      break;
    case element_type::BOOL:
      out += bool(element) ? "true" : "false";
      break;
    case element_type::NULL_VALUE:
      out += "null";
      break;
    default:
      out += '#' + std::to_string(double(element));
  }
}

// The document as one record of another, so that all of it goes through the cursor. Within an
// object, because an array need not be closed.
std::string walk_whole(std::string_view text, std::size_t window, bool& good) {
  const std::string wrapped = "{\"d\":" + std::string(text) + "}";
  auto stream = memory_stream(bytes_of(wrapped));
  JsonReader reader(*stream, {.strict = true, .window_bytes = window, .on_problem = {}});
  std::string out;
  std::string key;
  good = false;
  if (!reader.open()) return out;
  if (auto more = reader.next_member(key); !more || !*more) return out;
  auto outcome = reader.record([&](JsonCursor& cursor) {
    out.clear();
    walk_value(cursor, out, true);
  });
  if (!outcome || *outcome != RecordOutcome::kRead) return out;
  auto more = reader.next_member(key);
  good = more && !*more;
  return out;
}

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}
  std::string document() {
    out_.clear();
    value(0);
    return out_;
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  void blank() {
    static constexpr std::string_view kBlanks[] = {"", "", "", " ", "\n    ", "\t\r\n"};
    out_ += kBlanks[below(6)];
    if (below(40) == 0) out_ += std::string(below(100), ' ');
  }
  void string() {
    static constexpr std::string_view kPieces[] = {"a",
                                                   "ph",
                                                   "External id",
                                                   "\\n",
                                                   "\\\"",
                                                   "\\\\",
                                                   "\\u0041",
                                                   "\\u20ac",
                                                   "\xc3\xa9",
                                                   "\xf0\x9f\x98\x80",
                                                   "\\ud83d\\ude00",
                                                   "{",
                                                   "]",
                                                   ":",
                                                   ",",
                                                   " "};
    out_ += '"';
    for (std::size_t n = below(9); n-- > 0;) out_ += kPieces[below(16)];
    if (below(10) == 0) out_ += std::string(below(70), 'z');
    out_ += '"';
  }
  void number() {
    static constexpr std::string_view kNumbers[] = {
        "0", "-1", "12.5", "1e3", "-0.25E-2", "1669783687464181", "7", "123456"};
    out_ += kNumbers[below(8)];
  }
  void value(std::size_t depth) {
    const std::size_t kind = below(depth > 5 ? 4 : 7);
    if (kind == 0) {
      static constexpr std::string_view kWords[] = {"true", "false", "null"};
      out_ += kWords[below(3)];
    } else if (kind == 1) {
      number();
    } else if (kind < 4) {
      string();
    } else {
      const bool object = kind > 4;
      out_ += object ? '{' : '[';
      blank();
      const std::size_t count = below(6);
      for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) {
          out_ += ',';
          blank();
        }
        if (object) {
          string();
          blank();
          out_ += ':';
          blank();
        }
        value(depth + 1);
        blank();
      }
      out_ += object ? '}' : ']';
    }
  }

  std::mt19937 random_;
  std::string out_;
};

TEST(JsonReaderAgainstSimdjson, SeesTheSameInGeneratedDocuments) {
  Generator generate(20240601);
  simdjson::dom::parser parser;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = generate.document();
    simdjson::padded_string padded(text);
    simdjson::dom::element element;
    ASSERT_EQ(parser.parse(padded).get(element), simdjson::SUCCESS) << text;
    std::string expected;
    walk_simdjson(element, expected);
    bool good = false;
    EXPECT_EQ(walk_whole(text, 1 + generate.below(200), good), expected) << text;
    EXPECT_TRUE(good) << text;
  }
}

// Strict mode takes what simdjson takes. Numbers of any size are text here, and other blanks
// around the document are not the matter.
TEST(JsonReaderAgainstSimdjson, StrictModeTakesTheSameMutants) {
  Generator generate(7);
  simdjson::dom::parser parser;
  static constexpr std::string_view kBytes = "{}[]\",:\\ntu0-.e+ \n\x01\xc3z";
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = generate.document();
    if (text.size() > 400) continue;
    for (std::size_t n = 1 + generate.below(2); n-- > 0 && !text.empty();) {
      const std::size_t at = generate.below(text.size());
      switch (generate.below(3)) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, kBytes[generate.below(kBytes.size())]);
          break;
        default:
          text[at] = kBytes[generate.below(kBytes.size())];
      }
    }
    simdjson::padded_string padded(text);
    const auto code = parser.parse(padded).error();
    if (code == simdjson::NUMBER_ERROR && text.find_first_of("eE") != std::string::npos) continue;
    bool good = false;
    walk_whole(text, 1 + generate.below(100), good);
    EXPECT_EQ(good, code == simdjson::SUCCESS) << text << "\n" << simdjson::error_message(code);
    taken += good;
  }
  EXPECT_GT(taken, 1000);
}

TEST(JsonReaderAgainstSimdjson, SeesTheSameInRealTraces) {
  namespace fs = std::filesystem;
  const fs::path corpus = fs::path(PASTA_SOURCE_DIR) / "../shared/corpus";
  if (!fs::exists(corpus)) GTEST_SKIP() << "no corpus beside the source";
  constexpr std::uintmax_t kSmall = 200000;
  simdjson::dom::parser parser;
  int compared = 0;
  for (const auto& entry : fs::recursive_directory_iterator(corpus)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || entry.file_size() > kSmall) continue;
    if (!path.ends_with(".json") && !path.ends_with(".json.gz")) continue;
    auto input = open_input(path);
    ASSERT_TRUE(input) << path;
    std::string text;
    for (std::vector<std::byte> block(65536);;) {
      auto got = input->stream->read(block);
      ASSERT_TRUE(got);
      text.append(reinterpret_cast<const char*>(block.data()), *got);
      if (*got < block.size()) break;
    }
    simdjson::dom::element element;
    simdjson::padded_string padded(text);
    if (parser.parse(padded).get(element) != simdjson::SUCCESS) continue;
    std::string expected;
    walk_simdjson(element, expected);
    bool good = false;
    ASSERT_EQ(walk_whole(text, 1000, good), expected) << path;
    EXPECT_TRUE(good) << path;
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

// --- Anything at all ---

TEST(JsonReader, EndsOnAnyMutant) {
  static constexpr std::string_view kBytes = "{}[]\",:\\ \n0aN\xff";
  std::mt19937 random(99);
  const std::string seed =
      R"({"s":1,"traceEvents":[{"ph":"X","name":"aten::add","args":{"id":3,"l":[1,{"x":"y"}]}},)"
      R"({"ph":"M","name":"q \"w\" e","ts":1.5},{"a":null}],"end":"z"})";
  for (int i = 0; i < 4000; ++i) {
    std::string text = seed;
    for (std::size_t n = 1 + random() % 6; n-- > 0;) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text.erase(at, 1 + random() % 3);
          break;
        case 1:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text[at] = kBytes[random() % kBytes.size()];
      }
      if (text.empty()) text = "{";
    }
    const Seen large = read_text(text);
    const Seen small = read_text(text, {.window = 1 + random() % 40});
    ASSERT_EQ(small.text, large.text) << text;
    ASSERT_EQ(small.problems, large.problems) << text;
    ASSERT_EQ(small.words, large.words) << text;
    ASSERT_LE(large.problems.size(), 2 * text.size()) << text;
    for (const std::string& problem : large.problems) {
      ASSERT_LE(std::stoull(problem.substr(problem.find('@') + 1)), text.size()) << text;
    }
    ASSERT_EQ(read_text(text, {.skip = true}).error, "") << text;
  }
}

}  // namespace
}  // namespace pasta::base
