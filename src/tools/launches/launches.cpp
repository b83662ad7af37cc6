#include "tools/launches/launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>

#include "stats/quantiles.h"
#include "tools/common/api_role.h"
#include "tools/common/memo.h"
#include "tools/common/ratio.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/launches/delays.h"
#include "tools/launches/queue_length.h"

namespace pasta::tools {
namespace {

using launches::Delays;
using launches::QueueLength;

constexpr OptionInfo kOptions[] = {
    {"series",
     "of how many queues, those with most launched work, the length over time is given",
     "8",
     {}},
};
constexpr std::size_t kMaxPoints = 2000;

Cell text_or_unknown(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

// The calls of one name.
struct Api {
  StringId name{};
  ApiRole role;
  std::int64_t calls = 0;
  std::int64_t launched = 0;  // calls that work in the trace answers
  std::int64_t kernels = 0, copies = 0, fills = 0;
  stats::Quantiles times;  // of those calls, where they have times
};

struct Queue {
  LaneId lane{};
  std::size_t device = 0;
  std::int64_t work = 0;
  std::int64_t unlinked = 0;
  std::int64_t untimed = 0;  // linked, but the work or its call has no times
  Delays delays;
  QueueLength length;
};

struct Device {
  DeviceId id{};
  std::int64_t kernels = 0;
  std::int64_t in_graphs = 0;
  std::int64_t compared = 0;  // with their launch call
  std::int64_t shorter = 0;
  std::int64_t compared_ns = 0, shorter_ns = 0;  // time of those kernels
  std::int64_t shorter_launch_ns = 0;            // time of the calls of the shorter ones
};

// A call that work may still refer to.
struct Call {
  std::size_t api = 0;
  bool untimed = false;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t works = 0;
  // Of its timed work, the one that started first.
  std::optional<std::size_t> first_queue;
  std::int64_t first_start_ns = 0;
};

// Work whose call has not been seen yet.
struct Work {
  Kind kind{};
  bool untimed = false;
  std::size_t queue = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

class Launches : public Tool {
 public:
  explicit Launches(std::size_t series) : series_(series) {}

  Status consume(std::span<const Event> events, const Context& context) override {
    const Dictionary& dictionary = context.dictionary();
    for (const Event& event : events) {
      if (event.kind == Kind::kApi) {
        add_call(event, dictionary);
      } else {
        add_work(event, dictionary);
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    for (const auto& [correlation, call] : calls_) settle(call);
    calls_.clear();
    // Their calls lie outside what was read.
    for (const auto& [correlation, works] : early_) {
      for (const Work& work : works) ++queues_[work.queue].unlinked;
    }
    early_.clear();

    std::vector<std::string> labels;
    for (const Device& device : devices_) labels.push_back(context.device_label(device.id));
    std::vector<std::size_t> devices(devices_.size());
    for (std::size_t i = 0; i < devices.size(); ++i) devices[i] = i;
    std::ranges::stable_sort(devices, natural_less,
                             [&](std::size_t i) { return std::string_view(labels[i]); });
    std::vector<Row> rows;
    for (const std::size_t device : devices) {
      const std::size_t begin = rows.size();
      for (Queue& queue : queues_) {
        if (queue.device != device) continue;
        rows.push_back({labels[device], queue_label(context.dictionary(), queue.lane), &queue});
      }
      std::ranges::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end(),
                               natural_less,
                               [](const Row& row) { return std::string_view(row.queue_name); });
    }

    Report report{.tool = "launches", .title = "Launches", .parts = {}};
    if (queues_.empty()) {
      report.parts.emplace_back(info("no-device-work", "no device did anything in this trace"));
    }
    report.parts.emplace_back(launches_table(context.dictionary()));
    report.parts.emplace_back(delays_table(rows));
    report.parts.emplace_back(short_kernels_table(devices, labels));
    add_queues(rows, context.origin_ns(), report);
    return report;
  }

 private:
  struct Row {
    std::string device;
    std::string queue_name;
    Queue* queue;
  };

  std::size_t api_of(StringId name, const Dictionary& dictionary) {
    return api_index_.get(name, [&] {
      Api& api = apis_.emplace_back();
      api.name = name;
      api.role = api_role(dictionary.text(name));
      return apis_.size() - 1;
    });
  }

  void add_call(const Event& event, const Dictionary& dictionary) {
    const std::size_t index = api_of(event.name, dictionary);
    Api& api = apis_[index];
    ++api.calls;
    if (event.correlation == 0 || !api.role.may_launch) return;
    Call call;
    call.api = index;
    call.untimed = event.untimed();
    call.start_ns = event.start_ns;
    call.end_ns = event.end_ns;
    const auto waiting = early_.find(event.correlation);
    if (waiting != early_.end()) {
      for (const Work& work : waiting->second) match(call, work);
      early_.erase(waiting);
      if (api.role.launches_one()) {
        settle(call);
        return;
      }
    }
    // Of calls with one correlation, one inside the other, the outer is the launch; it comes last.
    const auto [at, fresh] = calls_.try_emplace(event.correlation, call);
    if (!fresh && at->second.works == 0) at->second = call;
  }

  void add_work(const Event& event, const Dictionary& dictionary) {
    const std::size_t index = queue_of_lane_.get(event.lane, [&] {
      const DeviceId device = dictionary.lane(event.lane).device;
      Queue& queue = queues_.emplace_back();
      queue.lane = event.lane;
      queue.device = device_index_.get(device, [&] {
        devices_.emplace_back().id = device;
        return devices_.size() - 1;
      });
      return queues_.size() - 1;
    });
    Queue& queue = queues_[index];
    ++queue.work;
    if (event.kind == Kind::kKernel) ++devices_[queue.device].kernels;
    if (event.correlation == 0 || (event.flags & kLinked) == 0) {
      ++queue.unlinked;
      return;
    }
    const Work work{event.kind, event.untimed(), index, event.start_ns, event.end_ns};
    const auto at = calls_.find(event.correlation);
    if (at == calls_.end()) {
      early_[event.correlation].push_back(work);
      return;
    }
    match(at->second, work);
    if (apis_[at->second.api].role.launches_one()) {
      settle(at->second);
      calls_.erase(at);
    }
  }

  void match(Call& call, const Work& work) {
    Api& api = apis_[call.api];
    if (call.works++ == 0) {
      ++api.launched;
      if (!call.untimed) api.times.add(distance_saturated(call.start_ns, call.end_ns));
    }
    ++(work.kind == Kind::kKernel ? api.kernels
       : work.kind == Kind::kCopy ? api.copies
                                  : api.fills);
    Queue& queue = queues_[work.queue];
    if (work.kind == Kind::kKernel) compare(call, work, api, devices_[queue.device]);
    if (call.untimed || work.untimed) {
      ++queue.untimed;
      return;
    }
    if (!call.first_queue || work.start_ns < call.first_start_ns) {
      call.first_queue = work.queue;
      call.first_start_ns = work.start_ns;
    }
    // Work that starts before its launch, by clocks that disagree, never waited.
    if (work.start_ns >= call.start_ns) queue.length.add(call.start_ns, work.start_ns);
  }

  static void compare(const Call& call, const Work& work, const Api& api, Device& device) {
    if (api.role.graph) {
      // The call stands for all kernels of the graph: to compare it with one says nothing.
      ++device.in_graphs;
      return;
    }
    if (call.untimed || work.untimed) return;
    const std::int64_t kernel_ns = distance_saturated(work.start_ns, work.end_ns);
    const std::int64_t call_ns = distance_saturated(call.start_ns, call.end_ns);
    ++device.compared;
    device.compared_ns = add_saturated(device.compared_ns, kernel_ns);
    if (kernel_ns >= call_ns) return;
    ++device.shorter;
    device.shorter_ns = add_saturated(device.shorter_ns, kernel_ns);
    device.shorter_launch_ns = add_saturated(device.shorter_launch_ns, call_ns);
  }

  // Takes the delay of a call, to the first of its work.
  void settle(const Call& call) {
    if (!call.first_queue) return;
    const std::int64_t delay = call.first_start_ns >= call.start_ns
                                   ? distance_saturated(call.start_ns, call.first_start_ns)
                                   : -distance_saturated(call.first_start_ns, call.start_ns);
    queues_[*call.first_queue].delays.add(delay);
  }

  Table launches_table(const Dictionary& dictionary) {
    std::vector<Api*> apis;
    for (Api& api : apis_) {
      if (api.launched > 0) apis.push_back(&api);
    }
    std::sort(apis.begin(), apis.end(), [&](const Api* a, const Api* b) {
      if (a->times.sum() != b->times.sum()) return a->times.sum() > b->times.sum();
      return dictionary.text(a->name) < dictionary.text(b->name);
    });
    Table table{.id = "launches",
                .title = "Calls that gave devices work",
                .columns = {{"name"},
                            {"calls", Unit::kCount},
                            {"launched", Unit::kCount},
                            {"kernels", Unit::kCount},
                            {"copies", Unit::kCount},
                            {"fills", Unit::kCount},
                            {"total", Unit::kNanoseconds},
                            {"mean", Unit::kNanoseconds},
                            {"median", Unit::kNanoseconds},
                            {"p95", Unit::kNanoseconds},
                            {"max", Unit::kNanoseconds}},
                .rows = {}};
    for (Api* api : apis) {
      stats::Quantiles& times = api->times;
      const auto count = static_cast<std::int64_t>(times.count());
      const auto known = [&](auto value) { return count > 0 ? Cell(value) : Cell(); };
      table.rows.push_back(
          {std::string(dictionary.text(api->name)), api->calls, api->launched, api->kernels,
           api->copies, api->fills, known(times.sum()),
           known(count > 0 ? times.sum() / count + (times.sum() % count * 2 >= count ? 1 : 0) : 0),
           known(times.quantile(0.5)), known(times.quantile(0.95)), known(times.max())});
    }
    return table;
  }

  static Table delays_table(std::span<const Row> rows) {
    Table table{.id = "delays",
                .title = "From the start of a launch call to the start of its work",
                .columns = {{"device"},
                            {"stream"},
                            {"work", Unit::kCount},
                            {"delays", Unit::kCount},
                            {"min", Unit::kNanoseconds},
                            {"mean", Unit::kNanoseconds},
                            {"median", Unit::kNanoseconds},
                            {"p95", Unit::kNanoseconds},
                            {"max", Unit::kNanoseconds},
                            {"same_launch", Unit::kCount},
                            {"unlinked", Unit::kCount},
                            {"untimed", Unit::kCount}},
                .rows = {}};
    for (const Row& row : rows) {
      Queue& queue = *row.queue;
      Delays& delays = queue.delays;
      const std::int64_t count = delays.count();
      const auto known = [&](auto value) { return count > 0 ? Cell(value()) : Cell(); };
      table.rows.push_back(
          {text_or_unknown(row.device), row.queue_name, queue.work, count,
           known([&] { return delays.min(); }), known([&] { return delays.mean(); }),
           known([&] { return delays.quantile(0.5); }),
           known([&] { return delays.quantile(0.95); }), known([&] { return delays.max(); }),
           queue.work - count - queue.unlinked - queue.untimed, queue.unlinked, queue.untimed});
    }
    return table;
  }

  Table short_kernels_table(std::span<const std::size_t> devices,
                            std::span<const std::string> labels) const {
    Table table{.id = "short_kernels",
                .title = "Kernels shorter than the call that launched them",
                .columns = {{"device"},
                            {"kernels", Unit::kCount},
                            {"compared", Unit::kCount},
                            {"shorter", Unit::kCount},
                            {"share", Unit::kShare},
                            {"shorter_time", Unit::kNanoseconds},
                            {"share_of_time", Unit::kShare},
                            {"their_launches", Unit::kNanoseconds},
                            {"in_graphs", Unit::kCount}},
                .rows = {}};
    for (const std::size_t i : devices) {
      const Device& device = devices_[i];
      const bool any = device.compared > 0;
      table.rows.push_back({text_or_unknown(labels[i]), device.kernels, device.compared,
                            any ? Cell(device.shorter) : Cell(),
                            ratio_cell(device.shorter, device.compared),
                            any ? Cell(device.shorter_ns) : Cell(),
                            ratio_cell(device.shorter_ns, device.compared_ns),
                            any ? Cell(device.shorter_launch_ns) : Cell(), device.in_graphs});
    }
    return table;
  }

  void add_queues(std::span<const Row> rows, std::int64_t origin_ns, Report& report) const {
    Table table{.id = "queues",
                .title = "How much launched work waited",
                .columns = {{"device"},
                            {"stream"},
                            {"launched", Unit::kCount},
                            {"max", Unit::kCount},
                            {"mean"},
                            {"mean_in_time"},
                            {"span", Unit::kNanoseconds},
                            {"empty", Unit::kNanoseconds},
                            {"empty_share", Unit::kShare}},
                .rows = {}};
    std::vector<std::size_t> counts;
    for (const Row& row : rows) counts.push_back(row.queue->length.count());
    std::ranges::sort(counts, std::greater<>());
    const std::size_t fewest = series_ < counts.size() && series_ > 0 ? counts[series_ - 1] : 0;
    std::vector<Series> all;
    std::size_t left_out = 0;
    for (const Row& row : rows) {
      QueueLength& length = row.queue->length;
      if (length.count() == 0) continue;
      QueueLength::Shape shape = length.shape(kMaxPoints);
      table.rows.push_back({text_or_unknown(row.device), row.queue_name,
                            static_cast<std::int64_t>(length.count()), shape.max, shape.mean,
                            shape.mean_in_time, shape.span_ns, shape.empty_ns,
                            ratio_cell(shape.empty_ns, shape.span_ns)});
      if (all.size() == series_ || length.count() < fewest) {
        ++left_out;
        continue;
      }
      for (auto& [time, value] : shape.points) time = distance_saturated(origin_ns, time);
      all.push_back(
          {.id = fmt::format("queue_length:{}:{}", row.device, row.queue_name),
           .title = fmt::format("Launched work that waits in {} of {}", row.queue_name,
                                row.device.empty() ? "the device" : "device " + row.device),
           .unit = Unit::kCount,
           .points = std::move(shape.points)});
    }
    if (left_out > 0) {
      report.parts.emplace_back(
          info("series-left-out",
               fmt::format("series={} leaves out the length over time of {} of {} queues", series_,
                           left_out, table.rows.size())));
    }
    report.parts.emplace_back(std::move(table));
    for (Series& series : all) report.parts.emplace_back(std::move(series));
  }

  std::size_t series_;
  Memo<StringId, std::size_t> api_index_;
  Memo<LaneId, std::size_t> queue_of_lane_;
  Memo<DeviceId, std::size_t> device_index_;
  std::vector<Api> apis_;
  std::vector<Queue> queues_;
  std::vector<Device> devices_;
  std::unordered_map<std::uint64_t, Call> calls_;  // by correlation
  std::unordered_map<std::uint64_t, std::vector<Work>> early_;
};

Result<std::unique_ptr<Tool>> make(const Options& options) {
  const auto series = options.integer("series");
  if (!series) return tl::unexpected<Error>(series.error());
  if (*series < 0) {
    return fail(ErrorCode::kUsage,
                fmt::format("option launches.series cannot be {}; give 0 or more", *series));
  }
  return std::make_unique<Launches>(static_cast<std::size_t>(*series));
}

}  // namespace

constinit const ToolEntry kLaunches = {
    .name = "launches",
    .help = "what launching costs the host, how long launched work waits, and how much of it does",
    .needs = Kind::kKernel | Kind::kApi,
    .options = kOptions,
    .make = make,
    .also = kDeviceWork};

}  // namespace pasta::tools
