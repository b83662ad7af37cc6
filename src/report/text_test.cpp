#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "report/render.h"
#include "report/sample_document.h"
#include "report/text_layout.h"
#include "report/text_number.h"

namespace pasta::report {
namespace {

std::string_view explain(std::string_view reason) {
  return reason == "record_skipped" ? "a record that cannot be read" : "";
}

Document document_of(Table table) {
  Document document;
  document.trace.span_ns = integer(1);
  document.reports.push_back({"tool", "Tool", {std::move(table)}});
  return document;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, width_of(line));
  return widest;
}

// The part of the text between the head of the first report and the quality section.
std::string body(const std::string& text) {
  const std::size_t begin = text.find('\n', text.find("Tool ─")) + 1;
  return text.substr(begin, text.find("\nQuality ─") - begin);
}

TEST(Text, WholeReport) {
  EXPECT_EQ(render_text(sample_document(), {.width = 72, .explain = explain}), R"(a/rank0.json.gz
  kineto_json · rank 0 · 7 events · span 1.733 s · 2 lanes
  device 0: Tesla V100

Findings ───────────────────────────────────────────────────────────────
  warning  Device 0 waits for the host most of the time.
           42.3% of the span · gaps 12,034 · median 1.500 us · worst -
           → Launch less, or capture a graph.

Summary ────────────────────────────────────────────────────────────────
  Devices

                  copy
  device   busy  bytes  kernels  share
              s    KiB               %
  ────────────────────────────────────
  0       1.001   1.50   19,370   50.0
  1       0.002      -        4   <0.1

Other things ───────────────────────────────────────────────────────────
  Memory in use

  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁████████████████████████████████████████████████████▅
  min 0 B · max 1.00 KiB · over 39 ns · 3 points

  Time by call path

                 us       %
  all         4.000   100.0  ████████████
    aten::mm  3.000    75.0  █████████
      gemm    1.000    25.0  ███
    x         0.001    <0.1  ▏

  Bytes from rank to rank

     0 1
  r0 · █
  r1 ▒ ░
  · 0 B  █ 8 B

Quality ────────────────────────────────────────────────────────────────
  events   api 3 · kernel 4
  linked   75.0% of kernels to the call that launched them
  untimed  1 event without usable times, in no sum of times
  lost     2 events dropped: every number here may be too small

  dropped  record_skipped × 2: a record that cannot be read
           first byte 8: {"ph"?[31m
  repaired comma_repaired × 1
           first byte 12
)");
}

TEST(Text, NothingWrongIsOneLine) {
  EXPECT_EQ(render_text(Document(), {.width = 40}), R"(0 sources
  0 events · no times

Quality ────────────────────────────────
  events   none

  No problems found in the input.
)");
}

TEST(Text, SeveralSourcesAreListedAndProblemsAreJoinedByReason) {
  Document document;
  TraceSummary& trace = document.trace;
  for (int rank = 0; rank < 10; ++rank) {
    const std::string label = "rank " + std::to_string(rank);
    trace.sources.push_back({"r" + std::to_string(rank) + ".json",
                             "kineto_json",
                             label,
                             integer(rank),
                             {{"kernel", 2}}});
    trace.problems.push_back({label, "comma_repaired", "repaired", rank + 1, "byte 7"});
  }
  trace.events = {{"kernel", 20}};
  trace.span_ns = integer(12'345);
  trace.filter = "device 0";
  EXPECT_EQ(render_text(document, {.width = 60, .max_rows = 2}), R"(10 sources
  20 events · span 12.35 us
  only device 0

  source  rank  format       events  path
  ──────────────────────────────────────────
  rank 0     0  kineto_json       2  r0.json
  rank 1     1  kineto_json       2  r1.json
  rank 2     2  kineto_json       2  r2.json
  rank 3     3  kineto_json       2  r3.json
  rank 4     4  kineto_json       2  r4.json
  rank 5     5  kineto_json       2  r5.json
  rank 6     6  kineto_json       2  r6.json
  rank 7     7  kineto_json       2  r7.json
  … and 2 more rows

Quality ────────────────────────────────────────────────────
  events   kernel 20

  source  kernel
  ──────────────
  rank 0       2
  rank 1       2
  … and 8 more rows

  repaired comma_repaired × 55 in 10 sources
           first byte 7 (rank 0)
)");
}

TEST(Text, NoLineIsWiderThanTheTerminal) {
  Document document = sample_document();
  Table wide{"wide", "A wide one", {{"name"}}, {}};
  for (int row = 0; row < 40; ++row) {
    std::vector<Cell>& cells = wide.rows.emplace_back();
    cells.emplace_back("void kernel<" + std::string(static_cast<std::size_t>(row) * 5, 'x') +
                       ">(float*)");
    for (int column = 0; column < 30; ++column) {
      if (row == 0) wide.columns.push_back({"a_column_" + std::to_string(column), Unit::kBytes});
      cells.emplace_back(integer((row + 1) * 1'000'000'007LL * (column + 1)));
    }
  }
  document.reports[0].parts.push_back(wide);
  for (int width = 40; width <= 220; width += 9) {
    const std::string text = render_text(document, {.width = width});
    EXPECT_LE(widest_line(text), static_cast<std::size_t>(width)) << text;
  }
}

TEST(Text, AWideTableIsCutIntoBlocksAndLosesNothing) {
  Table table{"t", "Tool", {{"name"}}, {}};
  for (int row = 0; row < 9; ++row) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.emplace_back("row " + std::to_string(row));
    for (int column = 0; column < 8; ++column) {
      if (row == 0) table.columns.push_back({"column" + std::to_string(column), Unit::kNone});
      cells.emplace_back(integer(1000 * row + column));
    }
  }
  const std::string text = body(render_text(document_of(table), {.width = 40}));
  std::istringstream lines(text);
  int headers = 0;
  std::set<std::string> words;
  for (std::string word; lines >> word;) {
    words.insert(word);
    if (word == "name") ++headers;
  }
  EXPECT_EQ(headers, 3);
  for (int row = 1; row < 9; ++row) {
    for (int column = 0; column < 8; ++column) {
      EXPECT_TRUE(words.contains(std::to_string(1000 * row + column)));
    }
  }
}

TEST(Text, AWideTableOfFewRowsIsTurned) {
  Table table{"t",
              "Tool",
              {{"device"},
               {"the_time_of_computing", Unit::kNanoseconds},
               {"the_time_of_communicating", Unit::kNanoseconds},
               {"the_bytes", Unit::kBytes},
               {"waits", Unit::kCount}},
              {{"0", integer(1'500'000), integer(20), {}, integer(0)},
               {"1", integer(2'500'000), integer(4), integer(3 << 20), integer(7)}}};
  EXPECT_EQ(body(render_text(document_of(table), {.width = 45})),
            R"(  device                         0      1
  ───────────────────────────────────────────
  the time of computing      1.500  2.500 ms
  the time of communicating     20      4 ns
  the bytes                      -   3.00 MiB
  waits                          0      7
)");
}

TEST(Text, AUnitNeverStandsBehindTheUnknown) {
  Table table{
      "t",
      "Tool",
      {{"device"},
       {"time_of_computing", Unit::kNanoseconds},
       {"time_of_communicating", Unit::kNanoseconds},
       {"bytes", Unit::kBytes},
       {"synchronisations", Unit::kCount}},
      {{"0", integer(1'500'000), integer(20), {}, integer(3)}, {"1", {}, integer(4), {}, {}}}};
  EXPECT_EQ(body(render_text(document_of(table), {.width = 45})),
            R"(  device                      0  1
  ───────────────────────────────────
  time of computing (ms)  1.500  -
  time of communicating      20  4 ns
  bytes                       -  -
  synchronisations            3  -
)");
}

TEST(Text, LastColumnsThatSayTheSameMakeNoBlock) {
  Table table{"t",
              "Tool",
              {{"kernel"},
               {"bytes", Unit::kBytes},
               {"launches", Unit::kCount},
               {"accesses", Unit::kCount},
               {"time", Unit::kNanoseconds},
               {"uncovered"}},
              {}};
  for (const char* kernel : {"add", "copy", "scan", "sort", "sum", "take", "turn"}) {
    const auto row = static_cast<std::int64_t>(table.rows.size());
    table.rows.push_back({kernel, integer(16), integer(row), integer(3), {}, "no"});
  }
  table.rows[6][3] = integer(4);
  const TextOptions narrow{.width = 40, .max_rows = 6};
  const auto text = [&](const TextOptions& options) {
    return body(render_text(document_of(table), options));
  };
  EXPECT_EQ(text(narrow), R"(  kernel  bytes  launches  accesses
              B
  ─────────────────────────────────
  add        16         0         3
  copy       16         1         3
  scan       16         2         3
  sort       16         3         3
  sum        16         4         3
  take       16         5         3
  in each row: time -, uncovered no
  … and 1 more row
)");
  EXPECT_EQ(text({.width = 80, .max_rows = 6}).find("in each row"), std::string::npos)
      << "there is room";
  table.rows[6][5] = "tiles";
  EXPECT_EQ(text(narrow).find("in each row"), std::string::npos) << "not in that not shown";
}

TEST(Text, EachBlockTellsItsRowsApart) {
  Table table{"t", "Tool", {{"device"}, {"stream"}}, {}};
  for (int row = 0; row < 12; ++row) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.emplace_back("gpu " + std::to_string(row / 4));
    cells.emplace_back("stream " + std::to_string(row % 4));
    for (int column = 0; column < 6; ++column) {
      if (row == 0) table.columns.push_back({"column" + std::to_string(column), Unit::kNone});
      cells.emplace_back(integer(column + row % 2));
    }
  }
  const std::string text = body(render_text(document_of(table), {.width = 50}));
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("gpu 2   stream 3 ", at)) != std::string::npos; ++at) {
    ++count;
  }
  EXPECT_EQ(count, 2) << text;
}

TEST(Text, EachBlockTellsItsRowsApartByLongNames) {
  Table table{"t", "Tool", {{"device"}, {"collective"}, {"type"}}, {}};
  for (int row = 0; row < 4; ++row) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells.emplace_back("gpu 0");
    cells.emplace_back("a_collective_of_a_long_name_" + std::to_string(row / 2));
    cells.emplace_back("type " + std::to_string(row % 2));
    for (int column = 0; column < 9; ++column) {
      if (row == 0) table.columns.push_back({"column" + std::to_string(column), Unit::kNone});
      cells.emplace_back(integer(column + row % 2));
    }
  }
  const std::string text = body(render_text(document_of(table), {.width = 68}));
  std::size_t blocks = 0, rows = 0;
  for (std::size_t at = 0; (at = text.find("device  ", at)) != std::string::npos; ++at) ++blocks;
  for (std::size_t at = 0; (at = text.find("type 1", at)) != std::string::npos; ++at) ++rows;
  EXPECT_GT(blocks, 1) << text;
  EXPECT_EQ(rows, 2 * blocks) << text;
}

TEST(Text, WhatSeveralToolsMissIsSaidOnce) {
  Document document;
  const Finding nothing{"n", Finding::Level::kInfo, "no device worked", 0, "", {}, ""};
  for (const char* title : {"One", "Two"}) {
    document.reports.push_back(
        {"t", title, {nothing, Table{"a", "A", {{"x"}}, {}}, Table{"b", "B", {{"x"}}, {}}}});
  }
  document.reports.push_back({"t", "Three", {nothing}});
  const std::string text = render_text(document, {.width = 40});
  EXPECT_EQ(text.find("no device worked"), text.rfind("no device worked"));
  EXPECT_NE(text.find("One ────────────────────────────────────\n  (nothing)\n\nTwo ──"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Three ──────────────────────────────────\n  see Findings\n"),
            std::string::npos)
      << text;
}

TEST(Text, CutRowsAreSaid) {
  Table table{"t", "Tool", {{"n", Unit::kCount}}, {}};
  for (int i = 0; i < 1'500; ++i) table.rows.push_back({integer(i)});
  EXPECT_EQ(body(render_text(document_of(table), {.width = 40, .max_rows = 2})),
            "  n\n  ─\n  0\n  1\n  … and 1,498 more rows\n");
}

TEST(Text, ATerminalIsNeverCommanded) {
  Document document = sample_document();
  document.trace.sources[0].path = "evil\x1b]0;title\x07\n\x9b\xc2\x9b";
  document.reports[0].parts.push_back(Table{"t", "a\nb", {{"na\x1bme"}}, {{"x\x1b[2J\r\n\x7f"}}});
  const std::string text = render_text(document);
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  }
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(text.find('\x7f'), std::string::npos);
  EXPECT_EQ(text.substr(0, text.find('\n')), "evil?]0;title? ??");
}

TEST(Text, ColourAddsOnlyColour) {
  std::string coloured = render_text(sample_document(), {.colour = true});
  EXPECT_NE(coloured, render_text(sample_document()));
  for (std::size_t at; (at = coloured.find('\x1b')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  }
  EXPECT_EQ(coloured, render_text(sample_document()));
}

TEST(Numbers, OneUnitForAColumn) {
  const auto shown = [](Unit unit, const std::vector<double>& values,
                        TimeUnit time = TimeUnit::kAuto) {
    const Scale scale = choose_scale(unit, Extent(values), time);
    std::string text;
    for (const double value : values) text += format_number(value, unit, scale) + ' ';
    return text + std::string(scale.name);
  };
  EXPECT_EQ(shown(Unit::kNanoseconds, {999, 1}), "999 1 ns");
  EXPECT_EQ(shown(Unit::kNanoseconds, {1000, 250}), "1.000 0.250 us");
  EXPECT_EQ(shown(Unit::kNanoseconds, {732'352'000, 100'000'000}), "732.4 100.0 ms");
  EXPECT_EQ(shown(Unit::kNanoseconds, {732'352'000, 2'000}), "732.352 0.002 ms");
  EXPECT_EQ(shown(Unit::kNanoseconds, {1'733'000'000, 512'000}), "1,733.00 0.51 ms");
  EXPECT_EQ(shown(Unit::kNanoseconds, {86'400e9, 1}), "86,400.000 <0.001 s");
  EXPECT_EQ(shown(Unit::kNanoseconds, {0, -2'000'000}), "0 -2.000 ms");
  EXPECT_EQ(shown(Unit::kNanoseconds, {1.5, 2}), "1.5 2.0 ns");
  EXPECT_EQ(shown(Unit::kNanoseconds, {1'234'567}, TimeUnit::kNanoseconds), "1,234,567 ns");
  EXPECT_EQ(shown(Unit::kNanoseconds, {1'234'567, 1}, TimeUnit::kSeconds), "0.001 <0.001 s");
  EXPECT_EQ(shown(Unit::kBytes, {1023}), "1,023 B");
  EXPECT_EQ(shown(Unit::kBytes, {1536, 1024}), "1.50 1.00 KiB");
  EXPECT_EQ(shown(Unit::kBytes, {0x1p40, 5}), "1.00 <0.01 TiB");
  EXPECT_EQ(shown(Unit::kShare, {1, 0, 0.5, 0.0001, 0.99999}), "100.0 0 50.0 <0.1 >99.9 %");
  EXPECT_EQ(shown(Unit::kCount, {1'234'567, 2}), "1,234,567 2 ");
  EXPECT_EQ(shown(Unit::kNone, {1'234'567, 0.25}), "1,234,567.00 0.25 ");
  EXPECT_EQ(shown(Unit::kNone, {8.72092, 0.00731727}), "8.721 0.007 ");
  EXPECT_EQ(shown(Unit::kNone, {1234, 7}), "1234 7 ");
  EXPECT_EQ(format_number(std::int64_t{9'007'199'254'740'993}, Unit::kCount, Scale()),
            "9,007,199,254,740,993");
}

TEST(Numbers, TimesSideBySideShareAUnit) {
  const auto units = [](const std::vector<std::vector<double>>& columns) {
    std::vector<Extent> extents;
    for (const auto& column : columns) extents.emplace_back(column);
    std::string names;
    for (const Scale& scale : choose_time_scales(extents, TimeUnit::kAuto)) {
      (names += names.empty() ? "" : " ") += scale.name;
    }
    return names;
  };
  // Two of three are in us; 357 ms would be too long there, 4.9 ms and nothing are not.
  EXPECT_EQ(units({{357e6}, {4.9e6}, {11e3}, {4e3}, {2e3}, {0}}), "ms us us us us us");
  // A column whose smallest would be lost keeps its own.
  EXPECT_EQ(units({{5e9}, {7e9}, {12}}), "s s ns");
  EXPECT_EQ(units({{5e6}, {5e3}}), "us us");
  EXPECT_EQ(units({}), "");
}

TEST(Layout, DifferentNamesStayDifferentWhenShortened) {
  std::vector<std::string> names;
  for (const char* functor : {"Add", "Mul", "Fill", "Div"}) {
    names.push_back("void at::native::vectorized_elementwise_kernel<4, at::native::" +
                    std::string(functor) + "Functor<float>, at::detail::Array<char*, 3> >(int)");
  }
  names.push_back(names.front());
  names.emplace_back("short");
  // These differ in nothing that can be shown.
  for (const std::size_t run : {60u, 61u, 62u}) names.push_back("a" + std::string(run, 'x') + "b");
  shorten_all(names, 30);
  EXPECT_EQ(names[0], names[4]);
  EXPECT_EQ(names[5], "short");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 8u);
  for (const std::string& name : names) EXPECT_LE(width_of(name), 30u) << name;
}

TEST(Layout, CutsBetweenCodePoints) {
  EXPECT_EQ(shorten("äöüäöüäöü", 6), "äöü…öü");
  EXPECT_EQ(width_of("äöü…öü"), 6u);
  EXPECT_EQ(shorten("abc", 0), "");
  EXPECT_EQ(shorten("abc", 1), "…");
  EXPECT_EQ(shorten("abc", 3), "abc");
}

TEST(Layout, WrapBreaksBetweenWordsAndInsideTooLongOnes) {
  EXPECT_EQ(wrap("one two  three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("a äöüäöüä b", 4), (std::vector<std::string>{"a", "äöüä", "öüä", "b"}));
  EXPECT_TRUE(wrap("", 5).empty());
}

}  // namespace
}  // namespace pasta::report
