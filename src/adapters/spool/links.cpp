#include "adapters/spool/links.h"

#include <fmt/format.h>

#include <string>

#include "trace/spool.h"

namespace pasta::adapters::spool {
namespace {

constexpr KindSet kLinks = kDeviceWork | Kind::kSync | Kind::kAlloc | KindSet(Kind::kFree);

}  // namespace

bool Links::on_queue(LaneId lane) {
  if (lane.value >= queues_.size()) queues_.resize(lane.value + 1, -1);
  std::int8_t& known = queues_[lane.value];
  if (known < 0) known = dictionary_->lane(lane).type == LaneType::kQueue ? 1 : 0;
  return known == 1;
}

void Links::learn(const Event& event) {
  if (event.kind == Kind::kApi && event.correlation != 0) {
    launches_.insert(event.correlation, event.scope, event.start_ns);
  }
}

void Links::link(Event& event, Problems& problems) {
  if (!kLinks.has(event.kind) || !on_queue(event.lane)) return;
  const std::uint32_t scope = event.scope.value;
  link_to_launch(event, problems);
  if (scope >= trace::spool::kScopeOfOrigin && scope != trace::spool::kScopeByTime) {
    event.scope = origins_->inside(event.scope, scope - trace::spool::kScopeOfOrigin);
  }
}

void Links::link_to_launch(Event& event, Problems& problems) {
  const bool work = kDeviceWork.has(event.kind);
  const auto where = [&] {
    return fmt::format("{} \"{}\"{}", kind_name(event.kind), dictionary_->text(event.name),
                       event.untimed() ? "" : fmt::format(" at {} ns", event.start_ns));
  };
  event.scope = {};
  if (event.correlation == 0) {
    // Nobody launches a migration of unified memory.
    const bool migration = event.kind == Kind::kCopy &&
                           event.detail == static_cast<std::uint16_t>(CopyDirection::kMigration);
    if (work && !migration) problems.add(Reason::kNoCorrelation, where);
    return;
  }
  const auto* launch = launches_.find(event.correlation);
  if (launch == nullptr) {
    if (work) problems.add(Reason::kLaunchNotSeen, where);
    return;
  }
  event.scope = launch->frame;
  event.flags |= kLinked;
  if (event.untimed() || event.start_ns >= launch->at_ns) return;
  event.flags |= kSkewed;
  problems.add(Reason::kStartsBeforeLaunch, [&] {
    return fmt::format("{}, launch delay {} ns", where(), event.start_ns - launch->at_ns);
  });
}

}  // namespace pasta::adapters::spool
