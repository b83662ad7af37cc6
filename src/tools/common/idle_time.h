// Splitting the time in which a device stood still by the causes of docs/idle-causes.md.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "pasta/dictionary.h"
#include "pasta/event.h"
#include "stats/interval_set.h"
#include "tools/common/api_role.h"
#include "tools/common/host_activity.h"
#include "tools/common/idle_cause.h"
#include "tools/common/memo.h"

namespace pasta::tools {

using CauseTimes = std::array<std::int64_t, kIdleCauseCount>;
std::int64_t sum(const CauseTimes& times);
// Of equal ones the first in the order of causes.
std::size_t largest(const CauseTimes& times);

// Whether a set covers moments that ascend. The set must outlive it.
class Coverage {
 public:
  explicit Coverage(const stats::IntervalSet& set) : reader_(set) { more_ = reader_.next(piece_); }
  bool covers(std::int64_t now);

 private:
  stats::IntervalSet::Reader reader_;
  stats::Interval piece_;
  bool more_ = false;
};

// Splits ascending, disjoint stretches of time by what the host did. The levels must outlive it.
class IdleSplitter {
 public:
  explicit IdleSplitter(const HostLevels& host);
  CauseTimes split(std::int64_t begin, std::int64_t end);
  // The time around a moment in which the host waits for the device, empty if it does not; moments
  // ascend together with split().
  [[nodiscard]] stats::Interval wait_at(std::int64_t now);

 private:
  struct Cursor {
    explicit Cursor(const HostLevels::Level& level) : cause(level.cause), reader(level.when) {
      next();
    }
    void next() { more = reader.next(piece); }
    IdleCause cause;
    stats::IntervalSet::Reader reader;
    stats::Interval piece;
    bool more = false;
  };
  bool any_host_;
  std::vector<Cursor> cursors_;
};

// Launch calls of which work may still start. Many never have any, or had it before they returned:
// of a call that kKept others followed, nothing is known any more. No queue holds so many.
class PendingLaunches {
 public:
  void add(const Event& call, const Dictionary& dictionary);
  // When the call that launched this work returned, if that was before the work started; else
  // kNoTime. To be asked once for each piece of work, in order of end.
  std::int64_t waited_since(const Event& work);
  static constexpr std::size_t kKept = std::size_t{1} << 16;
  [[nodiscard]] std::size_t held() const { return launched_.size() + older_.size(); }

 private:
  struct Launch {
    std::int64_t end_ns;
    bool one;  // no second piece of work will name it
  };
  // By correlation. A call that returns after its work has ended let nothing wait.
  std::unordered_map<std::uint64_t, Launch> launched_, older_;
  Memo<StringId, ApiRole> roles_;
};

// When launched work of a device waited to start; also some of the time in which the device worked.
class WaitingWork {
 public:
  // In order of the work's end.
  void add(std::int64_t launched_ns, const Event& work);
  [[nodiscard]] const stats::IntervalSet& when() const { return when_; }

 private:
  stats::IntervalSet when_;
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace pasta::tools
