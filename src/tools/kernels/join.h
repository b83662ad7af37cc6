// The kernels of a job, made of those of its ranks.
#pragma once

#include <span>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::tools::kernels {

// A row for each name over all ranks. Quantiles of a kernel that several ranks ran are unknown.
// Further columns say how the ranks differ: ranks, rank_min_total, rank_max_total, slowest_rank;
// a report that has them already is of several ranks.
Result<Report> join(std::span<const RankReport> ranks);

}  // namespace pasta::tools::kernels
