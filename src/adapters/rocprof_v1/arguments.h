// Arguments of calls, as rocprof writes them: "( dst(0x7f00) src(0x7e00) sizeBytes(64) kind(1))".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pasta::adapters::rocprof_v1 {

// The number of the argument `name`; nothing when it is not there or no whole number.
std::optional<std::uint64_t> argument(std::string_view arguments, std::string_view name);

}  // namespace pasta::adapters::rocprof_v1
