#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "pasta_version.h"
#include "report/render.h"
#include "report/sample_document.h"

namespace pasta::report {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse_json(text);
  return parsed ? "parsed" : parsed.error().message;
}

// The sample as JSON with one piece of text exchanged.
std::string broken(std::string_view from, std::string_view to) {
  std::string text = render_json(sample_document());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Json, HasTheFormOfSchema1OneRowToALine) {
  EXPECT_EQ(render_json(sample_document()), R"({
 "pastaprof": ")" PASTA_VERSION R"(",
 "schema": 1,
 "trace": {
  "sources": [
   {"path": "a/rank0.json.gz", "format": "kineto_json", "label": "", "rank": 0, "events": {"api": 3, "kernel": 4}}
  ],
  "span_ns": 1733000000,
  "events": {"api": 3, "kernel": 4},
  "lanes": [
   {"name": "python", "type": "thread", "process": "1234", "device": ""},
   {"name": "stream 7", "type": "queue", "process": "1234", "device": "0"}
  ],
  "devices": [
   {"id": "0", "name": "Tesla V100", "type": "gpu"}
  ],
  "quality": {
   "kernels_linked": 0.75,
   "untimed": 1,
   "lost": 2,
   "problems": [
    {"source": "", "reason": "comma_repaired", "severity": "repaired", "count": 1, "first": "byte 12"},
    {"source": "", "reason": "record_skipped", "severity": "dropped", "count": 2, "first": "byte 8: {\"ph\"\u001b[31m"}
   ]
  },
  "filter": ""
 },
 "reports": [
  {
   "tool": "summary",
   "title": "Summary",
   "parts": [
    {
     "type": "finding",
     "id": "idle",
     "level": "warning",
     "text": "Device 0 waits for the host most of the time.",
     "share": 0.4226,
     "of": "the span",
     "evidence": {"gaps": 12034, "median": 1500, "worst": null},
     "evidence_units": {"median": "ns"},
     "advice": "Launch less, or capture a graph."
    },
    {
     "type": "table",
     "id": "devices",
     "title": "Devices",
     "columns": [{"name": "device"}, {"name": "busy", "unit": "ns"}, {"name": "copy_bytes", "unit": "bytes"}, {"name": "kernels", "unit": "count"}, {"name": "share", "unit": "share"}],
     "rows": [
      ["0", 1000613000, 1536, 19370, 0.5],
      ["1", 2000000, null, 4, 1e-05]
     ]
    }
   ]
  },
  {
   "tool": "other",
   "title": "Other things",
   "parts": [
    {
     "type": "series",
     "id": "used",
     "title": "Memory in use",
     "unit": "bytes",
     "points": [
      [0, 0.0],
      [10, 1024.0],
      [39, 512.0]
     ]
    },
    {
     "type": "tree",
     "id": "paths",
     "title": "Time by call path",
     "unit": "ns",
     "root": {"name": "all", "value": 4000.0, "children": [
       {"name": "aten::mm", "value": 3000.0, "children": [
         {"name": "gemm", "value": 1000.0}
        ]},
       {"name": "x", "value": 1.0}
      ]}
    },
    {
     "type": "heatmap",
     "id": "pairs",
     "title": "Bytes from rank to rank",
     "unit": "bytes",
     "rows": ["r0", "r1"],
     "columns": ["0", "1"],
     "values": [
      [0.0, 8.0],
      [4.0, 2.0]
     ]
    }
   ]
  }
 ]
}
)");
}

TEST(Json, ReadsBackWhatItWrote) {
  for (const Document& document : {sample_document(), Document()}) {
    const auto parsed = parse_json(render_json(document));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, document);
  }
}

TEST(Json, KeepsEveryNumberAndItsType) {
  Table table{"t", "", {{"cell"}}, {}};
  std::vector<Cell> cells{std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max(),
                          integer(0),
                          0.0,
                          -0.0,
                          2.0,
                          1e22,
                          5e-324,
                          0.1,
                          1.0 / 3,
                          std::numeric_limits<double>::max(),
                          std::string("2.0"),
                          std::string(),
                          std::monostate()};
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (std::isfinite(value)) cells.emplace_back(value);
    cells.emplace_back(static_cast<std::int64_t>(random()));
  }
  for (const Cell& cell : cells) table.rows.push_back({cell});
  Document document;
  document.reports.push_back({"tool", "", {table}});
  const auto parsed = parse_json(render_json(document));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, document);
  EXPECT_TRUE(
      std::signbit(std::get<double>(std::get<Table>(parsed->reports[0].parts[0]).rows[4][0])));
}

TEST(Json, WhatIsNotFiniteIsUnknown) {
  Document document;
  document.reports.push_back({"tool", "", {Table{"t", "", {{"a"}, {"b"}}, {{NAN, INFINITY}}}}});
  const auto parsed = parse_json(render_json(document));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(std::get<Table>(parsed->reports[0].parts[0]).rows[0],
            (std::vector<Cell>{std::monostate(), std::monostate()}));
}

TEST(Json, KeepsAnyText) {
  std::string every;
  for (int c = 0; c < 128; ++c) every += static_cast<char>(c);
  every += "ü€😀";
  Document document;
  document.trace.filter = every;
  document.reports.push_back(
      {every, every, {Finding{every, {}, every, 0, every, {{every, every}}, ""}}});
  const auto parsed = parse_json(render_json(document));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, document);
}

TEST(Json, ADeepTreeIsReadAndABottomlessOneRefused) {
  const auto tree_of = [](int depth) {
    TreeNode node{"leaf", 1, {}};
    for (int i = 0; i < depth; ++i) {
      TreeNode parent{"n", 1, {}};
      parent.children.push_back(std::move(node));
      node = std::move(parent);
    }
    Document document;
    document.reports.push_back({"tool", "", {Tree{"t", "", Unit::kNone, std::move(node)}}});
    return document;
  };
  const Document deep = tree_of(1'500);
  const auto parsed = parse_json(render_json(deep));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, deep);
  EXPECT_NE(error_of(std::string(1'000'000, '[')), "parsed");
  std::string bottomless =
      R"({"tool":"t","title":"","parts":[{"type":"tree","id":"","title":"","root":)";
  for (int i = 0; i < 100'000; ++i) bottomless += R"({"name":"","value":1,"children":[)";
  EXPECT_FALSE(parse_report(bottomless));
}

TEST(Json, ErrorsNameThePlace) {
  EXPECT_EQ(error_of(broken("\"schema\": 1", "\"schema\": 2")),
            "report.schema: this program reads schema 1; take the version of pastaprof that wrote "
            "it");
  EXPECT_EQ(error_of(broken("2000000, null, ", "2000000, ")),
            "report.reports[0].parts[1].rows[1]: has 4 cells for 5 columns");
  EXPECT_EQ(error_of(broken("1000613000", "[1]")),
            "report.reports[0].parts[1].rows[0][1]: should be a string, a number of 64 bits, or "
            "null");
  EXPECT_EQ(error_of(broken("1000613000", "18446744073709551615")),
            "report.reports[0].parts[1].rows[0][1]: should be a string, a number of 64 bits, or "
            "null");
  EXPECT_EQ(error_of(broken("\"unit\": \"ns\"", "\"unit\": \"furlong\"")),
            "report.reports[0].parts[1].columns[1].unit: \"furlong\" is not known here");
  EXPECT_EQ(error_of(broken("\"of\":", "\"off\":")),
            "report.reports[0].parts[0]: \"of\" is missing");
  EXPECT_EQ(error_of(broken("[10, 1024.0]", "[10]")),
            "report.reports[1].parts[0].points[1]: should be a time and a value");
  EXPECT_EQ(error_of(broken("[0.0, 8.0]", "[0.0]")),
            "report.reports[1].parts[2].values[0]: should have a value for each column");
  EXPECT_EQ(error_of(broken("\"lost\": 2", "\"lost\": 2.5")),
            "report.trace.quality.lost: should be an integer of 64 bits");
  EXPECT_EQ(error_of(broken("\"table\"", "\"tableau\"")),
            "report.reports[0].parts[1].type: \"tableau\" is not known here");
  EXPECT_EQ(error_of("[]"), "report: should be an object");
  EXPECT_EQ(error_of("").substr(0, 19), "not a JSON document");
}

// Cut anywhere, or with any byte changed, the text is read or refused, never worse.
TEST(Json, SurvivesEveryCutAndEveryChangedByte) {
  const std::string text = render_json(sample_document());
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    EXPECT_EQ(parse_json(text.substr(0, i)).has_value(), false) << i;
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    static_cast<void>(parse_json(changed));
  }
}

TEST(Json, IgnoresMembersItDoesNotKnow) {
  EXPECT_EQ(error_of(broken("\"schema\"", "\"later\": {\"a\": [1]}, \"schema\"")), "parsed");
}

}  // namespace
}  // namespace pasta::report
