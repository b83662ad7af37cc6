#include "tools/divergence/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/divergence.h"
#include "tools/common/device_results.h"
#include "tools/common/ratio.h"

namespace pasta::tools {
namespace {

using device::ActivityCounts;
using device::ActivityRow;
using device::BalanceRow;

constexpr std::size_t kMostFindings = 3;
constexpr double kFewLanes = 0.6;        // of those that exist
constexpr double kUneven = 2;            // the busiest group over the mean
constexpr std::uint64_t kFewGroups = 8;  // of so few, one that does more is no pattern

struct Kernel {
  std::uint64_t launches = 0;
  ActivityCounts counts;
  BalanceRow worst;  // of the launch that was least even
  double uneven = 0;
};
using Site = std::pair<const SiteKey, ActivityCounts>;

class DivergenceTool : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    for (const Event& event : events) {
      if (const auto launch = results_.take(event, context)) take(*launch);
    }
    return {};
  }

  Result<Report> finish(const Context&) override {
    Report report{.tool = "divergence", .title = "Lanes and groups at work", .parts = {}};
    std::vector<const Site*> sites;
    std::uint64_t warps = 0;
    for (const Site& site : sites_) {
      sites.push_back(&site);
      warps += site.second.warps;
    }
    // Where most lanes stay out, first.
    std::ranges::stable_sort(sites, std::ranges::greater(), missing);
    add_divergent(report, sites, warps);
    add_small(report, warps);
    add_uneven(report, warps);
    results_.add_times(report);
    results_.add_findings(report);
    report.parts.emplace_back(kernels());
    report.parts.emplace_back(places(sites));
    return report;
  }

 private:
  static std::uint64_t missing(const Site* site) {
    return site->second.existing - std::min(site->second.lanes, site->second.existing);
  }

  void take(const LaunchResult& launch) {
    Kernel& kernel = kernels_[launch.kernel];
    if (launch.first) ++kernel.launches;
    for (const device::ResultTable& table : launch.result.tables) {
      if (table.id == device::TableId::kActivity) {
        const auto rows = device::rows_of<ActivityRow>(table);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const std::string name = i < table.names.size() ? table.names[i] : std::string();
          device::add_row(sites_[{launch.kernel, site_label(rows[i].site, name), rows[i].site,
                                  rows[i].space, rows[i].access}],
                          rows[i].counts);
          device::add_row(kernel.counts, rows[i].counts);
        }
      }
      if (table.id != device::TableId::kBalance) continue;
      for (const BalanceRow& row : device::rows_of<BalanceRow>(table)) {
        const double uneven = ratio(row.most * row.groups, row.total);
        if (uneven <= kernel.uneven) continue;
        kernel.uneven = uneven;
        kernel.worst = row;
      }
    }
  }

  [[nodiscard]] std::vector<const std::pair<const std::string, Kernel>*> by_accesses() const {
    std::vector<const std::pair<const std::string, Kernel>*> order;
    for (const auto& line : kernels_) order.push_back(&line);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto* line) { return line->second.counts.warps; });
    return order;
  }

  [[nodiscard]] Table kernels() const {
    Table table{.id = "kernels",
                .title = "Kernels",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"time", Unit::kNanoseconds},
                            {"warps", Unit::kCount},
                            {"lanes"},
                            {"active", Unit::kShare},
                            {"partial", Unit::kShare},
                            {"groups", Unit::kCount},
                            {"idle_groups", Unit::kCount},
                            {"median", Unit::kCount},
                            {"most", Unit::kCount},
                            {"imbalance"},
                            {"uncovered"}},
                .rows = {}};
    for (const auto* line : by_accesses()) {
      const auto& [name, kernel] = *line;
      const ActivityCounts& counts = kernel.counts;
      const bool even = kernel.uneven > 0;  // known
      table.rows.push_back({name, count_cell(kernel.launches), results_.time_cell(name),
                            count_cell(counts.warps), ratio_cell(counts.lanes, counts.warps),
                            ratio_cell(counts.lanes, counts.existing),
                            ratio_cell(counts.partial, counts.warps),
                            even ? count_cell(kernel.worst.groups) : Cell(),
                            even ? count_cell(kernel.worst.groups - kernel.worst.working) : Cell(),
                            even ? count_cell(kernel.worst.median) : Cell(),
                            even ? count_cell(kernel.worst.most) : Cell(),
                            even ? Cell(kernel.uneven) : Cell(), results_.uncovered_cell(name)});
    }
    return table;
  }

  [[nodiscard]] Table places(const std::vector<const Site*>& sites) const {
    Table table{.id = "sites",
                .title = "Places of kernels, those first where most lanes stay out",
                .columns = {{"kernel"},
                            {"site"},
                            {"space"},
                            {"access"},
                            {"warps", Unit::kCount},
                            {"lanes"},
                            {"active", Unit::kShare},
                            {"partial", Unit::kCount},
                            {"to_8", Unit::kCount},
                            {"to_16", Unit::kCount},
                            {"to_24", Unit::kCount},
                            {"to_32", Unit::kCount},
                            {"uncovered"}},
                .rows = {}};
    for (const Site* site : sites) {
      const auto& [key, counts] = *site;
      table.rows.push_back({key.kernel, key.site, std::string(space_name(key.space)),
                            std::string(access_name(key.access)), count_cell(counts.warps),
                            ratio_cell(counts.lanes, counts.warps),
                            ratio_cell(counts.lanes, counts.existing), count_cell(counts.partial),
                            count_cell(counts.quarters[0]), count_cell(counts.quarters[1]),
                            count_cell(counts.quarters[2]), count_cell(counts.quarters[3]),
                            results_.uncovered_cell(key.kernel)});
    }
    return table;
  }

  // Places of one kernel where few lanes take part.
  struct Few {
    const Site* worst = nullptr;
    std::size_t places = 0;
    ActivityCounts counts;
    [[nodiscard]] std::uint64_t missing() const { return counts.existing - counts.lanes; }
  };

  static void add_divergent(Report& report, const std::vector<const Site*>& sites,
                            std::uint64_t warps) {
    std::map<std::string, Few> kernels;
    for (const Site* site : sites) {
      const auto& [key, counts] = *site;
      if (ratio(counts.lanes, counts.existing) >= kFewLanes) continue;
      Few& few = kernels[key.kernel];
      if (few.worst == nullptr) few.worst = site;
      ++few.places;
      device::add_row(few.counts, counts);
    }
    std::vector<const Few*> order;
    for (const auto& [name, few] : kernels) order.push_back(&few);
    std::ranges::stable_sort(order, std::ranges::greater(), &Few::missing);
    std::size_t found = 0;
    for (const Few* few : order) {
      const auto& [key, counts] = *few->worst;
      const double share = ratio(few->counts.warps, warps);
      if (share < kWorthNoting || found++ >= kMostFindings) continue;
      const std::string more = few->places == 1 ? ""
                               : few->places == 2
                                   ? " and 1 more place"
                                   : fmt::format(" and {} more places", few->places - 1);
      report.parts.emplace_back(Finding{
          .id = "few-lanes",
          .level = level_of(share),
          .text =
              fmt::format("{} at {}{}: {:.1f} of {:.1f} lanes take part", in_sentence(key.kernel),
                          key.site, more, ratio(few->counts.lanes, few->counts.warps),
                          ratio(few->counts.existing, few->counts.warps)),
          .share = share,
          .of = "accesses of warps",
          .evidence = {{"warps", count_cell(few->counts.warps), Unit::kCount},
                       {"partial", count_cell(few->counts.partial), Unit::kCount}},
          .advice = fmt::format("let whole warps take the same branch, or give idle lanes work: up "
                                "to {:.1f} times fewer accesses of warps",
                                ratio(few->counts.existing, few->counts.lanes))});
    }
  }

  // Kernels whose groups have fewer lanes than warps have.
  void add_small(Report& report, std::uint64_t warps) const {
    std::size_t found = 0;
    for (const auto* line : by_accesses()) {
      const ActivityCounts& counts = line->second.counts;
      const double lanes = ratio(counts.existing, counts.warps);
      const double share = ratio(counts.warps, warps);
      if (lanes >= kFewLanes * device::kWarpLanes || share < kWorthNoting ||
          found++ >= kMostFindings) {
        continue;
      }
      report.parts.emplace_back(Finding{
          .id = "small-groups",
          .level = level_of(share),
          .text = fmt::format("{}: its groups fill {:.1f} of the 32 lanes of a warp",
                              in_sentence(line->first), lanes),
          .share = share,
          .of = "accesses of warps",
          .evidence = {{"warps", count_cell(counts.warps), Unit::kCount}},
          .advice = fmt::format("let groups have a multiple of 32 items: up to {:.1f} times "
                                "fewer warps",
                                device::kWarpLanes / lanes)});
    }
  }

  void add_uneven(Report& report, std::uint64_t warps) const {
    std::size_t found = 0;
    for (const auto* line : by_accesses()) {
      const auto& [name, kernel] = *line;
      const double share = ratio(kernel.counts.warps, warps);
      if (kernel.uneven < kUneven || kernel.worst.groups < kFewGroups || share < kWorthNoting) {
        continue;
      }
      if (found++ >= kMostFindings) break;
      report.parts.emplace_back(Finding{
          .id = "uneven-groups",
          .level = level_of(share),
          .text = fmt::format("{}: group {} accesses memory {:.1f} times as often as groups do on "
                              "average",
                              in_sentence(name), kernel.worst.heaviest, kernel.uneven),
          .share = share,
          .of = "accesses of warps, which are the kernel's",
          .evidence = {{"most", count_cell(kernel.worst.most), Unit::kCount},
                       {"median", count_cell(kernel.worst.median), Unit::kCount},
                       {"groups", count_cell(kernel.worst.groups), Unit::kCount}},
          .advice = "split what the busiest groups do, or let groups take work from a queue"});
    }
  }

  DeviceResults results_{device::DivergencePatch::kFormat, "divergence"};
  std::map<std::string, Kernel> kernels_;
  std::map<SiteKey, ActivityCounts> sites_;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<DivergenceTool>(); }

}  // namespace

constinit const ToolEntry kDivergence = {
    .name = "divergence",
    .help =
        "how many lanes of warps take part at each place of kernels that accesses memory, and "
        "how evenly groups are loaded",
    .needs = kDeviceResultKinds,
    .options = {},
    .make = make,
    .also = kKernelTimeKinds,
    .patch = "divergence"};

}  // namespace pasta::tools
