// Keeps only the newest part of what a run collects, while it runs: takes old files out of its
// folder (see spool.h).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "pasta/result.h"
#include "trace/run_page.h"
#include "trace/spool_reader.h"

namespace pasta::trace {

// One thread at a time.
class SpoolKeeper {
 public:
  struct Options {
    std::int64_t keep_ns = std::numeric_limits<std::int64_t>::max();
    // Disk. Room for what comes until the next look is made below it.
    std::uint64_t keep_bytes = std::numeric_limits<std::uint64_t>::max();
  };
  static Result<SpoolKeeper> open(const std::string& folder, Options options);

  // Lets go of what has become too old or too much. What that was, the run's page says.
  Status look();

 private:
  // A file to which nothing more comes.
  struct Whole {
    std::uint64_t events = 0;  // and those lost
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  };
  SpoolKeeper(SpoolFolder folder, MappedRunPage page, Options options);
  Whole scan(SpoolLane& lane) const;
  void let_go(std::map<std::string, SpoolLane>::iterator lane, const Whole& whole);
  void let_go_of_processes(std::int64_t oldest_ns);

  SpoolFolder folder_;
  MappedRunPage page_;
  Options options_;
  std::map<std::string, Whole> whole_;  // by name
};

}  // namespace pasta::trace
