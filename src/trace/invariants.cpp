#include "trace/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "pasta/dictionary.h"
#include "trace/payload.h"

namespace pasta::trace {
namespace {

constexpr std::array<std::pair<Law, std::string_view>, static_cast<std::size_t>(Law::kCount)>
    kLaws = {{
        {Law::kOrder, "events are in order of end"},
        {Law::kEndNotBefore, "no event ends before it starts"},
        {Law::kUntimedHasNoTime, "untimed events, and only they, have no times"},
        {Law::kKindKnown, "kinds are known"},
        {Law::kFlagsKnown, "flags are known"},
        {Law::kDetailKnown, "details are known to their kind"},
        {Law::kIdsKnown, "ids are in their tables"},
        {Law::kLaneFits, "device work is on queues, host calls are on threads"},
        {Law::kCorrelationOwner, "correlations name a process"},
        {Law::kLinkedHasLaunch, "linked device work has its launch"},
        {Law::kUnusedZero, "unused payload bytes are zero"},
        {Law::kTablesSound, "table entries refer to entries that are there"},
        {Law::kFramesNested, "frames come after their parents"},
    }};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kLaws.size(); ++i) {
    if (static_cast<std::size_t>(kLaws[i].first) != i) return false;
  }
  return true;
}
static_assert(in_order(), "kLaws is indexed by Law");

constexpr unsigned kKnownFlags =
    kUntimed | kUnfinished | kLinked | kSkewed | kAnnotation | kInstant;

std::uint16_t last_detail(Kind kind) {
  switch (kind) {
    case Kind::kApi:
      return static_cast<std::uint16_t>(ApiDomain::kOs);
    case Kind::kScope:
      return static_cast<std::uint16_t>(ScopeDomain::kRuntime);
    case Kind::kCopy:
      return static_cast<std::uint16_t>(CopyDirection::kMigration);
    case Kind::kSync:
      return static_cast<std::uint16_t>(SyncTarget::kStreamWaitsEvent);
    case Kind::kDevice:
      return static_cast<std::uint16_t>(DeviceTimes::kNotJoined);
    default:
      return 0;
  }
}

std::string_view severity_name(Severity severity) {
  constexpr std::array<std::string_view, 4> kNames = {"note", "repaired", "altered", "dropped"};
  return kNames[static_cast<std::size_t>(severity)];
}

Cell count_cell(std::uint64_t count) { return static_cast<std::int64_t>(count); }
Cell text_cell(const std::string& text) { return text.empty() ? Cell{} : Cell{text}; }

}  // namespace

Status InvariantChecker::begin(const Dictionary& dictionary) {
  dictionary_ = &dictionary;
  last_end_ns_ = kNoTime;
  return {};
}

template <class Place>
void InvariantChecker::check(Law law, bool holds, Place&& place) {
  Tally& tally = tallies_[static_cast<std::size_t>(law)];
  ++tally.checked;
  if (holds) return;
  if (tally.violations++ == 0) tally.first = place();
}

Status InvariantChecker::record(std::span<const Event> events) {
  for (const Event& event : events) {
    ++seen_;
    check(event);
  }
  return {};
}

std::string InvariantChecker::place(const Event& event) const {
  const std::string when = event.untimed() ? "untimed" : fmt::format("at {} ns", event.start_ns);
  return fmt::format("event {}: {} \"{}\" {}", seen_, kind_name(event.kind),
                     dictionary_->text(event.name), when);
}

bool InvariantChecker::ids_known(const Event& e) const {
  const Dictionary& d = *dictionary_;
  const auto text = [&](StringId id) { return id.value < d.string_count(); };
  const auto device = [&](DeviceId id) { return id.value < d.device_count(); };
  if (!text(e.name) || e.lane.value >= d.lane_count() || e.scope.value >= d.frame_count()) {
    return false;
  }
  switch (e.kind) {
    case Kind::kScope:
      return text(e.range.arguments);
    case Kind::kKernel:
      return e.kernel.attributes.value < d.attributes_count();
    case Kind::kSync:
      return e.sync.on.value < d.lane_count();
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kFault:
      return device(e.memory.device) && text(e.memory.pool);
    case Kind::kCounter:
      return text(e.counter.unit) && device(e.counter.device);
    case Kind::kDevice:
      return text(e.device.format);
    default:
      return true;
  }
}

void InvariantChecker::check(const Event& e) {
  const auto here = [&] { return place(e); };
  check(Law::kOrder, e.end_ns >= last_end_ns_, here);
  last_end_ns_ = std::max(last_end_ns_, e.end_ns);
  if (!e.untimed()) check(Law::kEndNotBefore, e.end_ns >= e.start_ns, here);
  check(Law::kUntimedHasNoTime,
        e.untimed() == (e.start_ns == kNoTime) && e.untimed() == (e.end_ns == kNoTime), here);
  check(Law::kFlagsKnown, (e.flags & ~kKnownFlags) == 0, here);
  const bool kind_known = static_cast<unsigned>(e.kind) < kKindCount;
  check(Law::kKindKnown, kind_known, here);
  if (!kind_known) return;
  check(Law::kDetailKnown, e.detail <= last_detail(e.kind), here);
  check(Law::kUnusedZero, unused_payload_is_zero(e), here);
  const bool known = ids_known(e);
  check(Law::kIdsKnown, known, here);
  if (known) {
    const LaneType lane = dictionary_->lane(e.lane).type;
    if (kDeviceWork.has(e.kind)) {
      check(Law::kLaneFits, e.lane && lane == LaneType::kQueue, here);
    } else if (e.kind == Kind::kApi) {
      check(Law::kLaneFits, e.lane && lane == LaneType::kThread, here);
    }
  }
  if (e.correlation != 0) {
    const ProcessId owner = correlation_process(e.correlation);
    check(Law::kCorrelationOwner, owner && owner.value < dictionary_->process_count(), here);
    if (e.kind == Kind::kApi) launches_.push_back(e.correlation);
  }
  if ((e.flags & kLinked) != 0) linked_.push_back({e.correlation, seen_});
}

void InvariantChecker::check_tables() {
  const Dictionary& d = *dictionary_;
  const auto texts = [&](std::initializer_list<StringId> ids) {
    return std::all_of(ids.begin(), ids.end(),
                       [&](StringId id) { return id.value < d.string_count(); });
  };
  const auto row = [](std::string_view table, std::uint32_t id) {
    return [=] { return fmt::format("{} {}", table, id); };
  };
  for (std::uint32_t id = 1; id < d.process_count(); ++id) {
    const Process p = d.process(ProcessId{id});
    check(Law::kTablesSound, texts({p.native_text, p.source, p.name, p.host}), row("process", id));
  }
  for (std::uint32_t id = 1; id < d.device_count(); ++id) {
    const Device device = d.device(DeviceId{id});
    check(Law::kTablesSound,
          texts({device.uuid, device.name}) && device.process.value < d.process_count(),
          row("device", id));
  }
  for (std::uint32_t id = 1; id < d.lane_count(); ++id) {
    const Lane lane = d.lane(LaneId{id});
    check(Law::kTablesSound,
          texts({lane.native_text, lane.name}) && lane.process.value < d.process_count() &&
              lane.device.value < d.device_count(),
          row("lane", id));
  }
  for (std::uint32_t id = 1; id < d.frame_count(); ++id) {
    const Frame frame = d.frame(FrameId{id});
    check(Law::kTablesSound, texts({frame.name}), row("frame", id));
    check(Law::kFramesNested, frame.parent.value < id, row("frame", id));
  }
  for (std::uint32_t id = 1; id < d.attributes_count(); ++id) {
    check(Law::kTablesSound, d.attributes(AttributesId{id}).collective.value < d.collective_count(),
          row("attributes", id));
  }
  for (std::uint32_t id = 1; id < d.collective_count(); ++id) {
    const Collective c = d.collective(CollectiveId{id});
    check(Law::kTablesSound, texts({c.name, c.element_type, c.group, c.ranks}),
          row("collective", id));
  }
}

Status InvariantChecker::end(std::span<const SourceInfo> sources,
                             std::span<const std::vector<Problem>> problems) {
  check_tables();
  std::sort(launches_.begin(), launches_.end());
  for (const Linked& linked : linked_) {
    check(Law::kLinkedHasLaunch,
          std::binary_search(launches_.begin(), launches_.end(), linked.correlation),
          [&] { return fmt::format("event {}", linked.number); });
  }
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const std::string name = i >= sources.size()        ? ""
                             : sources[i].label.empty() ? sources[i].path
                                                        : sources[i].label;
    for (const Problem& problem : problems[i]) problems_.push_back({name, problem});
  }
  return {};
}

std::uint64_t InvariantChecker::violations() const {
  std::uint64_t sum = 0;
  for (const Tally& tally : tallies_) sum += tally.violations;
  return sum;
}

Report InvariantChecker::report() const {
  Table laws{
      .id = "invariants",
      .title = "Laws every trace obeys",
      .columns = {{"law"}, {"checked", Unit::kCount}, {"violations", Unit::kCount}, {"first"}},
      .rows = {}};
  for (std::size_t i = 0; i < tallies_.size(); ++i) {
    const Tally& tally = tallies_[i];
    laws.rows.push_back({std::string(kLaws[i].second), count_cell(tally.checked),
                         count_cell(tally.violations), text_cell(tally.first)});
  }
  Table problems{
      .id = "problems",
      .title = "What the readers reported",
      .columns = {{"source"}, {"reason"}, {"severity"}, {"count", Unit::kCount}, {"first"}},
      .rows = {}};
  for (const auto& [source, problem] : problems_) {
    const ReasonInfo& reason = reason_info(problem.reason);
    problems.rows.push_back({source, std::string(reason.id),
                             std::string(severity_name(reason.severity)), count_cell(problem.count),
                             text_cell(problem.first)});
  }
  return {.tool = "check",
          .title = "Invariants and data quality",
          .parts = {std::move(laws), std::move(problems)}};
}

}  // namespace pasta::trace
