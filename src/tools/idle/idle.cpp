#include "tools/idle/idle.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <string>

#include "base/units.h"
#include "stats/interval_set.h"
#include "tools/common/demangle.h"
#include "tools/common/host_activity.h"
#include "tools/common/idle_cause.h"
#include "tools/common/idle_time.h"
#include "tools/common/longest.h"
#include "tools/common/memo.h"
#include "tools/common/ratio.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"

namespace pasta::tools {
namespace {

using stats::Interval;
using stats::IntervalSet;

constexpr OptionInfo kOptions[] = {
    {"top", "how many of the longest gaps are listed; 0 lists none", "20", {}},
};
// Gaps of which the work that ended them is remembered, per device.
constexpr std::size_t kKnownGaps = 4096;
// Below these, idle time is nothing to say something about.
constexpr double kWorthSaying = 0.15;
constexpr double kSevere = 0.5;
constexpr std::int64_t kEnoughWork = 10;

Cell text_or_unknown(std::string text) { return text.empty() ? Cell() : Cell(std::move(text)); }

struct Queue {
  LaneId lane{};
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  IntervalSet busy;
};

// A gap and the name of the work that ended it.
struct EndedGap {
  std::int64_t start_ns, end_ns;
  StringId next;
};

struct DeviceWork {
  DeviceId device{};
  std::vector<Queue> queues;  // with timed work
  std::int64_t work = 0;      // timed
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  Longest<EndedGap> gaps{kKnownGaps};
  WaitingWork waiting;

  // In order of end.
  void add(const Event& event, Queue& queue) {
    ++work;
    note_gap(event);
    first_ns = std::min(first_ns, event.start_ns);
    last_ns = std::max(last_ns, event.end_ns);
    queue.first_ns = std::min(queue.first_ns, event.start_ns);
    queue.last_ns = std::max(queue.last_ns, event.end_ns);
    queue.busy.add(event.start_ns, event.end_ns);
  }
  [[nodiscard]] std::int64_t span() const { return distance_saturated(first_ns, last_ns); }
  [[nodiscard]] IntervalSet busy() const {
    IntervalSet all;
    for (const Queue& queue : queues) all = all.empty() ? queue.busy : unite(all, queue.busy);
    return all;
  }
  [[nodiscard]] StringId ender(std::int64_t gap_end) const {
    const auto& known = gaps.ranges();
    const auto at =
        std::lower_bound(known.begin(), known.end(), gap_end,
                         [](const EndedGap& gap, std::int64_t end) { return gap.end_ns < end; });
    return at != known.end() && at->end_ns == gap_end ? at->next : StringId{};
  }

 private:
  void note_gap(const Event& event) {
    if (event.start_ns == event.end_ns || work == 1) return;
    if (event.start_ns > last_ns) {
      gaps.add({last_ns, event.start_ns, event.name});
      return;
    }
    // Work that ends late may have begun before gaps that were noted.
    auto& noted = gaps.ranges();
    while (!noted.empty() && noted.back().start_ns >= event.start_ns) noted.pop_back();
    if (!noted.empty() && noted.back().end_ns > event.start_ns) {
      noted.back().end_ns = event.start_ns;
      noted.back().next = event.name;
    }
  }
};

struct Gap {
  std::int64_t start_ns, end_ns;
  std::size_t device;  // row of the devices
  CauseTimes causes;
  [[nodiscard]] std::int64_t length() const { return distance_saturated(start_ns, end_ns); }
};

// Longer ones first, earlier ones first among equals.
bool longer(const Gap& a, const Gap& b) {
  if (a.length() != b.length()) return a.length() > b.length();
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.device < b.device;
}

// For each of some times, ascending, how much of a set lies before it.
std::vector<std::int64_t> lengths_before(const IntervalSet& set,
                                         const std::vector<std::int64_t>& times) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(times.size());
  IntervalSet::Reader reader(set);
  Interval piece;
  bool more = reader.next(piece);
  std::int64_t passed = 0;
  for (const std::int64_t time : times) {
    while (more && piece.end <= time) {
      passed = add_saturated(passed, distance_saturated(piece.begin, piece.end));
      more = reader.next(piece);
    }
    const bool inside = more && piece.begin < time;
    lengths.push_back(inside ? add_saturated(passed, distance_saturated(piece.begin, time))
                             : passed);
  }
  return lengths;
}

struct DeviceIdle {
  std::string label;
  const DeviceWork* work;
  std::vector<std::size_t> threads;
  CauseTimes causes{};
  std::int64_t after_wait_ns = 0;  // in gaps that begin while the host waits
  Interval longest_gap{};
};

class Idle : public Tool {
 public:
  explicit Idle(std::size_t top) : top_(top) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      if (kDeviceWork.has(event.kind)) {
        add_work(event, dictionary);
      } else if (on_thread_.get(event.lane, [&] {
                   return dictionary.lane(event.lane).type == LaneType::kThread;
                 })) {
        host_.add(event, dictionary);
        if (event.kind == Kind::kApi) launches_.add(event, dictionary);
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    std::vector<DeviceIdle> devices;
    for (const DeviceWork& work : devices_) {
      if (work.queues.empty()) continue;
      std::vector<ProcessId> owners;
      for (const Queue& queue : work.queues) owners.push_back(dictionary.lane(queue.lane).process);
      devices.push_back({.label = context.device_label(work.device),
                         .work = &work,
                         .threads = host_.threads_of(owners, dictionary)});
    }
    std::ranges::stable_sort(devices, natural_less,
                             [](const DeviceIdle& d) { return std::string_view(d.label); });

    std::map<std::vector<std::size_t>, HostLevels> hosts;  // devices of one process share it
    std::vector<Gap> gaps;
    Table waits = waits_table();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      DeviceIdle& device = devices[i];
      auto host = hosts.find(device.threads);
      if (host == hosts.end()) {
        host = hosts.emplace(device.threads, host_.levels(device.threads)).first;
      }
      const IntervalSet busy = device.work->busy();
      explain(device, busy, host->second, i, gaps);
      add_waits(device, busy, dictionary, waits);
    }
    std::sort_heap(gaps.begin(), gaps.end(), longer);

    Report report{.tool = "idle", .title = "Idle time", .parts = {}};
    add_findings(devices, dictionary, report);
    if (devices_.empty()) report.parts.emplace_back(no_device_work());
    report.parts.emplace_back(causes_table(devices));
    report.parts.emplace_back(gaps_table(gaps, devices, context));
    report.parts.emplace_back(std::move(waits));
    return report;
  }

 private:
  void add_work(const Event& event, const Dictionary& dictionary) {
    const std::size_t index = device_of_lane_.get(event.lane, [&] {
      const DeviceId device = dictionary.lane(event.lane).device;
      return device_index_.get(device, [&] {
        devices_.emplace_back().device = device;
        return devices_.size() - 1;
      });
    });
    if (event.untimed()) return;
    DeviceWork& device = devices_[index];
    const std::size_t queue = queue_of_lane_.get(event.lane, [&] {
      device.queues.emplace_back().lane = event.lane;
      return device.queues.size() - 1;
    });
    device.add(event, device.queues[queue]);

    const std::int64_t launched_ns = launches_.waited_since(event);
    if (launched_ns != kNoTime) device.waiting.add(launched_ns, event);
  }

  // Splits the gaps of a device, and keeps the longest of all devices in a heap.
  void explain(DeviceIdle& device, const IntervalSet& busy, const HostLevels& host,
               std::size_t index, std::vector<Gap>& longest) const {
    IdleSplitter splitter(host);
    Coverage waiting(device.work->waiting.when());
    const auto gap = [&](std::int64_t begin, std::int64_t end) {
      if (begin >= end) return;
      const bool queued = waiting.covers(begin);
      const bool after_wait = !queued && splitter.wait_at(begin).end > begin;
      Gap found{begin, end, index, {}};
      if (queued) {
        found.causes[static_cast<std::size_t>(IdleCause::kWorkQueued)] = found.length();
      } else {
        found.causes = splitter.split(begin, end);
      }
      for (std::size_t i = 0; i < kIdleCauseCount; ++i) {
        device.causes[i] = add_saturated(device.causes[i], found.causes[i]);
      }
      if (found.length() > distance_saturated(device.longest_gap.begin, device.longest_gap.end)) {
        device.longest_gap = {begin, end};
      }
      if (after_wait) device.after_wait_ns = add_saturated(device.after_wait_ns, found.length());
      if (longest.size() < top_) {
        longest.push_back(found);
        std::push_heap(longest.begin(), longest.end(), longer);
      } else if (top_ > 0 && longer(found, longest.front())) {
        std::pop_heap(longest.begin(), longest.end(), longer);
        longest.back() = found;
        std::push_heap(longest.begin(), longest.end(), longer);
      }
    };
    std::int64_t at = device.work->first_ns;
    IntervalSet::Reader reader(busy);
    Interval piece;
    while (reader.next(piece)) {
      gap(at, piece.begin);
      at = piece.end;
    }
    gap(at, device.work->last_ns);
  }

  static Table causes_table(std::span<const DeviceIdle> devices) {
    Table table{.id = "causes",
                .title = "Why each device was idle",
                .columns = {{"device"},
                            {"cause"},
                            {"time", Unit::kNanoseconds},
                            {"share_of_idle", Unit::kShare},
                            {"share_of_span", Unit::kShare}},
                .rows = {}};
    for (const DeviceIdle& device : devices) {
      const std::int64_t idle = sum(device.causes);
      for (std::size_t i = 0; i < kIdleCauseCount; ++i) {
        const std::int64_t time = device.causes[i];
        if (time == 0) continue;
        table.rows.push_back({text_or_unknown(device.label),
                              std::string(idle_cause_info(static_cast<IdleCause>(i)).id), time,
                              ratio_cell(time, idle), ratio_cell(time, device.work->span())});
      }
    }
    return table;
  }

  Table gaps_table(std::span<const Gap> gaps, std::span<const DeviceIdle> devices,
                   const Context& context) const {
    Table table{.id = "gaps",
                .title = "The longest gaps",
                .columns = {{"device"},
                            {"start", Unit::kNanoseconds},
                            {"duration", Unit::kNanoseconds},
                            {"share_of_idle", Unit::kShare},
                            {"cause"},
                            {"host_in"},
                            {"next"}},
                .rows = {}};
    const Dictionary& dictionary = context.dictionary();
    for (const Gap& gap : gaps) {
      const DeviceIdle& device = devices[gap.device];
      const auto cause = static_cast<IdleCause>(largest(gap.causes));
      const StringId host = host_.range_in(gap.start_ns, gap.end_ns, device.threads);
      table.rows.push_back(
          {text_or_unknown(device.label), distance_saturated(context.origin_ns(), gap.start_ns),
           gap.length(), ratio_cell(gap.length(), sum(device.causes)),
           std::string(idle_cause_info(cause).id),
           text_or_unknown(std::string(dictionary.text(host))),
           text_or_unknown(demangle(dictionary.text(device.work->ender(gap.end_ns))))});
    }
    return table;
  }

  static Table waits_table() {
    return {.id = "stream_waits",
            .title = "Streams that had no work while another worked",
            .columns = {{"device"},
                        {"stream"},
                        {"span", Unit::kNanoseconds},
                        {"busy", Unit::kNanoseconds},
                        {"waiting", Unit::kNanoseconds},
                        {"device_idle", Unit::kNanoseconds},
                        {"waiting_share", Unit::kShare}},
            .rows = {}};
  }

  static void add_waits(const DeviceIdle& device, const IntervalSet& busy,
                        const Dictionary& dictionary, Table& table) {
    std::vector<std::int64_t> times;
    for (const Queue& queue : device.work->queues) {
      times.push_back(queue.first_ns);
      times.push_back(queue.last_ns);
    }
    std::sort(times.begin(), times.end());
    const std::vector<std::int64_t> lengths = lengths_before(busy, times);
    const auto before = [&](std::int64_t time) {
      const auto at = std::lower_bound(times.begin(), times.end(), time) - times.begin();
      return lengths[static_cast<std::size_t>(at)];
    };
    std::vector<std::pair<std::string, const Queue*>> queues;
    for (const Queue& queue : device.work->queues) {
      queues.emplace_back(queue_label(dictionary, queue.lane), &queue);
    }
    std::ranges::stable_sort(queues, natural_less,
                             [](const auto& row) { return std::string_view(row.first); });
    for (const auto& [label, queue] : queues) {
      const std::int64_t span = distance_saturated(queue->first_ns, queue->last_ns);
      const std::int64_t own = queue->busy.length();
      const std::int64_t any = before(queue->last_ns) - before(queue->first_ns);
      table.rows.push_back({text_or_unknown(device.label), label, span, own, any - own, span - any,
                            ratio_cell(any - own, span)});
    }
  }

  static double idle_part(const DeviceIdle& device) {
    return ratio(sum(device.causes), device.work->span());
  }

  // One finding for each cause that is the main one somewhere: about the device that idled most,
  // with how many others did for the same reason.
  void add_findings(std::span<const DeviceIdle> devices, const Dictionary& dictionary,
                    Report& report) const {
    std::array<std::vector<const DeviceIdle*>, kIdleCauseCount> alike;
    for (const DeviceIdle& device : devices) {
      if (device.work->work < kEnoughWork || idle_part(device) < kWorthSaying) continue;
      alike[largest(device.causes)].push_back(&device);
    }
    std::vector<Finding> findings;
    for (std::vector<const DeviceIdle*>& group : alike) {
      if (group.empty()) continue;
      std::ranges::stable_sort(group, std::greater<>(), [](auto* one) { return idle_part(*one); });
      findings.push_back(finding_of(group, dictionary));
    }
    std::ranges::stable_sort(findings, std::greater<>(), &Finding::share);
    std::ranges::move(findings, std::back_inserter(report.parts));
  }

  // Devices with the same main cause, the one that idled most first.
  Finding finding_of(std::span<const DeviceIdle* const> group, const Dictionary& dictionary) const {
    const DeviceIdle& device = *group.front();
    const std::int64_t span = device.work->span(), idle = sum(device.causes);
    const double part = idle_part(device);
    const std::size_t main = largest(device.causes);
    const IdleCauseInfo& cause = idle_cause_info(static_cast<IdleCause>(main));
    const double main_part = ratio(device.causes[main], idle);
    const double after_wait = ratio(device.after_wait_ns, idle);
    std::string text =
        fmt::format("{} did nothing for {} of {} ({}). For {} of that time, {}.",
                    device.label.empty() ? "the device" : "device " + device.label,
                    base::format_duration(idle), base::format_duration(span),
                    base::format_share(part), base::format_share(main_part), cause.reason);
    if (after_wait >= 0.5 && static_cast<IdleCause>(main) != IdleCause::kSyncBound) {
      text += fmt::format(" {} of it is in gaps that begin while the host waits for the device.",
                          base::format_share(after_wait));
    }
    // One gap that takes so much is a case of its own: a start, a first launch, a pause.
    const Interval gap = device.longest_gap;
    const std::int64_t length = distance_saturated(gap.begin, gap.end);
    const double gap_part = ratio(length, idle);
    if (gap_part >= 0.2) {
      const StringId host = host_.range_in(gap.begin, gap.end, device.threads);
      text += fmt::format(" One gap alone took {} ({}{}).", base::format_duration(length),
                          base::format_share(gap_part),
                          host ? fmt::format(", with the host in {}", dictionary.text(host)) : "");
    }
    if (group.size() == 2) {
      text += fmt::format(" So did device {} for {} of its span.", group.back()->label,
                          base::format_share(idle_part(*group.back())));
    } else if (group.size() > 2) {
      text += fmt::format(" So did {} other devices, for {} to {} of their spans.",
                          group.size() - 1, base::format_share(idle_part(*group.back())),
                          base::format_share(idle_part(*group[1])));
    }
    Finding finding{.id = "device-idle",
                    .level = part >= kSevere ? Finding::Level::kProblem : Finding::Level::kWarning,
                    .text = std::move(text),
                    .share = part,
                    .of = "the device's span",
                    .evidence = {{"device", text_or_unknown(device.label)},
                                 {"cause", std::string(cause.id)},
                                 {"cause_share_of_idle", main_part, Unit::kShare},
                                 {"share_after_wait", after_wait, Unit::kShare},
                                 {"longest_gap_share", gap_part, Unit::kShare}},
                    .advice = std::string(cause.advice)};
    if (group.size() > 1) {
      finding.evidence.emplace_back("devices", static_cast<std::int64_t>(group.size()));
    }
    return finding;
  }

  static Finding no_device_work() {
    return {.id = "no-device-work",
            .level = Finding::Level::kInfo,
            .text = "no device did anything in this trace",
            .of = {},
            .evidence = {},
            .advice = {}};
  }

  std::size_t top_;
  Memo<LaneId, bool> on_thread_;
  Memo<LaneId, std::size_t> device_of_lane_, queue_of_lane_;
  Memo<DeviceId, std::size_t> device_index_;
  std::vector<DeviceWork> devices_;
  HostActivity host_;
  PendingLaunches launches_;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto top = options.integer("top");
  if (!top) return tl::unexpected<Error>(top.error());
  if (*top < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option idle.top cannot be {}; give 0 or more", *top));
  }
  return std::make_unique<Idle>(static_cast<std::size_t>(*top));
}

}  // namespace

constinit const ToolEntry kIdle = {
    .name = "idle",
    .help = "when each device did nothing, and why: what the host did then",
    .needs = Kind::kKernel,
    .options = kOptions,
    .make = make,
    .also = kDeviceWork | Kind::kApi | Kind::kScope | KindSet(Kind::kSync)};

}  // namespace pasta::tools
