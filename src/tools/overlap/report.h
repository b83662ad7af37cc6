// The report, made of events or of the reports of ranks.
#pragma once

#include <span>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta::tools::overlap {

// Tables without rows.
Table devices_table();
Table collectives_table();

// Puts the findings that follow from the tables before them.
Result<Report> make_report(Table devices, Table collectives);

// The rows of all ranks, which are of different devices.
Result<Report> join(std::span<const RankReport> ranks);

}  // namespace pasta::tools::overlap
