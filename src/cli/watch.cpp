#include "cli/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "adapters/folder_reader.h"
#include "base/units.h"
#include "trace/pasta_writer.h"
#include "trace/spool.h"

namespace pasta::cli {
namespace {

namespace fs = std::filesystem;

// A thread's file is taken away as a whole: small enough that little is, large enough that it is
// rarely.
constexpr std::uint64_t kSmallestSegment = std::uint64_t{256} << 10;
constexpr std::uint64_t kLargestSegment = std::uint64_t{4} << 20;

}  // namespace

std::string free_trace_name(const WatchPlan& plan) {
  std::string stem = fs::path(plan.program).filename().string();
  if (plan.folder.rank >= 0) stem += fmt::format("-rank{}", plan.folder.rank);
  std::error_code error;
  for (int number = 1;; ++number) {
    std::string name = fmt::format("{}-{}.pasta", stem, number);
    const bool taken =
        std::ranges::any_of(std::array{"", ".run", ".times", ".times.run"},
                            [&](const char* ending) { return fs::exists(name + ending, error); });
    if (!taken) return name;
  }
}

Result<std::unique_ptr<Watch>> Watch::start(WatchPlan plan, Analysis& analysis) {
  std::unique_ptr<Watch> watch(new Watch(std::move(plan), analysis));
  Status status = watch->set_up();
  if (status) return watch;
  if (watch->folder_) watch->folder_->remove();
  if (status.error().code == ErrorCode::kUsage || status.error().code == ErrorCode::kUnsupported) {
    return tl::unexpected(std::move(status).error());
  }
  watch->folder_.reset();
  watch->give_up(status.error());
  return watch;
}

Status Watch::set_up() {
  const auto collector = find_collector();
  if (!collector) return fail(ErrorCode::kIo, "libpastacollect.so is not where it was installed");
  auto environment = watch_environment(plan_.adapters, plan_.of_rocm, *collector);
  if (!environment) return tl::unexpected(std::move(environment).error());
  environment_ = std::move(environment->variables);
  plan_.folder.torch = environment->torch;
  plan_.folder.call_places = environment->call_places;
  for (const std::string& warning : environment->warnings) say(warning);
  waits_ = plan_.delay > Clock::duration{};
  plan_.folder.paused = waits_;
  if (keeps_newest()) {
    plan_.folder.segment_bytes =
        std::clamp(plan_.folder.limit_bytes / 64, kSmallestSegment, kLargestSegment);
  }
  PASTA_TRY(make_folder());
  if (plan_.live) view_ = LiveView::open();
  if (view_) {
    auto adapter = adapters::look_on_run(folder_->path(), over_);
    if (!adapter) return tl::unexpected(std::move(adapter).error());
    PASTA_TRY(view_->watch(std::move(*adapter)));
  }
  auto writer = trace::make_pasta_writer(
      plan_.output,
      {.overwrite = plan_.overwrite, .keeps_partial = &keeps_partial_, .compress = true});
  if (!writer) return tl::unexpected(std::move(writer).error());
  writer_ = std::move(*writer);
  if (!keeps_newest()) {
    return begin_session(
        adapters::follow_run(folder_->path(), plan_.output, "pasta", over_, environment->provides));
  }
  trace::SpoolKeeper::Options options;
  if (plan_.keep_time) options.keep_ns = plan_.keep_time->count();
  options.keep_bytes = plan_.folder.limit_bytes;
  auto keeper = trace::SpoolKeeper::open(folder_->path(), options);
  if (!keeper) return tl::unexpected(std::move(keeper).error());
  keeper_.emplace(std::move(*keeper));
  say(
      fmt::format("keeps only the last {}, in at most {} of disk, and at the end as much again for "
                  "the trace",
                  plan_.folder.keep, base::format_bytes(plan_.folder.limit_bytes)));
  return {};
}

Status Watch::make_folder() {
  const bool named = !plan_.output.empty();
  for (;;) {
    if (!named) plan_.output = free_trace_name(plan_);
    auto folder = RunFolder::create(plan_.output, plan_.folder);
    if (!folder) return tl::unexpected(std::move(folder).error());
    if (named || folder->path().ends_with(plan_.output + ".run")) {
      folder_.emplace(std::move(*folder));
      return {};
    }
    folder->remove();  // somebody else is about to write a trace of this name
    plan_.output.clear();
  }
}

// The trace is called as it will be when it is read again, so that both reports are the same.
Status Watch::begin_session(Result<std::unique_ptr<Adapter>> adapter) {
  if (!adapter) return tl::unexpected(std::move(adapter).error());
  session_.emplace();
  const KindSet provided = (*adapter)->info().provides;
  session_->add(std::move(*adapter));
  session_->add(std::move(writer_));
  if (!plan_.is_part) analysis_->add_to(*session_, provided);
  return session_->start();
}

std::vector<std::pair<std::string, std::string>> Watch::environment() const {
  if (!folder_) return {};
  auto variables = environment_;
  variables.insert(variables.end(), plan_.variables.begin(), plan_.variables.end());
  variables.emplace_back(trace::spool::kFolderVariable, folder_->path());
  return variables;
}

void Watch::begins(pid_t program) {
  began_ = Clock::now();
  if (folder_) folder_->begins(program);
}

void Watch::cancel() {
  session_.reset();
  if (folder_) folder_->remove();
}

void Watch::pump() {
  if (!folder_ || over_) return;
  if (waits_ && Clock::now() - began_ >= plan_.delay) {
    waits_ = false;
    folder_->pause(false);
  }
  if (keeper_) {
    if (Status looked = keeper_->look(); !looked) {
      say(fmt::format("{}; old parts are no longer let go", looked.error().message));
      keeper_.reset();
    }
  }
  if (session_) {
    auto more = session_->pump();
    if (!more) give_up(more.error());
  }
  if (view_) view_->draw();
}

void Watch::gives_way() {
  if (view_) view_->hide();
}

bool Watch::is_enough() const {
  return plan_.duration > Clock::duration{} &&
         Clock::now() - began_ >= plan_.delay + plan_.duration;
}

void Watch::finish(const Child::Exit& exit, Destination& destination) {
  if (!folder_ || over_) return;
  gives_way();
  folder_->pause(true);
  if (!exit.left) folder_->ends(exit.wait_status);
  if (plan_.keep_time) folder_->keep_last(*plan_.keep_time);
  over_ = true;
  if (waits_) say("nothing was collected: the program ended before --delay had passed");
  if (keeps_newest()) {
    Status begun = begin_session(adapters::read_run(folder_->path(), plan_.output, "pasta"));
    if (!begun) give_up(begun.error());
  }
  while (session_) {
    auto more = session_->pump();
    if (!more) give_up(more.error());
    if (more && !*more) break;
  }
  if (session_) {
    auto document = session_->finish();
    if (document && plan_.is_part) {
      written_ = true;
      folder_->remove();
      return;
    }
    if (document) {
      written_ = true;
      analysis_->keep_telling(*document);
      if (Status written = destination.write(*document); !written) say(written.error().message);
      say(fmt::format("the trace is {}", plan_.output));
      folder_->remove();
      return;
    }
    give_up(document.error());
  }
  say(fmt::format("what was collected is in {}; read it by: pastaprof report {}", folder_->path(),
                  folder_->path()));
}

void Watch::give_up(const Error& error) {
  gives_way();
  say(folder_
          ? fmt::format("{}; no trace is written, and what is collected stays in the run's folder",
                        error.message)
          : fmt::format("{}; the program runs without a trace", error.message));
  keeps_partial_ = folder_ && folder_->has_given() && !keeps_newest();
  session_.reset();
  if (keeps_partial_) {
    say(fmt::format("what the folder no longer has is in the trace as far as it was written, {}",
                    plan_.output + ".tmp-*"));
  }
}

}  // namespace pasta::cli
