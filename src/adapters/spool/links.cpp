#include "adapters/spool/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "trace/spool.h"

namespace pasta::adapters::spool {
namespace {

constexpr KindSet kLinks = kDeviceWork | Kind::kSync | Kind::kAlloc | KindSet(Kind::kFree);

// A folder may hold any times.
std::int64_t distance(std::int64_t from_ns, std::int64_t to_ns) {
  std::int64_t result = 0;
  if (!__builtin_sub_overflow(to_ns, from_ns, &result)) return result;
  using Limits = std::numeric_limits<std::int64_t>;
  return to_ns < from_ns ? Limits::min() : Limits::max();
}

}  // namespace

bool Links::is_done(const Launch& launch, std::int64_t at_ns) {
  return launch.linked != kMany && launch.linked != 0 &&
         distance(launch.at_ns, at_ns) > launch.linked * kLinkedNs + kTogetherNs;
}

bool Links::on_queue(LaneId lane) {
  if (lane.value >= queues_.size()) queues_.resize(lane.value + 1, -1);
  std::int8_t& known = queues_[lane.value];
  if (known < 0) known = dictionary_->lane(lane).type == LaneType::kQueue ? 1 : 0;
  return known == 1;
}

Links::Launches Links::launches_of(const Event& call) {
  const auto [known, is_new] = of_names_.try_emplace(call.name.value);
  if (is_new) {
    const std::string_view name = dictionary_->text(call.name);
    const auto has = [&](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    };
    known->second.kernel =
        (name.starts_with("cudaLaunch") || name.starts_with("cuLaunch")) && !has("HostFunc");
    // cudaGraphLaunch, clEnqueueCommandBufferKHR, cudaLaunchCooperativeKernelMultiDevice.
    known->second.many = has("Graph") || has("CommandBuffer") || has("MultiDevice");
  }
  return known->second;
}

void Links::learn(const Event& event) {
  if (event.kind != Kind::kApi || event.correlation == 0) return;
  const Launches launches = launches_of(event);
  launches_.insert({.key = event.correlation,
                    .at_ns = event.start_ns,
                    .frame = event.scope,
                    .linked = launches.many ? kMany : 0});
  if (!launches.kernel || event.api.status != 0) return;
  Launched& of = launched_[correlation_process(event.correlation).value];
  // What has been seen is let go now and then.
  if (of.kernels.size() == of.kernels.capacity()) {
    std::erase_if(of.kernels, [&](std::uint64_t launch) { return launch <= of.linked; });
    of.kernels.reserve(std::max<std::size_t>(1024, 2 * of.kernels.size()));
  }
  of.kernels.push_back(event.correlation);
}

void Links::forget(std::int64_t before_ns) {
  if (launches_.size() < forget_at_) return;
  launches_.keep_if([&](const Launch& launch) { return !is_done(launch, before_ns); });
  // So that each is looked at a few times only, however many stay.
  forget_at_ = std::max(kForgetAt, 2 * launches_.size());
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
  Launch* launch = launches_.find(event.correlation);
  if (launch == nullptr || (!event.untimed() && is_done(*launch, event.end_ns))) {
    if (work) problems.add(Reason::kLaunchNotSeen, where);
    return;
  }
  if (work) {
    std::uint64_t& linked = launched_[correlation_process(event.correlation).value].linked;
    linked = std::max(linked, event.correlation);
  }
  if (!event.untimed() && launch->linked != kMany) {
    const std::int64_t units = distance(launch->at_ns, event.end_ns) / kLinkedNs + 1;
    launch->linked = static_cast<std::uint32_t>(std::clamp<std::int64_t>(units, 1, kMany - 1));
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
