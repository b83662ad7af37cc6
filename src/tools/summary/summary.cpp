#include "tools/summary/summary.h"

#include <algorithm>
#include <array>
#include <limits>

#include "stats/interval_set.h"
#include "tools/common/kernel_class.h"
#include "tools/common/memo.h"
#include "tools/common/rows.h"
#include "tools/common/saturate.h"
#include "tools/summary/join.h"

namespace pasta::tools {
namespace {

using stats::IntervalSet;

// Calls of one sort of work, those without times included, and the time of the others.
struct Calls {
  std::int64_t count = 0;
  std::int64_t timed = 0;
  std::int64_t sum_ns = 0;

  void add(const Event& event) {
    ++count;
    if (event.untimed()) return;
    ++timed;
    sum_ns = add_saturated(sum_ns, distance_saturated(event.start_ns, event.end_ns));
  }
  friend Calls operator+(const Calls& a, const Calls& b) {
    return {.count = a.count + b.count,
            .timed = a.timed + b.timed,
            .sum_ns = add_saturated(a.sum_ns, b.sum_ns)};
  }
  // Nothing took no time; calls that are all without times took an unknown time.
  [[nodiscard]] bool time_known() const { return timed > 0 || count == 0; }
  [[nodiscard]] Cell sum() const { return time_known() ? Cell(sum_ns) : Cell(); }
};

// What may run on a device at one moment, as bits.
enum Running : unsigned { kCompute = 1, kCommunication = 2, kMemory = 4 };

struct DeviceTime {
  DeviceId device{};
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  IntervalSet compute, communication, memory;  // when each of Running ran
  Calls compute_kernels, communication_kernels, copies, fills;
  std::int64_t copy_bytes = 0;
  bool copy_bytes_known = false;

  void add_time(const Event& event, IntervalSet& set) {
    if (event.untimed()) return;
    first_ns = std::min(first_ns, event.start_ns);
    last_ns = std::max(last_ns, event.end_ns);
    set.add(event.start_ns, event.end_ns);
  }
  [[nodiscard]] bool timed() const { return first_ns <= last_ns; }
};

// How long each combination of Running lasted.
class Combinations {
 public:
  explicit Combinations(const DeviceTime& device) {
    struct Cursor {
      explicit Cursor(const IntervalSet& set) : reader(set) { next(); }
      void next() { more = reader.next(piece); }
      IntervalSet::Reader reader;
      stats::Interval piece;
      bool more = false;
    };
    Cursor cursors[] = {Cursor(device.compute), Cursor(device.communication),
                        Cursor(device.memory)};
    for (std::int64_t now = device.first_ns;;) {
      // Until the next moment at which something starts or ends, the same things run.
      unsigned running = 0;
      std::int64_t until = device.last_ns;
      for (unsigned i = 0; i < 3; ++i) {
        Cursor& cursor = cursors[i];
        if (cursor.more && cursor.piece.end <= now) cursor.next();
        if (!cursor.more) continue;
        const bool runs = cursor.piece.begin <= now;
        if (runs) running |= 1u << i;
        until = std::min(until, runs ? cursor.piece.end : cursor.piece.begin);
      }
      if (until <= now) return;
      time_ns_[running] = add_saturated(time_ns_[running], distance_saturated(now, until));
      now = until;
    }
  }

  // Time in which at least one of `these` ran, and at least one of `those`.
  [[nodiscard]] std::int64_t time(unsigned these, unsigned those) const {
    std::int64_t sum = 0;
    for (unsigned running = 0; running < time_ns_.size(); ++running) {
      if ((running & these) == 0 || (running & those) == 0) continue;
      sum = add_saturated(sum, time_ns_[running]);
    }
    return sum;
  }
  [[nodiscard]] std::int64_t time(unsigned these) const { return time(these, these); }

 private:
  std::array<std::int64_t, 8> time_ns_{};
};

class Summary : public Tool {
 public:
  Status consume(std::span<const Event> events, const Context& context) override {
    for (const Event& event : events) {
      DeviceTime& device = device_of(event.lane, context.dictionary());
      switch (event.kind) {
        case Kind::kKernel: {
          const bool communicates = communicates_.get(
              event.name, [&] { return is_communication(context.dictionary().text(event.name)); });
          (communicates ? device.communication_kernels : device.compute_kernels).add(event);
          device.add_time(event, communicates ? device.communication : device.compute);
          break;
        }
        case Kind::kCopy:
          device.copies.add(event);
          device.add_time(event, device.memory);
          if (event.copy.bytes != kUnknownBytes) {
            device.copy_bytes_known = true;
            device.copy_bytes =
                add_saturated(device.copy_bytes, static_cast<std::int64_t>(event.copy.bytes));
          }
          break;
        case Kind::kFill:
          device.fills.add(event);
          device.add_time(event, device.memory);
          break;
        default:
          break;
      }
    }
    return {};
  }

  Result<Report> finish(const Context& context) override {
    std::vector<std::pair<std::string, const DeviceTime*>> labelled;
    for (const DeviceTime& device : devices_) {
      labelled.emplace_back(context.device_label(device.device), &device);
    }
    std::ranges::stable_sort(labelled, natural_less,
                             [](const auto& row) { return std::string_view(row.first); });

    Table devices{.id = "devices",
                  .title = "What each device did",
                  .columns = {{"device"},
                              {"span", Unit::kNanoseconds},
                              {"busy", Unit::kNanoseconds},
                              {"idle", Unit::kNanoseconds},
                              {"compute", Unit::kNanoseconds},
                              {"communication", Unit::kNanoseconds},
                              {"communication_overlapped", Unit::kNanoseconds},
                              {"memory", Unit::kNanoseconds},
                              {"memory_overlapped", Unit::kNanoseconds},
                              {"kernels", Unit::kCount},
                              {"kernel_sum", Unit::kNanoseconds},
                              {"copies", Unit::kCount},
                              {"copy_sum", Unit::kNanoseconds},
                              {"copy_bytes", Unit::kBytes},
                              {"fills", Unit::kCount}},
                  .rows = {}};
    Table breakdown{
        .id = "breakdown",
        .title = "Where the time of each device went",
        .columns = {{"device"}, {"part"}, {"time", Unit::kNanoseconds}, {"share", Unit::kShare}},
        .rows = {}};
    for (const auto& [label, device] : labelled) add_rows(label, *device, devices, breakdown);

    Report report{.tool = "summary", .title = "Summary", .parts = {}};
    if (devices_.empty()) {
      report.parts.emplace_back(Finding{.id = "no-device-work",
                                        .level = Finding::Level::kInfo,
                                        .text = "no device did anything in this trace",
                                        .of = {},
                                        .evidence = {},
                                        .advice = {}});
    }
    report.parts.emplace_back(std::move(devices));
    report.parts.emplace_back(std::move(breakdown));
    return report;
  }

 private:
  DeviceTime& device_of(LaneId lane, const Dictionary& dictionary) {
    return devices_[device_of_lane_.get(lane, [&] {
      const DeviceId device = dictionary.lane(lane).device;
      return device_index_.get(device, [&] {
        devices_.emplace_back().device = device;
        return devices_.size() - 1;
      });
    })];
  }

  static void add_rows(const std::string& label, const DeviceTime& device, Table& devices,
                       Table& breakdown) {
    constexpr unsigned kKernel = kCompute | kCommunication;
    const Combinations ran(device);
    const std::int64_t busy = ran.time(kKernel | kMemory);
    const std::int64_t compute = ran.time(kCompute);
    const std::int64_t communication = ran.time(kCommunication);
    const std::int64_t communication_overlapped = ran.time(kCommunication, kCompute);
    const std::int64_t memory = ran.time(kMemory);
    const std::int64_t memory_overlapped = ran.time(kMemory, kKernel);
    const std::int64_t span =
        device.timed() ? distance_saturated(device.first_ns, device.last_ns) : 0;

    // What rests on times that the source does not have is unknown, not 0.
    const auto known = [](bool is_known, std::int64_t value) {
      return is_known ? Cell(value) : Cell();
    };
    const bool compute_known = device.compute_kernels.time_known();
    const bool communication_known = device.communication_kernels.time_known();
    const bool memory_known = (device.copies + device.fills).time_known();
    const bool all_known = compute_known && communication_known && memory_known;
    const Calls all_kernels = device.compute_kernels + device.communication_kernels;

    devices.rows.push_back(
        {label.empty() ? Cell() : Cell(label), known(device.timed(), span),
         known(device.timed(), busy), known(device.timed(), span - busy),
         known(compute_known, compute), known(communication_known, communication),
         known(communication_known && compute_known, communication_overlapped),
         known(memory_known, memory), known(all_known, memory_overlapped), all_kernels.count,
         all_kernels.sum(), device.copies.count, device.copies.sum(),
         known(device.copy_bytes_known || device.copies.count == 0, device.copy_bytes),
         device.fills.count});
    if (!device.timed() || !all_known) return;

    const std::pair<const char*, std::int64_t> parts[] = {
        {"compute", compute},
        {"exposed communication", communication - communication_overlapped},
        {"exposed memory", memory - memory_overlapped},
        {"idle", span - busy}};
    for (const auto& [part, time] : parts) {
      breakdown.rows.push_back(
          {label.empty() ? Cell() : Cell(label), part, time,
           span > 0 ? Cell(static_cast<double>(time) / static_cast<double>(span)) : Cell()});
    }
  }

  Memo<StringId, bool> communicates_;
  Memo<LaneId, std::size_t> device_of_lane_;
  Memo<DeviceId, std::size_t> device_index_;
  std::vector<DeviceTime> devices_;
};

Result<std::unique_ptr<Tool>> make(const Options&) { return std::make_unique<Summary>(); }

}  // namespace

constinit const ToolEntry kSummary = {
    .name = "summary",
    .help =
        "what each device did: busy, idle, compute, communication, "
        "memory traffic, and what of it overlapped",
    .needs = Kind::kKernel,
    .options = {},
    .make = make,
    .join = summary::join,
    .also = kDeviceWork};

}  // namespace pasta::tools
