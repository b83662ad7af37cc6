#include "tools/diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/iterations.h"
#include "tools/common/rows.h"
#include "tools/diagnose/observed.h"
#include "tools/diagnose/report.h"

namespace pasta::tools {
namespace {

constexpr OptionInfo kOptions[] = {
    kMarksOption,
    {"bins",
     "into how many parts the timeline of the mean iteration is cut; 0 draws none",
     "40",
     {}},
};

class Diagnose : public Tool {
 public:
  Diagnose(MarksUse marks, std::size_t bins) : iterations_(marks), bins_(bins) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    iterations_.consume(events, context);
    for (const Event& event : events) observed_.add(event, context.dictionary());
    return {};
  }

  Result<Report> finish(const Context& context) override {
    iterations_.finish(context);
    std::vector<std::pair<std::string, const diagnose::DeviceWork*>> order;
    for (const auto& device : observed_.devices()) {
      if (device->first_ns > device->last_ns) continue;  // none of its work has times
      std::string label = context.device_label(device->device);
      order.emplace_back(label.empty() ? "?" : std::move(label), device.get());
    }
    std::ranges::stable_sort(order, natural_less,
                             [](const auto& row) { return std::string_view(row.first); });
    // A device that several processes use has a row for each.
    for (std::size_t i = 1, again = 1; i < order.size(); ++i) {
      again = order[i].second->device == order[i - 1].second->device ? again + 1 : 1;
      if (again > 1) order[i].first += fmt::format(" ({})", again);
    }
    std::vector<diagnose::DeviceReport> reports;
    for (const auto& [label, device] : order) {
      const auto runs = iterations_.runs();
      const auto run = std::ranges::find(runs, device->process, &IterationRun::process);
      diagnose::DeviceReport report;
      report.untimed = device->untimed;
      if (run != runs.end()) {
        report.confidence = run->confidence;
        report.marks = run->marks;
        report.abstained = run->abstained;
      }
      report.diagnosis = diagnose::diagnose_device(*device, run != runs.end() ? &*run : nullptr,
                                                   observed_, label, bins_, context.dictionary());
      reports.push_back(std::move(report));
    }
    return diagnose::make_report(reports, context.origin_ns());
  }

 private:
  Iterations iterations_;
  diagnose::Observed observed_;
  std::size_t bins_;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto bins = options.integer("bins");
  if (!bins) return tl::unexpected<Error>(bins.error());
  if (*bins < 0 || *bins > 1000) {
    return fail(ErrorCode::kUsage,
                fmt::format("option diagnose.bins cannot be {}; give 0 to 1000", *bins));
  }
  return std::make_unique<Diagnose>(marks_use(options.text("marks")),
                                    static_cast<std::size_t>(*bins));
}

}  // namespace

constinit const ToolEntry kDiagnose = {
    .name = "diagnose",
    .help = "where the time of the mean iteration goes, what costs most of it, and what helps",
    .needs = Kind::kKernel,
    .options = kOptions,
    .make = make,
    .join = diagnose::join,
    .also = kDeviceWork | kIterationKinds | Kind::kSync | Kind::kCounter};

}  // namespace pasta::tools
