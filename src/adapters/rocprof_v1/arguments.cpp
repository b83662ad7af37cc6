#include "adapters/rocprof_v1/arguments.h"

#include "base/decimal.h"

namespace pasta::adapters::rocprof_v1 {

std::optional<std::uint64_t> argument(std::string_view arguments, std::string_view name) {
  for (std::size_t at = 0; (at = arguments.find(name, at)) != arguments.npos; ++at) {
    const std::size_t open = at + name.size();
    const bool whole_word = at == 0 || arguments[at - 1] == ' ' || arguments[at - 1] == '(';
    if (!whole_word || open >= arguments.size() || arguments[open] != '(') continue;
    std::uint64_t value = 0;
    const std::size_t close = arguments.find(')', open);
    if (!base::parse_unsigned(arguments.substr(open + 1, close - open - 1), value)) break;
    return value;
  }
  return std::nullopt;
}

}  // namespace pasta::adapters::rocprof_v1
