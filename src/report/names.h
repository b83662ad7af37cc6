// The words that stand for enumerators in JSON.
#pragma once

#include <array>
#include <string_view>

namespace pasta::report {

// Indexed by Unit, by Finding::Level, and by the alternatives of Part.
inline constexpr std::array<std::string_view, 5> kUnitNames{"", "ns", "bytes", "count", "share"};
inline constexpr std::array<std::string_view, 3> kLevelNames{"info", "warning", "problem"};
inline constexpr std::array<std::string_view, 5> kPartNames{"finding", "table", "series", "tree",
                                                            "heatmap"};

}  // namespace pasta::report
