// A document with every kind of part and every kind of cell, for the tests of the renderers.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "pasta/report.h"

namespace pasta::report {

inline Cell integer(std::int64_t value) { return value; }

inline Document sample_document() {
  Document document;
  TraceSummary& trace = document.trace;
  trace.sources = {{"a/rank0.json.gz", "kineto_json", "", integer(0), {{"api", 3}, {"kernel", 4}}}};
  trace.span_ns = integer(1'733'000'000);
  trace.events = {{"api", 3}, {"kernel", 4}};
  trace.lanes = {{"python", "thread", "1234", ""}, {"stream 7", "queue", "1234", "0"}};
  trace.devices = {{"0", "Tesla V100", "gpu"}};
  trace.kernels_linked = 0.75;
  trace.untimed = 1;
  trace.lost = 2;
  trace.problems = {
      {"", "comma_repaired", "repaired", 1, "byte 12"},
      {"", "record_skipped", "dropped", 2, "byte 8: {\"ph\"\x1b[31m"},
  };

  Report summary{"summary", "Summary", {}};
  summary.parts.push_back(Finding{
      "idle",
      Finding::Level::kWarning,
      "Device 0 waits for the host most of the time.",
      0.4226,
      "the span",
      {{"gaps", integer(12034)}, {"median", integer(1500), Unit::kNanoseconds}, {"worst", {}}},
      "Launch less, or capture a graph."});
  summary.parts.push_back(Table{"devices",
                                "Devices",
                                {{"device"},
                                 {"busy", Unit::kNanoseconds},
                                 {"copy_bytes", Unit::kBytes},
                                 {"kernels", Unit::kCount},
                                 {"share", Unit::kShare}},
                                {{"0", integer(1'000'613'000), integer(1536), integer(19370), 0.5},
                                 {"1", integer(2'000'000), {}, integer(4), 0.00001}}});
  document.reports.push_back(summary);

  Report other{"other", "Other things", {}};
  other.parts.push_back(
      Series{"used", "Memory in use", Unit::kBytes, {{0, 0.0}, {10, 1024.0}, {39, 512.0}}});
  other.parts.push_back(
      Tree{"paths",
           "Time by call path",
           Unit::kNanoseconds,
           {"all", 4000, {{"aten::mm", 3000, {{"gemm", 1000, {}}}}, {"x", 1, {}}}}});
  other.parts.push_back(HeatMap{"pairs",
                                "Bytes from rank to rank",
                                Unit::kBytes,
                                {"r0", "r1"},
                                {"0", "1"},
                                {{0, 8}, {4, 2}}});
  document.reports.push_back(other);
  return document;
}

}  // namespace pasta::report
