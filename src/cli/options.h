// The rows of options that verbs share, and what their values mean.
#pragma once

#include <string_view>
#include <vector>

#include "cli/verb.h"
#include "pasta/adapter.h"
#include "pasta/session.h"

namespace pasta::cli {

inline constexpr const char* kTraceHelp =
    "File of any format that is known, folder of such files, or - for standard input";

extern const OptionRow kStrictRow, kFromRow, kToRow, kUntilRow, kDeviceRow, kRankRow, kLabelRow,
    kMemoryRow, kOutputRow, kForceRow, kFormatRow, kNoPagerRow, kQuietRow, kTopRow, kTimeUnitRow,
    kWidthRow;

// Fail with kUsage, saying what would be right.
Result<Plan> plan_of(const Settings& settings);
Result<Filter> filter_of(const Settings& settings);
// A whole number from `least` up. `option` is its name, for the message.
Result<int> number_of(std::string_view option, const std::string& text, int least);

}  // namespace pasta::cli
