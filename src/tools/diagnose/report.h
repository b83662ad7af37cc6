// The parts of the report, from what was told of each device; and the join over ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"
#include "tools/diagnose/build_view.h"

namespace pasta::tools::diagnose {

struct DeviceReport {
  Diagnosis diagnosis;
  std::int64_t untimed = 0;
  double confidence = 0;
  std::string marks;      // name of the marks, if these said what an iteration is
  std::string abstained;  // why there are no iterations
};

// Devices in the order of tables.
Report make_report(std::span<const DeviceReport> devices, std::int64_t origin_ns);

Result<Report> join(std::span<const RankReport> ranks);

}  // namespace pasta::tools::diagnose
