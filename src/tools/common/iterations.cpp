#include "tools/common/iterations.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "tools/common/api_role.h"
#include "tools/common/cycle.h"
#include "tools/common/iteration_marks.h"
#include "tools/common/launch_log.h"
#include "tools/common/memo.h"
#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

// What makes two pieces of device work the same, whatever their sizes: these follow the batch.
class Symbols {
 public:
  std::uint32_t of(const Event& work) {
    WorkSort sort = WorkSort::kOther;
    std::uint64_t what = work.kind == Kind::kCopy ? 1u + work.detail : 0u;
    if (work.kind == Kind::kKernel) {
      sort = WorkSort::kCompute;
      what = work.name.value;
    } else if (work.kind == Kind::kCopy) {
      const auto direction = static_cast<CopyDirection>(work.detail);
      if (direction == CopyDirection::kDeviceToHost) sort = WorkSort::kToHost;
      if (direction == CopyDirection::kHostToDevice) sort = WorkSort::kToDevice;
    }
    const std::uint32_t symbol = id(what << 2 | static_cast<std::uint64_t>(sort), sort);
    if (symbol >> 2 == names_.size()) names_.push_back(work.name);
    return symbol;
  }
  // That of the first work with this symbol; not of a group.
  [[nodiscard]] StringId name(std::uint32_t symbol) const {
    return symbol >> 2 < names_.size() ? names_[symbol >> 2] : StringId{};
  }
  // Of all that one call launched: a graph. The order in which its branches ran does not count.
  std::uint32_t of_group(std::uint64_t signature) {
    return id(signature | std::uint64_t{1} << 63, WorkSort::kCompute);
  }

 private:
  std::uint32_t id(std::uint64_t key, WorkSort sort) {
    const auto next = static_cast<std::uint32_t>(ids_.size() << 2);
    return ids_.try_emplace(key, next | static_cast<std::uint32_t>(sort)).first->second;
  }
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
  std::vector<StringId> names_;  // groups come after all of these
};

struct ProcessWork {
  LaunchLog log;
  MarkCollector marks;
  Symbols symbols;
  std::uint64_t untimed = 0;
  std::uint64_t lost = 0;
};

using Histogram = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // symbol, count; ascending

// What differs: the larger of what is missing and what is too much, so that one kernel in place of
// another is one edit. The order does not count: that of several queues is not always the same.
std::uint64_t edits(const Histogram& a, const Histogram& b) {
  std::uint64_t missing = 0, added = 0;
  auto x = a.begin(), y = b.begin();
  while (x != a.end() || y != b.end()) {
    if (y == b.end() || (x != a.end() && x->first < y->first)) {
      missing += (x++)->second;
    } else if (x == a.end() || y->first < x->first) {
      added += (y++)->second;
    } else {
      missing += x->second > y->second ? x->second - y->second : 0;
      added += y->second > x->second ? y->second - x->second : 0;
      ++x, ++y;
    }
  }
  return std::max(missing, added);
}

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15u;
  return (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9u;
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Which iteration holds a launch.
class KeyRanges {
 public:
  KeyRanges() = default;
  explicit KeyRanges(std::span<const Iteration> list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].first_key <= list[i].last_key) {
        ranges_.push_back({list[i].first_key, list[i].last_key, static_cast<std::uint32_t>(i)});
      }
    }
  }
  // Takes no time where the launch before lay in the same iteration.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t key) {
    if (ranges_.empty()) return std::nullopt;
    if (!ranges_[at_].holds(key)) {
      auto next = std::ranges::upper_bound(ranges_, key, {}, &Range::first);
      if (next == ranges_.begin()) return std::nullopt;
      at_ = static_cast<std::size_t>(next - ranges_.begin()) - 1;
      if (!ranges_[at_].holds(key)) return std::nullopt;
    }
    return ranges_[at_].iteration;
  }

 private:
  struct Range {
    std::uint64_t first, last;
    std::uint32_t iteration;
    [[nodiscard]] bool holds(std::uint64_t key) const { return first <= key && key <= last; }
  };
  std::vector<Range> ranges_;
  std::size_t at_ = 0;
};

// Counts what each iteration holds.
void count(const LaunchLog& log, IterationRun& run) {
  KeyRanges ranges(run.list);
  LaunchRecord record;
  std::int64_t all_ns = 0, inside_ns = 0;
  for (LaunchLog::Reader reader(log); reader.next(record);) {
    const std::int64_t took = distance_saturated(record.start_ns, record.end_ns);
    all_ns = add_saturated(all_ns, took);
    const auto at = ranges.find(record.key);
    if (!at) continue;
    Iteration& one = run.list[*at];
    ++one.device_events;
    one.kernels += sort_of(record.symbol) == WorkSort::kCompute ? 1 : 0;
    one.device_ns = add_saturated(one.device_ns, took);
    inside_ns = add_saturated(inside_ns, took);
    if (one.device_start_ns == kNoTime || record.start_ns < one.device_start_ns) {
      one.device_start_ns = record.start_ns;
    }
    one.device_end_ns = std::max(one.device_end_ns, record.end_ns);  // kNoTime is the smallest
  }
  run.coverage = all_ns > 0 ? static_cast<double>(inside_ns) / static_cast<double>(all_ns) : 0;
}

// Marks are on the host's time; an iteration lasts until its device work is done.
void stretch_to_device(IterationRun& run) {
  std::int64_t before = std::numeric_limits<std::int64_t>::min();
  for (Iteration& one : run.list) {
    if (one.start_ns == std::numeric_limits<std::int64_t>::min() + 1) {
      // Only its end is marked: it begins with the first work that is known of it.
      one.start_ns = one.device_events > 0 ? std::min(one.device_start_ns, one.end_ns) : one.end_ns;
      one.whole = false;
    }
    one.start_ns = std::max(one.start_ns, before);
    one.end_ns = std::max(one.end_ns, one.start_ns);
    if (one.device_events > 0) one.end_ns = std::max(one.end_ns, one.device_end_ns);
    before = one.end_ns;
  }
}

// The launches of a process, or of one of its queues, as the miner sees them.
class Sequence {
 public:
  static constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();

  // Calls take(first record, symbol, pause code, pieces of work) for each launch. What one call
  // launched is one.
  template <class Take>
  static void walk(const LaunchLog& log, Symbols& symbols, std::uint32_t queue, Take&& take) {
    LaunchRecord record, first;
    std::int64_t before = kNoTime, done = kNoTime;
    WorkSort before_sort = WorkSort::kOther;
    std::uint64_t signature = 0;
    std::size_t held = 0;
    const auto give = [&] {
      if (held == 0) return;
      std::int64_t pause = 0;
      if (first.launch_ns != kNoTime && before != kNoTime) {
        pause = distance_saturated(std::min(before, first.launch_ns), first.launch_ns);
      } else if (done != kNoTime) {
        pause = distance_saturated(std::min(done, first.start_ns), first.start_ns);
      }
      // The host waits for its input, too: that is within it.
      const bool waited = first.waited && before_sort != WorkSort::kToDevice;
      take(first, held == 1 ? first.symbol : symbols.of_group(signature),
           static_cast<std::uint16_t>(pause_code(pause) | (waited ? kHostWaited : 0)), held);
      before_sort = sort_of(first.symbol);
      before = first.launch_ns;
    };
    for (LaunchLog::Reader reader(log); reader.next(record);) {
      if (queue != kAll && record.queue != queue) continue;
      if (held == 0 || record.key != first.key || !log.by_correlation()) {
        give();
        first = record;
        signature = 0;
        held = 0;
      }
      signature += mixed(record.symbol + 1);
      ++held;
      done = std::max(done, record.end_ns);
    }
    give();
  }

  Sequence(const LaunchLog& log, Symbols& symbols, std::uint32_t queue) {
    symbols_.reserve(log.size());  // at most; a vector that doubles would hold twice as much
    pauses_.reserve(log.size());
    bool seen = false;
    walk(log, symbols, queue,
         [&](const LaunchRecord& record, std::uint32_t symbol, std::uint16_t pause,
             std::size_t pieces) {
           if (!seen && record.launch_ns != kNoTime) {
             first_seen_ = symbols_.size();
             seen = true;
           }
           symbols_.push_back(symbol);
           pauses_.push_back(pause);
           if (pieces > 1 && pieces_.empty()) pieces_.resize(symbols_.size() - 1, 1);
           if (pieces > 1 || !pieces_.empty()) pieces_.push_back(narrowed(pieces));
         });
  }
  [[nodiscard]] Launches launches() const { return {symbols_, pauses_, first_seen_, pieces_}; }

 private:
  std::vector<std::uint32_t> symbols_;
  static std::uint32_t narrowed(std::size_t pieces) {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(pieces, std::numeric_limits<std::uint32_t>::max()));
  }

  std::vector<std::uint16_t> pauses_;
  std::vector<std::uint32_t> pieces_;  // empty until a launch is more than one
  std::size_t first_seen_ = 0;
};

// The queue that worked longest; kAll if there is but one.
std::uint32_t main_queue(const LaunchLog& log) {
  if (log.queues() < 2) return Sequence::kAll;
  std::vector<std::int64_t> worked(log.queues());
  LaunchRecord record;
  for (LaunchLog::Reader reader(log); reader.next(record);) {
    worked[record.queue] =
        add_saturated(worked[record.queue], distance_saturated(record.start_ns, record.end_ns));
  }
  return static_cast<std::uint32_t>(std::ranges::max_element(worked) - worked.begin());
}

void mine(ProcessWork& of, IterationRun& run) {
  if (of.log.size() == 0) {
    run.abstained = "no device work with times";
    return;
  }
  std::uint32_t queue = Sequence::kAll;
  Cycle cycle = find_cycle(Sequence(of.log, of.symbols, queue).launches());
  if (cycle.starts.empty()) {
    // Several loops at once have no common order; the main one may have one.
    queue = main_queue(of.log);
    Cycle main;
    if (queue != Sequence::kAll) {
      main = find_cycle(Sequence(of.log, of.symbols, queue).launches());
    }
    if (main.starts.empty()) {
      run.abstained = cycle.abstained;
      return;
    }
    cycle = std::move(main);
  }
  run.origin = IterationOrigin::kMined;
  run.confidence = cycle.confidence;
  run.list.resize(cycle.starts.size());
  std::size_t at = 0, next = 0;
  Sequence::walk(of.log, of.symbols, queue, [&](const LaunchRecord& record, auto...) {
    if (next < cycle.starts.size() && at == cycle.starts[next]) {
      run.list[next].first_key = record.key;
      ++next;
    }
    if (next > 0 && at < cycle.end) {
      run.list[next - 1].last_key = std::max(run.list[next - 1].last_key, record.key);
    }
    ++at;
  });
  // What other queues launch between the last of one iteration and the first of the next.
  for (std::size_t i = 0; i + 1 < run.list.size(); ++i) {
    run.list[i].last_key = std::max(run.list[i].last_key, run.list[i + 1].first_key - 1);
  }
  if (cycle.partial_first) run.list.front().phase = IterationPhase::kPartial;
  if (cycle.partial_last) run.list.back().phase = IterationPhase::kPartial;
}

// Mined iterations follow each other without a gap on the device's time.
void join_device_times(IterationRun& run) {
  std::int64_t before = std::numeric_limits<std::int64_t>::min();
  for (Iteration& one : run.list) {
    one.start_ns = std::max(one.device_start_ns, before);
    one.end_ns = std::max(one.device_end_ns, one.start_ns);
    before = one.start_ns;
  }
  for (std::size_t i = 0; i + 1 < run.list.size(); ++i) {
    run.list[i].end_ns = run.list[i + 1].start_ns;
  }
  run.list.back().whole = false;
}

// What the typical iteration does, and by how much each differs from it.
class Comparison {
 public:
  Comparison(const LaunchLog& log, std::span<const Iteration> list) : log_(log), list_(list) {
    std::vector<std::uint64_t> signatures(list.size());
    KeyRanges ranges(list);
    LaunchRecord record;
    for (LaunchLog::Reader reader(log); reader.next(record);) {
      if (const auto at = ranges.find(record.key)) signatures[*at] += mixed(record.symbol + 1);
    }
    choose(signatures);
    each([&](std::size_t i, const Histogram& histogram) {
      if (i == typical_) template_ = histogram;
    });
  }

  [[nodiscard]] std::size_t typical() const { return typical_; }

  // Calls take(index, edits, saves, added): edits against the typical iteration, how many of its
  // device events are copies to the host, how many are nowhere in the typical one.
  template <class Take>
  void differences(Take&& take) {
    each([&](std::size_t i, const Histogram& histogram) {
      std::uint64_t saves = 0, foreign = 0;
      for (const auto& [symbol, times] : histogram) {
        if (sort_of(symbol) == WorkSort::kToHost) saves += times;
        const auto same = std::ranges::lower_bound(template_, symbol, {}, &Count::first);
        if (same == template_.end() || same->first != symbol) foreign += times;
      }
      take(i, edits(template_, histogram), saves, foreign);
    });
  }

 private:
  using Count = Histogram::value_type;

  void choose(const std::vector<std::uint64_t>& signatures) {
    std::unordered_map<std::uint64_t, std::size_t> seen;
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].device_events == 0) continue;
      ++seen[signatures[i]];
      sizes.push_back(static_cast<std::int64_t>(list_[i].device_events));
    }
    std::size_t most = 0;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].device_events == 0) continue;
      const std::size_t times = seen[signatures[i]];
      // Of equals the last: the first ones are warm-up.
      if (times >= most) most = times, typical_ = i;
    }
    if (most >= 2) return;
    // No two are the same: the one of middle size.
    const std::int64_t size = median(std::move(sizes));
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (static_cast<std::int64_t>(list_[i].device_events) == size) typical_ = i;
    }
  }

  template <class Take>
  void each(Take&& take) {
    KeyRanges ranges(list_);
    LaunchRecord record;
    std::map<std::uint32_t, std::uint64_t> counts;
    Histogram histogram;
    std::optional<std::uint32_t> current;
    const auto give = [&] {
      if (!current) return;
      histogram.assign(counts.begin(), counts.end());
      take(*current, histogram);
      counts.clear();
    };
    for (LaunchLog::Reader reader(log_); reader.next(record);) {
      const auto at = ranges.find(record.key);
      if (!at) continue;
      if (at != current) give(), current = at;
      ++counts[record.symbol];
    }
    give();
  }

  const LaunchLog& log_;
  std::span<const Iteration> list_;
  std::size_t typical_ = 0;
  Histogram template_;
};

// Which iterations are alike, and what the others are.
void tell_phases(const LaunchLog& log, IterationRun& run) {
  if (run.list.empty()) return;
  Comparison comparison(log, run.list);
  const Iteration typical = run.list[comparison.typical()];
  run.period = typical.device_events;
  const std::uint64_t size = typical.device_events;
  comparison.differences(
      [&](std::size_t i, std::uint64_t edits, std::uint64_t saves, std::uint64_t foreign) {
        Iteration& one = run.list[i];
        one.edits = edits;
        if (one.phase == IterationPhase::kPartial) return;  // known from its place
        if (edits * 5 <= size) {
          one.phase = IterationPhase::kSteady;
        } else if (saves * 2 > one.device_events) {
          one.phase = IterationPhase::kCheckpoint;
        } else if (one.device_events * 10 <= size * 7 && foreign * 4 <= one.device_events) {
          one.phase = IterationPhase::kEvaluation;
        }
      });
  const auto steady = [&](const Iteration& one) { return one.phase == IterationPhase::kSteady; };
  if (size == 0) {  // marks without device work: nothing to compare but their times
    for (Iteration& one : run.list) one.phase = IterationPhase::kSteady;
  }
  const auto first = std::ranges::find_if(run.list, steady);
  for (auto one = run.list.begin(); one != first; ++one) {
    if (one->phase != IterationPhase::kCheckpoint && one->phase != IterationPhase::kPartial) {
      one->phase = IterationPhase::kWarmUp;
    }
  }
  // The same work, much slower, at the beginning: caches, allocators and clocks were cold.
  std::vector<std::int64_t> times;
  for (const Iteration& one : run.list) {
    if (steady(one) && one.whole) times.push_back(one.duration_ns());
  }
  const std::int64_t middle = median(times);
  std::size_t left = times.size() / 2;
  for (auto one = first; one != run.list.end() && left > 0; ++one, --left) {
    if (!steady(*one) || one->duration_ns() / 3 * 2 <= middle) break;
    one->phase = IterationPhase::kWarmUp;
  }
  for (const Iteration& one : run.list) {
    if (!steady(one)) continue;
    ++run.repeats;
    run.edits += one.edits;
  }
}

bool only_waits(std::string_view call) {
  const ApiRole role = api_role(call);
  return role.waits && !role.issues && !role.may_launch;
}

}  // namespace

MarksUse marks_use(std::string_view text) {
  if (text == "ignore") return MarksUse::kIgnore;
  return text == "only" ? MarksUse::kOnly : MarksUse::kUse;
}

std::string_view phase_name(IterationPhase phase) {
  constexpr std::array<std::string_view, 6> kNames = {"warm-up",    "steady",  "evaluation",
                                                      "checkpoint", "partial", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

struct Iterations::Impl {
  explicit Impl(MarksUse given) : marks(given) {}

  void add(const Event& event, const Dictionary& dictionary);
  void decide(ProcessWork& of, IterationRun& run) const;
  static void end_before_input(const ProcessWork& of, std::vector<IterationMark>& marks);
  void take_marks(const ProcessWork& of, IterationMarks found, IterationRun& run) const;

  // Some sources give the queues of a device a process of their own. What launches and is launched
  // shares the process in its correlation.
  struct Home {
    std::uint32_t process;   // of the lane
    std::uint32_t launches;  // of the newest correlation seen on it; at first the same
  };
  Home& home_of(const Event& event, const Dictionary& dictionary);
  ProcessWork& at(std::uint32_t process);
  void move_marks();

  MarksUse marks;
  Memo<LaneId, Home> homes;
  Memo<StringId, bool> waits;  // by the name of a call
  std::map<ProcessId, ProcessWork> work;
  std::vector<ProcessWork*> by_process;
  std::vector<std::uint32_t> launches_of;  // by process of a host lane: of its correlations
  std::vector<IterationRun> runs;
  std::vector<std::uint32_t> run_of;       // by process
  mutable std::vector<KeyRanges> members;  // by run; finding moves a cursor
};

Iterations::Iterations(MarksUse marks) : impl_(std::make_unique<Impl>(marks)) {}
Iterations::~Iterations() = default;
Iterations::Iterations(Iterations&&) noexcept = default;
Iterations& Iterations::operator=(Iterations&&) noexcept = default;

std::span<const IterationRun> Iterations::runs() const { return impl_->runs; }

Iterations::Impl::Home& Iterations::Impl::home_of(const Event& event,
                                                  const Dictionary& dictionary) {
  Home& home = homes.get(event.lane, [&] {
    const std::uint32_t process = dictionary.lane(event.lane).process.value;
    return Home{process, process};
  });
  const ProcessId launcher = correlation_process(event.correlation);
  if (launcher) home.launches = launcher.value;  // text need not name one
  return home;
}

ProcessWork& Iterations::Impl::at(std::uint32_t process) {
  if (process >= by_process.size()) by_process.resize(std::size_t{process} + 1);
  ProcessWork*& of = by_process[process];
  if (of == nullptr) of = &work[ProcessId{process}];
  return *of;
}

void Iterations::Impl::add(const Event& event, const Dictionary& dictionary) {
  const Home& home = home_of(event, dictionary);
  switch (event.kind) {
    case Kind::kApi:
      if (waits.get(event.name, [&] { return only_waits(dictionary.text(event.name)); })) {
        at(home.launches).log.add_wait(event);
        return;
      }
      if (event.correlation == 0) return;
      if (home.process >= launches_of.size()) launches_of.resize(std::size_t{home.process} + 1);
      launches_of[home.process] = home.launches;
      at(home.launches).log.add_call(event);
      return;
    case Kind::kScope:
      at(home.process).marks.add(event, dictionary);
      return;
    case Kind::kGap:
      at(home.launches).lost += event.gap.lost;
      return;
    case Kind::kCounter:
      return;
    default:
      break;
  }
  ProcessWork& of = at(home.launches);
  if (event.untimed()) {
    ++of.untimed;
  } else {
    of.log.add(event, of.symbols.of(event));
  }
}

// Marks are on host lanes: brings them to the work that these launched.
void Iterations::Impl::move_marks() {
  const auto works = [](const auto& one) { return one.second.log.size() > 0; };
  const bool one_works = std::ranges::count_if(work, works) == 1;
  for (auto& [process, of] : work) {
    std::uint32_t to = process.value < launches_of.size() ? launches_of[process.value] : 0;
    // No call says what this process launched, but there is only one that it can be.
    if (to == 0 && one_works) to = std::ranges::find_if(work, works)->first.value;
    if (to != 0 && to != process.value) at(to).marks.take(of.marks);
  }
}

void Iterations::consume(std::span<const Event> events, const Context& context) {
  for (const Event& event : events) impl_->add(event, context.dictionary());
}

void Iterations::finish(const Context&) {
  for (auto& [process, work] : impl_->work) work.log.close();
  impl_->move_marks();
  for (auto& [process, work] : impl_->work) {
    IterationRun run{.process = process, .marks = {}, .abstained = {}, .list = {}};
    run.lost = work.lost;
    impl_->decide(work, run);
    if (work.log.size() == 0 && run.list.empty()) continue;
    if (process.value >= impl_->run_of.size()) impl_->run_of.resize(std::size_t{process.value} + 1);
    impl_->runs.push_back(std::move(run));
    impl_->members.emplace_back(impl_->runs.back().list);
    impl_->run_of[process.value] = static_cast<std::uint32_t>(impl_->runs.size());
  }
}

std::optional<IterationMember> Iterations::member(const Event& work) const {
  const ProcessId launcher = correlation_process(work.correlation);
  const std::uint32_t process =
      launcher ? launcher.value : impl_->homes.get(work.lane, [] { return Impl::Home{}; }).launches;
  const std::uint32_t run = process < impl_->run_of.size() ? impl_->run_of[process] : 0;
  if (run == 0 || work.untimed()) return std::nullopt;
  const std::uint64_t key = impl_->by_process[process]->log.key_of(work);
  const auto iteration = impl_->members[run - 1].find(key);
  if (!iteration) return std::nullopt;
  return IterationMember{run - 1, *iteration};
}

IterationExcess Iterations::excess(std::size_t run, std::size_t iteration) const {
  const IterationRun& of = impl_->runs[run];
  const ProcessWork& work = impl_->work.at(of.process);
  struct Part {
    std::int64_t usual_ns = 0, here_ns = 0, usual_wait_ns = 0, here_wait_ns = 0;
  };
  std::unordered_map<std::uint32_t, Part> parts;  // by symbol
  KeyRanges ranges(of.list);
  std::int64_t done = kNoTime;
  LaunchRecord record;
  for (LaunchLog::Reader reader(work.log); reader.next(record);) {
    const std::int64_t wait =
        done == kNoTime ? 0 : distance_saturated(std::min(done, record.start_ns), record.start_ns);
    done = std::max(done, record.end_ns);
    const auto at = ranges.find(record.key);
    if (!at) continue;
    const std::int64_t took = distance_saturated(record.start_ns, record.end_ns);
    Part& part = parts[record.symbol];
    if (*at == iteration) {
      part.here_ns = add_saturated(part.here_ns, took);
      part.here_wait_ns = add_saturated(part.here_wait_ns, wait);
    } else if (of.list[*at].phase == IterationPhase::kSteady) {
      part.usual_ns = add_saturated(part.usual_ns, took);
      part.usual_wait_ns = add_saturated(part.usual_wait_ns, wait);
    }
  }
  const auto others = static_cast<std::int64_t>(of.repeats) -
                      (of.list[iteration].phase == IterationPhase::kSteady ? 1 : 0);
  IterationExcess most;
  if (others <= 0) return most;
  std::uint32_t work_symbol = 0, wait_symbol = 0;
  for (const auto& [symbol, part] : parts) {
    const std::int64_t more = part.here_ns - part.usual_ns / others;
    const std::int64_t waited = part.here_wait_ns - part.usual_wait_ns / others;
    // Of equals the first to occur, so that the answer does not depend on a table's order.
    if (more > most.work_ns || (more == most.work_ns && more > 0 && symbol < work_symbol)) {
      most.work_ns = more, work_symbol = symbol, most.work = work.symbols.name(symbol);
    }
    if (waited > most.wait_ns || (waited == most.wait_ns && waited > 0 && symbol < wait_symbol)) {
      most.wait_ns = waited, wait_symbol = symbol, most.waited_for = work.symbols.name(symbol);
    }
  }
  return most;
}

// An optimizer's step is not always the last that an iteration does: it may add up its loss. Where
// the host launches a little more and then waits longest before it brings the next input, that
// little belongs to the iteration that ends.
void Iterations::Impl::end_before_input(const ProcessWork& of, std::vector<IterationMark>& marks) {
  const std::size_t most = of.log.size() / marks.size() / 8;  // launches that are a little
  std::vector<std::size_t> more;                              // launches by which marks end later
  std::size_t at = 0;  // the mark whose end was passed last, plus one
  struct {
    std::size_t launches = 0;
    std::int64_t pause = -1;
    std::size_t before = 0;         // launches before the longest pause
    std::int64_t end_ns = kNoTime;  // of the mark then
    bool done = true;
  } tail;
  std::vector<std::int64_t> after;  // the last mark's end: launches
  std::int64_t last_ns = kNoTime;
  LaunchRecord record;
  for (LaunchLog::Reader reader(of.log); reader.next(record);) {
    if (record.launch_ns == kNoTime) continue;
    while (at < marks.size() && marks[at].end_ns <= record.launch_ns) ++at, tail = {.done = false};
    if (at == marks.size() && after.size() < most) after.push_back(record.launch_ns);
    if (!tail.done) {
      const std::int64_t pause = last_ns == kNoTime ? 0 : record.launch_ns - last_ns;
      if (pause > tail.pause) {
        tail.pause = pause;
        tail.before = tail.launches;
        tail.end_ns = tail.launches == 0 ? kNoTime : last_ns + 1;
      }
      tail.done = sort_of(record.symbol) == WorkSort::kToDevice || ++tail.launches > most;
      if (sort_of(record.symbol) == WorkSort::kToDevice && at < marks.size()) {
        more.push_back(tail.before);
        if (tail.end_ns != kNoTime) marks[at - 1].end_ns = marks[at].start_ns = tail.end_ns;
      }
    }
    last_ns = record.launch_ns;
  }
  if (more.empty()) return;
  // Nothing follows the last: as much as usual.
  std::ranges::nth_element(more, more.begin() + static_cast<std::ptrdiff_t>(more.size() / 2));
  const std::size_t usual = std::min(more[more.size() / 2], after.size());
  if (usual > 0) marks.back().end_ns = after[usual - 1] + 1;
}

// Gives each mark the launches that the host made in it.
void Iterations::Impl::take_marks(const ProcessWork& of, IterationMarks found,
                                  IterationRun& run) const {
  run.origin = IterationOrigin::kMarks;
  if (found.ends_only) end_before_input(of, found.list);
  run.marks = std::move(found.name);
  run.confidence = 1;
  run.list.resize(found.list.size());
  constexpr std::uint64_t kNoKey = std::numeric_limits<std::uint64_t>::max();
  for (Iteration& one : run.list) one.first_key = kNoKey, one.last_key = 0;
  LaunchRecord record;
  for (LaunchLog::Reader reader(of.log); reader.next(record);) {
    const std::int64_t at = record.launch_ns == kNoTime ? record.start_ns : record.launch_ns;
    if (record.launch_ns == kNoTime && of.log.calls_seen()) continue;  // launched before the trace
    const auto next = std::ranges::upper_bound(found.list, at, {}, &IterationMark::start_ns);
    if (next == found.list.begin() || at >= std::prev(next)->end_ns) continue;
    Iteration& one = run.list[static_cast<std::size_t>(next - found.list.begin()) - 1];
    one.first_key = std::min(one.first_key, record.key);
    one.last_key = std::max(one.last_key, record.key);
  }
  std::uint64_t taken = 0;
  for (Iteration& one : run.list) {  // one launch lies in one iteration
    if (one.first_key > one.last_key) continue;
    one.first_key = std::max(one.first_key, taken);
    taken = std::max(taken, one.last_key + 1);
  }
  for (std::size_t i = 0; i < run.list.size(); ++i) {
    run.list[i].start_ns = found.list[i].start_ns;
    run.list[i].end_ns = found.list[i].end_ns;
    run.list[i].number = found.list[i].number;
  }
}

void Iterations::Impl::decide(ProcessWork& of, IterationRun& run) const {
  IterationMarks found = marks == MarksUse::kIgnore ? IterationMarks{} : of.marks.best();
  if (!found.list.empty()) {
    take_marks(of, std::move(found), run);
    count(of.log, run);
    stretch_to_device(run);
    tell_phases(of.log, run);
    return;
  }
  if (marks == MarksUse::kOnly) {
    run.abstained = "the trace holds no marks of iterations";
    return;
  }
  mine(of, run);
  if (run.list.empty()) return;
  count(of.log, run);
  join_device_times(run);
  tell_phases(of.log, run);
  const auto others = static_cast<std::uint64_t>(
      std::ranges::count(run.list, IterationPhase::kOther, &Iteration::phase));
  if (run.repeats < 2 || others > run.repeats) {
    // One queue repeats, but what the others do meanwhile does not.
    run = {.process = run.process,
           .marks = {},
           .abstained = "what repeats on one queue does not on the others",
           .lost = run.lost,
           .list = {}};
  }
}

}  // namespace pasta::tools
