// Gives back the disk of a run's folder (see spool.h) while it is followed: of what has been read
// and is kept elsewhere, only the definitions stay that later cells rest on.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "pasta/event.h"
#include "pasta/result.h"
#include "trace/run_page.h"
#include "trace/spool_reader.h"

namespace pasta::trace {

// One thread at a time, beside writers and other readers.
class SpoolRelease {
 public:
  // kIo when the run's page cannot be written to.
  static Result<SpoolRelease> open(const std::string& folder);

  // What was read of the lane of this name, from its cell `first` on; nothing may be left out.
  void read(const std::string& lane, std::uint64_t first, std::span<const Event> cells);
  // All that ends before `before_ns` (of the spool's clock) is kept elsewhere. Where the run uses
  // more than half of its disk, takes away the oldest of it. What that was, the run's page says.
  // Errors: kIo, and kUnsupported where the file system cannot make holes in files: then all stays.
  Status look(SpoolFolder& folder, std::int64_t before_ns);

 private:
  // Up to where a lane's cells may be taken away, once all that is in them has been kept.
  struct Stretch {
    std::uint64_t end = 0;  // cells
    std::uint64_t events = 0;
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  };
  struct Definition {
    std::uint64_t cell;
    std::vector<Event> cells;
  };
  struct Lane {
    std::uint64_t read = 0;
    std::uint64_t text_cells = 0;  // that are still to come of a text
    bool text_stays = false;       // and whether it is of a definition
    bool event_follows = false;    // of the bytes that were read last
    std::uint64_t begin = 0;       // of `now`
    Stretch now;
    std::deque<Stretch> whole;
    std::deque<Definition> definitions;  // that are not in the file of those yet
    std::uint64_t released = 0;          // bytes at the beginning of its cells
  };
  SpoolRelease(std::string folder, MappedRunPage page)
      : folder_(std::move(folder)), page_(std::move(page)) {}
  Status release(const SpoolLane& of, Lane& lane);
  [[nodiscard]] Status can_make_holes() const;

  std::string folder_;
  MappedRunPage page_;
  bool tried_ = false;
  std::map<std::string, Lane> lanes_;
};

}  // namespace pasta::trace
