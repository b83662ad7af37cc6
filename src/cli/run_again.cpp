#include "cli/run_again.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/child.h"
#include "pasta/adapter.h"
#include "session/passes.h"
#include "trace/pasta_writer.h"

namespace pasta::cli {
namespace {

constexpr int kInterrupted = 128 + SIGINT;

// How a program ended that ran while it was watched.
struct Ran {
  int code = 0;
  bool began = true;
  bool written = false;  // its trace is
  bool whole = false;    // nobody has put an end to it
};

Result<Ran> watch(const std::vector<std::string>& words, WatchPlan plan, Analysis& analysis,
                  Destination& destination, Child::Streams streams) {
  auto watch = Watch::start(std::move(plan), analysis);
  if (!watch) return tl::unexpected(std::move(watch).error());
  auto child = Child::start(words, (*watch)->environment(), streams);
  if (!child) {
    (*watch)->cancel();
    say(child.error().message);
    return Ran{.code = child.error().code == ErrorCode::kNotFound ? kNoSuchProgram : kCannotRun,
               .began = false};
  }
  (*watch)->begins(child->id());
  const Child::Exit exit = child->wait(
      [&] {
        (*watch)->pump();
        if ((*watch)->is_enough()) (*watch)->finish({.left = true}, destination);
      },
      [&] { (*watch)->gives_way(); });
  (*watch)->finish(exit, destination);
  Ran ran{.written = (*watch)->is_written()};
  ran.whole = !exit.left && !exit.interrupted && WIFEXITED(exit.wait_status);
  ran.code = exit.left                     ? kInterrupted
             : WIFEXITED(exit.wait_status) ? WEXITSTATUS(exit.wait_status)
                                           : 128 + WTERMSIG(exit.wait_status);
  return ran;
}

// Standard input, where it is a file, from which both runs are to read the same.
class FileInput {
 public:
  FileInput() {
    struct stat facts {};
    if (fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode)) {
      from_ = lseek(STDIN_FILENO, 0, SEEK_CUR);
    }
  }
  void rewind() const {
    if (from_ >= 0) lseek(STDIN_FILENO, from_, SEEK_SET);
  }

 private:
  off_t from_ = -1;
};

Status write_trace(const std::string& output, std::unique_ptr<Recorder> writer,
                   const std::string& times, const std::vector<std::string>& patched,
                   Analysis& analysis, Destination& destination) {
  std::vector<session::OpenTrace> open_patched;
  for (const std::string& path : patched) {
    open_patched.emplace_back([path] { return open_source(path); });
  }
  auto adapter =
      session::join_passes([times] { return open_source(times); }, std::move(open_patched), output);
  if (!adapter) return tl::unexpected(std::move(adapter).error());
  Session session;
  const KindSet provided = (*adapter)->info().provides;
  session.add(std::move(*adapter));
  session.add(std::move(writer));
  analysis.add_to(session, provided);
  PASTA_TRY(session.start());
  for (;;) {
    auto more = session.pump();
    if (!more) return tl::unexpected(std::move(more).error());
    if (!*more) break;
  }
  auto document = session.finish();
  if (!document) return tl::unexpected(std::move(document).error());
  analysis.keep_telling(*document);
  if (Status written = destination.write(*document); !written) say(written.error().message);
  say(fmt::format("the trace is {}", output));
  return {};
}

}  // namespace

Result<int> run_once(const std::vector<std::string>& words, WatchPlan plan, Analysis& analysis,
                     Destination& destination) {
  auto ran = watch(words, std::move(plan), analysis, destination, Child::Streams::kOurs);
  if (!ran) return tl::unexpected(std::move(ran).error());
  return ran->code;
}

Result<int> run_again(const std::vector<std::string>& words, WatchPlan timed,
                      std::vector<WatchPlan> patched, Analysis& analysis,
                      Destination& destination) {
  const std::string output = timed.output.empty() ? free_trace_name(timed) : timed.output;
  // What it cannot be is to be known before the program has run.
  auto writer = trace::make_pasta_writer(output, {.overwrite = timed.overwrite, .compress = true});
  if (!writer && writer.error().code == ErrorCode::kUsage) {
    return tl::unexpected(std::move(writer).error());
  }
  const auto part = [&output](WatchPlan plan, std::string ending) {
    plan.output = output + std::move(ending);
    plan.is_part = true;
    plan.overwrite = true;
    return plan;
  };
  const std::string times = output + ".times";
  const FileInput input;
  const auto first =
      watch(words, part(std::move(timed), ".times"), analysis, destination, Child::Streams::kOurs);
  if (!first) return tl::unexpected(first.error());
  if (!first->written) return first->code;
  if (!writer) {
    say(fmt::format("{}; what was collected is {}", writer.error().message, times));
    return first->code;
  }
  const auto streams =
      isatty(STDIN_FILENO) == 1 ? Child::Streams::kNone : Child::Streams::kNoOutput;
  std::vector<std::string> parts;
  bool goes_on = first->whole;
  for (std::size_t i = 0; i < patched.size(); ++i) {
    if (!goes_on) {
      say("the program was ended before its time: it does not run again");
      break;
    }
    say(fmt::format("run {} of {} begins", i + 2, patched.size() + 1));
    input.rewind();
    const std::string ending = fmt::format(".accesses-{}", i + 1);
    const auto ran =
        watch(words, part(std::move(patched[i]), ending), analysis, destination, streams);
    if (!ran) {
      say(ran.error().message);
      break;
    }
    if (ran->written) parts.push_back(output + ending);
    if (ran->code != first->code) {
      say(fmt::format("this run ended with {}, the first with {}", ran->code, first->code));
    }
    goes_on = ran->whole;
  }
  const Status written =
      write_trace(output, std::move(*writer), times, parts, analysis, destination);
  parts.push_back(times);
  if (!written) {
    say(fmt::format("{}; what was collected is {}", written.error().message,
                    fmt::join(parts, ", ")));
    return first->code;
  }
  std::error_code error;
  for (const std::string& path : parts) std::filesystem::remove(path, error);
  return first->code;
}

}  // namespace pasta::cli
