// pastaprof run: watches a program.
#include <fmt/format.h>
#include <regex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "adapters/folder_reader.h"
#include "base/units.h"
#include "cli/analysis.h"
#include "cli/child.h"
#include "cli/console.h"
#include "cli/live_adapters.h"
#include "cli/options.h"
#include "cli/run_folder.h"
#include "trace/job_rank.h"
#include "trace/pasta_writer.h"
#include "trace/spool.h"

namespace pasta::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 128 + SIGINT;

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
                              "Where the report goes; - is standard error",
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
                             "finds no room is counted",
                             &Settings::spool};

const OptionRow kDelayRow = {"--delay", "PASTA_DELAY", "TIME",
                             "Collect only from so long after the start: 30, 30s, 500ms",
                             &Settings::delay};
const OptionRow kDurationRow = {"--duration", "PASTA_DURATION", "TIME",
                                "Collect only for so long: then the trace is written, and the "
                                "program goes on",
                                &Settings::duration};
const OptionRow kCaptureRow = {"--capture-range", "PASTA_CAPTURE_RANGE", "NAME",
                               "Collect from a process only while it has a range of this name open",
                               &Settings::capture};
const OptionRow kIncludeRow = {"--include", "PASTA_INCLUDE", "REGEX",
                               "Collect only from processes whose command matches this extended "
                               "regular expression",
                               &Settings::include};
const OptionRow kExcludeRow = {"--exclude", "PASTA_EXCLUDE", "REGEX",
                               "Do not collect from processes whose command matches",
                               &Settings::exclude};

// "30" is seconds, as other profilers have it; nothing is 0.
Result<std::chrono::nanoseconds> time_of(const char* option, const std::string& text) {
  std::int64_t ns = 0;
  const bool bare = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
  if (text.empty() || base::parse_duration(bare ? text + "s" : text, ns)) {
    return std::chrono::nanoseconds(ns);
  }
  return fail(ErrorCode::kUsage,
              fmt::format("--{} cannot be \"{}\"; give seconds, or a time with its unit, such as "
                          "500ms",
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

Result<std::string> expand(const std::string& pattern, const trace::JobRank& rank) {
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
                    fmt::format("--output {}: %r needs a rank, and no launcher of a job has set "
                                "one (OMPI_COMM_WORLD_RANK, PMI_RANK, RANK, SLURM_PROCID)",
                                pattern));
      }
      name += fmt::format("{}", rank.rank);
    } else if (const std::size_t end = pattern.find('}', i);
               what == 'q' && pattern.compare(i, 2, "q{") == 0 && end != std::string::npos) {
      const std::string variable = pattern.substr(i + 2, end - i - 2);
      const char* value = std::getenv(variable.c_str());
      if (value == nullptr) {
        return fail(ErrorCode::kUsage,
                    fmt::format("--output {}: the environment has no {}", pattern, variable));
      }
      name += value;
      i = end;
    } else {
      return fail(ErrorCode::kUsage,
                  fmt::format("--output {}: after % comes p, h, r, q{{NAME}} or %", pattern));
    }
  }
  return name;
}

// "train-1.pasta" for python3 or ./train, or the next name that is free.
std::string free_name(const std::string& program) {
  const std::string stem = fs::path(program).filename().string();
  std::error_code error;
  for (int number = 1;; ++number) {
    std::string name = fmt::format("{}-{}.pasta", stem, number);
    if (!fs::exists(name, error) && !fs::exists(name + ".run", error)) return name;
  }
}

// All that watching takes. It may fail at any time, and the program goes on.
class Watch {
 public:
  // kUsage when what the user asked for cannot be. Any other failure is told and leaves the watch
  // off.
  static Result<std::unique_ptr<Watch>> start(const Settings& settings, Analysis& analysis) {
    auto watch = std::make_unique<Watch>();
    Status status = watch->set_up(settings, analysis);
    if (status) return watch;
    if (status.error().code == ErrorCode::kUsage ||
        status.error().code == ErrorCode::kUnsupported) {
      if (watch->folder_) watch->folder_->remove();
      return tl::unexpected(std::move(status).error());
    }
    watch->give_up(status.error());
    if (watch->folder_) watch->folder_->remove();
    watch->folder_.reset();
    return watch;
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const {
    if (!folder_) return {};
    auto variables = environment_;
    variables.emplace_back(trace::spool::kFolderVariable, folder_->path());
    return variables;
  }

  void begins(pid_t program) {
    began_ = Clock::now();
    if (folder_) folder_->begins(program);
  }

  void pump() {
    if (folder_ && waits_ && Clock::now() - began_ >= delay_) {
      waits_ = false;
      folder_->pause(false);
    }
    if (!session_) return;
    auto more = session_->pump();
    if (!more) give_up(more.error());
  }
  // Whether all has been collected that was to be.
  [[nodiscard]] bool is_enough() const {
    return duration_ > Clock::duration{} && Clock::now() - began_ >= delay_ + duration_;
  }

  // No program has run.
  void cancel() {
    session_.reset();
    if (folder_) folder_->remove();
  }

  void finish(const Child::Exit& exit, const Analysis& analysis, Destination& destination) {
    if (!folder_ || over_) return;
    folder_->pause(true);
    if (!exit.left) folder_->ends(exit.wait_status);
    over_ = true;
    if (waits_) say("nothing was collected: the program ended before --delay had passed");
    while (session_) {
      auto more = session_->pump();
      if (!more) give_up(more.error());
      if (more && !*more) break;
    }
    if (session_) {
      auto document = session_->finish();
      if (!document) {
        give_up(document.error());
      } else {
        analysis.keep_telling(*document);
        if (Status written = destination.write(*document); !written) say(written.error().message);
        say(fmt::format("the trace is {}", output_));
        folder_->remove();
        return;
      }
    }
    say(fmt::format("what was collected is in {}; read it by: pastaprof report {}", folder_->path(),
                    folder_->path()));
  }

 private:
  Status set_up(const Settings& settings, Analysis& analysis) {
    const trace::JobRank rank = trace::job_rank_of_environment();
    if (settings.output == "-") {
      output_ = free_name(settings.operands[0]);
    } else {
      auto name = expand(settings.output, rank);
      if (!name) return tl::unexpected(std::move(name).error());
      output_ = std::move(*name);
    }
    std::uint64_t limit = 0;
    if (!base::parse_bytes(settings.spool, limit)) {
      return fail(ErrorCode::kUsage,
                  fmt::format("--spool-size cannot be \"{}\"; give a size with its unit, such as "
                              "2GiB",
                              settings.spool));
    }
    auto delay = time_of("delay", settings.delay);
    if (!delay) return tl::unexpected(std::move(delay).error());
    auto duration = time_of("duration", settings.duration);
    if (!duration) return tl::unexpected(std::move(duration).error());
    delay_ = *delay;
    duration_ = *duration;
    waits_ = delay_ > Clock::duration{};
    PASTA_TRY(check_expression("include", settings.include));
    PASTA_TRY(check_expression("exclude", settings.exclude));
    const auto collector = find_collector();
    if (!collector) {
      return fail(ErrorCode::kIo, "libpastacollect.so is not where it was installed");
    }
    auto environment = watch_environment(settings.adapters, *collector);
    if (!environment) return tl::unexpected(std::move(environment).error());
    environment_ = std::move(environment->variables);
    for (const std::string& warning : environment->warnings) say(warning);
    auto writer = trace::make_pasta_writer(output_, {.overwrite = settings.force});
    if (!writer) return tl::unexpected(std::move(writer).error());
    auto folder = RunFolder::create(output_, {.limit_bytes = limit,
                                              .rank = rank.rank,
                                              .world_size = rank.world_size,
                                              .paused = waits_,
                                              .capture = settings.capture,
                                              .include = settings.include,
                                              .exclude = settings.exclude});
    if (!folder) return tl::unexpected(std::move(folder).error());
    folder_.emplace(std::move(*folder));
    // As the trace is called when it is read again, so that both reports are the same.
    auto adapter = adapters::follow_run(folder_->path(), output_, "pasta", over_);
    if (!adapter) return tl::unexpected(std::move(adapter).error());
    session_.emplace();
    const KindSet provided = (*adapter)->info().provides;
    session_->add(std::move(*adapter));
    session_->add(std::move(*writer));
    analysis.add_to(*session_, provided);
    return session_->start();
  }

  void give_up(const Error& error) {
    say(fmt::format("{}; the program runs without a trace", error.message));
    session_.reset();
  }

  using Clock = std::chrono::steady_clock;

  std::string output_;
  Clock::duration delay_{}, duration_{};
  Clock::time_point began_{};
  bool waits_ = false;  // for --delay to pass
  std::vector<std::pair<std::string, std::string>> environment_;
  std::optional<RunFolder> folder_;
  std::atomic<bool> over_ = false;
  std::optional<Session> session_;
};

Result<int> run(const Settings& settings) {
  if (settings.operands.empty()) {
    return fail(ErrorCode::kUsage,
                "run: which program? such as: pastaprof run -- python3 train.py");
  }
  auto analysis = Analysis::make(settings);
  if (!analysis) return tl::unexpected(std::move(analysis).error());
  Settings of_report = settings;
  of_report.output = settings.report;
  auto destination = Destination::open(of_report, Destination::Stream::kError);
  if (!destination) return tl::unexpected(std::move(destination).error());
  auto watch = Watch::start(settings, *analysis);
  if (!watch) return tl::unexpected(std::move(watch).error());
  auto child = Child::start(settings.operands, (*watch)->environment());
  if (!child) {
    (*watch)->cancel();
    say(child.error().message);
    return child.error().code == ErrorCode::kNotFound ? kNoSuchProgram : kCannotRun;
  }
  (*watch)->begins(child->id());
  const Child::Exit exit = child->wait([&] {
    (*watch)->pump();
    if ((*watch)->is_enough()) (*watch)->finish({.left = true}, *analysis, *destination);
  });
  (*watch)->finish(exit, *analysis, *destination);
  if (exit.left) return kInterrupted;
  return WIFEXITED(exit.wait_status) ? WEXITSTATUS(exit.wait_status)
                                     : 128 + WTERMSIG(exit.wait_status);
}

}  // namespace

const Verb kRun = {
    .name = "run",
    .help = "Watch a program: run it, keep a trace, and report",
    .operand = "PROGRAM",
    .operand_help = "The program, and after it its own arguments",
    .operand_optional = false,
    .operand_repeats = true,
    .options = {&kTraceRow, &kForceRow, &kAdapterRow, &kToolRow, &kOptRow, &kPluginRow, &kReportRow,
                &kFormatRow, &kTopRow, &kTimeUnitRow, &kWidthRow, &kSpoolRow, &kDelayRow,
                &kDurationRow, &kCaptureRow, &kIncludeRow, &kExcludeRow},
    .run = run,
    .runs_program = true};

}  // namespace pasta::cli
