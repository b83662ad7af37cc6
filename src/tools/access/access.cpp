#include "tools/access/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/access.h"
#include "tools/access/advice.h"
#include "tools/common/device_results.h"
#include "tools/common/ratio.h"

namespace pasta::tools {
namespace {

using device::AccessCounts;
using device::AccessRow;
using device::kSectorBytes;
using device::SiteRow;

// Findings of one kind are about the rows that matter most.
constexpr std::size_t kMostFindings = 3;
constexpr double kPoorEfficiency = 0.5;
constexpr double kWorthNoting = 0.1;    // of all bytes moved, passes or atomics
constexpr double kManyConflicts = 1.5;  // passes for each that is needed
constexpr double kManyAtOnce = 4;       // lanes at one address
constexpr double kManySectors = 1.2;    // of misaligned rows, for each that is needed

// One object in all launches of one kernel.
struct ObjectKey {
  std::string kernel;
  std::string object;
  std::uint32_t process;
  std::uint64_t number;
  auto operator<=>(const ObjectKey&) const = default;
};
struct ObjectSum {
  std::uint64_t launches = 0;
  AccessCounts counts;
  std::uint64_t touched = 0;  // by the launch that touched most
  Cell bytes;
  bool exact = true;
};
struct Site {
  SiteSum sum;
  std::string object;
};
using ObjectLine = std::pair<const ObjectKey, ObjectSum>;
using SiteLine = std::pair<const SiteKey, Site>;

Cell efficiency_cell(const AccessCounts& counts) {
  return ratio_cell(counts.used_bytes, moved_bytes(counts.sectors));
}

Cell known_cell(double value) { return value > 0 ? Cell(value) : Cell(); }

class AccessTool : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    for (const Event& event : events) {
      if (const auto launch = results_.take(event, context)) take(*launch);
    }
    return {};
  }

  Result<Report> finish(const Context&) override {
    Report report{.tool = "access", .title = "Memory accesses", .parts = {}};
    std::vector<const ObjectLine*> global, shared, local;
    std::vector<const SiteLine*> sites;
    double moved = 0;
    for (const ObjectLine& row : objects_) {
      const std::uint64_t number = row.first.number;
      (number == device::kSharedMemory  ? shared
       : number == device::kLocalMemory ? local
                                        : global)
          .push_back(&row);
      moved += moved_bytes(row.second.counts.sectors);
    }
    for (const SiteLine& site : sites_) sites.push_back(&site);
    std::ranges::stable_sort(global, std::ranges::greater(),
                             [](const ObjectLine* row) { return row->second.counts.sectors; });
    std::ranges::stable_sort(shared, std::ranges::greater(),
                             [](const ObjectLine* row) { return row->second.counts.passes; });
    // What costs most first: of memory sectors, of shared memory passes.
    std::ranges::stable_sort(sites, std::ranges::greater(), [](const SiteLine* site) {
      const device::SiteCounts& counts = site->second.sum.counts;
      return std::pair(counts.sectors, counts.passes);
    });
    add_findings(report, global, sites, moved);
    report.parts.emplace_back(kernels());
    report.parts.emplace_back(objects(global));
    report.parts.emplace_back(shared_memory(shared));
    report.parts.emplace_back(places(sites));
    if (!local.empty()) report.parts.emplace_back(local_memory(local));
    return report;
  }

 private:
  struct Kernel {
    std::uint64_t launches = 0, asked = 0, sectors = 0;
  };

  void take(const LaunchResult& launch) {
    if (launch.first) ++kernels_[launch.kernel].launches;
    for (const device::ResultTable& table : launch.result.tables) {
      if (table.id == device::TableId::kAccesses) take_accesses(launch, table);
      if (table.id == device::TableId::kSites) take_sites(launch, table);
    }
  }
  void take_accesses(const LaunchResult& launch, const device::ResultTable& table) {
    for (const AccessRow& row : device::rows_of<AccessRow>(table)) {
      ObjectSum& sum = objects_[{launch.kernel, results_.label(launch.process, row.object),
                                 launch.process.value, row.object}];
      ++sum.launches;
      device::add_row(sum.counts, row.counts);
      if (row.object != device::kSharedMemory && row.object != device::kLocalMemory) {
        Kernel& kernel = kernels_[launch.kernel];
        kernel.asked += row.counts.asked_bytes;
        kernel.sectors += row.counts.sectors;
      }
      sum.touched = std::max(sum.touched, row.counts.touched);
      sum.exact = sum.exact && row.granule == 1;
      if (const auto* object = results_.object(launch.process, row.object)) {
        sum.bytes = count_cell(object->bytes);
      }
    }
  }
  void take_sites(const LaunchResult& launch, const device::ResultTable& table) {
    const auto rows = device::rows_of<SiteRow>(table);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string name = i < table.names.size() ? table.names[i] : std::string();
      Site& site = sites_[{launch.kernel, site_label(rows[i].site, name), rows[i].site,
                           rows[i].space, rows[i].access}];
      const std::string object = results_.label(launch.process, rows[i].object);
      const bool same = site.sum.counts.warps == 0 || site.object == object;
      site.object = same ? object : "several";
      site.sum.add(rows[i]);
    }
  }

  [[nodiscard]] Table kernels() const {
    Table table{.id = "kernels",
                .title = "Global memory, by kernel",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"time", Unit::kNanoseconds},
                            {"asked", Unit::kBytes},
                            {"moved", Unit::kBytes},
                            {"moved_per_second", Unit::kBytes}},
                .rows = {}};
    std::vector<const std::pair<const std::string, Kernel>*> order;
    for (const auto& line : kernels_) order.push_back(&line);
    // Those that take most time first; of unknown times, those that move most.
    std::ranges::stable_sort(order, std::ranges::greater(), [this](const auto* line) {
      const Cell time = results_.time_cell(line->first);
      const auto* ns = std::get_if<std::int64_t>(&time);
      return std::pair(ns == nullptr ? 0 : *ns, line->second.sectors);
    });
    for (const auto* line : order) {
      const auto& [name, kernel] = *line;
      const bool known = !results_.is_uncovered(name);
      table.rows.push_back(
          {name, count_cell(kernel.launches), results_.time_cell(name),
           known ? count_cell(kernel.asked) : Cell(), known ? moved_cell(kernel.sectors) : Cell(),
           known ? results_.rate_cell(name, kernel.launches, kernel.sectors) : Cell()});
    }
    return table;
  }

  static Table objects(const std::vector<const ObjectLine*>& rows) {
    Table table{.id = "objects",
                .title = "Global memory, by kernel and object",
                .columns = {{"kernel"},
                            {"object"},
                            {"launches", Unit::kCount},
                            {"reads", Unit::kCount},
                            {"writes", Unit::kCount},
                            {"atomics", Unit::kCount},
                            {"asked", Unit::kBytes},
                            {"moved", Unit::kBytes},
                            {"efficiency", Unit::kShare},
                            {"touched", Unit::kBytes},
                            {"size", Unit::kBytes}},
                .rows = {}};
    for (const ObjectLine* row : rows) {
      const auto& [key, sum] = *row;
      const AccessCounts& counts = sum.counts;
      const bool known = key.number != device::kUnknownObject;
      table.rows.push_back({key.kernel, key.object, count_cell(sum.launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.atomics), count_cell(counts.asked_bytes),
                            moved_cell(counts.sectors), efficiency_cell(counts),
                            known ? count_cell(sum.touched) : Cell(), sum.bytes});
    }
    return table;
  }

  static Table shared_memory(const std::vector<const ObjectLine*>& rows) {
    Table table{.id = "shared",
                .title = "Shared memory, by kernel",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"reads", Unit::kCount},
                            {"writes", Unit::kCount},
                            {"atomics", Unit::kCount},
                            {"asked", Unit::kBytes},
                            {"passes", Unit::kCount},
                            {"conflict_free", Unit::kCount},
                            {"conflicts"}},
                .rows = {}};
    for (const ObjectLine* row : rows) {
      const AccessCounts& counts = row->second.counts;
      table.rows.push_back({row->first.kernel, count_cell(row->second.launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.atomics), count_cell(counts.asked_bytes),
                            count_cell(counts.passes), count_cell(counts.passes_without_conflicts),
                            counts.passes_without_conflicts > 0
                                ? Cell(static_cast<double>(counts.passes) /
                                       static_cast<double>(counts.passes_without_conflicts))
                                : Cell()});
    }
    return table;
  }

  static Table local_memory(const std::vector<const ObjectLine*>& rows) {
    Table table{.id = "local",
                .title = "Local memory (spilled registers and arrays of threads), by kernel",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"reads", Unit::kCount},
                            {"writes", Unit::kCount},
                            {"asked", Unit::kBytes}},
                .rows = {}};
    for (const ObjectLine* row : rows) {
      const AccessCounts& counts = row->second.counts;
      table.rows.push_back({row->first.kernel, count_cell(row->second.launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.asked_bytes)});
    }
    return table;
  }

  static Table places(const std::vector<const SiteLine*>& sites) {
    Table table{.id = "sites",
                .title = "Places of kernels that access memory",
                .columns = {{"kernel"},
                            {"site"},
                            {"space"},
                            {"access"},
                            {"width", Unit::kBytes},
                            {"object"},
                            {"warps", Unit::kCount},
                            {"lanes"},
                            {"sectors", Unit::kCount},
                            {"needed", Unit::kCount},
                            {"pattern"},
                            {"misaligned", Unit::kCount},
                            {"conflicts"},
                            {"worst", Unit::kCount},
                            {"crowd"},
                            {"most_crowded", Unit::kCount}},
                .rows = {}};
    for (const SiteLine* line : sites) {
      const auto& [key, site] = *line;
      const device::SiteCounts& counts = site.sum.counts;
      const bool global = key.space == static_cast<std::uint64_t>(device::Space::kGlobal);
      const bool shared = key.space == static_cast<std::uint64_t>(device::Space::kShared);
      const bool atomic = key.access == static_cast<std::uint64_t>(device::Access::kAtomic);
      table.rows.push_back({key.kernel, key.site, std::string(space_name(key.space)),
                            std::string(access_name(key.access)), count_cell(site.sum.width),
                            site.object, count_cell(counts.warps),
                            ratio_cell(counts.lanes, counts.warps),
                            global ? count_cell(counts.sectors) : Cell(),
                            global ? count_cell(counts.needed_sectors) : Cell(),
                            pattern_of(site.sum), global ? count_cell(counts.misaligned) : Cell(),
                            shared ? known_cell(excess_passes(site.sum)) : Cell(),
                            shared ? count_cell(site.sum.degree) : Cell(),
                            atomic ? known_cell(mean_crowd(site.sum)) : Cell(),
                            atomic ? count_cell(site.sum.crowd) : Cell()});
    }
    return table;
  }

  void add_findings(Report& report, const std::vector<const ObjectLine*>& global,
                    const std::vector<const SiteLine*>& sites, double moved) const {
    add_poor_sites(report, sites, moved);
    add_conflicts(report, sites);
    add_contention(report, sites);
    double unknown = 0;
    for (const ObjectLine* row : global) {
      if (row->first.number == device::kUnknownObject)
        unknown += moved_bytes(row->second.counts.sectors);
    }
    if (unknown > 0) {
      report.parts.emplace_back(
          Finding{.id = "unknown-objects",
                  .level = Finding::Level::kInfo,
                  .text = "some accesses are outside of all memory objects that are known",
                  .share = unknown / moved,
                  .of = "bytes moved",
                  .evidence = {{"moved", static_cast<std::int64_t>(unknown), Unit::kBytes}},
                  .advice = {}});
    }
    if (std::ranges::any_of(global, [](const ObjectLine* row) { return !row->second.exact; })) {
      report.parts.emplace_back(
          Finding{.id = "touched-in-pieces",
                  .level = Finding::Level::kInfo,
                  .text = "what was touched of large objects is known in pieces, and may be less "
                          "than is shown",
                  .of = {},
                  .evidence = {},
                  .advice = {}});
    }
    results_.add_times(report);
    results_.add_findings(report);
  }

  // "kernel, input.cl:12 load (in (buffer 6))".
  static std::string place(const SiteLine* line) {
    const auto& [key, site] = *line;
    return fmt::format("{} at {}, of {},", key.kernel, key.site, site.object);
  }

  static void add_poor_sites(Report& report, const std::vector<const SiteLine*>& sites,
                             double moved) {
    std::size_t found = 0;
    for (const SiteLine* line : sites) {
      const SiteSum& sum = line->second.sum;
      if (sum.counts.sectors == 0) continue;
      const double of_moved = static_cast<double>(sum.counts.sectors) * kSectorBytes;
      const double wasted = of_moved - static_cast<double>(sum.counts.used_bytes);
      const double used = 1 - wasted / of_moved;
      const bool misaligned = sum.counts.misaligned > 0 && excess_sectors(sum) >= kManySectors;
      if (used >= kPoorEfficiency && !misaligned) continue;
      if (wasted < kWorthNoting * moved || found++ >= kMostFindings) continue;
      report.parts.emplace_back(Finding{
          .id = used < kPoorEfficiency ? "poor-coalescing" : "misaligned",
          .level = Finding::Level::kWarning,
          .text = fmt::format("{} uses {:.0f}% of what memory moves", place(line), 100 * used),
          .share = wasted / moved,
          .of = "bytes moved",
          .evidence = {{"sectors_per_access", static_cast<double>(sum.counts.sectors) /
                                                  static_cast<double>(sum.counts.warps)},
                       {"needed_per_access", static_cast<double>(sum.counts.needed_sectors) /
                                                 static_cast<double>(sum.counts.warps)}},
          .advice = sector_advice(sum)});
    }
  }

  static void add_conflicts(Report& report, std::vector<const SiteLine*> sites) {
    const auto more = [](const SiteLine* line) {
      const device::SiteCounts& counts = line->second.sum.counts;
      return counts.passes - counts.passes_without_conflicts;
    };
    double all = 0;
    for (const SiteLine* line : sites) all += static_cast<double>(line->second.sum.counts.passes);
    std::ranges::stable_sort(sites, std::ranges::greater(), more);
    std::size_t found = 0;
    for (const SiteLine* line : sites) {
      const SiteSum& sum = line->second.sum;
      if (excess_passes(sum) < kManyConflicts) continue;
      const auto extra = static_cast<double>(more(line));
      if (extra < kWorthNoting * all || found++ >= kMostFindings) continue;
      report.parts.emplace_back(Finding{
          .id = "bank-conflicts",
          .level = Finding::Level::kWarning,
          .text = fmt::format("{} passes shared memory {:.1f} times as often as it would without "
                              "bank conflicts",
                              place(line), excess_passes(sum)),
          .share = extra / all,
          .of = "passes of shared memory",
          .evidence = {{"passes", count_cell(sum.counts.passes), Unit::kCount},
                       {"worst", count_cell(sum.degree), Unit::kCount}},
          .advice = conflict_advice(sum)});
    }
  }

  static void add_contention(Report& report, std::vector<const SiteLine*> sites) {
    const auto serial = [](const SiteLine* line) { return line->second.sum.counts.crowds; };
    double all = 0;
    for (const SiteLine* line : sites) all += static_cast<double>(serial(line));
    std::ranges::stable_sort(sites, std::ranges::greater(), serial);
    std::size_t found = 0;
    for (const SiteLine* line : sites) {
      const SiteSum& sum = line->second.sum;
      if (mean_crowd(sum) < kManyAtOnce) continue;
      const auto steps = static_cast<double>(serial(line));
      if (steps < kWorthNoting * all || found++ >= kMostFindings) continue;
      report.parts.emplace_back(
          Finding{.id = "atomic-contention",
                  .level = Finding::Level::kWarning,
                  .text = fmt::format("{} has {:.1f} lanes of a warp at the same address, at most "
                                      "{}",
                                      place(line), mean_crowd(sum), sum.crowd),
                  .share = steps / all,
                  .of = "steps of atomic operations",
                  .evidence = {{"atomics", count_cell(sum.counts.lanes), Unit::kCount},
                               {"steps", count_cell(sum.counts.crowds), Unit::kCount}},
                  .advice = contention_advice(sum)});
    }
  }

  DeviceResults results_{device::AccessPatch::kFormat, "access"};
  std::map<std::string, Kernel> kernels_;
  std::map<ObjectKey, ObjectSum> objects_;
  std::map<SiteKey, Site> sites_;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<AccessTool>(); }

}  // namespace

constinit const ToolEntry kAccess = {
    .name = "access",
    .help =
        "what kernels ask of each memory object, what memory moves for it, how lanes follow one "
        "another at each place, bank conflicts of shared memory and contention of atomics",
    .needs = kDeviceResultKinds,
    .options = {},
    .make = make,
    .also = kObjectNameKinds | kKernelTimeKinds,
    .patch = "access"};

}  // namespace pasta::tools
