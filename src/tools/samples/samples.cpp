#include "tools/samples/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/result.h"
#include "device/samples.h"
#include "pasta/dictionary.h"
#include "tools/common/demangle.h"
#include "tools/common/device_results.h"
#include "tools/common/ratio.h"

namespace pasta::tools {
namespace {

using device::SampleRow;
using device::WaveState;

struct Counts {
  std::uint64_t samples = 0, issued = 0, stalled = 0;
  std::map<std::uint64_t, std::uint64_t> stalls;  // why, how often

  void add(const SampleRow& row) {
    samples += row.samples;
    if (row.state == WaveState::kIssued) issued += row.samples;
    if (row.state != WaveState::kStalled) return;
    stalled += row.samples;
    stalls[row.stall] += row.samples;
  }
  // Unknown where the samples do not say what the wave did.
  [[nodiscard]] Cell share(std::uint64_t of) const { return ratio_cell(of, issued + stalled); }
  // Why most that were stalled were.
  [[nodiscard]] Cell stall() const {
    const auto most = std::ranges::max_element(stalls, std::ranges::less(),
                                               [](const auto& one) { return one.second; });
    if (most == stalls.end()) return {};
    if (most->first < std::size(device::kStalls)) {
      return Cell(std::string(device::kStalls[most->first]));
    }
    return Cell(fmt::format("reason {}", most->first));
  }
};

// A launch is told by its process and its number there.
using Launch = std::pair<std::uint32_t, std::uint64_t>;
struct Place {
  Launch launch;
  StringId function;
  std::uint64_t offset;
  auto operator<=>(const Place& other) const {
    return std::tie(launch, function.value, offset) <=>
           std::tie(other.launch, other.function.value, other.offset);
  }
  bool operator==(const Place& other) const = default;
};
struct Kernel {
  std::uint64_t launches = 0;
  Launch last = {};
  Counts counts;
};

template <class Key, class Value, class Samples>
std::vector<const std::pair<const Key, Value>*> by_samples(const std::map<Key, Value>& from,
                                                           Samples samples) {
  std::vector<const std::pair<const Key, Value>*> order;
  for (const auto& line : from) order.push_back(&line);
  std::ranges::stable_sort(order, std::ranges::greater(), samples);
  return order;
}

class SamplesTool : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      const std::uint32_t process = dictionary.lane(event.lane).process.value;
      if (event.kind == Kind::kKernel && event.kernel.ordinal != 0) {
        kernels_[process].emplace(event.kernel.ordinal, event.name);
      } else if (event.kind == Kind::kDevice &&
                 dictionary.text(event.device.format) == device::kSamplesFormat) {
        take(event, process, context);
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    std::map<std::string, Kernel> kernels;
    std::map<std::pair<std::string, std::string>, Counts> places;
    std::uint64_t all = 0, unmatched = 0;
    for (const auto& [place, rows] : places_) {
      // Its kernel may have ended after samples of it came.
      const StringId launched = kernel_of(place.launch);
      const std::string function = name_of(dictionary, place.function);
      const std::string kernel = launched ? name_of(dictionary, launched) : function;
      const std::string at = fmt::format("+{:#x}", place.offset);
      Kernel& sum = kernels[kernel];
      Counts& here = places[{kernel, kernel == function ? at : fmt::format("{} {}", function, at)}];
      if (sum.launches == 0 || sum.last != place.launch) ++sum.launches;
      sum.last = place.launch;
      for (const SampleRow& row : rows) {
        sum.counts.add(row);
        here.add(row);
        all += row.samples;
        if (!launched) unmatched += row.samples;
      }
    }
    Report report{.tool = "samples", .title = "Where kernels were when sampled", .parts = {}};
    add_loss(report, "unmatched-samples", unmatched,
             "samples of launches that are not in the trace, which count to the function in which "
             "they lie");
    add_loss(report, "damaged-samples", damaged_, "parts of the samples that cannot be read");
    report.parts.emplace_back(kernel_table(kernels, all));
    report.parts.emplace_back(place_table(places, all));
    return report;
  }

 private:
  void take(const Event& event, std::uint32_t process, const Context& context) {
    const auto result = device::read_result(context.blob(event.device.blob));
    if (!result) {
      ++damaged_;
      return;
    }
    for (const device::ResultTable& table : result->tables) {
      if (table.id != device::TableId::kSamples) continue;
      for (const SampleRow& row : device::rows_of<SampleRow>(table)) {
        auto& rows = places_[{{process, event.device.launch}, event.name, row.offset}];
        const auto same = std::ranges::find_if(rows, [&](const SampleRow& one) {
          return one.state == row.state && one.stall == row.stall;
        });
        if (same == rows.end()) {
          rows.push_back(row);
        } else {
          same->samples += row.samples;
        }
      }
    }
  }

  [[nodiscard]] StringId kernel_of(const Launch& launch) const {
    const auto process = kernels_.find(launch.first);
    if (process == kernels_.end()) return {};
    const auto found = process->second.find(launch.second);
    return found == process->second.end() ? StringId() : found->second;
  }
  static std::string name_of(const Dictionary& dictionary, StringId name) {
    return demangle(dictionary.text(name));
  }

  static void add_loss(Report& report, std::string_view id, std::uint64_t count,
                       std::string_view what) {
    if (count == 0) return;
    report.parts.emplace_back(Finding{.id = std::string(id),
                                      .level = Finding::Level::kWarning,
                                      .text = fmt::format("{}: {}", what, count),
                                      .of = {},
                                      .evidence = {},
                                      .advice = {}});
  }

  // Of what both tables tell, after what each row is of.
  static void add_columns(Table& table) {
    table.columns.insert(table.columns.end(), {{"samples", Unit::kCount},
                                               {"share", Unit::kShare},
                                               {"issued", Unit::kShare},
                                               {"stalled", Unit::kShare},
                                               {"stall"}});
  }
  static void add_row(Table& table, std::vector<Cell> row, const Counts& counts,
                      std::uint64_t all) {
    row.insert(row.end(),
               {count_cell(counts.samples), ratio_cell(counts.samples, all),
                counts.share(counts.issued), counts.share(counts.stalled), counts.stall()});
    table.rows.push_back(std::move(row));
  }

  static Table kernel_table(const std::map<std::string, Kernel>& kernels, std::uint64_t all) {
    Table table{.id = "kernels",
                .title = "Kernels",
                .columns = {{"kernel"}, {"launches", Unit::kCount}},
                .rows = {}};
    add_columns(table);
    for (const auto* line :
         by_samples(kernels, [](const auto* one) { return one->second.counts.samples; })) {
      add_row(table, {line->first, count_cell(line->second.launches)}, line->second.counts, all);
    }
    return table;
  }

  static Table place_table(const std::map<std::pair<std::string, std::string>, Counts>& places,
                           std::uint64_t all) {
    Table table{.id = "places",
                .title = "Places in the code of kernels",
                .columns = {{"kernel"}, {"place"}},
                .rows = {}};
    add_columns(table);
    for (const auto* line :
         by_samples(places, [](const auto* one) { return one->second.samples; })) {
      const auto& [where, counts] = *line;
      add_row(table, {where.first, where.second}, counts, all);
    }
    return table;
  }

  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, StringId>> kernels_;
  std::map<Place, std::vector<SampleRow>> places_;
  std::uint64_t damaged_ = 0;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<SamplesTool>(); }

}  // namespace

constinit const ToolEntry kSamples = {
    .name = "samples",
    .help =
        "at which places of their code kernels were when their program counters were sampled, "
        "and why they were not going on",
    .needs = Kind::kDevice,
    .options = {},
    .make = make,
    .also = Kind::kKernel,
    .samples = true};

}  // namespace pasta::tools
