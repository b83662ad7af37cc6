#include "report/text_charts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "report/text_layout.h"
#include "report/text_number.h"

namespace pasta::report {
namespace {

constexpr std::string_view kIndent = "  ";
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  [[nodiscard]] bool known() const { return least <= greatest; }
  void add(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  // Which of `steps` equal steps `value` lies in. All of one value: the lowest.
  [[nodiscard]] std::size_t step(double value, std::size_t steps) const {
    if (greatest == least) return 0;
    const double share = (value - least) / (greatest - least);
    return std::min(static_cast<std::size_t>(share * static_cast<double>(steps)), steps - 1);
  }
};

// Blocks of eighths; a share above 0 has at least one eighth.
std::string bar(double share, std::size_t width) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(share > 0)) return "";
  const double most = static_cast<double>(width) * 8;
  const auto eighths =
      static_cast<std::size_t>(std::max(1.0, std::round(std::min(share, 1.0) * most)));
  return repeat("█", eighths / 8) + std::string(kEighths[eighths % 8]);
}

struct TreeLine {
  std::string name;
  double value;
};

void collect(std::vector<TreeLine>& lines, const TreeNode& node, std::size_t depth) {
  // Deep paths stop moving to the right, so that there is room for their names.
  constexpr std::size_t kMaxIndent = 24;
  lines.push_back(
      {std::string(std::min(2 * depth, kMaxIndent), ' ') + clean(node.name), node.value});
  for (const TreeNode& child : node.children) collect(lines, child, depth + 1);
}

}  // namespace

void append_series(std::string& out, const Series& series, const TextOptions& options,
                   const Style& style) {
  constexpr std::array<std::string_view, 8> kLevels{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  Range values;
  for (const auto& [time_ns, value] : series.points) values.add(value);
  if (!values.known()) {
    out += "  (nothing)\n";
    return;
  }
  const auto [first, last] =
      std::minmax_element(series.points.begin(), series.points.end(),
                          [](const auto& a, const auto& b) { return a.first < b.first; });
  const double begin = static_cast<double>(first->first);
  const double span = static_cast<double>(last->first) - begin;
  const std::size_t width =
      std::min<std::size_t>(static_cast<std::size_t>(options.width) - kIndent.size(), 100);
  std::vector<double> cells(span > 0 ? width : 1, kUnknown);
  for (const auto& [time_ns, value] : series.points) {
    const double share = span > 0 ? (static_cast<double>(time_ns) - begin) / span : 0;
    double& cell = cells[std::min(
        static_cast<std::size_t>(share * static_cast<double>(cells.size())), cells.size() - 1)];
    cell = std::fmax(cell, value);
  }
  out += kIndent;
  double held = kUnknown;
  for (const double value : cells) {
    if (!std::isnan(value)) held = value;
    out += std::isnan(held) ? " " : kLevels[values.step(held, kLevels.size())];
  }
  const auto quantity = [&](double value) {
    return format_quantity(value, series.unit, options.time_unit);
  };
  out += '\n';
  const std::string facts =
      "min " + quantity(values.least) + " · max " + quantity(values.greatest) + " · over " +
      format_quantity(span, Unit::kNanoseconds, options.time_unit) + " · " +
      format_count(static_cast<std::int64_t>(series.points.size())) + " points";
  for (const std::string& line :
       wrap(facts, static_cast<std::size_t>(options.width) - kIndent.size())) {
    out += std::string(kIndent) + style.dim(line) + '\n';
  }
}

void append_tree(std::string& out, const Tree& tree, const TextOptions& options,
                 const Style& style) {
  constexpr std::size_t kShare = 6, kGap = 2, kLeastName = 8;
  const auto width = static_cast<std::size_t>(options.width);
  const std::size_t bar_width = width < 60 ? 6 : 12;
  std::vector<TreeLine> lines;
  collect(lines, tree.root, 0);
  const std::size_t all = lines.size();
  if (options.max_rows > 0) lines.resize(std::min(all, options.max_rows), TreeLine{"", 0});

  std::vector<double> values;
  for (const TreeLine& line : lines) values.push_back(line.value);
  const Scale scale = choose_scale(tree.unit, Extent(values), options.time_unit);
  std::vector<std::string> names, numbers;
  std::size_t number_width = scale.name.size(), name_width = 0;
  for (const TreeLine& line : lines) {
    names.push_back(line.name);
    numbers.push_back(format_number(line.value, tree.unit, scale));
    number_width = std::max(number_width, width_of(numbers.back()));
    name_width = std::max(name_width, width_of(line.name));
  }
  const std::size_t rest = kIndent.size() + kGap + number_width + kGap + kShare + kGap + bar_width;
  name_width =
      std::min(name_width, std::max<std::size_t>(width > rest ? width - rest : 0, kLeastName));
  shorten_all(names, name_width);

  const Scale share_scale = choose_scale(Unit::kShare, Extent({}), options.time_unit);
  const auto append = [&](const std::string& name, const std::string& number,
                          const std::string& share, const std::string& drawn) {
    std::string line = std::string(kIndent) + pad(name, name_width + kGap, Align::kLeft) +
                       pad(number, number_width, Align::kRight) +
                       pad(share, kGap + kShare, Align::kRight);
    if (!drawn.empty()) line += std::string(kGap, ' ') + style.blue(drawn);
    out += line + '\n';
  };
  if (!scale.name.empty()) {
    out += style.dim(std::string(kIndent) + pad("", name_width + kGap, Align::kLeft) +
                     pad(scale.name, number_width, Align::kRight) +
                     pad("%", kGap + kShare, Align::kRight));
    out += '\n';
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double share = lines[i].value / tree.root.value;
    append(names[i], numbers[i], format_number(share, Unit::kShare, share_scale),
           bar(share, bar_width));
  }
  if (lines.size() < all) {
    const auto more = static_cast<std::int64_t>(all - lines.size());
    out += style.dim("  … and " + format_count(more) + " more") + '\n';
  }
}

void append_heat_map(std::string& out, const HeatMap& map, const TextOptions& options,
                     const Style& style) {
  constexpr std::array<std::string_view, 5> kShades{"·", "░", "▒", "▓", "█"};
  Range values;
  for (const auto& row : map.values) {
    for (const double value : row) values.add(value);
  }
  if (!values.known()) {
    out += "  (nothing)\n";
    return;
  }
  std::vector<std::string> rows, columns;
  std::size_t row_width = 0, column_width = 0;
  for (const std::string& name : map.rows) rows.push_back(clean(name));
  for (const std::string& name : map.columns) columns.push_back(clean(name));
  shorten_all(rows, std::clamp<std::size_t>(static_cast<std::size_t>(options.width) / 3, 24, 48));
  for (const std::string& name : rows) row_width = std::max(row_width, width_of(name));
  for (const std::string& name : columns) column_width = std::max(column_width, width_of(name));

  // Wide cells that carry their names, as long as all fit; else narrow ones, in blocks.
  const std::size_t room = std::max<std::size_t>(
      static_cast<std::size_t>(options.width) - kIndent.size() - row_width - 1, 8);
  const bool named = columns.size() * (column_width + 1) <= room;
  const std::size_t cell_width = named ? column_width : 1, gap = named ? 1 : 0;
  const std::size_t per_block = named ? columns.size() : std::min(columns.size(), room);
  const auto label = [&](std::string_view text) {
    return std::string(kIndent) + pad(text, row_width, Align::kLeft) + ' ';
  };
  for (std::size_t begin = 0; begin < columns.size(); begin += per_block) {
    const std::size_t end = std::min(begin + per_block, columns.size());
    std::string heading;
    if (named) {
      for (std::size_t c = begin; c < end; ++c) {
        heading += pad(columns[c], cell_width, Align::kRight) + std::string(gap, ' ');
      }
      heading.erase(heading.find_last_not_of(' ') + 1);
    } else {
      heading = columns[begin] + " … " + columns[end - 1];
    }
    out += style.bold(label("") + heading) + '\n';
    for (std::size_t r = 0; r < rows.size(); ++r) {
      out += label(rows[r]);
      for (std::size_t c = begin; c < end; ++c) {
        const double value = map.values[r][c];
        // What there is of something is told from nothing, however little it is.
        const std::size_t least = value > 0 && values.least == 0 ? 1 : 0;
        out +=
            std::isfinite(value)
                ? repeat(kShades[std::max(values.step(value, kShades.size()), least)], cell_width)
                : pad("-", cell_width, Align::kRight);
        if (c + 1 < end) out.append(gap, ' ');
      }
      out += '\n';
    }
  }
  out += style.dim("  · " + format_quantity(values.least, map.unit, options.time_unit) + "  █ " +
                   format_quantity(values.greatest, map.unit, options.time_unit)) +
         '\n';
}

}  // namespace pasta::report
