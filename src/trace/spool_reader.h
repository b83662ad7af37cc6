// Follows the folder of a run (see spool.h), from another process, while it grows or afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/event.h"
#include "pasta/result.h"
#include "trace/spool.h"

namespace pasta::trace {

// What a run's page says at a moment.
struct SpoolRun {
  std::int64_t start_ns = 0;
  std::int64_t epoch_ns = 0;
  std::uint64_t dropped = 0;
  bool over = false;  // end_ns and wait_status are known
  std::int64_t end_ns = 0;
  std::int32_t program = 0;
  std::int32_t wait_status = 0;
  std::int32_t rank = -1;
  std::int32_t world_size = 0;
  std::string host;
  std::string keep;  // of what only the newest part is kept, as the user said; "" = all is kept
  std::int64_t kept_from_ns = 0;
  std::uint64_t let_go = 0;
  // What opens the stretches outside of which nothing is collected, and how often it did; of
  // iterations also how many were told of.
  std::string capture;  // "" = all is collected
  spool::CaptureBy capture_by{};
  std::uint32_t captured = 0;
  std::uint64_t iterations = 0;
};

// An image that a process ran.
struct SpoolProcess {
  std::uint32_t number = 0;
  std::int32_t process = 0;
  std::int32_t parent = 0;
  std::int32_t rank = -1;
  std::int32_t world_size = 0;
  bool forked = false;
  std::uint64_t started_ticks = 0;
  std::int64_t start_ns = 0;
  std::string name;
  std::string command;  // as a shell would show it
  bool command_cut = false;
  // From here on as of the last refresh:
  bool alive = false;            // or it cannot be known, as from another namespace of ids
  bool alive_known = false;      // which of the two
  std::int64_t replaced_ns = 0;  // when it executed another image; 0 = not seen
  bool exited = false;           // it has said so, with end_ns and status
  std::int64_t end_ns = 0;
  std::int32_t status = 0;
  std::uint64_t dropped = 0;
  std::uint64_t unmatched = 0;
  std::uint64_t under_way = 0;  // device work that has been launched and not been committed
  std::int64_t hold_ns = spool::kNoHold;  // what comes of it ends no earlier
};

// What one thread at a time writes.
struct SpoolLane {
  std::string path;
  std::uint32_t process = 0;  // number of the SpoolProcess
  std::uint32_t number = 0;   // M of its N-M.lane
  std::uint32_t follows = 0;  // M + 1 of the one that this one goes on from; 0: none
  // As of the last refresh:
  bool pending = false;
  std::uint64_t committed = 0;
  std::uint64_t dropped = 0;  // of which no gap among the cells tells
  std::uint32_t texts_cut = 0;
  std::int64_t hold_ns = spool::kNoHold;
  std::uint32_t lane = 0;
  std::vector<spool::OpenRange> open;
  struct Started {  // see StartedRange
    std::int64_t start_ns;
    std::uint64_t sequence;
    std::uint32_t name, lane, arguments;
    std::uint16_t domain;
  };
  std::vector<Started> started;
  bool final = false;      // nothing more will come: its process was dead before it was looked at
  std::uint64_t read = 0;  // cells
  // How often read() has met cells that had been taken away. The bytes of a result of a patch that
  // had been read in part do not go on then.
  std::uint32_t jumps = 0;
};

// The file that has what later cells rest on of those that are no longer in the lane of this path.
std::string before_path(const std::string& lane_path);

// Of whoever begins a run: writers may do what this host makes possible.
void allow_what_is_quick(spool::RunPage& run);

// One thread at a time.
class SpoolFolder {
 public:
  // Whether it is the folder of a run.
  static bool recognise(const std::string& path);
  // kNotFound, kIo; kBadInput when its `run` file is not one of this version.
  static Result<SpoolFolder> open(std::string path);

  // Looks at everything anew. What a thread commits later than this, ends (unless it is on hold)
  // later than the time given back, which is a little ago, except in a lane that is pending; what a
  // process that is not alive has written is all that will come of it. With `of_dead`, also lanes
  // that were final before are looked at, as where nothing may be missed.
  // That holds only because what is held back is looked at before how much has been committed:
  // `between` the two is where a test commits.
  Result<std::int64_t> refresh(bool of_dead = false, const std::function<void()>& between = {});

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const SpoolRun& run() const { return run_; }
  // In order of their numbers. Grow.
  [[nodiscard]] const std::map<std::uint32_t, SpoolProcess>& processes() const {
    return processes_;
  }
  [[nodiscard]] std::map<std::string, SpoolLane>& lanes() { return lanes_; }
  [[nodiscard]] const std::map<std::string, SpoolLane>& lanes() const { return lanes_; }
  // The next cells of `lane`, up to what the last refresh saw; none at the end. Fewer than were
  // promised when the file is shorter: then `lane.committed` is what there is. Of cells that have
  // been taken away (see SpoolRelease) only those that later ones rest on.
  std::vector<Event> read(SpoolLane& lane) const;
  // What has been let go by now, in run(), and nothing else of it.
  Status refresh_let_go();
  // Take files away: they are no longer there for anybody. Give their bytes. Of a process all that
  // it has. `tell` is called when nobody can see the lane any more and before it is taken away, and
  // not when somebody else has done so.
  std::uint64_t remove(std::map<std::string, SpoolLane>::iterator lane,
                       const std::function<void()>& tell);
  std::uint64_t remove(std::map<std::uint32_t, SpoolProcess>::const_iterator process);
  // Files that are not what their names say, as of the last refresh.
  [[nodiscard]] const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  explicit SpoolFolder(std::string path) : path_(std::move(path)) {}
  Status read_run();
  void add_process(const std::string& name, std::uint32_t number);
  void refresh_process(SpoolProcess& process);
  // Whether the file is a lane. First for all lanes, and then the other for each.
  bool refresh_holds(const std::string& name);
  void refresh_counts(SpoolLane& lane) const;
  static std::vector<Event> read_before(SpoolLane& lane, std::uint64_t gone);
  // None of a file that is just being made; none and unreadable when it is no such page.
  template <class Page>
  std::unique_ptr<Page> read_once_made(const std::string& path, std::uint64_t page_magic);

  std::string path_;
  SpoolRun run_;
  std::map<std::uint32_t, SpoolProcess> processes_;
  std::map<std::string, SpoolLane> lanes_;
  std::vector<std::string> unreadable_;
};

}  // namespace pasta::trace
