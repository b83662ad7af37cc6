#include "report/text_table.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/text_layout.h"
#include "report/text_number.h"

namespace pasta::report {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
constexpr std::string_view kUnknown = "-";
// Names are not shortened below these widths; rather the table is cut into blocks.
constexpr std::size_t kLeastKey = 24;
constexpr std::size_t kLeastSecond = 20;  // which mostly tells apart what the first is about
constexpr std::size_t kLeastName = 12;

// One column as text.
struct TextColumn {
  std::string name;  // words
  std::string unit;
  std::vector<std::string> cells;
  Align align = Align::kLeft;
  std::size_t natural = 0;  // width at which nothing is shortened
  std::size_t least = 0;
};

std::size_t longest_word(std::string_view words) {
  std::size_t longest = 0;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    longest = std::max(longest, width_of(words.substr(0, end)));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return longest;
}

// The numbers of the first `rows` rows of a column.
std::vector<double> numbers_of(const Table& table, std::size_t index, std::size_t rows) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < rows; ++i) {
    const Cell& cell = table.rows[i][index];
    if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
      numbers.push_back(static_cast<double>(*integer));
    } else if (const auto* number = std::get_if<double>(&cell)) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

std::vector<Scale> scales_of(const Table& table, const std::vector<Extent>& extents,
                             TimeUnit time_unit) {
  std::vector<Extent> times;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (table.columns[i].unit == Unit::kNanoseconds) times.push_back(extents[i]);
  }
  const std::vector<Scale> time_scales = choose_time_scales(times, time_unit);
  auto next_time = time_scales.begin();
  std::vector<Scale> scales;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Unit unit = table.columns[i].unit;
    scales.push_back(unit == Unit::kNanoseconds ? *next_time++
                                                : choose_scale(unit, extents[i], time_unit));
  }
  return scales;
}

std::string text_of(const Cell& cell, Unit unit, const Scale& scale) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) {
    return format_number(*integer, unit, scale);
  }
  if (const auto* number = std::get_if<double>(&cell)) return format_number(*number, unit, scale);
  if (const auto* text = std::get_if<std::string>(&cell)) return clean(*text);
  return std::string(kUnknown);
}

std::vector<TextColumn> make_columns(const Table& table, std::size_t rows, TimeUnit time_unit) {
  std::vector<Extent> extents;
  std::vector<bool> has_numbers;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::vector<double> numbers = numbers_of(table, i, rows);
    extents.emplace_back(numbers);
    has_numbers.push_back(!numbers.empty());
  }
  const std::vector<Scale> scales = scales_of(table, extents, time_unit);
  std::vector<TextColumn> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Unit unit = table.columns[i].unit;
    TextColumn& out = columns.emplace_back();
    out.name = words_of(table.columns[i].name);
    // Not beside a column of which nothing is known.
    if (has_numbers[i]) out.unit = scales[i].name;
    bool has_text = false;
    out.natural = std::max(longest_word(out.name), out.unit.size());
    const std::size_t least = out.natural;
    for (std::size_t row = 0; row < rows; ++row) {
      const Cell& cell = table.rows[row][i];
      has_text = has_text || std::holds_alternative<std::string>(cell);
      out.cells.push_back(text_of(cell, unit, scales[i]));
      out.natural = std::max(out.natural, width_of(out.cells.back()));
    }
    out.align = has_text || (!has_numbers[i] && unit == Unit::kNone) ? Align::kLeft : Align::kRight;
    out.least = has_text ? std::min(out.natural, std::max(least, i == 0   ? kLeastKey
                                                                 : i == 1 ? kLeastSecond
                                                                          : kLeastName))
                         : out.natural;
  }
  return columns;
}

std::size_t total_width(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kIndent + kGap * (widths.size() - 1));
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

std::string rule(std::size_t width, const Style& style) {
  return std::string(kIndent, ' ') + style.dim(repeat("─", width - kIndent));
}

// The columns `chosen` side by side.
void append_block(std::string& out, const std::vector<TextColumn>& columns,
                  const std::vector<std::size_t>& chosen, const std::vector<std::size_t>& widths,
                  const Style& style) {
  std::vector<std::vector<std::string>> headers;
  std::vector<std::vector<std::string>> cells;
  std::size_t header_lines = 0;
  bool units = false;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const TextColumn& column = columns[chosen[i]];
    headers.push_back(wrap(column.name, widths[i]));
    header_lines = std::max(header_lines, headers.back().size());
    units = units || !column.unit.empty();
    cells.push_back(column.cells);
    if (widths[i] < column.natural) shorten_all(cells.back(), widths[i]);
  }
  const auto line = [&](auto&& text_of) {
    std::string text(kIndent, ' ');
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (i > 0) text.append(kGap, ' ');
      text += pad(text_of(i), widths[i], columns[chosen[i]].align);
    }
    return text.erase(text.find_last_not_of(' ') + 1);
  };
  for (std::size_t n = 0; n < header_lines; ++n) {
    append_line(out, style.bold(line([&](std::size_t i) {
      const std::size_t blank = header_lines - headers[i].size();
      return n < blank ? std::string() : headers[i][n - blank];
    })));
  }
  if (units)
    append_line(out, style.dim(line([&](std::size_t i) { return columns[chosen[i]].unit; })));
  append_line(out, rule(total_width(widths), style));
  for (std::size_t row = 0; row < columns[0].cells.size(); ++row) {
    append_line(out, line([&](std::size_t i) { return cells[i][row]; }));
  }
}

// Names give way, the widest first, until `width` is kept or all are at their least.
std::vector<std::size_t> fit(const std::vector<TextColumn>& columns,
                             const std::vector<std::size_t>& chosen, std::size_t width) {
  std::vector<std::size_t> widths;
  for (const std::size_t index : chosen) widths.push_back(columns[index].natural);
  while (total_width(widths) > width) {
    std::size_t widest = chosen.size();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (widths[i] > columns[chosen[i]].least &&
          (widest == chosen.size() || widths[i] > widths[widest])) {
        widest = i;
      }
    }
    if (widest == chosen.size()) break;
    --widths[widest];
  }
  return widths;
}

// Each column becomes a line: its name, a value for each row, its unit.
bool append_turned(std::string& out, const std::vector<TextColumn>& columns, std::size_t width,
                   const Style& style) {
  const std::size_t rows = columns[0].cells.size();
  if (rows == 0 || rows >= columns.size()) return false;
  std::size_t name_width = 0, unit_width = 0;
  std::vector<std::size_t> widths(rows, 0);
  // A unit stands behind the last value, but not where that is unknown.
  const auto unit_in_name = [](const TextColumn& column) {
    return !column.unit.empty() && column.cells.back() == kUnknown;
  };
  const auto name_of = [&](const TextColumn& column) {
    return unit_in_name(column) ? column.name + " (" + column.unit + ')' : column.name;
  };
  for (const TextColumn& column : columns) {
    name_width = std::max(name_width, width_of(name_of(column)));
    unit_width = std::max(unit_width, column.unit.size());
    for (std::size_t i = 0; i < rows; ++i) {
      widths[i] = std::max(widths[i], width_of(column.cells[i]));
    }
  }
  const std::size_t total = total_width(widths) + name_width + kGap + unit_width + 1;
  if (total > width) return false;
  for (const TextColumn& column : columns) {
    std::string line = std::string(kIndent, ' ') + pad(name_of(column), name_width, Align::kLeft);
    for (std::size_t i = 0; i < rows; ++i) {
      line += std::string(kGap, ' ') + pad(column.cells[i], widths[i], Align::kRight);
    }
    if (&column == &columns[0]) {
      append_line(out, style.bold(line));
      append_line(out, rule(total, style));
    } else {
      append_line(out, line + ' ' + (unit_in_name(column) ? "" : column.unit));
    }
  }
  return true;
}

bool tells_rows_apart(const std::vector<TextColumn>& columns, std::size_t count) {
  std::set<std::vector<std::string_view>> seen;
  for (std::size_t row = 0; row < columns[0].cells.size(); ++row) {
    std::vector<std::string_view> key;
    for (std::size_t i = 0; i < count; ++i) key.emplace_back(columns[i].cells[row]);
    if (!seen.insert(std::move(key)).second) return false;
  }
  return true;
}

// How many of the first columns are repeated in each block: as many as it takes to tell rows apart,
// if they take no more than half of the width.
std::size_t keys_of(const std::vector<TextColumn>& columns, std::size_t width) {
  std::vector<std::size_t> widths;
  for (std::size_t count = 1; count < columns.size(); ++count) {
    const TextColumn& column = columns[count - 1];
    // What tells rows apart is not left out for being shown at some length.
    const bool is_name = count > 1 && column.align == Align::kLeft;
    widths.push_back(is_name ? std::min(column.least, kLeastName) : column.least);
    if (count > 1 && total_width(widths) > width / 2) break;
    if (tells_rows_apart(columns, count)) return count;
  }
  return 1;
}

void append_blocks(std::string& out, const std::vector<TextColumn>& columns, std::size_t width,
                   const Style& style) {
  const std::size_t keys = keys_of(columns, width);
  for (std::size_t next = keys; next < columns.size();) {
    std::vector<std::size_t> chosen(keys), least;
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    for (std::size_t i = 0; i < keys; ++i) least.push_back(columns[i].least);
    if (next > keys) out += '\n';
    do {
      chosen.push_back(next);
      least.push_back(columns[next].least);
      ++next;
    } while (next < columns.size() && total_width(least) + kGap + columns[next].least <= width);
    append_block(out, columns, chosen, fit(columns, chosen, width), style);
  }
}

// Where the last columns say the same in all rows, also in those that are not shown, they are taken
// off and become a line: a block of them would be as long as the table. Empty when there are none.
std::string take_equal(std::vector<TextColumn>& columns, const Table& table) {
  std::string line;
  const auto is_equal = [&](std::size_t at) {
    return std::ranges::all_of(table.rows,
                               [&](const auto& row) { return row[at] == table.rows[0][at]; });
  };
  while (columns.size() > 2 && table.rows.size() > 1 && is_equal(columns.size() - 1)) {
    const TextColumn& column = columns.back();
    const std::string& value = column.cells.front();
    const bool unit = !column.unit.empty() && value != kUnknown;
    std::string said = column.name;
    said.append(" ").append(value);
    if (unit) said.append(" ").append(column.unit);
    if (!line.empty()) said.append(", ").append(line);
    line = std::move(said);
    columns.pop_back();
  }
  return line;
}

}  // namespace

void append_table(std::string& out, const Table& table, const TextOptions& options,
                  const Style& style) {
  if (table.columns.empty()) return;
  if (table.rows.empty()) return append_line(out, "  (nothing)");
  const std::size_t rows =
      options.max_rows == 0 ? table.rows.size() : std::min(options.max_rows, table.rows.size());
  const auto width = static_cast<std::size_t>(options.width);
  std::vector<TextColumn> columns = make_columns(table, rows, options.time_unit);
  const auto append_if_it_fits = [&] {
    std::vector<std::size_t> all(columns.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto widths = fit(columns, all, width);
    if (total_width(widths) > width && columns.size() > 1) return false;
    append_block(out, columns, all, widths, style);
    return true;
  };
  if (!append_if_it_fits() && !append_turned(out, columns, width, style)) {
    const std::string equal = take_equal(columns, table);
    if (!append_if_it_fits()) append_blocks(out, columns, width, style);
    if (!equal.empty()) {
      for (const std::string& line : wrap("in each row: " + equal, width - kIndent)) {
        append_line(out, std::string(kIndent, ' ') + style.dim(line));
      }
    }
  }
  if (rows < table.rows.size()) {
    const auto more = static_cast<std::int64_t>(table.rows.size() - rows);
    append_line(
        out, style.dim("  … and " + format_count(more) + (more == 1 ? " more row" : " more rows")));
  }
}

}  // namespace pasta::report
