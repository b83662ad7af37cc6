#include "correlate/host_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "event/path_nodes.h"

namespace pasta::correlate {
namespace {

// Kinds that take time on a host thread and can hold others.
constexpr KindSet kRanges = Kind::kApi | Kind::kScope | Kind::kSync | Kind::kKernel | Kind::kCopy |
                            Kind::kFill | Kind::kFault;

bool holds_others(const Event& event) {
  return kRanges.has(event.kind) && (event.flags & kInstant) == 0;
}

// Key of a forward operator; 0 when lane or sequence are too large to be kept apart.
std::uint64_t sequence_key(LaneId lane, std::uint64_t sequence) {
  constexpr unsigned kSequenceBits = 40;
  if (sequence >> kSequenceBits != 0 || lane.value >> (64 - kSequenceBits) != 0) return 0;
  return std::uint64_t{lane.value} << kSequenceBits | sequence;
}

}  // namespace

HostPass::HostPass(Dictionary& dictionary, Problems& problems, FrameMap& launches, FrameMap& arrows,
                   Options options)
    : dictionary_(dictionary),
      problems_(problems),
      launches_(launches),
      arrows_(arrows),
      options_(options) {}

HostPass::LaneState& HostPass::state(LaneId id) {
  if (id.value >= lanes_.size()) lanes_.resize(id.value + 1);
  LaneState& lane = lanes_[id.value];
  if (!lane.known) {
    const Lane facts = dictionary_.lane(id);
    lane.known = true;
    lane.queue = facts.type == LaneType::kQueue;
    lane.process = facts.process;
  }
  return lane;
}

void HostPass::place(std::span<Event> group) {
  for (Event& event : group) {
    if (event.kind == kLaunchHead) {
      if (options_.launch_flows) launch_head(event);
    } else if (event.kind == kLaunchTail) {
      if (options_.launch_flows) launch_tail(event, group);
    } else if (event.kind == kBackwardHead) {
      backward_head(event, group);
    } else if (event.kind == kForwardTail) {
      forward_tail(event);
    } else {
      place_event(event);
    }
  }
  rehangs_.clear();
  if (!open_heads_.empty()) end_of_heads();
}

void HostPass::place_event(Event& event) {
  LaneState& lane = state(event.lane);
  if (lane.queue) {
    if (lane.next_head < lane.heads.size()) {
      event.correlation = lane.heads[lane.next_head++];
      event.scope = kByArrow;
    }
    return;
  }
  // Tied to an id and not to the thread: it need not nest, and is in no path.
  if ((event.flags & kAnnotation) != 0) return;
  lane.open.close(event.start_ns);
  const std::uint32_t outer = lane.open.held_by(event.end_ns);
  if (outer != lane.open.newest()) {
    problems_.add(Reason::kPartialOverlap, [&] {
      const OpenRanges::Range& other = lane.open[lane.open.newest()];
      return fmt::format("{} and {}", where(other.name, other.start_ns),
                         where(event.name, event.start_ns));
    });
  }
  FrameId path{};
  std::uint64_t sequence = 0;
  if (outer != OpenRanges::kNone) {
    path = lane.open[outer].path;
    sequence = lane.open[outer].sequence;
  }
  if (!holds_others(event)) {
    event.scope = path;
    if (event.correlation != 0) leave_launch(event);
    return;
  }

  FrameId inside = path;
  const bool node = is_node(event);
  if (node) {
    const auto rehang = std::find_if(rehangs_.begin(), rehangs_.end(),
                                     [&](const Rehang& r) { return r.event == &event; });
    const std::uint64_t own = event.range.sequence;
    const bool numbered = !options_.backward_by_flows && own != 0 && own != sequence;
    if (rehang != rehangs_.end()) {
      path = rehang->forward;
    } else if (numbered && event.range.forward_thread != 0) {
      if (const FrameId forward = forward_of(event, lane)) path = forward;
      sequence = own;
    }
    inside = dictionary_.frame({path, event.name, static_cast<ScopeDomain>(event.detail)});
    if (numbered && event.range.forward_thread == 0) remember_forward(event, lane, inside);
  }
  event.scope = path;
  if (event.correlation != 0) leave_launch(event);
  lane.open.open({.start_ns = event.start_ns,
                  .end_ns = event.end_ns,
                  .sequence = sequence,
                  .name = event.name,
                  .path = inside,
                  .outer = outer,
                  .domain = event.detail,
                  .node = node});
}

// A runtime call and the driver call inside it bear the same correlation: the first to start
// stays, unless a later one knows a longer path.
void HostPass::leave_launch(const Event& event) {
  const auto [entry, fresh] = launches_.insert({event.correlation, event.start_ns, event.scope});
  if (fresh) return;
  if (entry->at_ns == kNoTime || lies_below(event.scope, entry->frame)) {
    *entry = {event.correlation, event.start_ns, event.scope};
  }
}

void HostPass::launch_head(const Event& flow) {
  LaneState& lane = state(flow.lane);
  lane.heads.push_back(flow.correlation);
  open_heads_.push_back(flow);
}

// An arrow whose head met no device work says that a record is missing.
void HostPass::end_of_heads() {
  for (const Event& flow : open_heads_) {
    LaneState& lane = state(flow.lane);
    if (lane.next_head < lane.heads.size()) {
      ++lane.next_head;
      flow_without_end(flow);
    }
  }
  for (const Event& flow : open_heads_) {
    LaneState& lane = state(flow.lane);
    lane.heads.clear();
    lane.next_head = 0;
  }
  open_heads_.clear();
}

void HostPass::launch_tail(const Event& flow, std::span<Event> group) {
  LaneState& lane = state(flow.lane);
  lane.open.close(flow.start_ns, true);
  if (lane.open.empty()) return;  // the device work will miss its launch, and is counted then
  const OpenRanges::Range& launch = lane.open[lane.open.newest()];
  arrows_.insert({flow.correlation, launch.start_ns, launch.path});
  if (launch.start_ns != flow.start_ns) return;
  for (std::size_t i = group.size(); i-- > 0;) {
    Event& event = group[i];
    if (is_flow(event.kind) || event.lane != flow.lane || !holds_others(event)) continue;
    if (event.correlation == 0) event.correlation = flow.correlation;
    return;
  }
}

void HostPass::forward_tail(const Event& flow) {
  LaneState& lane = state(flow.lane);
  lane.open.close(flow.start_ns, true);
  const std::uint32_t node = lane.open.innermost_node();
  if (node != OpenRanges::kNone) {
    const FrameId path = lane.open[node].path;
    forward_.insert({flow.correlation, flow.start_ns, path}).entry->frame = path;
  }
}

void HostPass::backward_head(const Event& flow, std::span<const Event> group) {
  LaneState& lane = state(flow.lane);
  lane.open.close(flow.start_ns);
  const FrameEntry* forward = forward_.find(flow.correlation);
  if (forward == nullptr) {
    flow_without_end(flow);
    return;
  }
  const FrameId forward_path = forward->frame;
  const Event* backward = nullptr;
  for (const Event& event : group) {
    if (event.lane != flow.lane || !is_node(event)) continue;
    // In whole microseconds an operator and the one around it may start together; autograd's
    // number marks the backward operators, of which the inner one is meant.
    if (backward == nullptr || event.range.forward_thread != 0) backward = &event;
  }
  if (backward != nullptr) {
    rehangs_.push_back({backward, forward_path});
    return;
  }
  const std::uint32_t node = lane.open.innermost_node();
  if (node == OpenRanges::kNone) {
    flow_without_end(flow);
    return;
  }
  const OpenRanges::Range& range = lane.open[node];
  lane.open.move(
      node, dictionary_.frame({forward_path, range.name, static_cast<ScopeDomain>(range.domain)}));
}

FrameId HostPass::forward_of(const Event& event, const LaneState& lane) {
  const auto process = processes_.find(lane.process.value);
  if (process == processes_.end()) return {};
  ForwardThreads& threads = process->second;
  const auto lookup = [&](LaneId id) -> const FrameEntry* {
    const std::uint64_t key = sequence_key(id, event.range.sequence);
    return key == 0 ? nullptr : forward_.find(key);
  };
  const std::uint32_t number = event.range.forward_thread;
  if (const auto known = threads.of_number.find(number); known != threads.of_number.end()) {
    const FrameEntry* entry = lookup(known->second);
    return entry != nullptr ? entry->frame : FrameId{};
  }
  // Sequence numbers count per thread. Which thread is meant is learned from the first number
  // that only one thread has given; until then the forward operator is unknown.
  const FrameEntry* only = nullptr;
  LaneId of{};
  for (const LaneId id : threads.lanes) {
    const FrameEntry* entry = lookup(id);
    if (entry == nullptr) continue;
    if (only != nullptr) return {};
    only = entry;
    of = id;
  }
  if (only == nullptr) return {};
  threads.of_number.emplace(number, of);
  return only->frame;
}

// Several operators may bear one number; the one that started last made the autograd node.
void HostPass::remember_forward(const Event& event, LaneState& lane, FrameId node) {
  const std::uint64_t key = sequence_key(event.lane, event.range.sequence);
  if (key == 0) return;
  if (!lane.runs_forward) {
    lane.runs_forward = true;
    processes_[lane.process.value].lanes.push_back(event.lane);
  }
  forward_.insert({key, event.start_ns, node}).entry->frame = node;
}

bool HostPass::is_node(const Event& event) const {
  return event.kind == Kind::kScope && (event.flags & kInstant) == 0 &&
         event::is_path_node(static_cast<ScopeDomain>(event.detail), dictionary_.text(event.name));
}

bool HostPass::lies_below(FrameId path, FrameId above) const {
  if (path == above) return false;
  while (path && path != above) path = dictionary_.frame(path).parent;
  return path == above;
}

std::string HostPass::where(StringId name, std::int64_t at_ns) const {
  return fmt::format("\"{}\" at {} ns", dictionary_.text(name), shown(at_ns, options_.shift_ns));
}

void HostPass::flow_without_end(const Event& flow) {
  problems_.add(Reason::kFlowWithoutEnd, [&] {
    return fmt::format("arrow {} at {} ns", flow.correlation & kMaxVendorCorrelation,
                       shown(flow.start_ns, options_.shift_ns));
  });
}

}  // namespace pasta::correlate
