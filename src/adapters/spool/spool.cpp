#include "adapters/spool/spool.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "adapters/spool/decoder.h"
#include "adapters/spool/links.h"
#include "adapters/spool/origins.h"
#include "adapters/spool/scopes.h"
#include "trace/sorted_runs.h"
#include "trace/spool_reader.h"
#include "trace/spool_release.h"

namespace pasta::adapters::spool {
namespace {

using trace::SpoolFolder;
using trace::SpoolLane;
using trace::SpoolProcess;
using trace::SpoolRun;

constexpr std::size_t kEventsPerPump = 4096;
constexpr std::chrono::milliseconds kBetweenLooks{20};
// What so many events were pushed after has been written, whatever a recorder still holds.
constexpr std::uint64_t kSurelyWritten = std::uint64_t{1} << 14;

std::string ended(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exit {}", WEXITSTATUS(wait_status));
  return fmt::format("signal {}", WTERMSIG(wait_status));
}

class Run final : public Adapter {
 public:
  Run(const AdapterInfo& info, SpoolFolder folder, std::string path, std::string format,
      const std::atomic<bool>* over, bool looks_on = false)
      : info_(info),
        folder_(std::move(folder)),
        path_(std::move(path)),
        format_(std::move(format)),
        over_(over),
        looks_on_(looks_on) {}

  const AdapterInfo& info() const override { return info_; }

  Status start(const Plan& plan, EventSink& sink) override {
    sink_ = &sink;
    dictionary_ = &sink.dictionary();
    origins_.emplace(*dictionary_);
    links_.emplace(*dictionary_, *origins_);
    scopes_.emplace(*dictionary_);
    strict_ = plan.strict;
    const SpoolRun& run = folder_.run();
    // All times of a run count from its start, so that they mean the same while it is followed,
    // when nobody knows yet when its first event began.
    sink.describe({.path = path_,
                   .format = format_,
                   .label = {},
                   .rank = run.rank,
                   .world_size = run.world_size,
                   .first_ns = run.start_ns + run.epoch_ns,
                   .absolute_clock = true});
    if (over_ != nullptr && !looks_on_) {
      auto release = trace::SpoolRelease::open(folder_.path());
      if (release) release_.emplace(std::move(*release));
    }
    if (over_ == nullptr) {
      keep_from(run);
      sorted_.emplace(trace::SortedRuns::Order::kByEnd,
                      trace::SortedRuns::Options{plan.memory_budget_bytes, plan.scratch});
      PASTA_TRY(refresh(true));
      PASTA_TRY(read_all(true));
      // Who follows the run may have taken away more meanwhile, of lanes that had not been read
      // yet.
      if (!folder_.refresh_let_go()) {
        return fail(ErrorCode::kNotFound,
                    fmt::format("{}: the run ended and took it away while it was read; read the "
                                "trace that the run wrote",
                                folder_.path()));
      }
      keep_from(folder_.run());
      PASTA_TRY(complete());
      resolve_scopes(std::numeric_limits<std::int64_t>::max());
      for (const Event& event : waiting_) PASTA_TRY(sorted_->add(event));
      waiting_ = {};
      PASTA_TRY(sorted_->finish());
    }
    return {};
  }

  Result<bool> pump() override { return over_ == nullptr ? give_sorted() : follow(); }

  Status stop() override { return {}; }

 private:
  // Of what ended earlier, some is no longer there.
  void keep_from(const SpoolRun& run) {
    if (run.kept_from_ns > 0) kept_from_ns_ = run.kept_from_ns + run.epoch_ns;
  }

  struct Reader {
    std::optional<Decoder> decoder;
    std::int64_t safe_ns = std::numeric_limits<std::int64_t>::min();  // what comes later ends later
    bool complete = false;
  };

  Status refresh(bool last) {
    auto now = folder_.refresh(last);
    if (!now) return tl::unexpected<Error>(std::move(now).error());
    now_ns_ = *now;
    for (const auto& [number, process] : folder_.processes()) know(process);
    return {};
  }

  // Reads all lanes up to what the last refresh saw.
  Status read_all(bool last) {
    for (auto& [name, lane] : folder_.lanes()) {
      Reader& reader = readers_[name];
      if (!reader.decoder) {
        auto process = processes_.find(lane.process);
        if (process == processes_.end()) {
          if (!last) continue;  // its page is still being made
          process = processes_.emplace(lane.process, unknown_process(lane)).first;
        }
        reader.decoder.emplace(*dictionary_, *origins_, lane.process, process->second,
                               images_[lane.process], folder_.run().epoch_ns, lane.path);
      }
      for (;;) {
        const std::uint64_t promised = lane.committed - lane.read;
        const std::uint32_t jumps = lane.jumps;
        const auto cells = folder_.read(lane);
        const bool jumped = lane.jumps != jumps;
        if (jumped) reader.decoder->jump();
        if (cells.empty()) {
          if (promised > 0 && !jumped)
            problems_.add(Reason::kTruncated, [&path = lane.path] { return path; });
          break;
        }
        if (release_) release_->read(name, lane.read - cells.size(), cells);
        reader.decoder->decode(cells, fresh_, blobs_, problems_);
        PASTA_TRY(keep());
      }
      if (!lane.pending) reader.safe_ns = now_ns_;
    }
    return {};
  }

  Status keep() {
    if (looks_on_) {
      waiting_.insert(waiting_.end(), fresh_.begin(), fresh_.end());
      fresh_.clear();
      return {};
    }
    for (const Event& event : fresh_) {
      scopes_->learn(event);
      if (sorted_ && lets_go(event)) {
        ++let_go_;
        continue;
      }
      const bool by_time = Scopes::is_by_time(event);
      if (!by_time) links_->learn(event);
      if (!sorted_ || by_time) {
        waiting_.push_back(event);
      } else {
        PASTA_TRY(sorted_->add(event));
      }
    }
    fresh_.clear();
    return {};
  }

  bool lets_go(const Event& event) {
    if (event.untimed() || event.end_ns >= kept_from_ns_) return false;
    if (event.kind == Kind::kDevice) blobs_.kept.erase(event.device.blob.value);
    return true;
  }

  // Gives the calls that wait for one their scope, as far as their middles are before this
  // time: what their threads had open then has been read.
  void resolve_scopes(std::int64_t before_ns) {
    std::vector<Event*> calls;
    for (Event& event : waiting_) {
      if (Scopes::is_by_time(event) && Scopes::middle_ns(event) < before_ns) {
        calls.push_back(&event);
      }
    }
    if (!calls.empty()) {
      scopes_->forget_open();
      for (const auto& [name, lane] : folder_.lanes()) {
        const Reader& reader = readers_[name];
        Decoder::Open open;
        for (const auto& range : lane.open) {
          if (reader.decoder && reader.decoder->open(range, lane.lane, open)) {
            scopes_->open(open.lane, open.start_ns, open.inside);
          }
        }
      }
      scopes_->resolve(calls);
      for (const Event* call : calls) links_->learn(*call);
    }
    scopes_->forget(before_ns);
  }

  ProcessId know(const SpoolProcess& seen) {
    const auto [known, is_new] = processes_.emplace(seen.number, ProcessId{});
    if (!is_new) return known->second;
    // The images of one process are one; a process that got the id of a dead one is another.
    auto& starts = starts_[seen.process];
    auto nth = std::find(starts.begin(), starts.end(), seen.started_ticks) - starts.begin();
    if (static_cast<std::size_t>(nth) == starts.size()) starts.push_back(seen.started_ticks);
    Process process{.native_id = static_cast<std::uint64_t>(seen.process)};
    if (nth > 0) {
      process.native_id = 0;
      process.native_text = dictionary_->string(fmt::format("{} ({})", seen.process, nth + 1));
    }
    known->second = dictionary_->process(process);
    images_[seen.number] = image_counts_[known->second.value]++;
    process.name = dictionary_->string(seen.name);
    process.host = dictionary_->string(folder_.run().host);
    process.rank = seen.rank;
    process.world_size = seen.world_size;
    dictionary_->update(known->second, process);
    return known->second;
  }

  // Of a lane whose process has left no page that can be read.
  ProcessId unknown_process(const SpoolLane& lane) {
    problems_.add(Reason::kMissingField, [&] { return lane.path + ": its process"; });
    Process process;
    process.native_text = dictionary_->string(fmt::format("number {}", lane.process));
    return dictionary_->process(process);
  }

  // When a lane ended that will have nothing more; none: when the run does, or is not known.
  std::optional<std::int64_t> end_of(const SpoolLane& lane) const {
    const auto process = folder_.processes().find(lane.process);
    if (process == folder_.processes().end()) return std::nullopt;
    if (process->second.exited) return process->second.end_ns;
    if (process->second.replaced_ns != 0) return process->second.replaced_ns;
    return std::nullopt;
  }

  // Whether its ranges are open in a next file.
  bool goes_on(const SpoolLane& lane) const {
    const auto& lanes = folder_.lanes();
    return std::any_of(lanes.begin(), lanes.end(), [&](const auto& other) {
      return other.second.process == lane.process && other.second.follows == lane.number + 1 &&
             !other.second.open.empty();
    });
  }

  void problem(Reason reason, std::uint64_t count, std::string_view where) {
    if (count > 0) problems_.add(reason, count, where);
  }

  // What only the end of a lane tells: ranges that are open, and losses.
  void complete(const SpoolLane& lane, Reader& reader) {
    if (!reader.decoder || reader.complete) return;
    reader.complete = true;
    const SpoolRun& run = folder_.run();
    const auto process = folder_.processes().find(lane.process);
    std::int64_t end_ns = end_of(lane).value_or(run.over ? run.end_ns : now_ns_);
    end_ns = std::max(end_ns + run.epoch_ns, given_ns_);
    problem(Reason::kCollectorWarning, lane.texts_cut, lane.path + ": texts that were cut");
    Event event;
    const auto keep_unfinished = [&] {
      if (event.end_ns < kept_from_ns_) {
        ++let_go_;
        return;
      }
      fresh_.push_back(event);
      problems_.add(Reason::kBeginWithoutEnd, [&] {
        return fmt::format("\"{}\" of process {}", dictionary_->text(event.name),
                           process == folder_.processes().end() ? 0 : process->second.process);
      });
    };
    for (const auto& range : lane.open) {
      if (goes_on(lane)) break;
      if (reader.decoder->unfinished(range, lane.lane, end_ns, event)) keep_unfinished();
    }
    for (const auto& range : lane.started) {
      if (!reader.decoder->unfinished(range, end_ns, event)) continue;
      const bool ended = std::any_of(readers_.begin(), readers_.end(), [&](const auto& other) {
        return other.second.decoder && other.second.decoder->is_last(event);
      });
      if (!ended) keep_unfinished();
    }
    if (lane.dropped == 0) return;
    // Who sees a gap counts what it has lost.
    if (reader.decoder->gap(lane.lane, lane.dropped, end_ns, event)) {
      fresh_.push_back(event);
    } else {
      problem(Reason::kDroppedByCollector, lane.dropped, lane.path);
    }
  }

  // What only the end tells: ranges that are open, losses, and how the processes ended.
  Status complete() {
    const SpoolRun& run = folder_.run();
    for (auto& [name, lane] : folder_.lanes()) complete(lane, readers_[name]);
    for (const auto& [number, process] : folder_.processes()) {
      const std::string where = fmt::format("process {}", process.process);
      problem(Reason::kDroppedByCollector, process.dropped, where);
      problem(Reason::kEndWithoutBegin, process.unmatched, where);
      if (!process.alive && !process.exited && has_vendor_buffers(number)) {
        const char* how = process.replaced_ns == 0 ? "was killed" : "executed another program";
        problem(
            Reason::kCollectorWarning, 1,
            fmt::format("{} {}: what CUPTI had not handed out by then is not known", where, how));
      }
      // In a snapshot of what is still running nothing is lost by it.
      if (over_ != nullptr || run.over || !process.alive) {
        problem(Reason::kWorkUnderWay, process.under_way, where);
      }
      problem(Reason::kCollectorWarning, process.command_cut ? 1 : 0,
              where + ": its command is cut");
    }
    problem(Reason::kDroppedByCollector, run.dropped, folder_.path());
    if (over_ == nullptr || !run.keep.empty()) tell_let_go(run.let_go + let_go_, problems_);
    if (over_ != nullptr || run.over) tell_capture();
    for (const std::string& path : folder_.unreadable()) problem(Reason::kCorruptChunk, 1, path);
    PASTA_TRY(keep());
    tell_processes();
    tell_facts();
    for (const Problem& seen : problems_.list()) sink_->report(seen);
    if (strict_ && problems_.worst() >= Severity::kAltered) {
      const Problem& first = problems_.list()[0];
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: {}", first.first, reason_info(first.reason).help));
    }
    return {};
  }

  void tell_let_go(std::uint64_t count, Problems& problems) const {
    if (count == 0) return;
    const SpoolRun& run = folder_.run();
    if (!run.keep.empty()) {
      problems.add(Reason::kLetGo, count, fmt::format("kept only the last {}", run.keep));
    } else {
      problems.add(Reason::kWrittenAlready, count,
                   "they are in the trace that the run writes, a file beside this folder that ends "
                   "in .tmp- and six letters");
    }
  }

  // Why there is nothing, where what was to open the collection never came.
  void tell_capture() {
    using trace::spool::CaptureBy;
    const SpoolRun& run = folder_.run();
    if (run.capture.empty() || run.captured > 0) return;
    std::string why = "no range of this name was seen";
    if (run.capture_by == CaptureBy::kProfiler) {
      why = "neither cudaProfilerStart nor cuProfilerStart was seen";
    } else if (run.capture_by == CaptureBy::kIterations && run.iterations == 0) {
      why =
          "nothing marks iterations: call pasta_step() (Python: pastaprof.step()), or name the "
          "range "
          "around each \"step N\"";
    } else if (run.capture_by == CaptureBy::kIterations) {
      why = fmt::format("{} iterations were told of, none of these", run.iterations);
    }
    problem(Reason::kNotRecorded, 1, fmt::format("--capture-range {}: {}", run.capture, why));
  }

  [[nodiscard]] bool has_vendor_buffers(std::uint32_t process) const {
    const std::string beginning = fmt::format("{}-", process);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path(), error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(beginning) && name.ends_with(trace::spool::kVendorEnding)) return true;
    }
    return false;
  }

  // As facts, because a trace has no table for it: read by tool `processes`.
  void tell_processes() {
    const SpoolRun& run = folder_.run();
    // Of a process that ran several images, the last is what it was; it began with the first.
    struct Images {
      const SpoolProcess* last = nullptr;
      std::int64_t start_ns = 0;
    };
    std::map<std::uint32_t, Images> images;  // by process
    for (const auto& [number, process] : folder_.processes()) {
      Images& known = images[processes_[number].value];
      known.start_ns =
          known.last == nullptr ? process.start_ns : std::min(known.start_ns, process.start_ns);
      known.last = &process;
    }
    for (const auto& [id, image] : images) {
      const SpoolProcess& process = *image.last;
      const std::string_view native =
          dictionary_->text(dictionary_->process(ProcessId{id}).native_text);
      const bool ended_program = native.empty() && process.process == run.program && run.over;
      const std::string key = fmt::format(
          "process {} on {} ",
          native.empty() ? fmt::to_string(process.process) : std::string(native), run.host);
      const std::string how = ended_program                          ? ended(run.wait_status)
                              : process.alive && process.alive_known ? "still running"
                              : process.exited ? fmt::format("exit {}", process.status & 0xff)
                                               : "no exit seen";
      const auto fact = [&](const char* what, const std::string& value) {
        dictionary_->fact(key + what, value);
      };
      fact("parent", fmt::to_string(process.parent));
      fact("command", process.command);
      fact("ended", how);
      fact("started_ns", fmt::to_string(image.start_ns + run.epoch_ns));
      if (process.exited || ended_program) {
        fact("ended_ns",
             fmt::to_string((process.exited ? process.end_ns : run.end_ns) + run.epoch_ns));
      }
    }
  }

  // Of one process, whichever thread said them.
  void tell_facts() {
    std::map<std::pair<std::uint32_t, std::string>, const Decoder::Fact*> facts;
    for (const auto& [name, lane] : folder_.lanes()) {
      const Reader& reader = readers_[name];
      if (!reader.decoder) continue;
      for (const auto& [key, fact] : reader.decoder->facts()) {
        const Decoder::Fact*& known = facts[{lane.process, key}];
        if (known == nullptr || known->said_ns < fact.said_ns) known = &fact;
      }
    }
    for (const auto& [key, fact] : facts) {
      const auto process = folder_.processes().find(key.first);
      if (process == folder_.processes().end()) continue;
      dictionary_->fact(fmt::format("process {} {}", process->second.process, key.second),
                        fact->value);
    }
  }

  Result<bool> give_sorted() {
    fresh_.resize(kEventsPerPump);
    auto count = sorted_->read(fresh_);
    if (!count) return tl::unexpected<Error>(std::move(count).error());
    fresh_.resize(*count);
    // Had been read when more was taken away. It may be told of twice then, and not less than once.
    const std::size_t late =
        std::erase_if(fresh_, [this](const Event& event) { return lets_go(event); });
    tell_let_go(late, unlinked_);
    push(fresh_);
    if (*count == 0) tell_unlinked();
    return *count > 0;
  }

  Result<bool> follow() {
    if (done_) return false;
    const bool last = over_->load();
    // Time passes always: without this, who pumps as long as there is progress would never stop.
    const auto now = std::chrono::steady_clock::now();
    if (!last && now < next_look_) return true;
    next_look_ = now + kBetweenLooks;
    if (!last) release();
    PASTA_TRY(refresh(last));
    PASTA_TRY(read_all(last));
    if (looks_on_) {
      give_what_has_come();
      done_ = last;
      return !last;
    }
    for (auto& [name, lane] : folder_.lanes()) {
      const auto process = folder_.processes().find(lane.process);
      const bool ended = process != folder_.processes().end() && !process->second.alive &&
                         lane.read == lane.committed && end_of(lane);
      if (ended && !last) complete(lane, readers_[name]);
    }
    PASTA_TRY(keep());
    if (last) {
      PASTA_TRY(complete());
      give_up_to(std::numeric_limits<std::int64_t>::max());
      tell_unlinked();
      done_ = true;
      return false;
    }
    // Up to what the last look but this saw: device work that was in one lane by then was preceded
    // by its launch in another, and this look has read that at the latest.
    const std::int64_t safe_ns = std::exchange(safe_ns_, safe_now());
    if (safe_ns > std::numeric_limits<std::int64_t>::min() &&
        safe_ns + folder_.run().epoch_ns > given_ns_) {
      given_ns_ = safe_ns + folder_.run().epoch_ns;
      give_up_to(given_ns_);
      links_->forget(given_ns_);
      sink_->advance(given_ns_);
    }
    return true;
  }

  // Lets go of what has been given and is in the trace.
  void release() {
    if (!release_ || given_ns_ == std::numeric_limits<std::int64_t>::min()) return;
    // Who asks for more has taken all that was pushed before.
    if (given_.empty() || given_.back().pushed != pushed_) given_.push_back({0, pushed_});
    given_.back().before_ns = given_ns_;
    while (given_.size() > 1 && given_[1].pushed + kSurelyWritten <= pushed_) given_.pop_front();
    if (given_.front().pushed + kSurelyWritten > pushed_) return;
    const Status looked =
        release_->look(folder_, given_.front().before_ns - folder_.run().epoch_ns);
    if (looked) return;
    problem(Reason::kCollectorWarning, 1,
            looked.error().message + ": disk of the run's folder is not given back");
    release_.reset();
  }

  // What has not been read yet ends no earlier.
  std::int64_t safe_now() {
    std::int64_t safe_ns = now_ns_;
    for (const auto& [name, lane] : folder_.lanes()) {
      if (lane.final && lane.read == lane.committed) continue;
      safe_ns = std::min({safe_ns, readers_[name].safe_ns, lane.hold_ns});
    }
    for (const auto& [number, process] : folder_.processes()) {
      if (process.alive && process.under_way > 0) safe_ns = std::min(safe_ns, process.hold_ns);
    }
    return safe_ns;
  }

  void push(std::span<Event> events) {
    pushed_ += events.size();
    for (Event& event : events) links_->link(event, unlinked_);
    give(events);
  }

  void tell_unlinked() {
    for (const auto& [number, process] : folder_.processes()) {
      if (process.alive || process.exited || process.replaced_ns != 0) continue;
      const std::uint64_t lost = links_->unseen(processes_[number]);
      if (lost == 0) continue;
      unlinked_.add(Reason::kWorkUnderWay, lost,
                    fmt::format("process {} ended suddenly: launches whose kernels CUPTI had not "
                                "handed out",
                                process.process));
    }
    for (const Problem& seen : unlinked_.list()) sink_->report(seen);
  }

  void give(std::span<const Event> events) {
    while (!events.empty() && !blobs_.kept.empty()) {
      const auto with_blob = std::find_if(events.begin(), events.end(), [](const Event& event) {
        return event.kind == Kind::kDevice;
      });
      const auto before = static_cast<std::size_t>(with_blob - events.begin());
      sink_->push(events.first(before));
      events = events.subspan(before);
      if (events.empty()) return;
      const auto blob = blobs_.kept.extract(events[0].device.blob.value);
      sink_->push(events[0], std::as_bytes(std::span(blob.mapped())));
      events = events.subspan(1);
    }
    sink_->push(events);
  }

  void give_what_has_come() {
    for (Event& event : waiting_) {
      if (Scopes::is_by_time(event)) event.scope = {};
    }
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Event& a, const Event& b) { return a.end_ns < b.end_ns; });
    give(waiting_);
    waiting_.clear();
  }

  void give_up_to(std::int64_t end_ns) {
    resolve_scopes(end_ns);
    const auto later =
        std::stable_partition(waiting_.begin(), waiting_.end(),
                              [&](const Event& event) { return event.end_ns < end_ns; });
    std::stable_sort(waiting_.begin(), later, [](const Event& a, const Event& b) {
      return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.start_ns > b.start_ns;
    });
    push(std::span(waiting_.begin(), later));
    waiting_.erase(waiting_.begin(), later);
  }

  AdapterInfo info_;
  SpoolFolder folder_;
  std::string path_, format_;
  const std::atomic<bool>* over_;  // none: what is there now
  bool looks_on_;
  EventSink* sink_ = nullptr;
  Dictionary* dictionary_ = nullptr;
  bool strict_ = false;
  bool done_ = false;
  std::chrono::steady_clock::time_point next_look_{};
  std::int64_t now_ns_ = 0;
  std::int64_t safe_ns_ = std::numeric_limits<std::int64_t>::min();  // as of the last look
  std::int64_t given_ns_ = std::numeric_limits<std::int64_t>::min();
  std::map<std::string, Reader> readers_;                // by file name
  std::map<std::uint32_t, ProcessId> processes_;         // by number
  std::map<std::uint32_t, std::uint64_t> images_;        // by number: the n-th of its process
  std::map<std::uint32_t, std::uint64_t> image_counts_;  // by process
  std::map<std::int32_t, std::vector<std::uint64_t>> starts_;
  std::optional<Origins> origins_;
  std::optional<Links> links_;
  std::int64_t kept_from_ns_ = std::numeric_limits<std::int64_t>::min();
  std::uint64_t let_go_ = 0;  // here, of what is older than that
  std::optional<Scopes> scopes_;
  Problems problems_, unlinked_;
  Blobs blobs_;
  std::vector<Event> fresh_;
  std::vector<Event> waiting_;               // while following; else what waits for its scope
  std::optional<trace::SortedRuns> sorted_;  // else
  std::optional<trace::SpoolRelease> release_;
  struct Given {
    std::int64_t before_ns;
    std::uint64_t pushed;
  };
  std::deque<Given> given_;  // oldest first: what had been pushed when so much had been given
  std::uint64_t pushed_ = 0;
};

}  // namespace

bool recognise(const std::string& folder) { return SpoolFolder::recognise(folder); }

Result<std::unique_ptr<Adapter>> open(const std::string& folder) {
  return open(folder, folder, std::string(kInfo.name));
}

Result<std::unique_ptr<Adapter>> open(const std::string& folder, std::string path,
                                      std::string format) {
  auto opened = SpoolFolder::open(folder);
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  return std::make_unique<Run>(kInfo, std::move(*opened), std::move(path), std::move(format),
                               nullptr);
}

Result<std::unique_ptr<Adapter>> follow(const std::string& folder, std::string path,
                                        std::string format, const std::atomic<bool>& over,
                                        KindSet provides) {
  auto opened = SpoolFolder::open(folder);
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  AdapterInfo info = kFollowing;
  info.provides = provides;
  return std::make_unique<Run>(info, std::move(*opened), std::move(path), std::move(format), &over);
}

Result<std::unique_ptr<Adapter>> look_on(const std::string& folder, const std::atomic<bool>& over) {
  auto opened = SpoolFolder::open(folder);
  if (!opened) return tl::unexpected<Error>(std::move(opened).error());
  return std::make_unique<Run>(kFollowing, std::move(*opened), folder, std::string(kFollowing.name),
                               &over, true);
}

}  // namespace pasta::adapters::spool
