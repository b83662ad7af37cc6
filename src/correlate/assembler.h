// Turns the records of one source, in whatever order it has them, into the event stream: host call
// paths, links from device work to the launch that caused it, order of end time.
//
// Three passes, each over a stream that is sorted in memory or, beyond the budget, merged from
// sorted runs on disk:
//   1. add():    everything the reader finds, in file order;
//   2. finish(): host events by start time, with one stack of open ranges per thread: each event
//                learns its call path; each launch call leaves (correlation -> path, start);
//   3. emit():   all events by end time; device work takes its path from its launch, wherever in
//                the file that stood and whichever of the two began first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "pasta/adapter.h"
#include "pasta/event.h"
#include "pasta/quality.h"
#include "pasta/result.h"

namespace pasta::correlate {

// One end of an arrow between two ranges, bound by place: the range that is open on `lane` at
// `at_ns` (for device work: the one that starts then). docs/correlation.md has the rules.
struct FlowEnd {
  enum class Type : std::uint8_t { kLaunch, kForwardBackward };
  Type type = Type::kLaunch;
  // The end the arrow leaves from. Of a launch arrow the lanes decide, since some sources draw it
  // the other way round: it leads from a thread to a queue.
  bool source = false;
  LaneId lane{};
  std::int64_t at_ns = 0;
  std::uint64_t id = 0;
};

class Assembler {
 public:
  struct Options {
    std::uint64_t memory_budget_bytes = std::uint64_t{256} << 20;
    std::filesystem::path scratch;  // empty: the system's temporary folder
  };
  // `dictionary` and `problems` outlive the assembler.
  Assembler(Dictionary& dictionary, Problems& problems, Options options);
  ~Assembler();

  // An event as the source has it: `scope` unset, `correlation` made with make_correlation().
  // Events of thread lanes get call paths, events of queue lanes get their launch's: a `scope` that
  // the source says of those itself hangs below it. Untimed events are kept and come out first. kIo
  // when the disk is full.
  Status add(const Event& event);
  Status add(const FlowEnd& flow);
  // Launch arrows are needed only by sources whose device work names no correlation; a reader
  // that has seen one that does says so, and arrows of type kLaunch are forgotten.
  void drop_launch_flows();

  // After the last add(). `shift_ns` is added to every time (a base that stood at the file's end).
  Status finish(std::int64_t shift_ns = 0);
  // Earliest start of a timed event, shifted; kNoTime when there is none.
  [[nodiscard]] std::int64_t first_ns() const;
  // Pushes up to about `max_events` events in order of end time. False after the last.
  Result<bool> emit(EventSink& sink, std::size_t max_events);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta::correlate
