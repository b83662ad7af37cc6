#include "report/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

namespace pasta::report {
namespace {

// Bytes of a name; longer ones are not read by anybody.
constexpr std::size_t kSearched = 4096;
// Columns that name what a row is of, the first that a table has.
constexpr std::array<std::string_view, 2> kNameColumns = {"name", "operator"};

std::optional<std::size_t> column_of(const Table& table, std::string_view name) {
  const auto found = std::ranges::find(table.columns, name, &Column::name);
  if (found == table.columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - table.columns.begin());
}

std::optional<std::size_t> name_column_of(const Table& table) {
  for (const std::string_view name : kNameColumns) {
    if (const auto index = column_of(table, name)) return index;
  }
  return std::nullopt;
}

template <class Use>
void for_each_table(Document& document, const Use& use) {
  for (Report& report : document.reports) {
    for (Part& part : report.parts) {
      if (auto* table = std::get_if<Table>(&part)) use(*table);
    }
  }
}

std::string columns_of(Document& document) {
  std::vector<std::string> names;
  for_each_table(document, [&](const Table& table) {
    for (const Column& column : table.columns) {
      if (std::ranges::find(names, column.name) == names.end()) names.push_back(column.name);
    }
  });
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

bool is_number(const Cell& cell) {
  return std::holds_alternative<std::int64_t>(cell) || std::holds_alternative<double>(cell);
}

bool is_unknown(const Cell& cell) {
  const auto* number = std::get_if<double>(&cell);
  return std::holds_alternative<std::monostate>(cell) || (number != nullptr && std::isnan(*number));
}

// Of known cells; numbers come before words.
bool less(const Cell& a, const Cell& b) {
  if (is_number(a) != is_number(b)) return is_number(a);
  if (!is_number(a)) return std::get<std::string>(a) < std::get<std::string>(b);
  const auto* whole_a = std::get_if<std::int64_t>(&a);
  const auto* whole_b = std::get_if<std::int64_t>(&b);
  if (whole_a != nullptr && whole_b != nullptr) return *whole_a < *whole_b;
  const auto number = [](const Cell& cell, const std::int64_t* whole) {
    return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(cell);
  };
  return number(a, whole_a) < number(b, whole_b);
}

void sort_rows(Table& table, std::size_t column, bool descending) {
  std::ranges::stable_sort(table.rows, [&](const auto& row_a, const auto& row_b) {
    const Cell& a = row_a[column];
    const Cell& b = row_b[column];
    if (is_unknown(a) || is_unknown(b)) return !is_unknown(a);
    return descending ? less(b, a) : less(a, b);
  });
}

}  // namespace

// POSIX's, not the standard library's: that one uses a frame of the stack for each letter and can
// take exponential time. This one can take quadratic time, hence only the front of a name.
struct Shape::Pattern {
  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() {
    if (compiled) ::regfree(&regex);
  }
  [[nodiscard]] bool matches(const std::string& name) const {
    if (name.size() <= kSearched) return ::regexec(&regex, name.c_str(), 0, nullptr, 0) == 0;
    return ::regexec(&regex, name.substr(0, kSearched).c_str(), 0, nullptr, 0) == 0;
  }
  regex_t regex{};
  bool compiled = false;
};

Result<Shape> Shape::make(std::string_view sort, std::string_view filter) {
  Shape shape;
  const std::size_t colon = sort.rfind(':');
  shape.column_ = sort.substr(0, colon);
  if (colon != std::string_view::npos) {
    const std::string_view order = sort.substr(colon + 1);
    if (shape.column_.empty() || (order != "asc" && order != "desc")) {
      return fail(ErrorCode::kUsage,
                  fmt::format("--sort needs COLUMN, COLUMN:asc or COLUMN:desc, not \"{}\"", sort));
    }
    shape.order_ = order == "asc" ? Order::kAscending : Order::kDescending;
  }
  if (filter.empty()) return shape;
  shape.filter_ = filter;
  // It would be taken for the letter.
  if (filter.find("\\d") != std::string_view::npos) {
    return fail(ErrorCode::kUsage,
                fmt::format("--filter {}: a digit is [0-9] in this kind of expression", filter));
  }
  auto pattern = std::make_shared<Pattern>();
  if (const int error =
          ::regcomp(&pattern->regex, shape.filter_.c_str(), REG_EXTENDED | REG_NOSUB)) {
    std::array<char, 200> why{};
    ::regerror(error, &pattern->regex, why.data(), why.size());
    return fail(ErrorCode::kUsage,
                fmt::format("--filter {} is no regular expression: {}", filter, why.data()));
  }
  pattern->compiled = true;
  shape.pattern_ = std::move(pattern);
  return shape;
}

Status Shape::apply(Document& document) const {
  if (pattern_) {
    bool any = false;
    std::size_t all = 0, kept = 0;
    for_each_table(document, [&](Table& table) {
      const auto column = name_column_of(table);
      if (!column) return;
      any = true;
      all += table.rows.size();
      std::erase_if(table.rows, [&](const std::vector<Cell>& row) {
        const auto* name = std::get_if<std::string>(&row[*column]);
        return name == nullptr || !pattern_->matches(*name);
      });
      kept += table.rows.size();
    });
    if (!any) {
      return fail(ErrorCode::kUsage,
                  fmt::format("--filter {}: no table has names (a column {}); the columns are {}",
                              filter_, fmt::join(kNameColumns, " or "), columns_of(document)));
    }
    std::string& said = document.trace.filter;
    said += fmt::format("{}rows whose name matches {} ({} of {}; shares are of all)",
                        said.empty() ? "" : "; ", filter_, kept, all);
  }
  if (!column_.empty()) {
    bool any = false;
    for_each_table(document, [&](Table& table) {
      const auto column = column_of(table, column_);
      if (!column) return;
      any = true;
      const bool numbers = std::ranges::any_of(
          table.rows, [&](const std::vector<Cell>& row) { return is_number(row[*column]); });
      sort_rows(table, *column, order_ == Order::kNatural ? numbers : order_ == Order::kDescending);
    });
    if (!any) {
      return fail(ErrorCode::kUsage,
                  fmt::format("--sort {}: no table has such a column; there are {}", column_,
                              columns_of(document)));
    }
  }
  return {};
}

}  // namespace pasta::report
