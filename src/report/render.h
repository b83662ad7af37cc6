// A Document as text, JSON or CSV, and back from JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pasta/report.h"
#include "pasta/result.h"

namespace pasta::report {

enum class TimeUnit : std::uint8_t { kAuto, kNanoseconds, kMicroseconds, kMilliseconds, kSeconds };

struct TextOptions {
  int width = 80;                        // columns of the terminal; less than 40 counts as 40
  bool colour = false;                   // ANSI colours
  TimeUnit time_unit = TimeUnit::kAuto;  // kAuto: chosen for each column by its values
  std::size_t max_rows = 0;              // of a table or tree; 0 = all. What is cut is said.
  // A sentence for the id of a Reason, or "": what the quality section says of a problem.
  std::string_view (*explain)(std::string_view reason) = nullptr;
};

// For a person. Findings first, then each report, then always how far the input can be trusted.
// Names are shortened from the middle, numbers are rounded and never to a 0 that they are not.
// Control characters of the trace do not reach the terminal.
std::string render_text(const Document& document, const TextOptions& options = {});

// Everything, exactly: parse_json(render_json(d)) == d for every document of valid UTF-8 and
// finite numbers. Others become U+FFFD and null. Keys and lines come in a fixed order, one row of
// a table to a line.
std::string render_json(const Document& document);

// The data: tables, and series, trees and heat maps as tables. One table is pure CSV with a header
// of column names; of several, each stands below a line "# tool.id: title", with an empty line
// between. Numbers are in ns, bytes and shares as in JSON; unknown is empty. Fields are quoted as
// RFC 4180 says; lines end with \n. Findings and the quality section are prose and not in it.
std::string render_csv(const Document& document);

// kBadInput, naming the place in the document, when `text` is not what render_json writes. Unknown
// members are ignored, so that a later schema-1 document can be read.
Result<Document> parse_json(std::string_view text);

// One element of "reports" alone, as plug-ins give it.
Result<Report> parse_report(std::string_view text);

}  // namespace pasta::report
