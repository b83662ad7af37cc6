// The device waits for the host: launch-bound, host-sync, input-bound.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "tools/common/joining.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/findings.h"

namespace pasta::tools::diagnose {
namespace {

std::string per_iteration(const View& view, std::int64_t count) {
  const double mean = static_cast<double>(count) / static_cast<double>(view.iterations);
  return mean == static_cast<double>(static_cast<std::int64_t>(mean)) ? fmt::format("{:.0f}", mean)
                                                                      : fmt::format("{:.1f}", mean);
}

}  // namespace

std::optional<Finding> launch_bound(const View& view) {
  const std::int64_t idle = time_of(view.parts, TimePart::kLaunchBound);
  auto finding = begin(view, "launch-bound", Basis::kMeasured, {idle, idle});
  if (!finding || view.kernels == 0) return std::nullopt;
  const std::int64_t launched = view.kernels - view.graph_kernels;
  finding->text =
      fmt::format("device {} waits {} for launches; {} kernels, half of them shorter than {}",
                  view.device, amount(view, idle), per_iteration(view, view.kernels),
                  base::format_duration(view.median_kernel_ns));
  if (view.median_launch_ns > 0) {
    finding->text += fmt::format(", half of the launch calls longer than {}",
                                 base::format_duration(view.median_launch_ns));
  }
  finding->evidence.emplace_back(
      "kernels", static_cast<double>(view.kernels) / static_cast<double>(view.iterations));
  finding->evidence.emplace_back("median_kernel", view.median_kernel_ns, Unit::kNanoseconds);
  finding->evidence.emplace_back(
      "median_launch_call",
      cell_of(view.median_launch_ns > 0 ? std::optional(view.median_launch_ns) : std::nullopt),
      Unit::kNanoseconds);
  // A capture needs the same launches each time. Of one iteration nobody knows.
  const bool identical = view.iterations >= 3 && view.edits == 0 && launched * 2 > view.kernels;
  finding->evidence.emplace_back(
      "launches_repeat_identically",
      cell_of(view.iterations >= 3 ? std::optional<std::int64_t>(identical) : std::nullopt));
  finding->advice = identical
                        ? "the launches of the steady iterations are the same each time: capture "
                          "them into a graph, or compile the part that repeats; else fuse "
                          "operators or enlarge the batch"
                        : "give the device more work per launch: a larger batch, fused or compiled "
                          "operators, or a captured graph of a part that repeats";
  return finding;
}

std::optional<Finding> host_sync(const View& view) {
  std::int64_t calls = 0, longest = 0, waited = 0;
  for (const CallUse& call : view.waits) {
    calls += call.calls;
    waited = add_saturated(waited, call.total_ns);
    longest = std::max(longest, call.longest_ns);
  }
  if (calls == 0) return std::nullopt;
  const std::int64_t idle = view.waited_ns;
  auto finding = begin(view, "host-sync", Basis::kMeasured, {idle, idle});
  if (!finding) return std::nullopt;
  finding->text = fmt::format(
      "device {} stands still for {} because the host waits for it: {} such calls an iteration",
      view.device, amount(view, idle), per_iteration(view, calls));
  if (view.origin == IterationOrigin::kNone) {
    finding->text =
        fmt::format("device {} stands still for {} because the host waits: {} such calls",
                    view.device, amount(view, idle), calls);
    if (longest >= waited / 10 * 9 && longest >= idle / 2) {
      finding->text +=
          "; one call is most of it, and the device did nothing that was recorded meanwhile: what "
          "it waited for may have begun before the recording";
    }
  }
  finding->evidence.emplace_back("idle_in_the_calls",
                                 view.mean(time_of(view.parts, TimePart::kSyncBound)),
                                 Unit::kNanoseconds);
  finding->evidence.emplace_back("host_waiting", view.mean(waited), Unit::kNanoseconds);
  add_calls(view, view.waits, 3, *finding);
  finding->advice =
      "remove what makes the host wait (reading a value back, blocking copies, explicit "
      "synchronisation), or do it once in many iterations; waiting while the device works costs "
      "nothing, and is not counted here";
  return finding;
}

std::optional<Finding> input_bound(const View& view) {
  const std::int64_t named = time_of(view.parts, TimePart::kInputBound);
  const std::int64_t cost = add_saturated(named, view.prepared_ns);
  auto finding =
      begin(view, "input-bound", named >= view.prepared_ns ? Basis::kMeasured : Basis::kInferred,
            {cost, cost});
  if (!finding) return std::nullopt;
  finding->text = fmt::format("device {} waits {} for input", view.device, amount(view, cost));
  if (view.prepared_ns > 0) {
    finding->text += fmt::format(
        "; of that, {} are not named so: the host launched nothing, and then copied to the device",
        base::format_duration(view.mean(view.prepared_ns)));
  }
  finding->evidence.emplace_back("in_loader", view.mean(named), Unit::kNanoseconds);
  finding->evidence.emplace_back("preparing", view.mean(view.prepared_ns), Unit::kNanoseconds);
  finding->advice =
      "load and prepare input in worker processes or threads, ahead of the iteration that needs "
      "it, or make that cheaper";
  return finding;
}

}  // namespace pasta::tools::diagnose
