// What `run` does beside the program: its folder, the session that follows it, the trace.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/analysis.h"
#include "cli/child.h"
#include "cli/console.h"
#include "cli/live_adapters.h"
#include "cli/live_view.h"
#include "cli/run_folder.h"
#include "pasta/recorder.h"
#include "pasta/result.h"
#include "pasta/session.h"
#include "trace/spool_keeper.h"

namespace pasta::cli {

// What the user asked for.
struct WatchPlan {
  std::string program;  // for the name of the trace
  std::string output;   // of the trace; "": named by the program
  bool overwrite = false;
  AdapterNames adapters;
  bool is_part = false;  // of what is analysed later: the trace is all that there will be
  OfRocm of_rocm;
  std::chrono::nanoseconds delay{}, duration{};  // 0: none
  // Only the newest part: of at most so much time, or as much disk as folder.limit_bytes.
  std::optional<std::chrono::nanoseconds> keep_time;
  bool live = false;
  RunFolder::Options folder;
  std::vector<std::pair<std::string, std::string>> variables;  // for the program, besides
};

// "train-1.pasta" for ./train, "train-rank3-1.pasta" for a rank of a job, or the next of these that
// nobody has.
std::string free_trace_name(const WatchPlan& plan);

// It may fail at any time, and the program goes on.
class Watch {
 public:
  // kUsage or kUnsupported when what the user asked for cannot be. Any other failure is told and
  // leaves the watch off. `analysis` outlives it.
  static Result<std::unique_ptr<Watch>> start(WatchPlan plan, Analysis& analysis);

  // For the program.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const;
  void begins(pid_t program);
  // No program has run.
  void cancel();
  // Now and then while the program runs.
  void pump();
  // Before this process is stopped.
  void gives_way();
  // Whether all has been collected that was to be.
  [[nodiscard]] bool is_enough() const;
  // Writes trace and report. Once; later calls do nothing.
  void finish(const Child::Exit& exit, Destination& destination);
  // Whether finish() has written the trace.
  [[nodiscard]] bool is_written() const { return written_; }

 private:
  using Clock = std::chrono::steady_clock;

  explicit Watch(WatchPlan plan, Analysis& analysis)
      : plan_(std::move(plan)), analysis_(&analysis) {}
  Status set_up();
  Status make_folder();
  Status begin_session(Result<std::unique_ptr<Adapter>> adapter);
  void give_up(const Error& error);
  [[nodiscard]] bool keeps_newest() const { return !plan_.folder.keep.empty(); }

  WatchPlan plan_;
  Analysis* analysis_;
  Clock::time_point began_{};
  bool waits_ = false;  // for the delay to pass
  std::vector<std::pair<std::string, std::string>> environment_;
  bool keeps_partial_ = false;        // of the trace that cannot be finished
  std::unique_ptr<Recorder> writer_;  // until it has been given to the session
  std::optional<RunFolder> folder_;
  std::optional<trace::SpoolKeeper> keeper_;
  std::atomic<bool> over_ = false;
  bool written_ = false;
  std::unique_ptr<LiveView> view_;
  std::optional<Session> session_;
};

}  // namespace pasta::cli
