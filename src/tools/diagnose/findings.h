// The findings: one function each, from a View to a Finding or nothing. The rules and the reasons
// of their thresholds are in docs/diagnose.md.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/report.h"
#include "tools/diagnose/view.h"

namespace pasta::tools::diagnose {

// Levels follow what could be saved at most, as a part of the iteration. Below kWorthNoting a
// finding is left out: it drowns in how exactly a trace measures.
inline constexpr double kWorthNoting = 0.01;
inline constexpr double kWorthSaying = 0.05;
inline constexpr double kSevere = 0.25;
// A device with less work than this has nothing of which a rule could be told.
inline constexpr std::int64_t kEnoughWork = 10;

// How a finding is known.
enum class Basis : std::uint8_t {
  kMeasured,  // its time is recorded as such
  kInferred,  // from names, or from what usually is so
};

struct Cost {
  std::int64_t total_ns = 0;    // that it costs in the steady iterations
  std::int64_t at_most_ns = 0;  // that could be saved of it
};

// A finding with level, share, of, and the evidence that all have; nothing when it is too small.
std::optional<Finding> begin(const View& view, std::string_view id, Basis basis, Cost cost);
// Adds the `count` pieces of work that take longest: kernel_1, kernel_1_ns, kernel_1_calls, ...
void add_work(const View& view, std::span<const WorkUse* const> uses, std::size_t count,
              Finding& finding);
// The same of calls, with the operator that they come from.
void add_calls(const View& view, std::span<const CallUse> calls, std::size_t count,
               Finding& finding);
// Those of which `take(use)` is true.
template <class Take>
std::vector<const WorkUse*> work_of(const View& view, Take&& take) {
  std::vector<const WorkUse*> found;
  for (const WorkUse& use : view.work) {
    if (take(use)) found.push_back(&use);
  }
  return found;
}
std::int64_t total_of(std::span<const WorkUse* const> uses);
std::int64_t calls_of(std::span<const WorkUse* const> uses);
// "12.3 ms (4.5 %)": of the mean iteration.
std::string amount(const View& view, std::int64_t sum_ns);

using Rule = std::optional<Finding> (*)(const View& view);
std::span<const Rule> rules();

std::optional<Finding> launch_bound(const View& view);
std::optional<Finding> host_sync(const View& view);
std::optional<Finding> input_bound(const View& view);
std::optional<Finding> exposed_communication(const View& view);
std::optional<Finding> exposed_copy(const View& view);
std::optional<Finding> gemm_precision(const View& view);
std::optional<Finding> gemm_choice(const View& view);
std::optional<Finding> layout_conversion(const View& view);
std::optional<Finding> small_kernels(const View& view);
std::optional<Finding> tail_effect(const View& view);
std::optional<Finding> low_occupancy_launch(const View& view);
std::optional<Finding> memory_churn(const View& view);
std::optional<Finding> stream_serialised(const View& view);
std::optional<Finding> slow_iterations(const View& view);
std::optional<Finding> recompute(const View& view);

// What devices of several ranks say of each other, from the table `devices` of their reports.
std::optional<Finding> rank_skew(const Table& devices);

}  // namespace pasta::tools::diagnose
