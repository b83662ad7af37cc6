// Joins sources to tools.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/event.h"
#include "pasta/recorder.h"
#include "pasta/report.h"
#include "pasta/result.h"
#include "pasta/tool.h"

namespace pasta {

// Which part of a trace the tools see. Empty members let everything pass.
struct Filter {
  // Events that start in [from_ns, to_ns), on the trace's axis; relative to its origin when
  // `relative`.
  std::optional<std::int64_t> from_ns, to_ns;
  bool relative = true;
  std::vector<std::string>
      devices;  // labels as in tables, or ordinals: work of other devices is left out
  std::vector<std::int32_t> ranks;
  [[nodiscard]] bool everything() const {
    return !from_ns && !to_ns && devices.empty() && ranks.empty();
  }
  std::string describe() const;
};

// Merges the events of all adapters by end time, cuts them into batches, and gives every tool the
// kinds it asked for. Not thread-safe, except that adapters may push from their own threads.
class Session {
 public:
  explicit Session(Plan plan = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Before start().
  // `label` tells the source apart in tables; empty: its rank or file name where there are several.
  // A label "rank 3" says the rank as well. `of_job`: it is one of the ranks of a job, so that it
  // is an error when its rank is neither in it nor in its name nor in its label.
  void add(std::unique_ptr<Adapter> adapter, std::string label = {}, bool of_job = false);
  void add(const ToolEntry& entry, std::unique_ptr<Tool> tool);
  // Gets everything, or only what passes the filter.
  void add(std::unique_ptr<Recorder> recorder, bool filtered = false);
  void filter(Filter filter);
  void batch_size(std::size_t events);  // for tests: no answer may depend on it

  // kUnsupported, naming tool, kind and adapter, when a tool needs what no adapter can provide.
  Status start();
  // Moves a bounded number of events. False: all sources are exhausted. An error ends the source it
  // is of and is told once; the next call goes on with the others.
  Result<bool> pump();
  // Ends the sources and asks every tool for its report. After an error of a source, reports are of
  // what was read before it, and say so. Fails when the sources cannot stand beside each other or a
  // tool failed.
  Result<Document> finish();

  [[nodiscard]] const Dictionary& dictionary() const;
  // Worst of all problems so far: decides the exit code.
  [[nodiscard]] Severity worst() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pasta
