#include "tools/common/host_activity.h"

#include <algorithm>
#include <utility>

#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

using stats::Interval;
using stats::IntervalSet;

// What lasts longer is an activity of its own; what is shorter belongs to what is around it. In
// this time a host issues about a hundred kernels.
constexpr std::int64_t kLongNs = 1'000'000;

// A set with pauses shorter than kLongNs filled.
IntervalSet closed(const IntervalSet& set) {
  IntervalSet result;
  IntervalSet::Reader reader(set);
  Interval piece, next;
  if (!reader.next(piece)) return result;
  while (reader.next(next)) {
    if (distance_saturated(piece.end, next.begin) >= kLongNs) {
      result.add(piece.begin, piece.end);
      piece = next;
    } else {
      piece.end = next.end;
    }
  }
  result.add(piece.begin, piece.end);
  return result;
}

void join(IntervalSet& to, const IntervalSet& from) {
  if (from.empty()) return;
  to = to.empty() ? from : unite(to, from);
}

}  // namespace

bool same_program(ProcessId host, ProcessId queue, const Dictionary& dictionary) {
  if (queue == host) return true;
  // A process without an id stands for the program of its source.
  const Process owner = dictionary.process(queue);
  return owner.native_id == 0 && !owner.native_text &&
         owner.source == dictionary.process(host).source;
}

void HostActivity::add(const Event& event, const Dictionary& dictionary) {
  if ((event.flags & (kInstant | kAnnotation)) != 0) return;
  const auto domain = static_cast<ScopeDomain>(event.detail);
  const bool scope = event.kind == Kind::kScope;
  // Iteration marks cover everything and say nothing; the profiler's own work is not the program's.
  if (scope && (domain == ScopeDomain::kIteration || domain == ScopeDomain::kRuntime)) return;

  const std::size_t index = index_of_.get(event.lane, [&] {
    threads_.emplace_back().process = dictionary.lane(event.lane).process;
    return threads_.size() - 1;
  });
  Thread& thread = threads_[index];
  ApiRole role;
  if (event.kind == Kind::kApi) {
    role = roles_.get(event.name, [&] { return api_role(dictionary.text(event.name)); });
  }
  if (role.issues) thread.issues = true;
  if (event.untimed() || role.asks) return;
  // Calls end before the range around them does, so this range holds one exactly when the last one
  // began in it.
  if (role.issues) thread.last_issue_ns = std::max(thread.last_issue_ns, event.start_ns);
  const bool issues = thread.last_issue_ns >= event.start_ns;
  const bool takes_long = distance_saturated(event.start_ns, event.end_ns) >= kLongNs;
  const bool apart = takes_long && !issues;

  State state = kWork;
  if (event.kind == Kind::kSync || role.waits || (role.copies && takes_long)) {
    state = kWaiting;
  } else if (scope &&
             inputs_.get(event.name, [&] { return awaits_input(dictionary.text(event.name)); })) {
    state = kInput;
  } else if (!scope || domain == ScopeDomain::kOperator || domain == ScopeDomain::kModule) {
    state = apart ? kLongWork : kWork;
  } else if (domain == ScopeDomain::kPython) {
    state = apart ? kLongFrame : kFrame;
  } else if (issues) {
    return;  // a frame that somebody drew around the work says nothing of a moment in it
  } else {
    state = apart ? kLongFrame : kShortNamed;
  }
  thread.states[state].add(event.start_ns, event.end_ns);
  ranges_.add({event.start_ns, event.end_ns, event.name, static_cast<std::uint32_t>(index)});
}

std::vector<std::size_t> HostActivity::threads_of(std::span<const ProcessId> queue_processes,
                                                  const Dictionary& dictionary) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const bool belongs = std::any_of(
        queue_processes.begin(), queue_processes.end(),
        [&](ProcessId queue) { return same_program(threads_[i].process, queue, dictionary); });
    if (belongs) found.push_back(i);
  }
  return found;
}

HostLevels HostActivity::levels(std::span<const std::size_t> threads) const {
  HostLevels host;
  host.any_host = !threads.empty();
  enum { kSync, kInputs, kLaunch, kOtherSync, kOtherInputs, kBusy };
  host.levels = {{IdleCause::kSyncBound, {}},   {IdleCause::kInputBound, {}},
                 {IdleCause::kLaunchBound, {}}, {IdleCause::kSyncBound, {}},
                 {IdleCause::kInputBound, {}},  {IdleCause::kHostBusy, {}}};
  const auto level = [&](std::size_t i) -> IntervalSet& { return host.levels[i].when; };
  for (const std::size_t i : threads) {
    const auto& states = threads_[i].states;
    if (!threads_[i].issues) {
      // Frames and annotations of such a thread last as long as the thread itself does.
      join(level(kOtherSync), states[kWaiting]);
      join(level(kOtherInputs), states[kInput]);
      join(level(kBusy), states[kWork]);
      join(level(kBusy), states[kLongWork]);
      continue;
    }
    const IntervalSet apart = unite(states[kLongWork], states[kLongFrame]);
    join(level(kSync), states[kWaiting]);
    join(level(kInputs), states[kInput]);
    join(level(kLaunch), subtract(closed(unite(states[kWork], states[kFrame])), apart));
    join(level(kBusy), apart);
    join(level(kBusy), states[kShortNamed]);
  }
  return host;
}

StringId HostActivity::range_in(std::int64_t begin, std::int64_t end,
                                std::span<const std::size_t> threads) const {
  const auto issues = [&](std::size_t i) { return threads_[i].issues; };
  const bool any_issues = std::any_of(threads.begin(), threads.end(), issues);
  const Range* best = nullptr;
  for (const Range& range : ranges_.ranges()) {
    const std::int64_t from = std::max(begin, range.start_ns), to = std::min(end, range.end_ns);
    if (from >= to || distance_saturated(from, to) < distance_saturated(begin, end) / 2) continue;
    if (std::find(threads.begin(), threads.end(), range.thread) == threads.end()) continue;
    if (any_issues && !issues(range.thread)) continue;
    // Of ranges around one another, the innermost ends first.
    if (best == nullptr || distance_saturated(range.start_ns, range.end_ns) <
                               distance_saturated(best->start_ns, best->end_ns)) {
      best = &range;
    }
  }
  return best != nullptr ? best->name : StringId{};
}

}  // namespace pasta::tools
