// What is wrong with, or missing from, a trace: counted by reason, never silent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/ids.h"

namespace pasta {

// How much a problem costs the answer.
enum class Severity : std::uint8_t {
  kNote,      // a property of the recorded program or of the recording; nothing was changed
  kRepaired,  // malformed, but its meaning was clear: nothing is lost
  kAltered,   // a value was dropped or changed
  kDropped,   // an event was dropped
};

// Every way in which a trace can be less than whole. Stored in files: only append.
enum class Reason : std::uint16_t {
  kNone,
  // Malformed text.
  kCommaRepaired,     // a comma too many or too few
  kEscapeKept,        // a string with an invalid escape, kept as written
  kControlCharacter,  // a raw control character inside a string
  kBareToken,         // inf, NaN, N/A or other bare text in place of a value
  kUnreadableNumber,  // a number that cannot be one
  kRecordSkipped,     // a record that cannot be read
  kTruncated,         // the input ends early
  kTrailingData,      // bytes after the end of the trace
  kInvalidUtf8,       // a string that is not UTF-8
  // Times.
  kUntimed,           // a record without usable times
  kNegativeDuration,  // end before start
  kSubNanosecond,     // digits below one nanosecond, cut
  kTimeOutOfRange,    // a time that 64 bits of nanoseconds cannot hold
  // Structure.
  kEndWithoutBegin,
  kBeginWithoutEnd,
  kPartialOverlap,   // ranges of one thread that overlap without nesting
  kQueueOverlap,     // device work of one queue that overlaps
  kDuplicate,        // the same record twice
  kUnknownCategory,  // a category PASTA does not know; kept as a range
  kNotAnEvent,       // a record that is no event PASTA keeps
  kMissingField,     // a record without a field it needs
  kFlowWithoutEnd,   // an arrow without its other end
  // Links.
  kLaunchNotSeen,       // device work whose launch call is not in the trace
  kNoCorrelation,       // device work that names no launch
  kStartsBeforeLaunch,  // device work that starts before its launch call (clock skew)
  kCorrelationRange,    // a correlation id too large to keep
  // Capacity.
  kFramesFolded,  // more distinct call paths than are kept
  kLate,          // an event that came after the time it belongs to had been passed
  kDroppedByCollector,
  kCorruptChunk,  // a part of a file whose checksum is wrong
  // Several sources.
  kClockUnaligned,  // times that cannot be compared with those of the other sources
  kFlowNotKept,     // an arrow of a kind that PASTA has no use for
  kRankUnknown,     // a trace of a distributed framework that does not say its rank
  // What the collector left out, or said itself.
  kNotRecorded,       // a kind of record that the source has no place for
  kNotKept,           // records of a kind that PASTA has none for
  kCollectorWarning,  // a message of the collector
  // Precision.
  kRounded,  // values that the source gives in coarser steps than it measured
  // Watching.
  kLetGo,           // events that were older than what was to be kept
  kWorkUnderWay,    // device work that was launched and of which no end was seen
  kNotJoined,       // launches that only one of two runs has, or both in a different order
  kWrittenAlready,  // events that are no longer in a run's folder, but in the trace it writes
  kCount,
};

struct ReasonInfo {
  Reason reason;
  std::string_view id;  // stable, in reports
  Severity severity;
  std::string_view help;  // one sentence for a person
};
// Indexed by Reason.
std::span<const ReasonInfo> reasons();
const ReasonInfo& reason_info(Reason reason);

// One kind of problem of one source.
struct Problem {
  Reason reason = Reason::kNone;
  std::uint64_t count = 0;
  std::string first;  // where it was first seen: "byte 812: ..." or "kernel k at 12 ns"
  bool operator==(const Problem&) const = default;
};

// The problems of one source, by reason, in order of first sight.
class Problems {
 public:
  void add(Reason reason, std::uint64_t count, std::string_view first);
  // Counts without naming a place unless this is the first of its kind: `place` is called only
  // then.
  template <class Place>
  void add(Reason reason, Place&& place) {
    if (Problem* known = find(reason)) {
      ++known->count;
    } else {
      add(reason, 1, place());
    }
  }
  [[nodiscard]] std::span<const Problem> list() const { return list_; }
  [[nodiscard]] Severity worst() const;

 private:
  Problem* find(Reason reason);
  std::vector<Problem> list_;
};

// What a report says of one source.
struct SourceInfo {
  std::string path;        // as the user gave it; "-" is standard input
  std::string format;      // name of the adapter
  std::string label;       // tells sources apart in tables; "" when there is one
  std::int32_t rank = -1;  // of the job, -1 = the source does not say
  std::int32_t world_size = 0;
  // Earliest start of a timed event, on the trace's axis; kNoTime when there is none.
  std::int64_t first_ns = 0;
  bool absolute_clock = false;  // times are since 1970 and can be compared with other hosts'
};

}  // namespace pasta
