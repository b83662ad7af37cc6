#include "tools/access/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
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
constexpr double kManySpills = 0.1;     // of what a kernel asks
constexpr double kManyConflicts = 1.5;  // passes for each that is needed
constexpr double kManyAtOnce = 4;       // lanes at one address
constexpr double kManyForOne = 64;      // atomics of a launch for each address,
constexpr double kManyWarps = 32;       // when it has so many warps,
constexpr double kManyOfGroup = 2;      // and each group does so many

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
  std::uint64_t launches = 0, groups = 0, launched_warps = 0;  // of launches that have it
};
using ObjectLine = std::pair<const ObjectKey, ObjectSum>;
using SiteLine = std::pair<const SiteKey, Site>;

Cell efficiency_cell(const AccessCounts& counts) {
  return ratio_cell(counts.used_bytes, moved_bytes(counts.sectors));
}

// Places of one kernel where the same costs something, as where it accesses the fields of a
// structure.
struct Places {
  const SiteLine* worst = nullptr;
  double worst_cost = 0, cost = 0;
  std::size_t count = 0;
  SiteSum sum;
  std::uint64_t launched_warps = 0;

  void add(const SiteLine* line, double more) {
    if (worst == nullptr || more > worst_cost) {
      worst = line;
      worst_cost = more;
    }
    cost += more;
    ++count;
    sum.add(line->second.sum);
    launched_warps += line->second.launched_warps;
  }
  // "kernel at a.cu:12 LDG and 2 more places, of in (buffer 6),".
  [[nodiscard]] std::string text() const {
    const auto& [key, site] = *worst;
    const std::string more =
        count == 1 ? "" : fmt::format(" and {} more place{}", count - 1, count == 2 ? "" : "s");
    return fmt::format("{} at {}{}, of {},", in_sentence(key.kernel), key.site, more, site.object);
  }
};
// Which are alike: kernel, object, what is wrong, and the stride where there is one.
using Alike = std::tuple<std::string, std::string, Fault, std::int64_t>;
// Those that cost most first.
std::vector<const Places*> by_cost(const std::map<Alike, Places>& all) {
  std::vector<const Places*> order;
  for (const auto& [alike, places] : all) order.push_back(&places);
  std::ranges::stable_sort(order, std::ranges::greater(), &Places::cost);
  return order;
}
std::int64_t stride_of(const SiteSum& sum) {
  return sum.counts.strided > 0 && sum.least_step == sum.most_step ? sum.least_step : 0;
}

bool is_of(const SiteKey& key, device::Space space) {
  return key.space == static_cast<std::uint64_t>(space);
}
bool is_atomic(const SiteKey& key) {
  return key.access == static_cast<std::uint64_t>(device::Access::kAtomic);
}

std::uint64_t product(const std::uint32_t (&sizes)[3]) {
  return std::uint64_t{sizes[0]} * sizes[1] * sizes[2];
}
std::uint64_t warps_of(const device::PatchResult& result) {
  return product(result.grid) *
         ((product(result.block) + device::kWarpLanes - 1) / device::kWarpLanes);
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
    find_addresses();
    std::ranges::stable_sort(global, std::ranges::greater(),
                             [](const ObjectLine* row) { return row->second.counts.sectors; });
    std::ranges::stable_sort(shared, std::ranges::greater(),
                             [](const ObjectLine* row) { return row->second.counts.passes; });
    // What costs most first: of memory sectors, of shared memory passes. No place has both, and a
    // text shows only the first rows, which are to have the worst of both.
    std::ranges::stable_sort(sites, std::ranges::greater(), [](const SiteLine* site) {
      const device::SiteCounts& counts = site->second.sum.counts;
      return std::max(counts.sectors, counts.passes);
    });
    std::ranges::stable_sort(local, std::ranges::greater(),
                             [](const ObjectLine* row) { return row->second.counts.asked_bytes; });
    add_findings(report, global, local, sites, moved);
    report.parts.emplace_back(kernels());
    report.parts.emplace_back(objects(global));
    report.parts.emplace_back(shared_memory(shared));
    report.parts.emplace_back(places(sites));
    std::erase_if(sites, [](const SiteLine* line) { return !is_atomic(line->first); });
    if (!sites.empty()) report.parts.emplace_back(atomics(sites));
    if (!local.empty()) report.parts.emplace_back(local_memory(local));
    return report;
  }

 private:
  struct Kernel {
    std::uint64_t launches = 0, asked = 0, sectors = 0;
  };

  void take(const LaunchResult& launch) {
    if (launch.first) {
      ++kernels_[launch.kernel].launches;
      // What is said of the launch as a whole is in the first of its parts.
      const device::PatchResult& result = launch.result;
      sizes_[launch.process.value] = {product(result.grid), warps_of(result)};
    }
    for (const device::ResultTable& table : launch.result.tables) {
      if (table.id == device::TableId::kAccesses) take_accesses(launch, table);
      if (table.id == device::TableId::kSites) take_sites(launch, table);
    }
  }
  void take_accesses(const LaunchResult& launch, const device::ResultTable& table) {
    for (const AccessRow& row : device::rows_of<AccessRow>(table)) {
      // What every process has for itself is one.
      const bool shared = row.object == device::kSharedMemory || row.object == device::kLocalMemory;
      ObjectSum& sum = objects_[{launch.kernel, results_.label(launch.process, row.object),
                                 shared ? 0 : launch.process.value, row.object}];
      ++sum.launches;
      device::add_row(sum.counts, row.counts);
      if (!shared) {
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
      ++site.launches;
      const Sizes& sizes = sizes_[launch.process.value];
      site.groups += sizes.groups;
      site.launched_warps += sizes.warps;
    }
  }

  // How many addresses of an object a kernel changes by atomic operations, where it does nothing
  // else with it.
  void find_addresses() {
    for (const auto& [key, sum] : objects_) {
      const AccessCounts& counts = sum.counts;
      if (counts.atomics == 0 || counts.reads + counts.writes > 0 || !sum.exact) continue;
      const std::uint64_t width = counts.asked_bytes / counts.atomics;
      if (width == 0) continue;
      Addresses& known = addresses_[{key.kernel, key.object}];
      known = {std::max(known.count, sum.touched / width), width};
    }
  }
  // Of the launch with most of them; 0 where that is not known.
  [[nodiscard]] std::uint64_t addresses_of(const SiteLine* line) const {
    const auto known = addresses_.find({line->first.kernel, line->second.object});
    // Of operations of several widths, the mean is that of none.
    const bool one = known != addresses_.end() && known->second.width == line->second.sum.width;
    return one ? known->second.count : 0;
  }
  [[nodiscard]] double atomics_an_address(const SiteLine* line) const {
    return ratio(ratio(line->second.sum.counts.lanes, line->second.launches), addresses_of(line));
  }

  [[nodiscard]] Table kernels() const {
    Table table{.id = "kernels",
                .title = "Global memory, by kernel",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"time", Unit::kNanoseconds},
                            {"asked", Unit::kBytes},
                            {"moved", Unit::kBytes},
                            {"moved_per_second", Unit::kBytes},
                            {"uncovered"}},
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
           known ? results_.rate_cell(name, kernel.launches, kernel.sectors) : Cell(),
           results_.uncovered_cell(name)});
    }
    return table;
  }

  [[nodiscard]] Table objects(const std::vector<const ObjectLine*>& rows) const {
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
                            {"size", Unit::kBytes},
                            {"uncovered"}},
                .rows = {}};
    for (const ObjectLine* row : rows) {
      const auto& [key, sum] = *row;
      const AccessCounts& counts = sum.counts;
      const bool known = key.number != device::kUnknownObject;
      table.rows.push_back({key.kernel, key.object, count_cell(sum.launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.atomics), count_cell(counts.asked_bytes),
                            moved_cell(counts.sectors), efficiency_cell(counts),
                            known ? count_cell(sum.touched) : Cell(), sum.bytes,
                            results_.uncovered_cell(key.kernel)});
    }
    return table;
  }

  [[nodiscard]] Table shared_memory(const std::vector<const ObjectLine*>& rows) const {
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
                            {"conflicts"},
                            {"uncovered"}},
                .rows = {}};
    for (const ObjectLine* row : rows) {
      const AccessCounts& counts = row->second.counts;
      table.rows.push_back({row->first.kernel, count_cell(row->second.launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.atomics), count_cell(counts.asked_bytes),
                            count_cell(counts.passes), count_cell(counts.passes_without_conflicts),
                            ratio_cell(counts.passes, counts.passes_without_conflicts),
                            results_.uncovered_cell(row->first.kernel)});
    }
    return table;
  }

  [[nodiscard]] Table local_memory(const std::vector<const ObjectLine*>& rows) const {
    Table table{.id = "local",
                .title = "Local memory (spilled registers and arrays of threads), by kernel",
                .columns = {{"kernel"},
                            {"launches", Unit::kCount},
                            {"reads", Unit::kCount},
                            {"writes", Unit::kCount},
                            {"asked", Unit::kBytes},
                            {"uncovered"}},
                .rows = {}};
    for (const ObjectLine* row : rows) {
      const AccessCounts& counts = row->second.counts;
      table.rows.push_back({row->first.kernel, count_cell(row->second.launches),
                            count_cell(counts.reads), count_cell(counts.writes),
                            count_cell(counts.asked_bytes),
                            results_.uncovered_cell(row->first.kernel)});
    }
    return table;
  }

  [[nodiscard]] Table places(const std::vector<const SiteLine*>& sites) const {
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
                            {"efficiency", Unit::kShare},
                            {"pattern"},
                            {"misaligned", Unit::kCount},
                            {"conflicts"},
                            {"worst", Unit::kCount},
                            {"crowd"},
                            {"most_crowded", Unit::kCount},
                            {"uncovered"}},
                .rows = {}};
    for (const SiteLine* line : sites) {
      const auto& [key, site] = *line;
      const device::SiteCounts& counts = site.sum.counts;
      const bool global = is_of(key, device::Space::kGlobal);
      const bool shared = is_of(key, device::Space::kShared);
      const bool atomic = is_atomic(key);
      table.rows.push_back(
          {key.kernel, key.site, std::string(space_name(key.space)),
           std::string(access_name(key.access)), count_cell(site.sum.width), site.object,
           count_cell(counts.warps), ratio_cell(counts.lanes, counts.warps),
           global ? count_cell(counts.sectors) : Cell(),
           global ? count_cell(counts.needed_sectors) : Cell(),
           ratio_cell(counts.used_bytes, moved_bytes(counts.sectors)), pattern_of(site.sum),
           global ? count_cell(counts.misaligned) : Cell(),
           shared ? known_cell(excess_passes(site.sum)) : Cell(),
           shared ? count_cell(site.sum.degree) : Cell(),
           atomic ? known_cell(mean_crowd(site.sum)) : Cell(),
           atomic ? count_cell(site.sum.crowd) : Cell(), results_.uncovered_cell(key.kernel)});
    }
    return table;
  }

  [[nodiscard]] Table atomics(std::vector<const SiteLine*> sites) const {
    Table table{.id = "atomics",
                .title = "Atomic operations, by place",
                .columns = {{"kernel"},
                            {"site"},
                            {"object"},
                            {"launches", Unit::kCount},
                            {"atomics", Unit::kCount},
                            {"crowd"},
                            {"most_crowded", Unit::kCount},
                            {"addresses", Unit::kCount},
                            {"per_address"},
                            {"launch_warps"},
                            {"uncovered"}},
                .rows = {}};
    std::ranges::stable_sort(sites, std::ranges::greater(), steps_of);
    for (const SiteLine* line : sites) {
      const auto& [key, site] = *line;
      const std::uint64_t addresses = addresses_of(line);
      table.rows.push_back(
          {key.kernel, key.site, site.object, count_cell(site.launches),
           count_cell(site.sum.counts.lanes), known_cell(mean_crowd(site.sum)),
           count_cell(site.sum.crowd), addresses > 0 ? count_cell(addresses) : Cell(),
           known_cell(atomics_an_address(line)), ratio_cell(site.launched_warps, site.launches),
           results_.uncovered_cell(key.kernel)});
    }
    return table;
  }

  // That come one after the other, as far as one warp is asked.
  static std::uint64_t steps_of(const SiteLine* line) { return line->second.sum.counts.crowds; }

  void add_findings(Report& report, const std::vector<const ObjectLine*>& global,
                    const std::vector<const ObjectLine*>& local,
                    const std::vector<const SiteLine*>& sites, double moved) const {
    add_poor_sites(report, sites, moved);
    add_conflicts(report, sites);
    add_contention(report, sites);
    add_spills(report, local);
    // Those for which most is moved come first.
    double unknown = 0;
    std::string most_in;
    for (const ObjectLine* row : global) {
      if (row->first.number != device::kUnknownObject) continue;
      unknown += moved_bytes(row->second.counts.sectors);
      if (most_in.empty()) most_in = row->first.kernel;
    }
    add_unknown_objects(report, unknown, moved, most_in);
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

  // What the findings of one kind leave out.
  static void add_more(Report& report, const char* id, std::size_t places, double share,
                       const char* fault, const char* of) {
    if (places == 0) return;
    report.parts.emplace_back(
        Finding{.id = id,
                .level = Finding::Level::kInfo,
                .text = fmt::format("{} more place{} with {}: table sites has all", places,
                                    places == 1 ? "" : "s", fault),
                .share = share,
                .of = of,
                .evidence = {{"places", count_cell(places), Unit::kCount}},
                .advice = {}});
  }

  static void add_poor_sites(Report& report, const std::vector<const SiteLine*>& sites,
                             double moved) {
    std::map<Alike, Places> all;
    for (const SiteLine* line : sites) {
      const auto& [key, site] = *line;
      const SiteSum& sum = site.sum;
      const Fault fault = fault_of(sum);
      // What is wrong with lanes that meet at one address is not where the others are.
      const bool crowded = is_atomic(key) && mean_crowd(sum) >= kManyAtOnce;
      if (sum.counts.sectors == 0 || fault == Fault::kNone || crowded) continue;
      all[{key.kernel, site.object, fault, stride_of(sum)}].add(
          line, moved_bytes(sum.counts.sectors) - static_cast<double>(sum.counts.used_bytes));
    }
    std::size_t found = 0, more = 0;
    double left = 0;
    for (const Places* places : by_cost(all)) {
      if (places->cost < kWorthNoting * moved || found >= kMostFindings) {
        more += places->count;
        left += places->cost;
        continue;
      }
      ++found;
      const SiteSum& sum = places->sum;
      const Fault fault = fault_of(places->worst->second.sum);
      report.parts.emplace_back(Finding{
          .id = fault == Fault::kMisaligned  ? "misaligned"
                : fault == Fault::kBroadcast ? "broadcast"
                                             : "poor-coalescing",
          .level = level_of(places->cost / moved),
          .text = fmt::format("{} uses {:.1f}% of what memory moves", places->text(),
                              100 * used_share(sum)),
          .share = places->cost / moved,
          .of = "bytes moved",
          .evidence = {{"sectors_per_access", ratio(sum.counts.sectors, sum.counts.warps)},
                       {"needed_per_access", ratio(sum.counts.needed_sectors, sum.counts.warps)}},
          .advice = sector_advice(sum, ratio(sum.counts.warps, places->launched_warps))});
    }
    add_more(report, "more-poor-coalescing", more, ratio(left, moved), "poor coalescing",
             "bytes moved");
  }

  static void add_conflicts(Report& report, const std::vector<const SiteLine*>& sites) {
    std::map<Alike, Places> all;
    double passes = 0;
    for (const SiteLine* line : sites) {
      const auto& [key, site] = *line;
      const device::SiteCounts& counts = site.sum.counts;
      passes += static_cast<double>(counts.passes);
      if (excess_passes(site.sum) < kManyConflicts) continue;
      all[{key.kernel, site.object, Fault::kNone, stride_of(site.sum)}].add(
          line, static_cast<double>(counts.passes - counts.passes_without_conflicts));
    }
    std::size_t found = 0, more = 0;
    double left = 0;
    for (const Places* places : by_cost(all)) {
      if (places->cost < kWorthNoting * passes || found >= kMostFindings) {
        more += places->count;
        left += places->cost;
        continue;
      }
      ++found;
      const SiteSum& sum = places->sum;
      report.parts.emplace_back(Finding{
          .id = "bank-conflicts",
          .level = level_of(places->cost / passes),
          .text = fmt::format("{} passes shared memory {:.1f} times as often as it would without "
                              "bank conflicts",
                              places->text(), excess_passes(sum)),
          .share = places->cost / passes,
          .of = "passes of shared memory",
          .evidence = {{"passes", count_cell(sum.counts.passes), Unit::kCount},
                       {"worst", count_cell(sum.degree), Unit::kCount}},
          .advice = conflict_advice(sum)});
    }
    add_more(report, "more-bank-conflicts", more, ratio(left, passes), "bank conflicts",
             "passes of shared memory");
  }

  void add_contention(Report& report, std::vector<const SiteLine*> sites) const {
    std::erase_if(sites, [](const SiteLine* line) { return steps_of(line) == 0; });
    double all = 0;
    for (const SiteLine* line : sites) all += static_cast<double>(steps_of(line));
    std::ranges::stable_sort(sites, std::ranges::greater(), steps_of);
    std::size_t found = 0;
    for (const SiteLine* line : sites) {
      const auto& [key, site] = *line;
      // One of each group is what remains where groups have counts of their own.
      const double each = atomics_an_address(line);
      const double of_group = ratio(each, ratio(site.groups, site.launches));
      const double warps = ratio(site.launched_warps, site.launches);
      const bool of_launch = each >= kManyForOne && warps >= kManyWarps && of_group >= kManyOfGroup;
      if (mean_crowd(site.sum) < kManyAtOnce && !of_launch) continue;
      const auto steps = static_cast<double>(steps_of(line));
      if (steps < kWorthNoting * all || found++ >= kMostFindings) continue;
      std::string text = fmt::format(
          "{} at {}, of {}, has {:.1f} lanes of a warp at the same address, at most {}",
          in_sentence(key.kernel), key.site, site.object, mean_crowd(site.sum), site.sum.crowd);
      if (of_launch) {
        text += fmt::format(
            ", and in each launch {:.0f} operations for each of {} address{}, by "
            "{:.0f} warps",
            each, addresses_of(line), addresses_of(line) == 1 ? "" : "es", warps);
      }
      report.parts.emplace_back(
          Finding{.id = "atomic-contention",
                  .level = level_of(steps / all),
                  .text = std::move(text),
                  .share = steps / all,
                  .of = "steps of atomic operations",
                  .evidence = {{"atomics", count_cell(site.sum.counts.lanes), Unit::kCount},
                               {"steps", count_cell(site.sum.counts.crowds), Unit::kCount}},
                  .advice = contention_advice(site.sum, of_launch ? of_group : 0)});
    }
  }

  // Local memory is memory like any other but for caches, so what registers had held costs as much.
  void add_spills(Report& report, const std::vector<const ObjectLine*>& local) const {
    double all = 0;
    for (const auto& [name, kernel] : kernels_) all += static_cast<double>(kernel.asked);
    for (const ObjectLine* row : local) all += static_cast<double>(row->second.counts.asked_bytes);
    std::size_t found = 0;
    for (const ObjectLine* row : local) {
      const auto& [key, sum] = *row;
      const auto spilled = static_cast<double>(sum.counts.asked_bytes);
      const auto kernel = kernels_.find(key.kernel);
      const double global =
          kernel == kernels_.end() ? 0 : static_cast<double>(kernel->second.asked);
      const bool many = spilled >= kManySpills * (spilled + global);
      if (!many || spilled < kWorthNoting * all || found++ >= kMostFindings) continue;
      report.parts.emplace_back(Finding{
          .id = "local-memory",
          .level = level_of(spilled / all),
          .text =
              fmt::format("{} reads {} and writes {} values in local memory, which holds spilled "
                          "registers and arrays of threads",
                          in_sentence(key.kernel), sum.counts.reads, sum.counts.writes),
          .share = spilled / (spilled + global),
          .of = "bytes that the kernel asks of global and local memory",
          .evidence = {{"asked", count_cell(sum.counts.asked_bytes), Unit::kBytes}},
          .advice = "allow a thread more registers (__launch_bounds__, -maxrregcount), unroll less "
                    "or let it work on less at once, and index arrays of a thread by constants"});
    }
  }

  struct Sizes {
    std::uint64_t groups = 0, warps = 0;
  };

  DeviceResults results_{device::AccessPatch::kFormat, "access"};
  std::map<std::uint32_t, Sizes> sizes_;  // of the launch under way, by process
  std::map<std::string, Kernel> kernels_;
  std::map<ObjectKey, ObjectSum> objects_;
  std::map<SiteKey, Site> sites_;
  struct Addresses {
    std::uint64_t count = 0, width = 0;
  };
  std::map<std::pair<std::string, std::string>, Addresses> addresses_;  // by kernel, object
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
