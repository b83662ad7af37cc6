#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/json_writer.h"
#include "pasta_version.h"
#include "report/names.h"
#include "report/number.h"
#include "report/render.h"

namespace pasta::report {
namespace {

// A container stands on one line, or has one line for each of its members.
enum class Layout : std::uint8_t { kLine, kLines };
constexpr Layout kLine = Layout::kLine;
constexpr Layout kLines = Layout::kLines;

// Writes JSON and keeps the commas and lines. A value is text, a number, a Cell, or a callable
// that writes one.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <class Value>
  void value(const Value& value) {
    if constexpr (std::invocable<Value>) {
      value();
    } else if constexpr (std::is_same_v<Value, Cell>) {
      std::visit([this](const auto& known) { this->value(known); }, value);
    } else if constexpr (std::convertible_to<Value, std::string_view>) {
      base::append_json_string(out_, value);
    } else if constexpr (std::integral<Value>) {
      append_integer(out_, value);
    } else if constexpr (std::is_same_v<Value, double>) {
      if (std::isfinite(value)) {
        append_double(out_, value);
      } else {
        out_ += "null";
      }
    } else {
      static_assert(std::is_same_v<Value, std::monostate>);
      out_ += "null";
    }
  }

  template <class Write>
  void object(Layout layout, Write&& write) {
    container('{', '}', layout, write);
  }
  template <class Value>
  void member(std::string_view key, const Value& value) {
    next();
    this->value(key);
    out_ += ": ";
    this->value(value);
  }

  template <class Write>
  void array(Layout layout, Write&& write) {
    container('[', ']', layout, write);
  }
  template <class Value>
  void element(const Value& value) {
    next();
    this->value(value);
  }

 private:
  template <class Write>
  void container(char open, char close, Layout layout, Write& write) {
    const State outer = state_;
    state_ = {layout, true, outer.depth + 1};
    out_ += open;
    write();
    const bool empty = state_.first;
    state_ = outer;
    if (layout == kLines && !empty) line();
    out_ += close;
  }
  void next() {
    if (!state_.first) out_ += ',';
    if (state_.layout == kLines) {
      line();
    } else if (!state_.first) {
      out_ += ' ';
    }
    state_.first = false;
  }
  void line() {
    out_ += '\n';
    out_.append(state_.depth, ' ');
  }

  struct State {
    Layout layout = kLine;
    bool first = true;
    std::size_t depth = 0;
  };
  std::string& out_;
  State state_;
};

// A callable that writes `list` as an array, each element by `write`.
template <class List, class Write>
auto array_of(Writer& w, Layout layout, const List& list, Write write) {
  return [&w, layout, &list, write] {
    w.array(layout, [&] {
      for (const auto& one : list) w.element([&] { write(one); });
    });
  };
}

template <class List>
auto values_of(Writer& w, Layout layout, const List& list) {
  return array_of(w, layout, list, [&w](const auto& one) { w.value(one); });
}

// A callable that writes pairs of name and value as an object.
template <class Pairs>
auto object_of(Writer& w, const Pairs& pairs) {
  return [&w, &pairs] {
    w.object(kLine, [&] {
      for (const auto& [name, value] : pairs) w.member(name, value);
    });
  };
}

void write_trace(Writer& w, const TraceSummary& trace) {
  const auto source = [&](const TraceSummary::Source& s) {
    w.object(kLine, [&] {
      w.member("path", s.path);
      w.member("format", s.format);
      w.member("label", s.label);
      w.member("rank", s.rank);
      w.member("events", object_of(w, s.events));
    });
  };
  const auto lane = [&](const TraceSummary::Lane& l) {
    w.object(kLine, [&] {
      w.member("name", l.name);
      w.member("type", l.type);
      w.member("process", l.process);
      w.member("device", l.device);
    });
  };
  const auto device = [&](const TraceSummary::DeviceFacts& d) {
    w.object(kLine, [&] {
      w.member("id", d.id);
      w.member("name", d.name);
      w.member("type", d.type);
    });
  };
  const auto problem = [&](const TraceSummary::ProblemRow& p) {
    w.object(kLine, [&] {
      w.member("source", p.source);
      w.member("reason", p.reason);
      w.member("severity", p.severity);
      w.member("count", p.count);
      w.member("first", p.first);
    });
  };
  const auto quality = [&] {
    w.object(kLines, [&] {
      w.member("kernels_linked", trace.kernels_linked);
      w.member("untimed", trace.untimed);
      w.member("lost", trace.lost);
      w.member("problems", array_of(w, kLines, trace.problems, problem));
    });
  };
  w.object(kLines, [&] {
    w.member("sources", array_of(w, kLines, trace.sources, source));
    w.member("span_ns", trace.span_ns);
    w.member("events", object_of(w, trace.events));
    w.member("lanes", array_of(w, kLines, trace.lanes, lane));
    w.member("devices", array_of(w, kLines, trace.devices, device));
    w.member("quality", quality);
    w.member("filter", trace.filter);
  });
}

void write_unit(Writer& w, Unit unit) {
  if (unit != Unit::kNone) w.member("unit", kUnitNames[static_cast<std::size_t>(unit)]);
}

void write_members(Writer& w, const Finding& finding) {
  w.member("id", finding.id);
  w.member("level", kLevelNames[static_cast<std::size_t>(finding.level)]);
  w.member("text", finding.text);
  w.member("share", finding.share);
  w.member("of", finding.of);
  w.member("evidence", [&] {
    w.object(kLine, [&] {
      for (const Evidence& fact : finding.evidence) w.member(fact.name, fact.value);
    });
  });
  const auto has_unit = [](const Evidence& fact) { return fact.unit != Unit::kNone; };
  if (std::ranges::any_of(finding.evidence, has_unit)) {
    w.member("evidence_units", [&] {
      w.object(kLine, [&] {
        for (const Evidence& fact : finding.evidence) {
          if (has_unit(fact)) w.member(fact.name, kUnitNames[static_cast<std::size_t>(fact.unit)]);
        }
      });
    });
  }
  w.member("advice", finding.advice);
}

void write_members(Writer& w, const Table& table) {
  const auto column = [&](const Column& c) {
    w.object(kLine, [&] {
      w.member("name", c.name);
      write_unit(w, c.unit);
    });
  };
  const auto row = [&](const std::vector<Cell>& cells) { values_of(w, kLine, cells)(); };
  w.member("id", table.id);
  w.member("title", table.title);
  w.member("columns", array_of(w, kLine, table.columns, column));
  w.member("rows", array_of(w, kLines, table.rows, row));
}

void write_members(Writer& w, const Series& series) {
  const auto point = [&](const std::pair<std::int64_t, double>& p) {
    w.array(kLine, [&] {
      w.element(p.first);
      w.element(p.second);
    });
  };
  w.member("id", series.id);
  w.member("title", series.title);
  write_unit(w, series.unit);
  w.member("points", array_of(w, kLines, series.points, point));
}

void write_node(Writer& w, const TreeNode& node) {
  w.object(kLine, [&] {
    w.member("name", node.name);
    w.member("value", node.value);
    if (node.children.empty()) return;
    const auto child = [&](const TreeNode& c) { write_node(w, c); };
    w.member("children", array_of(w, kLines, node.children, child));
  });
}

void write_members(Writer& w, const Tree& tree) {
  w.member("id", tree.id);
  w.member("title", tree.title);
  write_unit(w, tree.unit);
  w.member("root", [&] { write_node(w, tree.root); });
}

void write_members(Writer& w, const HeatMap& map) {
  const auto row = [&](const std::vector<double>& values) { values_of(w, kLine, values)(); };
  w.member("id", map.id);
  w.member("title", map.title);
  write_unit(w, map.unit);
  w.member("rows", values_of(w, kLine, map.rows));
  w.member("columns", values_of(w, kLine, map.columns));
  w.member("values", array_of(w, kLines, map.values, row));
}

void write_report(Writer& w, const Report& report) {
  const auto part = [&](const Part& any) {
    w.object(kLines, [&] {
      w.member("type", kPartNames[any.index()]);
      std::visit([&](const auto& known) { write_members(w, known); }, any);
    });
  };
  w.object(kLines, [&] {
    w.member("tool", report.tool);
    w.member("title", report.title);
    w.member("parts", array_of(w, kLines, report.parts, part));
  });
}

}  // namespace

std::string render_json(const Document& document) {
  std::string out;
  Writer w(out);
  w.object(kLines, [&] {
    w.member("pastaprof", PASTA_VERSION);
    w.member("schema", 1);
    w.member("trace", [&] { write_trace(w, document.trace); });
    w.member("reports",
             array_of(w, kLines, document.reports, [&](const Report& r) { write_report(w, r); }));
  });
  out += '\n';
  return out;
}

}  // namespace pasta::report
