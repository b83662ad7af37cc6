#include "pasta/quality.h"

#include <algorithm>
#include <array>

namespace pasta {
namespace {

using enum Severity;
constexpr std::array<ReasonInfo, static_cast<std::size_t>(Reason::kCount)> kReasons = {{
    {Reason::kNone, "none", kNote, ""},
    {Reason::kCommaRepaired, "comma_repaired", kRepaired,
     "a comma too many or too few; read as if it were right"},
    {Reason::kEscapeKept, "escape_kept", kRepaired,
     "a string with an invalid escape; kept exactly as written"},
    {Reason::kControlCharacter, "control_character", kRepaired,
     "a raw control character inside a string; kept"},
    {Reason::kBareToken, "bare_token", kAltered,
     "bare text such as inf or N/A where a value belongs; the value is absent"},
    {Reason::kUnreadableNumber, "unreadable_number", kAltered,
     "a number that cannot be read; the value is absent"},
    {Reason::kRecordSkipped, "record_skipped", kDropped,
     "a record that cannot be read; reading went on at the next one"},
    {Reason::kTruncated, "truncated", kDropped,
     "the input ends early; what came before the cut is kept"},
    {Reason::kTrailingData, "trailing_data", kDropped, "bytes after the end of the trace; ignored"},
    {Reason::kInvalidUtf8, "invalid_utf8", kRepaired, "a string that is not UTF-8; kept"},
    {Reason::kUntimed, "untimed", kNote,
     "an event without usable times; counted, but in no sum of time"},
    {Reason::kNegativeDuration, "negative_duration", kAltered,
     "an event that ends before it starts; counted, but in no sum of time"},
    {Reason::kSubNanosecond, "sub_nanosecond", kNote, "digits below one nanosecond; cut"},
    {Reason::kTimeOutOfRange, "time_out_of_range", kAltered,
     "a time that 64 bits of nanoseconds cannot hold; the event is untimed"},
    {Reason::kEndWithoutBegin, "end_without_begin", kDropped,
     "the end of a range that never began; dropped"},
    {Reason::kBeginWithoutEnd, "begin_without_end", kAltered,
     "a range that never ended; closed where the trace ends"},
    {Reason::kPartialOverlap, "partial_overlap", kNote,
     "ranges of one thread that overlap without nesting; both kept"},
    {Reason::kQueueOverlap, "queue_overlap", kNote,
     "device work that starts before earlier work of its queue has ended; both kept"},
    {Reason::kDuplicate, "duplicate", kNote, "the same event twice"},
    {Reason::kUnknownCategory, "unknown_category", kNote,
     "a category this version does not know; kept as a plain range"},
    {Reason::kNotAnEvent, "not_an_event", kDropped, "a record that is no event; dropped"},
    {Reason::kMissingField, "missing_field", kAltered, "a record without a field that it needs"},
    {Reason::kFlowWithoutEnd, "flow_without_end", kNote, "an arrow of which one end is missing"},
    {Reason::kLaunchNotSeen, "launch_not_seen", kNote,
     "device work whose launch is not in the trace, such as work launched before it began"},
    {Reason::kNoCorrelation, "no_correlation", kNote,
     "device work that does not say which call launched it"},
    {Reason::kStartsBeforeLaunch, "starts_before_launch", kNote,
     "device work that starts before its launch call: the clocks disagree by at least that much"},
    {Reason::kCorrelationRange, "correlation_range", kAltered,
     "a correlation id too large to keep; the link is lost"},
    {Reason::kFramesFolded, "frames_folded", kAltered,
     "more distinct call paths than are kept; folded into their parents"},
    {Reason::kLate, "late", kDropped,
     "an event that came after later ones had been handed on; dropped"},
    {Reason::kDroppedByCollector, "dropped_by_collector", kDropped,
     "events that the collector had no room for"},
    {Reason::kCorruptChunk, "corrupt_chunk", kDropped,
     "a part of the file whose checksum is wrong; skipped"},
    {Reason::kClockUnaligned, "clock_unaligned", kNote,
     "the file does not say since when its times count: they cannot be compared with other files'"},
    {Reason::kFlowNotKept, "flow_not_kept", kNote,
     "an arrow that links neither a launch nor a backward pass; not kept"},
    {Reason::kRankUnknown, "rank_unknown", kNote,
     "the trace does not say which rank of a job it is of; it counts as rank 0"},
    {Reason::kNotRecorded, "not_recorded", kNote,
     "something that was not recorded: what is counted of it is unknown, not 0"},
    {Reason::kNotKept, "not_kept", kNote, "records of a kind that no tool here uses; not kept"},
    {Reason::kCollectorWarning, "collector_warning", kNote,
     "a warning that the collector wrote into the trace"},
    {Reason::kRounded, "rounded", kNote,
     "values that the source rounded: order and gaps finer than its steps mean nothing"},
    {Reason::kLetGo, "let_go", kNote,
     "events that were let go, because only the newest part was to be kept"},
    {Reason::kWorkUnderWay, "work_under_way", kDropped,
     "device work that had been launched and not been seen to end when its process ended"},
    {Reason::kNotJoined, "not_joined", kNote,
     "analysed launches that were not found in the run that has their times"},
    {Reason::kWrittenAlready, "written_already", kDropped,
     "events that are no longer in the run's folder, because the trace that it writes has them"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<std::size_t>(kReasons[i].reason) != i) return false;
  }
  return true;
}
static_assert(in_order(), "kReasons is indexed by Reason");

}  // namespace

std::span<const ReasonInfo> reasons() { return kReasons; }

const ReasonInfo& reason_info(Reason reason) {
  const auto index = static_cast<std::size_t>(reason);
  return kReasons[index < kReasons.size() ? index : 0];
}

Problem* Problems::find(Reason reason) {
  const auto it = std::find_if(list_.begin(), list_.end(),
                               [&](const Problem& p) { return p.reason == reason; });
  return it == list_.end() ? nullptr : &*it;
}

void Problems::add(Reason reason, std::uint64_t count, std::string_view first) {
  if (Problem* known = find(reason)) {
    known->count += count;
  } else {
    list_.push_back({reason, count, std::string(first)});
  }
}

Severity Problems::worst() const {
  Severity worst = Severity::kNote;
  for (const Problem& p : list_) worst = std::max(worst, reason_info(p.reason).severity);
  return worst;
}

}  // namespace pasta
