// The summary of a job, made of those of its ranks.
#pragma once

#include <span>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::tools::summary {

// The rows of all ranks, which are of different devices.
Result<Report> join(std::span<const RankReport> ranks);

}  // namespace pasta::tools::summary
