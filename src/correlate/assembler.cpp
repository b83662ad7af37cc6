#include "correlate/assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "correlate/frame_map.h"
#include "correlate/host_pass.h"
#include "trace/sorted_runs.h"

namespace pasta::correlate {
namespace {

constexpr std::size_t kHostBatch = 8192;
constexpr std::size_t kAhead = 16;        // events between fetching a launch's entry and using it
constexpr std::size_t kPushBatch = 2048;  // 128 KiB: stays in the second-level cache

// What a launch can have caused, besides waits and, where a source knows the call but not the
// thread, allocations.
constexpr KindSet kLinkable = kDeviceWork | Kind::kSync | Kind::kAlloc | KindSet(Kind::kFree);

trace::SortedRuns::Options half(const Assembler::Options& options) {
  return {.memory_budget_bytes = options.memory_budget_bytes / 2, .scratch = options.scratch};
}

void forget_times(Event& event) {
  event.flags |= kUntimed;
  event.start_ns = event.end_ns = kNoTime;
}

}  // namespace

struct Assembler::Impl {
  using Order = trace::SortedRuns::Order;

  Impl(Dictionary& d, Problems& p, Options o)
      : dictionary(d),
        problems(p),
        options(std::move(o)),
        by_start(std::in_place, Order::kByStart, half(options)),
        by_end(Order::kByEnd, half(options)) {}

  bool on_queue(LaneId lane);
  Status place_hosts();
  Status shift_and_sort_again();
  FrameId hung_below(FrameId outer, FrameId own) const;
  void link(Event& event);
  // False, and the event untimed, when the shifted times do not fit.
  bool shift(Event& event) const;
  std::string where(const Event& event) const;

  Dictionary& dictionary;
  Problems& problems;
  Options options;
  std::optional<trace::SortedRuns> by_start;  // what has a place on a host thread; until finish()
  trace::SortedRuns by_end;
  FrameMap launches;
  FrameMap arrows;  // launches, by launch arrow
  std::vector<LaneType> lanes;
  std::vector<Event> batch;

  bool want_launch_flows = true;
  bool launch_flows = false;
  bool backward_flows = false;
  std::int64_t shift_ns = 0;
  bool linked = false;  // `by_end` holds events that are as they shall come out
  std::int64_t first_ns = kNoTime;
  // Of timed events as added.
  std::int64_t min_start = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_end = kNoTime;
};

bool Assembler::Impl::on_queue(LaneId lane) {
  for (std::uint32_t id = static_cast<std::uint32_t>(lanes.size()); id <= lane.value; ++id) {
    lanes.push_back(dictionary.lane(LaneId{id}).type);
  }
  return lanes[lane.value] == LaneType::kQueue;
}

Assembler::Assembler(Dictionary& dictionary, Problems& problems, Options options)
    : impl_(std::make_unique<Impl>(dictionary, problems, std::move(options))) {}
Assembler::~Assembler() = default;

Status Assembler::add(const Event& event) {
  Impl& a = *impl_;
  const bool queue = a.on_queue(event.lane);
  if (event.untimed()) {
    Event plain = event;
    forget_times(plain);
    if (!queue && event.correlation != 0) a.launches.insert({event.correlation, kNoTime, {}});
    return a.by_end.add(plain);
  }
  a.min_start = std::min(a.min_start, event.start_ns);
  a.max_end = std::max(a.max_end, event.end_ns);
  const bool may_need_arrow = a.want_launch_flows && event.correlation == 0 &&
                              kDeviceWork.has(event.kind) && (event.flags & kAnnotation) == 0;
  return queue && !may_need_arrow ? a.by_end.add(event) : a.by_start->add(event);
}

Status Assembler::add(const FlowEnd& flow) {
  Impl& a = *impl_;
  if (flow.at_ns == kNoTime) return {};
  Event mark{};
  mark.start_ns = flow.at_ns;
  mark.lane = flow.lane;
  mark.correlation = flow.id;
  bool head = !flow.source;
  if (flow.type == FlowEnd::Type::kLaunch) {
    if (!a.want_launch_flows || flow.id == 0) return {};
    a.launch_flows = true;
    head = a.on_queue(flow.lane);
    mark.kind = head ? kLaunchHead : kLaunchTail;
  } else {
    a.backward_flows = true;
    mark.kind = head ? kBackwardHead : kForwardTail;
    // Ids of these are not correlations, so 0 is one; as a key it is not.
    if (mark.correlation == 0) mark.correlation = ~std::uint64_t{0};
  }
  mark.end_ns =
      head ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
  return a.by_start->add(mark);
}

void Assembler::drop_launch_flows() { impl_->want_launch_flows = false; }

Status Assembler::Impl::place_hosts() {
  PASTA_TRY(by_start->finish());
  HostPass pass(dictionary, problems, launches, arrows,
                {.launch_flows = launch_flows && want_launch_flows,
                 .backward_by_flows = backward_flows,
                 .shift_ns = shift_ns});
  batch.resize(kHostBatch);
  std::size_t filled = 0;
  for (bool more = true; more || filled != 0;) {
    if (more) {
      const std::span<Event> room = std::span(batch).subspan(filled);
      const Result<std::size_t> n = by_start->read(room);
      if (!n) return tl::unexpected<Error>(n.error());
      more = *n == room.size();
      filled += *n;
    }
    std::size_t begin = 0;
    while (begin < filled) {
      std::size_t end = begin + 1;
      while (end < filled && batch[end].start_ns == batch[begin].start_ns) ++end;
      // The group may go on in the next batch; one that fills a whole batch is cut.
      if (end == filled && more && begin != 0) break;
      const std::span<Event> group = std::span(batch).subspan(begin, end - begin);
      for (std::size_t i = begin + kAhead; i < std::min(end + kAhead, filled); ++i) {
        launches.prefetch(batch[i].correlation);
      }
      pass.place(group);
      for (const Event& event : group) {
        if (!is_flow(event.kind)) PASTA_TRY(by_end.add(event));
      }
      begin = end;
    }
    std::move(batch.begin() + static_cast<std::ptrdiff_t>(begin),
              batch.begin() + static_cast<std::ptrdiff_t>(filled), batch.begin());
    filled -= begin;
  }
  by_start.reset();
  return {};
}

bool Assembler::Impl::shift(Event& event) const {
  if (event.untimed()) return true;
  std::int64_t start = 0;
  std::int64_t end = 0;
  if (__builtin_add_overflow(event.start_ns, shift_ns, &start) || start == kNoTime ||
      __builtin_add_overflow(event.end_ns, shift_ns, &end) || end == kNoTime) {
    forget_times(event);
    return false;
  }
  event.start_ns = start;
  event.end_ns = end;
  return true;
}

// Events that lose their times change their place in the order.
Status Assembler::Impl::shift_and_sort_again() {
  trace::SortedRuns shifted(Order::kByEnd, half(options));
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (;;) {
    const Result<std::size_t> n = by_end.read(batch);
    if (!n) return tl::unexpected<Error>(n.error());
    if (*n == 0) break;
    for (Event& event : std::span(batch).first(*n)) {
      link(event);
      const std::string place = event.untimed() ? std::string() : where(event);
      if (!shift(event))
        problems.add(Reason::kTimeOutOfRange, [&]() -> const std::string& { return place; });
      if (!event.untimed()) first = std::min(first, event.start_ns);
      PASTA_TRY(shifted.add(event));
    }
  }
  first_ns = first == std::numeric_limits<std::int64_t>::max() ? kNoTime : first;
  by_end = std::move(shifted);
  linked = true;
  return by_end.finish();
}

Status Assembler::finish(std::int64_t shift_ns) {
  Impl& a = *impl_;
  a.shift_ns = shift_ns;
  const std::uint64_t folded = a.dictionary.folded_frames();
  PASTA_TRY(a.place_hosts());
  if (const std::uint64_t now = a.dictionary.folded_frames(); now != folded) {
    a.problems.add(Reason::kFramesFolded, now - folded, "");
  }
  PASTA_TRY(a.by_end.finish());
  if (a.max_end == kNoTime) return {};
  Event extremes{};
  extremes.start_ns = a.min_start;
  extremes.end_ns = a.max_end;
  if (!a.shift(extremes)) return a.shift_and_sort_again();
  a.first_ns = extremes.start_ns;
  return {};
}

std::int64_t Assembler::first_ns() const { return impl_->first_ns; }

// What the source says itself of where work comes from lies in what its launch lies in, unless that
// says the same.
FrameId Assembler::Impl::hung_below(FrameId outer, FrameId own) const {
  FrameId known = outer, said = own;
  for (; known && said; known = dictionary.frame(known).parent) {
    const Frame ours = dictionary.frame(known), theirs = dictionary.frame(said);
    if (ours.name != theirs.name || ours.domain != theirs.domain) break;
    said = theirs.parent;
  }
  if (!said) return outer;
  Frame frame = dictionary.frame(own);
  frame.parent = hung_below(outer, frame.parent);
  return dictionary.frame(frame);
}

void Assembler::Impl::link(Event& event) {
  if (!kLinkable.has(event.kind) || !on_queue(event.lane) || (event.flags & kAnnotation) != 0) {
    return;
  }
  const bool by_arrow = event.scope == kByArrow;
  const FrameMap& from = by_arrow ? arrows : launches;
  if (by_arrow) event.scope = {};
  const bool work = kDeviceWork.has(event.kind);
  if (event.correlation == 0) {
    // Nobody launches a migration of unified memory.
    const bool migration = event.kind == Kind::kCopy &&
                           event.detail == static_cast<std::uint16_t>(CopyDirection::kMigration);
    if (work && !migration) problems.add(Reason::kNoCorrelation, [&] { return where(event); });
    return;
  }
  const FrameEntry* launch = from.find(event.correlation);
  if (launch == nullptr) {
    if (work) problems.add(Reason::kLaunchNotSeen, [&] { return where(event); });
    return;
  }
  const std::uint64_t folded = dictionary.folded_frames();
  event.scope = hung_below(launch->frame, event.scope);
  if (const std::uint64_t now = dictionary.folded_frames(); now != folded) {
    problems.add(Reason::kFramesFolded, now - folded, "");
  }
  event.flags |= kLinked;
  const std::int64_t launched_ns = launch->at_ns;
  if (event.untimed() || launched_ns == kNoTime || event.start_ns >= launched_ns) return;
  event.flags |= kSkewed;
  problems.add(Reason::kStartsBeforeLaunch, [&] {
    return fmt::format("{}, launch delay {} ns", where(event), event.start_ns - launched_ns);
  });
}

std::string Assembler::Impl::where(const Event& event) const {
  const std::string_view kind = kind_name(event.kind);
  const std::string_view name = dictionary.text(event.name);
  if (event.untimed()) return fmt::format("{} \"{}\" without a time", kind, name);
  return fmt::format("{} \"{}\" at {} ns", kind, name, shown(event.start_ns, shift_ns));
}

Result<bool> Assembler::emit(EventSink& sink, std::size_t max_events) {
  Impl& a = *impl_;
  a.batch.resize(kPushBatch);
  for (std::size_t left = std::max<std::size_t>(max_events, 1); left != 0;) {
    const std::span<Event> room = std::span(a.batch).first(std::min(left, kPushBatch));
    const Result<std::size_t> n = a.by_end.read(room);
    if (!n) return tl::unexpected<Error>(n.error());
    const std::span<Event> events = room.first(*n);
    if (!a.linked) {
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (i + kAhead < events.size()) a.launches.prefetch(events[i + kAhead].correlation);
        a.link(events[i]);
        a.shift(events[i]);
      }
    }
    if (!events.empty()) {
      sink.push(events);
      if (!events.back().untimed()) sink.advance(events.back().end_ns);
    }
    if (events.size() < room.size()) return false;
    left -= events.size();
  }
  return true;
}

}  // namespace pasta::correlate
