#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "pasta/tool.h"

namespace pasta {
namespace {

std::string names_of(std::span<const OptionInfo> rows) {
  std::string names;
  for (const OptionInfo& row : rows)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  return names;
}

}  // namespace

Result<Options> Options::parse(std::string_view tool, std::span<const OptionInfo> rows,
                               std::span<const std::pair<std::string, std::string>> given) {
  Options options;
  for (const OptionInfo& row : rows) options.values_.emplace_back(row.name, row.fallback);
  for (const auto& [name, value] : given) {
    const auto row = std::ranges::find(rows, name, &OptionInfo::name);
    if (row == rows.end()) {
      return fail(ErrorCode::kUsage,
                  rows.empty() ? fmt::format("tool {} has no options; it was given {}", tool, name)
                               : fmt::format("tool {} has no option {}; its options are {}", tool,
                                             name, names_of(rows)));
    }
    if (!row->choices.empty() && std::ranges::find(row->choices, value) == row->choices.end()) {
      return fail(ErrorCode::kUsage, fmt::format("option {}.{} cannot be \"{}\"; it is one of {}",
                                                 tool, name, value, fmt::join(row->choices, ", ")));
    }
    options.values_[static_cast<std::size_t>(row - rows.begin())].second = value;
  }
  return options;
}

std::string_view Options::text(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return value;
  }
  return {};
}

Result<std::int64_t> Options::integer(std::string_view name) const {
  const std::string_view value = text(name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) {
    return fail(ErrorCode::kUsage,
                fmt::format("option {} needs a whole number, not \"{}\"", name, value));
  }
  return number;
}

}  // namespace pasta
