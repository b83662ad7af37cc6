// pastaprof run: watches a program.
#include <fmt/format.h>
#include <regex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/units.h"
#include "cli/analysis.h"
#include "cli/child.h"
#include "cli/console.h"
#include "cli/live_adapters.h"
#include "cli/options.h"
#include "cli/passes.h"
#include "cli/run_again.h"
#include "cli/watch.h"
#include "device/launch_policy.h"
#include "device/patches.h"
#include "trace/job_rank.h"

namespace pasta::cli {
namespace {

const OptionRow kTraceRow = {"-o,--output",
                             "PASTA_OUTPUT",
                             "FILE",
                             "The trace to write (default: PROGRAM-1.pasta or the next free name); "
                             "%p is the process id, %h the host, %r the rank of the job, "
                             "%q{NAME} an environment variable, %% a percent sign",
                             &Settings::output,
                             {},
                             false,
                             true};
const OptionRow kReportRow = {"--report",
                              "PASTA_REPORT",
                              "FILE",
                              "Where the report goes, named as with -o; - is standard error",
                              &Settings::report,
                              {},
                              false,
                              true};
const OptionRow kAdapterRow = {"--adapter",
                               "PASTA_ADAPTER",
                               "NAME",
                               "What to watch in the program (default: auto, all that there is); "
                               "see pastaprof doctor",
                               &Settings::adapters,
                               {},
                               true,
                               false,
                               live_adapter_names};
const OptionRow kSpoolRow = {"--spool-size", "PASTA_SPOOL_SIZE", "SIZE",
                             "Disk that the run may use at most until its trace is written; what "
                             "finds no room is counted (default: 8GiB; 2GiB with --keep-last)",
                             &Settings::spool};

const OptionRow kDelayRow = {"--delay", "PASTA_DELAY", "TIME",
                             "Collect only from so long after the start: 30, 30s, 500ms, 10min",
                             &Settings::delay};
const OptionRow kDurationRow = {"--duration", "PASTA_DURATION", "TIME",
                                "Collect only for so long: then the trace is written, and the "
                                "program goes on",
                                &Settings::duration};
const OptionRow kCaptureRow = {
    "--capture-range", "PASTA_CAPTURE_RANGE", "NAME",
    "Collect from a process only while it has a range of this name open; "
    "cudaProfilerApi: between cudaProfilerStart and cudaProfilerStop; "
    "iterations:20-30: in these, as the program marks them, from 0",
    &Settings::capture};
const OptionRow kIncludeRow = {"--include", "PASTA_INCLUDE", "REGEX",
                               "Collect only from processes whose command matches this extended "
                               "regular expression",
                               &Settings::include};
const OptionRow kExcludeRow = {"--exclude", "PASTA_EXCLUDE", "REGEX",
                               "Do not collect from processes whose command matches",
                               &Settings::exclude};

const OptionRow kKeepRow = {"--keep-last", "PASTA_KEEP_LAST", "TIME|SIZE",
                            "Keep only the newest part, as a flight recorder does: 60s, 2GiB",
                            &Settings::keep};

const OptionRow kCountersRow = {"--counters", "PASTA_COUNTERS", "NAMES",
                                "Count these on AMD GPUs during each kernel: SQ_WAVES,GRBM_COUNT; "
                                "kernels then run one at a time",
                                &Settings::counters};
const OptionRow kPcSamplingRow = {
    "--pc-sampling", "PASTA_PC_SAMPLING", "METHOD[:INTERVAL]",
    "Sample where kernels are on AMD GPUs: auto, host-trap:1000 (microseconds), "
    "stochastic:1048576 (cycles)",
    &Settings::pc_sampling};
constexpr std::array<std::string_view, 2> kGraphForms = {"nodes", "whole"};
const OptionRow kCudaGraphsRow = {"--cuda-graphs",
                                  "PASTA_CUDA_GRAPHS",
                                  "FORM",
                                  "Of a launched CUDA graph each kernel (nodes), or one piece of "
                                  "work that costs less (whole)",
                                  &Settings::cuda_graphs,
                                  kGraphForms};
constexpr std::array<std::string_view, 2> kFillForms = {"work", "calls"};
const OptionRow kCudaFillsRow = {"--cuda-fills",
                                 "PASTA_CUDA_FILLS",
                                 "FORM",
                                 "Of fills of CUDA's memory (cudaMemset) when the GPU did them "
                                 "(work), or nothing but their calls, which saves the GPU up to 2 "
                                 "us for each (calls)",
                                 &Settings::cuda_fills,
                                 kFillForms};
constexpr std::array<std::string_view, 2> kClocks = {"device", "cupti"};
const OptionRow kCudaClockRow = {
    "--cuda-clock",
    "PASTA_CUDA_CLOCK",
    "CLOCK",
    "Which readings make a CUDA device's times the host's: our own, of "
    "both clocks by the kernel's driver (device), or CUPTI's, which "
    "may be microseconds off (cupti)",
    &Settings::cuda_clock,
    kClocks};
const OptionRow kCudaDriverRow = {"--cuda-driver-calls", "PASTA_CUDA_DRIVER_CALLS", nullptr,
                                  "Record all calls of CUDA's driver, also those that its runtime "
                                  "makes: costs more than it tells",
                                  &Settings::cuda_driver_calls};
const OptionRow kLaunchesRow = {
    "--launches", device::kLaunchesVariable, "POLICY",
    "Which launches are analysed by what runs beside kernels: all, first:K of each kernel, shape "
    "and position in the iteration (default: first:10), iterations:1/N, or an extended regular "
    "expression of kernels' names",
    &Settings::launches};

constexpr std::string_view kPythonModes[] = {"off", "lines", "stacks"};
const OptionRow kPythonRow = {
    "--python",
    "PASTA_PYTHON",
    "WHAT",
    "How much of Python's call stack is told with operators of PyTorch and calls of CUDA and "
    "OpenCL: nothing, the nearest line of the user's own, or all of it; an operator takes some "
    "0.35, 0.40 or 0.55 us",
    &Settings::python,
    kPythonModes};

const OptionRow kNoValuesRow = {
    "--no-value-capture", "PASTA_NO_VALUE_CAPTURE", nullptr,
    "Keep of the names that the program gives its own ranges only a hash", &Settings::no_values};

const OptionRow kLiveRow = {"--live", "PASTA_LIVE", nullptr,
                            "Show in the lowest lines of the terminal what is going on",
                            &Settings::live};

// "500ms", "60s", "10min", "2h".
bool parse_time(std::string_view text, std::int64_t& ns) {
  std::int64_t seconds = 1;
  for (const auto& [unit, of] :
       {std::pair<std::string_view, std::int64_t>("min", 60), {"h", 3600}}) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    seconds = of;
  }
  if (seconds == 1) return base::parse_duration(text, ns);
  return base::parse_duration(fmt::format("{}s", text), ns) &&
         !__builtin_mul_overflow(ns, seconds, &ns);
}

// Without a unit it is seconds, as other profilers have it; nothing is 0.
Result<std::chrono::nanoseconds> time_of(const char* option, const std::string& text) {
  std::int64_t ns = 0;
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  if (text.empty() || parse_time(bare ? text + "s" : text, ns)) return std::chrono::nanoseconds(ns);
  return fail(ErrorCode::kUsage,
              fmt::format("--{} cannot be \"{}\"; give seconds, or a time with its unit, such as "
                          "500ms or 10min",
                          option, text));
}

Status check_expression(const char* option, const std::string& text) {
  regex_t regex;
  const int error = regcomp(&regex, text.c_str(), REG_EXTENDED | REG_NOSUB);
  if (error == 0) {
    regfree(&regex);
    return {};
  }
  std::array<char, 128> why{};
  regerror(error, &regex, why.data(), why.size());
  return fail(ErrorCode::kUsage, fmt::format("--{} \"{}\" is no extended regular expression: {}",
                                             option, text, why.data()));
}

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// What a name of a file, which was given as `option`, stands for.
Result<std::string> expand(const char* option, const std::string& pattern) {
  const trace::JobRank rank = trace::job_rank_of_environment();
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      name += pattern[i];
      continue;
    }
    const char what = ++i < pattern.size() ? pattern[i] : '\0';
    if (what == '%') {
      name += '%';
    } else if (what == 'p') {
      name += fmt::format("{}", getpid());
    } else if (what == 'h') {
      name += host();
    } else if (what == 'r') {
      if (rank.rank < 0) {
        return fail(ErrorCode::kUsage,
                    fmt::format("--{} {}: %r needs a rank, and no launcher of a job has set "
                                "one (OMPI_COMM_WORLD_RANK, PMI_RANK, RANK, SLURM_PROCID)",
                                option, pattern));
      }
      name += fmt::format("{}", rank.rank);
    } else if (const std::size_t end = pattern.find('}', i);
               what == 'q' && pattern.compare(i, 2, "q{") == 0 && end != std::string::npos) {
      const std::string variable = pattern.substr(i + 2, end - i - 2);
      const char* value = std::getenv(variable.c_str());
      if (value == nullptr) {
        return fail(ErrorCode::kUsage,
                    fmt::format("--{} {}: the environment has no {}", option, pattern, variable));
      }
      name += value;
      i = end;
    } else {
      return fail(ErrorCode::kUsage,
                  fmt::format("--{} {}: after % comes p, h, r, q{{NAME}} or %", option, pattern));
    }
  }
  return name;
}

// What only the newest part is to be kept of: time, or disk.
Status keep_of(const std::string& text, WatchPlan& plan) {
  if (text.empty()) return {};
  plan.folder.keep = text;
  std::uint64_t bytes = 0;
  std::int64_t ns = 0;
  // Without a unit it could be either.
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  if (!bare && parse_time(text, ns) && ns > 0) {
    plan.keep_time = std::chrono::nanoseconds(ns);
    return {};
  }
  if (!bare && base::parse_bytes(text, bytes) && bytes > 0) {
    plan.folder.limit_bytes = std::min(plan.folder.limit_bytes, bytes);
    return {};
  }
  return fail(ErrorCode::kUsage, fmt::format("--keep-last cannot be \"{}\"; give a time such as "
                                             "60s, or a size such as 2GiB",
                                             text));
}

// What --capture-range names, if it is no range.
Status capture_of(const std::string& text, RunFolder::Options& folder) {
  using trace::spool::CaptureBy;
  folder.capture = text;
  constexpr std::string_view kIterations = "iterations:";
  if (text == "cudaProfilerApi") folder.capture_by = CaptureBy::kProfiler;
  if (!text.starts_with(kIterations)) return {};
  const std::string_view numbers = std::string_view(text).substr(kIterations.size());
  const char* const end = numbers.data() + numbers.size();
  const auto first = std::from_chars(numbers.data(), end, folder.first_iteration);
  folder.last_iteration = folder.first_iteration;
  auto last = first;
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '-') {
    last = std::from_chars(first.ptr + 1, end, folder.last_iteration);
  }
  if (last.ec != std::errc{} || last.ptr != end || folder.first_iteration < 0 ||
      folder.last_iteration < folder.first_iteration) {
    return fail(
        ErrorCode::kUsage,
        fmt::format("--capture-range cannot be \"{}\"; give the first iteration and the last, "
                    "as in iterations:20-30",
                    text));
  }
  folder.capture_by = CaptureBy::kIterations;
  return {};
}

Result<WatchPlan> plan_of_watch(const Settings& settings) {
  const trace::JobRank rank = trace::job_rank_of_environment();
  WatchPlan plan;
  plan.program = settings.operands[0];
  if (settings.output != "-") {
    auto name = expand("output", settings.output);
    if (!name) return tl::unexpected(std::move(name).error());
    plan.output = std::move(*name);
  }
  plan.overwrite = settings.force;
  plan.live = settings.live;
  plan.of_rocm = {.counters = settings.counters, .pc_sampling = settings.pc_sampling};
  plan.folder.rank = rank.rank;
  plan.folder.world_size = rank.world_size;
  PASTA_TRY(capture_of(settings.capture, plan.folder));
  plan.folder.cuda = (settings.cuda_driver_calls ? trace::spool::kCudaDriverCalls : 0) |
                     (settings.cuda_graphs == "whole" ? trace::spool::kCudaWholeGraphs : 0) |
                     (settings.cuda_fills == "calls" ? trace::spool::kCudaFillCalls : 0) |
                     (settings.cuda_clock == "cupti" ? trace::spool::kCudaVendorClock : 0);
  plan.folder.include = settings.include;
  plan.folder.exclude = settings.exclude;
  plan.folder.hides = settings.no_values;
  plan.folder.python = settings.python == "off"      ? trace::spool::PythonMode::kOff
                       : settings.python == "stacks" ? trace::spool::PythonMode::kStacks
                                                     : trace::spool::PythonMode::kLines;
  const std::string spool = !settings.spool.empty() ? settings.spool
                            : settings.keep.empty() ? "8GiB"
                                                    : "2GiB";
  if (!base::parse_bytes(spool, plan.folder.limit_bytes)) {
    return fail(ErrorCode::kUsage,
                fmt::format("--spool-size cannot be \"{}\"; give a size with its unit, such as "
                            "2GiB",
                            spool));
  }
  auto delay = time_of("delay", settings.delay);
  if (!delay) return tl::unexpected(std::move(delay).error());
  auto duration = time_of("duration", settings.duration);
  if (!duration) return tl::unexpected(std::move(duration).error());
  plan.delay = *delay;
  plan.duration = *duration;
  PASTA_TRY(keep_of(settings.keep, plan));
  PASTA_TRY(device::LaunchPolicy::parse(settings.launches));
  PASTA_TRY(check_expression("include", settings.include));
  PASTA_TRY(check_expression("exclude", settings.exclude));
  return plan;
}

Result<int> run(const Settings& given) {
  Settings settings = given;
  if (settings.operands.empty()) {
    return fail(ErrorCode::kUsage,
                "run: which program? such as: pastaprof run -- python3 train.py");
  }
  auto analysis = Analysis::make(settings);
  if (!analysis) return tl::unexpected(std::move(analysis).error());
  if (analysis->wants_samples() && settings.pc_sampling.empty()) settings.pc_sampling = "auto";
  Settings of_report = settings;
  auto report = expand("report", settings.report);
  if (!report) return tl::unexpected(std::move(report).error());
  of_report.output = std::move(*report);
  auto destination = Destination::open(of_report, Destination::Stream::kError);
  if (!destination) return tl::unexpected(std::move(destination).error());
  auto plan = plan_of_watch(settings);
  if (!plan) return tl::unexpected(std::move(plan).error());
  const std::string patches = analysis->patches();
  auto passes = plan_passes(settings, patches, analysis->without_patches(), plan->folder.rank >= 0);
  if (!passes) return tl::unexpected(std::move(passes).error());
  std::for_each(passes->notes.begin(), passes->notes.end(), say);
  std::vector<WatchPlan> plans;
  for (Pass& pass : passes->passes) {
    WatchPlan& of_pass = plans.emplace_back(*plan);
    of_pass.adapters = std::move(pass.adapters);
    // The program finds no more than it must.
    if (!pass.patches) continue;
    if (!pass.names.empty()) of_pass.variables.emplace_back(device::kPatchesVariable, pass.names);
    if (settings.launches != "all") {
      of_pass.variables.emplace_back(device::kLaunchesVariable, settings.launches);
    }
  }
  WatchPlan first = std::move(plans.front());
  plans.erase(plans.begin());
  if (plans.empty()) return run_once(settings.operands, std::move(first), *analysis, *destination);
  return run_again(settings.operands, std::move(first), std::move(plans), *analysis, *destination);
}

}  // namespace

const Verb kRun = {
    .name = "run",
    .help = "Watch a program: run it, keep a trace, and report",
    .operand = "PROGRAM",
    .operand_help = "The program, and after it its own arguments",
    .operand_optional = false,
    .operand_repeats = true,
    .options = {&kTraceRow,      &kForceRow,     &kAdapterRow,   &kToolRow,       &kOptRow,
                &kPluginRow,     &kReportRow,    &kFormatRow,    &kTopRow,        &kTimeUnitRow,
                &kWidthRow,      &kSpoolRow,     &kDelayRow,     &kDurationRow,   &kCaptureRow,
                &kIncludeRow,    &kExcludeRow,   &kKeepRow,      &kCountersRow,   &kPcSamplingRow,
                &kCudaGraphsRow, &kCudaFillsRow, &kCudaClockRow, &kCudaDriverRow, &kPassesRow,
                &kLaunchesRow,   &kPythonRow,    &kNoValuesRow,  &kLiveRow},
    .run = run,
    .runs_program = true};

}  // namespace pasta::cli
