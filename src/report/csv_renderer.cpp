#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/number.h"
#include "report/render.h"

namespace pasta::report {
namespace {

// The table that a part is in CSV.
Table as_table(const Table& table) { return table; }

Table as_table(const Series& series) {
  Table table{series.id, series.title, {{"time", Unit::kNanoseconds}, {"value", series.unit}}, {}};
  for (const auto& [time_ns, value] : series.points) table.rows.push_back({time_ns, value});
  return table;
}

void append_node(Table& table, const TreeNode& node, std::int64_t depth) {
  table.rows.push_back({depth, node.name, node.value});
  for (const TreeNode& child : node.children) append_node(table, child, depth + 1);
}

Table as_table(const Tree& tree) {
  Table table{tree.id,
              tree.title,
              {{"depth", Unit::kCount}, {"name", Unit::kNone}, {"value", tree.unit}},
              {}};
  append_node(table, tree.root, 0);
  return table;
}

Table as_table(const HeatMap& map) {
  Table table{map.id, map.title, {{"row", Unit::kNone}}, {}};
  for (const std::string& column : map.columns) table.columns.push_back({column, map.unit});
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row.emplace_back(map.rows[i]);
    row.insert(row.end(), map.values[i].begin(), map.values[i].end());
  }
  return table;
}

void append_field(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_cell(std::string& out, const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
    append_integer(out, *integer);
  } else if (const auto* number = std::get_if<double>(&cell)) {
    if (std::isfinite(*number)) append_double(out, *number);
  } else if (const auto* text = std::get_if<std::string>(&cell)) {
    append_field(out, *text);
  }
}

template <class Fields, class Append>
void append_line(std::string& out, const Fields& fields, Append&& append) {
  const std::size_t begin = out.size();
  bool first = true;
  for (const auto& field : fields) {
    if (!first) out += ',';
    first = false;
    append(field);
  }
  // A line of one empty field would read as no line at all.
  if (out.size() == begin && fields.size() == 1) out += "\"\"";
  out += '\n';
}

void append_table(std::string& out, const Table& table) {
  append_line(out, table.columns, [&](const Column& column) { append_field(out, column.name); });
  for (const auto& row : table.rows) {
    append_line(out, row, [&](const Cell& cell) { append_cell(out, cell); });
  }
}

}  // namespace

std::string render_csv(const Document& document) {
  struct Named {
    const Report* report;
    Table table;
  };
  std::vector<Named> tables;
  for (const Report& report : document.reports) {
    for (const Part& part : report.parts) {
      std::visit(
          [&](const auto& known) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(known)>, Finding>) {
              tables.push_back({&report, as_table(known)});
            }
          },
          part);
    }
  }
  std::string out;
  for (const Named& named : tables) {
    if (tables.size() > 1) {
      std::string title =
          "# " + named.report->tool + "." + named.table.id + ": " + named.table.title;
      std::replace_if(
          title.begin(), title.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
      if (!out.empty()) out += '\n';
      out += title + '\n';
    }
    append_table(out, named.table);
  }
  return out;
}

}  // namespace pasta::report
