#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "report/names.h"
#include "report/render.h"

namespace pasta::report {
namespace {

using simdjson::dom::element;

// Containers within containers. Trees are read and freed by recursion; this many levels need about
// a megabyte of stack.
constexpr std::size_t kMaxDepth = 4096;

// Reads members of objects into C++ values. The first thing that is not as it should be is kept
// with the path to it, and everything after it is skipped, so that callers need not check.
class Reader {
 public:
  [[nodiscard]] bool failed() const { return !message_.empty(); }
  [[nodiscard]] std::string message() const { return path_ + ": " + message_; }
  void fail(std::string message) {
    if (!failed()) message_ = std::move(message);
  }

  void read(element from, std::string& to) {
    std::string_view text;
    if (from.get(text) == simdjson::SUCCESS) {
      to = text;
    } else {
      fail("should be a string");
    }
  }
  void read(element from, std::int64_t& to) {
    if (from.get(to) != simdjson::SUCCESS) fail("should be an integer of 64 bits");
  }
  // For values that are numbers or unknown, and not cells.
  void read(element from, double& to) {
    if (from.is_null()) {
      to = std::numeric_limits<double>::quiet_NaN();
    } else if (from.get(to) != simdjson::SUCCESS) {
      fail("should be a number");
    }
  }
  void read(element from, Cell& to) {
    switch (from.type()) {
      case simdjson::dom::element_type::NULL_VALUE:
        to = std::monostate();
        break;
      case simdjson::dom::element_type::STRING:
        read(from, to.emplace<std::string>());
        break;
      case simdjson::dom::element_type::INT64:
        read(from, to.emplace<std::int64_t>());
        break;
      case simdjson::dom::element_type::DOUBLE:
        read(from, to.emplace<double>());
        break;
      default:
        fail("should be a string, a number of 64 bits, or null");
    }
  }
  template <std::size_t kCount>
  std::size_t read_word(element from, const std::array<std::string_view, kCount>& words) {
    std::string text;
    read(from, text);
    const auto found = std::find(words.begin(), words.end(), text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    fail("\"" + text + "\" is not known here");
    return 0;
  }

  // Calls read(element) for a member; `optional` ones may be absent.
  template <class Read>
  void member(element object, std::string_view key, Read&& read, bool optional = false) {
    if (failed()) return;
    simdjson::dom::object members;
    if (object.get(members) != simdjson::SUCCESS) return fail("should be an object");
    element value;
    if (members.at_key(key).get(value) != simdjson::SUCCESS) {
      if (!optional) fail("\"" + std::string(key) + "\" is missing");
      return;
    }
    read(value);
    if (failed()) path_.insert(0, "." + std::string(key));
  }
  template <class Value>
  void member_value(element object, std::string_view key, Value& value) {
    member(object, key, [&](element from) { read(from, value); });
  }

  // Calls read(element) for each element of an array.
  template <class Read>
  void each(element array, Read&& read) {
    simdjson::dom::array elements;
    if (array.get(elements) != simdjson::SUCCESS) return fail("should be an array");
    std::size_t index = 0;
    for (const element one : elements) {
      read(one);
      if (failed()) return static_cast<void>(path_.insert(0, "[" + std::to_string(index) + "]"));
      ++index;
    }
  }
  // Reads an array to the end of a vector, each element by read(element, value).
  template <class Value, class Read>
  void list(element object, std::string_view key, std::vector<Value>& values, Read&& read) {
    member(object, key, [&](element array) {
      each(array, [&](element one) { read(one, values.emplace_back()); });
    });
  }
  template <class Value>
  void list(element object, std::string_view key, std::vector<Value>& values) {
    list(object, key, values, [&](element one, Value& value) { read(one, value); });
  }
  // Reads an object of any names, in its order.
  template <class Value>
  void pairs(element object, std::string_view key,
             std::vector<std::pair<std::string, Value>>& pairs) {
    member(object, key, [&](element from) {
      simdjson::dom::object members;
      if (from.get(members) != simdjson::SUCCESS) return fail("should be an object");
      for (const auto& [name, value] : members) {
        read(value, pairs.emplace_back(std::string(name), Value()).second);
        if (failed()) return static_cast<void>(path_.insert(0, "." + std::string(name)));
      }
    });
  }

 private:
  std::string message_;
  std::string path_;
};

void read_trace(Reader& r, element from, TraceSummary& trace) {
  r.list(from, "sources", trace.sources, [&](element one, TraceSummary::Source& source) {
    r.member_value(one, "path", source.path);
    r.member_value(one, "format", source.format);
    r.member_value(one, "label", source.label);
    r.member_value(one, "rank", source.rank);
    r.pairs(one, "events", source.events);
  });
  r.member_value(from, "span_ns", trace.span_ns);
  r.pairs(from, "events", trace.events);
  r.list(from, "lanes", trace.lanes, [&](element one, TraceSummary::Lane& lane) {
    r.member_value(one, "name", lane.name);
    r.member_value(one, "type", lane.type);
    r.member_value(one, "process", lane.process);
    r.member_value(one, "device", lane.device);
  });
  r.list(from, "devices", trace.devices, [&](element one, TraceSummary::DeviceFacts& device) {
    r.member_value(one, "id", device.id);
    r.member_value(one, "name", device.name);
    r.member_value(one, "type", device.type);
  });
  r.member(from, "quality", [&](element quality) {
    r.member_value(quality, "kernels_linked", trace.kernels_linked);
    r.member_value(quality, "untimed", trace.untimed);
    r.member_value(quality, "lost", trace.lost);
    r.list(quality, "problems", trace.problems,
           [&](element one, TraceSummary::ProblemRow& problem) {
             r.member_value(one, "source", problem.source);
             r.member_value(one, "reason", problem.reason);
             r.member_value(one, "severity", problem.severity);
             r.member_value(one, "count", problem.count);
             r.member_value(one, "first", problem.first);
           });
  });
  r.member_value(from, "filter", trace.filter);
}

void read_unit(Reader& r, element from, Unit& unit) {
  r.member(
      from, "unit", [&](element word) { unit = static_cast<Unit>(r.read_word(word, kUnitNames)); },
      true);
}

void read_evidence_units(Reader& r, element from, Finding& finding) {
  r.member(
      from, "evidence_units",
      [&](element units) {
        simdjson::dom::object members;
        if (units.get(members) != simdjson::SUCCESS) return r.fail("should be an object");
        for (const auto& [name, word] : members) {
          const auto fact = std::ranges::find(finding.evidence, name, &Evidence::name);
          if (fact == finding.evidence.end()) return r.fail("names a fact that is not in evidence");
          fact->unit = static_cast<Unit>(r.read_word(word, kUnitNames));
        }
      },
      true);
}

void read_part(Reader& r, element from, Finding& finding) {
  r.member_value(from, "id", finding.id);
  r.member(from, "level", [&](element word) {
    finding.level = static_cast<Finding::Level>(r.read_word(word, kLevelNames));
  });
  r.member_value(from, "text", finding.text);
  r.member_value(from, "share", finding.share);
  r.member_value(from, "of", finding.of);
  std::vector<std::pair<std::string, Cell>> facts;
  r.pairs(from, "evidence", facts);
  for (auto& [name, value] : facts)
    finding.evidence.emplace_back(std::move(name), std::move(value));
  read_evidence_units(r, from, finding);
  r.member_value(from, "advice", finding.advice);
}

void read_part(Reader& r, element from, Table& table) {
  r.member_value(from, "id", table.id);
  r.member_value(from, "title", table.title);
  r.list(from, "columns", table.columns, [&](element one, Column& column) {
    r.member_value(one, "name", column.name);
    read_unit(r, one, column.unit);
  });
  r.list(from, "rows", table.rows, [&](element one, std::vector<Cell>& row) {
    row.reserve(table.columns.size());
    r.each(one, [&](element cell) { r.read(cell, row.emplace_back()); });
    if (row.size() != table.columns.size()) {
      r.fail("has " + std::to_string(row.size()) + " cells for " +
             std::to_string(table.columns.size()) + " columns");
    }
  });
}

void read_part(Reader& r, element from, Series& series) {
  r.member_value(from, "id", series.id);
  r.member_value(from, "title", series.title);
  read_unit(r, from, series.unit);
  r.list(from, "points", series.points, [&](element one, std::pair<std::int64_t, double>& point) {
    std::size_t index = 0;
    r.each(one, [&](element number) {
      if (index == 0) {
        r.read(number, point.first);
      } else {
        r.read(number, point.second);
      }
      ++index;
    });
    if (index != 2) r.fail("should be a time and a value");
  });
}

void read_node(Reader& r, element from, TreeNode& node) {
  r.member_value(from, "name", node.name);
  r.member_value(from, "value", node.value);
  const auto children = [&](element array) {
    r.each(array, [&](element one) { read_node(r, one, node.children.emplace_back()); });
  };
  r.member(from, "children", children, true);
}

void read_part(Reader& r, element from, Tree& tree) {
  r.member_value(from, "id", tree.id);
  r.member_value(from, "title", tree.title);
  read_unit(r, from, tree.unit);
  r.member(from, "root", [&](element root) { read_node(r, root, tree.root); });
}

void read_part(Reader& r, element from, HeatMap& map) {
  r.member_value(from, "id", map.id);
  r.member_value(from, "title", map.title);
  read_unit(r, from, map.unit);
  r.list(from, "rows", map.rows);
  r.list(from, "columns", map.columns);
  r.list(from, "values", map.values, [&](element one, std::vector<double>& row) {
    r.each(one, [&](element value) { r.read(value, row.emplace_back()); });
    if (row.size() != map.columns.size()) r.fail("should have a value for each column");
  });
  if (map.values.size() != map.rows.size()) r.fail("should have a line of values for each row");
}

template <std::size_t kIndex = 0>
Part make_part(std::size_t index) {
  if constexpr (kIndex + 1 < std::variant_size_v<Part>) {
    if (index != kIndex) return make_part<kIndex + 1>(index);
  }
  return Part(std::in_place_index<kIndex>);
}

void read_report(Reader& r, element from, Report& report) {
  r.member_value(from, "tool", report.tool);
  r.member_value(from, "title", report.title);
  r.list(from, "parts", report.parts, [&](element one, Part& part) {
    r.member(one, "type", [&](element word) { part = make_part(r.read_word(word, kPartNames)); });
    if (r.failed()) return;
    std::visit([&](auto& known) { read_part(r, one, known); }, part);
  });
}

template <class Value, class Read>
Result<Value> parse(std::string_view text, Read&& read) {
  simdjson::dom::parser parser;
  element root;
  simdjson::error_code error = parser.allocate(text.size() + 1, kMaxDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return pasta::fail(ErrorCode::kBadInput,
                       std::string("not a JSON document: ") + simdjson::error_message(error));
  }
  Reader reader;
  Value value;
  read(reader, root, value);
  if (reader.failed()) return pasta::fail(ErrorCode::kBadInput, "report" + reader.message());
  return value;
}

}  // namespace

Result<Document> parse_json(std::string_view text) {
  return parse<Document>(text, [](Reader& r, element root, Document& document) {
    r.member(root, "schema", [&](element from) {
      std::int64_t schema = 0;
      r.read(from, schema);
      if (schema != 1) {
        r.fail("this program reads schema 1; take the version of pastaprof that wrote it");
      }
    });
    r.member(root, "trace", [&](element from) { read_trace(r, from, document.trace); });
    r.list(root, "reports", document.reports,
           [&](element from, Report& report) { read_report(r, from, report); });
  });
}

Result<Report> parse_report(std::string_view text) {
  return parse<Report>(
      text, [](Reader& r, element root, Report& report) { read_report(r, root, report); });
}

}  // namespace pasta::report
