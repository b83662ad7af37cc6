// What the program does over its iterations: memory-churn, stream-serialised, slow-iterations,
// recompute.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "base/units.h"
#include "tools/common/saturate.h"
#include "tools/diagnose/findings.h"

namespace pasta::tools::diagnose {
namespace {

// Of fewer iterations none can be called odd.
constexpr std::size_t kEnoughIterations = 5;

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

template <class Value>
std::int64_t median_of(const std::vector<const Window*>& windows, Value&& value) {
  std::vector<std::int64_t> values;
  for (const Window* window : windows) values.push_back(value(*window));
  return median(std::move(values));
}

void add_returns(const View& view, Finding& finding) {
  if (view.returns == 0) return;
  const auto each = static_cast<double>(view.iterations);
  finding.evidence.emplace_back("cache_returns", static_cast<double>(view.returns) / each);
  finding.evidence.emplace_back("cache_returned", view.mean(view.returned_bytes), Unit::kBytes);
}

// The allocator's own account of what it holds, where no call to the driver says what that cost. A
// cache is given back when an allocation fails, which is then tried again, or by empty_cache().
std::optional<Finding> allocator_returns(const View& view) {
  if (view.returning_iterations < 2 || view.returning_iterations * 2 < view.iterations) {
    return std::nullopt;
  }
  Finding finding{.id = "memory-churn",
                  .level = Finding::Level::kInfo,
                  .text = fmt::format(
                      "the allocator gave memory of device {} back to the driver in {} of {} "
                      "steady iterations: it ran out and tried again, or the program empties its "
                      "cache; what that costs is not in the trace",
                      view.device, view.returning_iterations, view.iterations),
                  .of = {},
                  .evidence = {{"device", view.device.empty() ? Cell() : Cell(view.device)},
                               {"basis", std::string("measured")}},
                  .advice =
                      "look at num_alloc_retries, and at expandable segments; leave "
                      "empty_cache() out of the loop"};
  add_returns(view, finding);
  return finding;
}

}  // namespace

std::optional<Finding> memory_churn(const View& view) {
  // A start allocates; only what iterations do again and again is churn.
  if (view.origin == IterationOrigin::kNone || view.iterations < 2) return std::nullopt;
  std::int64_t calls = 0, host = 0;
  for (const CallUse& call : view.allocations) {
    calls += call.calls;
    host = add_saturated(host, call.total_ns);
  }
  std::optional<Finding> finding;
  if (calls >= view.iterations) {
    finding = begin(view, "memory-churn", Basis::kMeasured, {host, view.allocation_idle_ns});
  }
  if (!finding) return allocator_returns(view);
  finding->text = fmt::format(
      "the host allocates and frees device memory in the steady iterations: {:.1f} calls and {} in "
      "each, in which device {} stands still for {}",
      static_cast<double>(calls) / static_cast<double>(view.iterations), amount(view, host),
      view.device, base::format_duration(view.mean(view.allocation_idle_ns)));
  finding->evidence.emplace_back("calls",
                                 static_cast<double>(calls) / static_cast<double>(view.iterations));
  finding->evidence.emplace_back("host_time", view.mean(host), Unit::kNanoseconds);
  finding->evidence.emplace_back("idle_time", view.mean(view.allocation_idle_ns),
                                 Unit::kNanoseconds);
  add_returns(view, *finding);
  add_calls(view, view.allocations, 3, *finding);
  finding->advice =
      "keep buffers or use a caching or stream-ordered allocator; with PyTorch, such calls in "
      "every "
      "iteration mean that its cache is too small or in pieces (retries): look at "
      "num_alloc_retries, and at expandable segments";
  return finding;
}

std::optional<Finding> stream_serialised(const View& view) {
  std::vector<QueueUse> queues = view.compute_queues;
  std::erase_if(queues, [&](const QueueUse& queue) {
    return view.share(queue.busy_ns) < kWorthSaying || queue.kernels < kEnoughWork;
  });
  if (queues.size() < 2) return std::nullopt;
  std::int64_t all = 0, longest = 0;
  for (const QueueUse& queue : queues) {
    all = add_saturated(all, queue.busy_ns);
    longest = std::max(longest, queue.busy_ns);
  }
  // What overlaps at all is no series.
  if (view.compute_overlap_ns > (all - longest) / 100) return std::nullopt;
  const std::int64_t saved = all - longest;
  auto finding = begin(view, "stream-serialised", Basis::kInferred, {saved, saved});
  if (!finding) return std::nullopt;
  // Whether the work depends on each other, and whether the device had room, is not in the trace.
  finding->level = std::min(finding->level, Finding::Level::kWarning);
  finding->text = fmt::format("{} streams of device {} compute, and never at the same time",
                              queues.size(), view.device);
  finding->evidence.emplace_back("streams", static_cast<std::int64_t>(queues.size()));
  finding->evidence.emplace_back("overlap_time", view.mean(view.compute_overlap_ns),
                                 Unit::kNanoseconds);
  finding->advice =
      "if their work is independent, remove what orders it: the default stream, waits for events, "
      "synchronising calls, or launches from one thread that come too late; if it is not, one "
      "stream does as well";
  return finding;
}

std::optional<Finding> slow_iterations(const View& view) {
  if (view.origin == IterationOrigin::kNone) return std::nullopt;
  std::vector<const Window*> steady;
  for (const Window& window : view.windows) {
    if (window.steady()) steady.push_back(&window);
  }
  if (steady.size() < kEnoughIterations) return std::nullopt;
  const std::int64_t middle =
      median_of(steady, [](const Window& window) { return window.duration_ns(); });
  const std::int64_t spread = median_of(
      steady, [&](const Window& window) { return std::abs(window.duration_ns() - middle); });
  std::vector<const Window*> slow;
  std::int64_t excess = 0;
  for (const Window* window : steady) {
    const std::int64_t over = window->duration_ns() - middle;
    if (over / 5 <= spread || over <= middle / 10) continue;
    slow.push_back(window);
    excess = add_saturated(excess, over);
  }
  if (slow.empty()) return std::nullopt;
  auto finding = begin(view, "slow-iterations", Basis::kMeasured, {excess, excess});
  if (!finding) return std::nullopt;
  // The part that grew most, over all of them.
  std::array<double, kPartCount> growth{};
  for (std::size_t i = 0; i < kPartCount; ++i) {
    const std::int64_t usual =
        median_of(steady, [&](const Window& window) { return window.parts[i]; });
    for (const Window* window : slow) growth[i] += static_cast<double>(window->parts[i] - usual);
  }
  const auto grown = static_cast<std::size_t>(std::ranges::max_element(growth) - growth.begin());
  const Window* worst = *std::ranges::max_element(slow, {}, &Window::duration_ns);
  const auto index = static_cast<std::int64_t>(worst - view.windows.data());
  finding->of = "the time of the steady iterations";
  finding->text = fmt::format(
      "{} of {} steady iterations are much slower than the others, iteration {} most: {} instead "
      "of "
      "{}; what grew most is {}",
      slow.size(), steady.size(), worst->number >= 0 ? worst->number : index,
      base::format_duration(worst->duration_ns()), base::format_duration(middle),
      kPartNames[grown]);
  finding->evidence.emplace_back("slow", static_cast<std::int64_t>(slow.size()));
  finding->evidence.emplace_back("worst_iteration", index);
  finding->evidence.emplace_back("worst", worst->duration_ns(), Unit::kNanoseconds);
  finding->evidence.emplace_back("median", middle, Unit::kNanoseconds);
  finding->evidence.emplace_back("grew", std::string(kPartNames[grown]));
  finding->evidence.emplace_back(
      "grew_by", static_cast<std::int64_t>(growth[grown] / static_cast<double>(slow.size())),
      Unit::kNanoseconds);
  finding->advice =
      "look at these iterations in the table of iterations, and with --from and --to at what the "
      "host did in them";
  return finding;
}

std::optional<Finding> recompute(const View& view) {
  // One operator can be its own backward; a piece of a forward pass has several.
  if (view.recomputed_operators.size() < 2 || view.recomputed_kernels < kEnoughWork) {
    return std::nullopt;
  }
  if (view.recomputed_known_ns / 4 < view.recomputed_ns / 5) return std::nullopt;
  auto finding =
      begin(view, "recompute", Basis::kMeasured, {view.recomputed_ns, view.recomputed_ns});
  if (!finding) return std::nullopt;
  finding->text = fmt::format(
      "device {} computes parts of the forward pass again inside backward: {:.0f} kernels, {}",
      view.device,
      static_cast<double>(view.recomputed_kernels) / static_cast<double>(view.iterations),
      amount(view, view.recomputed_ns));
  finding->evidence.emplace_back("kernels", static_cast<double>(view.recomputed_kernels) /
                                                static_cast<double>(view.iterations));
  std::string names;
  for (const StringId name : view.recomputed_operators) {
    if (names.size() > 100) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + std::string(view.dictionary->text(name));
  }
  finding->evidence.emplace_back("operators", names);
  finding->advice =
      "activation checkpointing is the price of memory: checkpoint less, or only layers that are "
      "cheap to compute, if memory allows";
  return finding;
}

}  // namespace pasta::tools::diagnose
