#include "tools/common/idle_time.h"

#include <algorithm>

#include "tools/common/saturate.h"

namespace pasta::tools {

std::int64_t sum(const CauseTimes& times) {
  std::int64_t total = 0;
  for (const std::int64_t time : times) total = add_saturated(total, time);
  return total;
}

std::size_t largest(const CauseTimes& times) {
  return static_cast<std::size_t>(std::max_element(times.begin(), times.end()) - times.begin());
}

bool Coverage::covers(std::int64_t now) {
  while (more_ && piece_.end <= now) more_ = reader_.next(piece_);
  return more_ && piece_.begin <= now;
}

IdleSplitter::IdleSplitter(const HostLevels& host) : any_host_(host.any_host) {
  for (const HostLevels::Level& level : host.levels) cursors_.emplace_back(level);
}

CauseTimes IdleSplitter::split(std::int64_t begin, std::int64_t end) {
  CauseTimes times{};
  for (std::int64_t now = begin; now < end;) {
    std::int64_t until = end;
    IdleCause cause = any_host_ ? IdleCause::kUnknown : IdleCause::kNoHostThread;
    for (Cursor& cursor : cursors_) {
      while (cursor.more && cursor.piece.end <= now) cursor.next();
      if (!cursor.more) continue;
      if (cursor.piece.begin <= now) {
        cause = cursor.cause;
        until = std::min(until, cursor.piece.end);
        break;
      }
      until = std::min(until, cursor.piece.begin);
    }
    std::int64_t& time = times[static_cast<std::size_t>(cause)];
    time = add_saturated(time, distance_saturated(now, until));
    now = until;
  }
  return times;
}

stats::Interval IdleSplitter::wait_at(std::int64_t now) {
  Cursor& cursor = cursors_.front();
  while (cursor.more && cursor.piece.end <= now) cursor.next();
  return cursor.more && cursor.piece.begin <= now ? cursor.piece : stats::Interval{now, now};
}

void PendingLaunches::add(const Event& call, const Dictionary& dictionary) {
  if (call.correlation == 0 || call.untimed()) return;
  const ApiRole& role = roles_.get(call.name, [&] { return api_role(dictionary.text(call.name)); });
  if (!role.may_launch) return;
  if (launched_.size() == kKept) {
    older_ = std::move(launched_);
    launched_.clear();
  }
  launched_[call.correlation] = {call.end_ns, role.launches_one()};
}

std::int64_t PendingLaunches::waited_since(const Event& work) {
  auto* from = &launched_;
  auto launch = from->find(work.correlation);
  if (launch == from->end()) {
    from = &older_;
    launch = from->find(work.correlation);
  }
  if (launch == from->end()) return kNoTime;
  const std::int64_t end_ns = launch->second.end_ns;
  if (launch->second.one) from->erase(launch);
  return end_ns < work.start_ns ? end_ns : kNoTime;
}

void WaitingWork::add(std::int64_t launched_ns, const Event& work) {
  // Work comes in order of its end, the set wants an order of starts. Where work that came before
  // started later, this one was running then, and the set may say anything.
  last_ns_ = std::max(last_ns_, work.start_ns);
  when_.add(launched_ns, last_ns_);
}

}  // namespace pasta::tools
