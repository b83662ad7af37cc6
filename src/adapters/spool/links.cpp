#include "adapters/spool/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

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

bool Links::launches_kernel(const Event& call) {
  if (call.api.status != 0) return false;
  const auto [known, is_new] = of_kernels_.try_emplace(call.name.value, false);
  if (is_new) {
    const std::string_view name = dictionary_->text(call.name);
    known->second = (name.starts_with("cudaLaunch") || name.starts_with("cuLaunch")) &&
                    name.find("HostFunc") == std::string_view::npos;
  }
  return known->second;
}

void Links::learn(const Event& event) {
  if (event.kind != Kind::kApi || event.correlation == 0) return;
  launches_.insert(event.correlation, event.scope, event.start_ns);
  if (!launches_kernel(event)) return;
  Launched& of = launched_[correlation_process(event.correlation).value];
  // What has been seen is let go now and then.
  if (of.kernels.size() == of.kernels.capacity()) {
    std::erase_if(of.kernels, [&](std::uint64_t launch) { return launch <= of.linked; });
    of.kernels.reserve(std::max<std::size_t>(1024, 2 * of.kernels.size()));
  }
  of.kernels.push_back(event.correlation);
}

std::uint64_t Links::unseen(ProcessId process) const {
  const auto found = launched_.find(process.value);
  if (found == launched_.end()) return 0;
  const Launched& of = found->second;
  return static_cast<std::uint64_t>(
      std::count_if(of.kernels.begin(), of.kernels.end(),
                    [&](std::uint64_t launch) { return launch > of.linked; }));
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
  if (work) {
    std::uint64_t& linked = launched_[correlation_process(event.correlation).value].linked;
    linked = std::max(linked, event.correlation);
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
