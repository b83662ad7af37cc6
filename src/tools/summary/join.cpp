#include "tools/summary/join.h"

#include "tools/common/joining.h"

namespace pasta::tools::summary {

Result<Report> join(std::span<const RankReport> ranks) {
  auto devices = rows_of_all_devices(ranks, "devices");
  if (!devices) return tl::unexpected(std::move(devices).error());
  auto breakdown = rows_of_all_devices(ranks, "breakdown");
  if (!breakdown) return tl::unexpected(std::move(breakdown).error());
  Report report{.tool = "summary", .title = ranks.front().report.title, .parts = {}};
  const Finding* nothing = find_finding(ranks.front().report, "no-device-work");
  if (devices->rows.empty() && nothing != nullptr) report.parts.emplace_back(*nothing);
  report.parts.emplace_back(std::move(*devices));
  report.parts.emplace_back(std::move(*breakdown));
  return report;
}

}  // namespace pasta::tools::summary
