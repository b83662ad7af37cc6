// The rows of the report, made of events or of the reports of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"
#include "tools/operators/scopes.h"

namespace pasta::tools::operators {

using Number = std::optional<std::int64_t>;  // none = unknown

struct Row {
  std::string name;
  std::optional<std::string> shape;
  Number calls;  // unknown of the row of work outside
  Number host_total, host_self;
  Number device_total, device_self, device_backward;
  Number kernels, launches;
};

// Rows in any order. `by_shape`: with the column `shape`. Without a tree when there is no device
// work.
Report make_report(std::vector<Row> rows, const Scopes& scopes, bool by_shape,
                   std::optional<TreeNode> paths);

// Rows of equal names (and shapes) are added; what is unknown in every report stays unknown.
Result<Report> join(std::span<const RankReport> ranks);

}  // namespace pasta::tools::operators
