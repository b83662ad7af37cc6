#include "tools/access/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "device/access.h"
#include "device/result.h"

namespace pasta::tools {
namespace {

using device::AccessCounts;
using device::AccessRow;
using device::kSectorBytes;

// Findings of one kind are about the rows that matter most.
constexpr std::size_t kMostFindings = 3;
constexpr double kPoorEfficiency = 0.5;
constexpr double kWorthNoting = 0.1;    // of all bytes moved, or of all passes
constexpr double kManyConflicts = 1.5;  // passes for each that is needed

Cell cell(std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kMost));
}

// One object in all launches of one kernel.
struct Key {
  std::string kernel;
  std::string name;
  std::uint64_t number, bytes;
  auto operator<=>(const Key&) const = default;
};
struct Sum {
  std::uint64_t launches = 0;
  AccessCounts counts;
  std::uint64_t touched = 0;  // by the launch that touched most
  bool exact = true;
};

double moved_bytes(const Sum& sum) {
  return static_cast<double>(sum.counts.sectors) * kSectorBytes;
}
double efficiency(const Sum& sum) {
  return static_cast<double>(sum.counts.used_bytes) / moved_bytes(sum);
}

std::string object_name(const Key& key) {
  if (key.number == device::kUnknownObject) return "unknown";
  const std::string buffer = fmt::format("buffer {}", key.number);
  return key.name.empty() ? buffer : fmt::format("{} ({})", key.name, buffer);
}

class AccessTool : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    for (const Event& event : events) {
      const Dictionary& dictionary = context.dictionary();
      if (dictionary.text(event.device.format) != device::kAccessFormat) continue;
      const auto result = device::read_result(context.blob(event.device.blob));
      if (!result) {
        ++unreadable_;
        continue;
      }
      ++results_;
      dropped_ += result->dropped;
      take(std::string(dictionary.text(event.name)), *result);
    }
    return {};
  }

  Result<Report> finish(const Context&) override {
    Report report{.tool = "access", .title = "Memory accesses", .parts = {}};
    std::vector<const Row*> global, shared;
    double moved = 0;
    for (const Row& row : sums_) {
      const bool is_shared = row.first.number == device::kSharedMemory;
      (is_shared ? shared : global).push_back(&row);
      if (!is_shared) moved += moved_bytes(row.second);
    }
    std::ranges::stable_sort(global, std::ranges::greater(),
                             [](const Row* row) { return row->second.counts.sectors; });
    std::ranges::stable_sort(shared, std::ranges::greater(),
                             [](const Row* row) { return row->second.counts.passes; });
    add_findings(report, global, shared, moved);
    report.parts.emplace_back(objects(global));
    report.parts.emplace_back(shared_memory(shared));
    return report;
  }

 private:
  using Row = std::pair<const Key, Sum>;

  void take(const std::string& kernel, const device::PatchResult& result) {
    for (const device::ResultTable& table : result.tables) {
      if (table.id == device::TableId::kObjects) {
        const auto rows = device::rows_of<device::ObjectRow>(table);
        for (std::size_t i = 0; i < rows.size() && i < table.names.size(); ++i) {
          objects_[rows[i].number] = {table.names[i], rows[i].bytes};
        }
      }
      if (table.id != device::TableId::kAccesses) continue;
      for (const AccessRow& row : device::rows_of<AccessRow>(table)) {
        const auto& [name, bytes] = objects_[row.object];
        Sum& sum = sums_[{kernel, name, row.object, bytes}];
        ++sum.launches;
        device::add_row(sum.counts, row.counts);
        sum.touched = std::max(sum.touched, row.counts.touched);
        sum.exact = sum.exact && row.granule == 1;
      }
    }
  }

  static Table objects(const std::vector<const Row*>& rows) {
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
    for (const Row* row : rows) {
      const auto& [key, sum] = *row;
      const AccessCounts& counts = sum.counts;
      const bool known = key.number != device::kUnknownObject;
      table.rows.push_back({key.kernel, object_name(key), cell(sum.launches), cell(counts.reads),
                            cell(counts.writes), cell(counts.atomics), cell(counts.asked_bytes),
                            cell(counts.sectors * kSectorBytes),
                            counts.sectors > 0 ? Cell(efficiency(sum)) : Cell(),
                            known ? cell(sum.touched) : Cell(), known ? cell(key.bytes) : Cell()});
    }
    return table;
  }

  static Table shared_memory(const std::vector<const Row*>& rows) {
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
    for (const Row* row : rows) {
      const auto& [key, sum] = *row;
      const AccessCounts& counts = sum.counts;
      table.rows.push_back({key.kernel, cell(sum.launches), cell(counts.reads), cell(counts.writes),
                            cell(counts.atomics), cell(counts.asked_bytes), cell(counts.passes),
                            cell(counts.passes_without_conflicts),
                            counts.passes_without_conflicts > 0 ? Cell(degree(sum)) : Cell()});
    }
    return table;
  }

  // Passes for each that would be needed without conflicts.
  static double degree(const Sum& sum) {
    return static_cast<double>(sum.counts.passes) /
           static_cast<double>(sum.counts.passes_without_conflicts);
  }

  void add_findings(Report& report, const std::vector<const Row*>& global,
                    const std::vector<const Row*>& shared, double moved) const {
    if (results_ == 0 && unreadable_ == 0) {
      report.parts.emplace_back(Finding{.id = "nothing-analysed",
                                        .level = Finding::Level::kInfo,
                                        .text = "no launch was analysed",
                                        .of = {},
                                        .evidence = {},
                                        .advice = "watch the program by: pastaprof run --adapter "
                                                  "oclgrind --tool access -- PROGRAM"});
    }
    add_poor_rows(report, global, moved);
    add_conflicts(report, shared);
    double unknown = 0;
    for (const Row* row : global) {
      if (row->first.number == device::kUnknownObject) unknown += moved_bytes(row->second);
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
    if (std::ranges::any_of(global, [](const Row* row) { return !row->second.exact; })) {
      report.parts.emplace_back(
          Finding{.id = "touched-in-pieces",
                  .level = Finding::Level::kInfo,
                  .text = "what was touched of objects beyond 8 MiB is known in pieces, and may be "
                          "less than is shown",
                  .of = {},
                  .evidence = {},
                  .advice = {}});
    }
    add_loss(report, "not-analysed", "accesses were not analysed", dropped_,
             "a group has made more of them without a barrier than can be kept");
    add_loss(report, "unreadable-results", "results of launches cannot be read", unreadable_,
             "the trace is of a newer version of pastaprof, or damaged");
  }

  static void add_loss(Report& report, const char* id, const char* what, std::uint64_t count,
                       const char* advice) {
    if (count == 0) return;
    report.parts.emplace_back(Finding{.id = id,
                                      .level = Finding::Level::kWarning,
                                      .text = fmt::format("{} {}", count, what),
                                      .of = {},
                                      .evidence = {{"count", cell(count), Unit::kCount}},
                                      .advice = advice});
  }

  static void add_poor_rows(Report& report, const std::vector<const Row*>& rows, double moved) {
    std::size_t found = 0;
    for (const Row* row : rows) {
      const auto& [key, sum] = *row;
      if (sum.counts.sectors == 0 || efficiency(sum) >= kPoorEfficiency) continue;
      const double wasted = moved_bytes(sum) - static_cast<double>(sum.counts.used_bytes);
      if (wasted < kWorthNoting * moved || found++ == kMostFindings) continue;
      report.parts.emplace_back(Finding{
          .id = "poor-coalescing",
          .level = Finding::Level::kWarning,
          .text = fmt::format("{} uses {:.0f}% of what memory moves for {}", key.kernel,
                              100 * efficiency(sum), object_name(key)),
          .share = wasted / moved,
          .of = "bytes moved",
          .evidence = {{"sectors_per_access", static_cast<double>(sum.counts.sectors) /
                                                  static_cast<double>(sum.counts.warps)}},
          .advice = "let lanes next to each other access words next to each other: swap loops, "
                    "change the layout, or go through shared memory"});
    }
  }

  static void add_conflicts(Report& report, const std::vector<const Row*>& rows) {
    double all = 0;
    for (const Row* row : rows) all += static_cast<double>(row->second.counts.passes);
    std::size_t found = 0;
    for (const Row* row : rows) {
      const auto& [key, sum] = *row;
      if (sum.counts.passes_without_conflicts == 0 || degree(sum) < kManyConflicts) continue;
      const double more = static_cast<double>(sum.counts.passes) -
                          static_cast<double>(sum.counts.passes_without_conflicts);
      if (more < kWorthNoting * all || found++ == kMostFindings) continue;
      report.parts.emplace_back(
          Finding{.id = "bank-conflicts",
                  .level = Finding::Level::kWarning,
                  .text = fmt::format("{} passes shared memory {:.1f} times as often as it would "
                                      "without bank conflicts",
                                      key.kernel, degree(sum)),
                  .share = more / all,
                  .of = "passes of shared memory",
                  .evidence = {{"passes", cell(sum.counts.passes), Unit::kCount}},
                  .advice = "pad rows by one word, so that the words of a column lie in different "
                            "banks"});
    }
  }

  std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> objects_;  // name, size
  std::map<Key, Sum> sums_;
  std::uint64_t results_ = 0, unreadable_ = 0, dropped_ = 0;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<AccessTool>(); }

}  // namespace

constinit const ToolEntry kAccess = {
    .name = "access",
    .help =
        "what kernels ask of each memory object, what memory moves for it, how much of that is "
        "used, and bank conflicts of shared memory",
    .needs = Kind::kDevice,
    .options = {},
    .make = make};

}  // namespace pasta::tools
