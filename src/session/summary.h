// Makes what stands above the reports.
#pragma once

#include <span>

#include "pasta/report.h"
#include "session/labels.h"
#include "session/quality.h"

namespace pasta::session {

// `problems`: of each source, its own and those that were found in its events. The span is known
// only when the times of all sources are on one clock.
TraceSummary summarize(const Dictionary& dictionary, std::span<const SourceInfo> sources,
                       std::span<const Quality* const> qualities,
                       std::span<const Problems> problems, bool one_clock, DeviceLabels& labels);

}  // namespace pasta::session
