#include "adapters/rocprof_v1_csv/rocprof_v1_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "adapters/common/amd.h"
#include "adapters/common/csv_adapter.h"
#include "base/decimal.h"

namespace pasta::adapters::rocprof_v1_csv {
namespace {

enum Column : std::uint8_t {
  kIndex,
  kKernelName,
  kGpu,
  kQueue,
  kQueueIndex,
  kProcess,
  kThread,
  kGrid,
  kGroup,
  kLds,
  kScratch,
  kVgprs,
  kArchVgprs,
  kAccumVgprs,
  kSgprs,
  kFbarriers,
  kWaveSize,
  kSignal,
  kObject,
  kDispatch,
  kBegin,
  kEnd,
  kComplete,
  kDuration,
  kColumnCount,
};
constexpr std::array<std::string_view, kColumnCount> kColumnNames = {
    "Index",     "KernelName", "gpu-id",  "queue-id", "queue-index", "pid",
    "tid",       "grd",        "wgr",     "lds",      "scr",         "vgpr",
    "arch_vgpr", "accum_vgpr", "sgpr",    "fbar",     "wave_size",   "sig",
    "obj",       "DispatchNs", "BeginNs", "EndNs",    "CompleteNs",  "DurationNs"};

bool is(std::string_view name, Column column) {
  return common::same_letters(name, kColumnNames[column]);
}

// The name of the kernel in its code object ends so, not the kernel's own.
std::string_view without_descriptor(std::string_view name) {
  for (const std::string_view ending : {" [clone .kd]", ".kd"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

class RocprofV1Csv final : public common::CsvAdapter {
 public:
  RocprofV1Csv(std::string path, std::vector<Input> inputs)
      : CsvAdapter(kInfo, std::move(path), std::move(inputs)), columns_(kColumnNames) {}

 private:
  struct Counter {
    std::size_t place;
    StringId name;
  };

  Status open_file(std::size_t /*index*/) override { return {}; }
  Status take(Row row) override;
  Status complete(SourceInfo& /*info*/) override {
    not_recorded("copies, calls (rocprof --hip-trace writes them to results.json)");
    return {};
  }
  void take_header(Row row);
  Status take_counters(Row row, const Event& kernel, DeviceId device);

  [[nodiscard]] std::string_view get(Row row, Column column) const {
    return columns_.get(row, column);
  }
  ProcessId process(std::uint64_t pid) {
    Process key;
    key.native_id = pid;
    key.source = text(path());
    return dictionary().process(key);
  }

  common::CsvColumns columns_;
  bool header_read_ = false;
  std::vector<Counter> counters_;  // columns of the user's choice
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::pair<DeviceId, LaneId>>
      queues_;
  std::uint64_t rows_ = 0;
};

void RocprofV1Csv::take_header(Row row) {
  columns_.set_header(row);
  header_read_ = true;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool known = std::any_of(kColumnNames.begin(), kColumnNames.end(),
                                   [&](auto name) { return common::same_letters(name, row[i]); });
    if (!known) counters_.push_back({i, text(row[i])});
  }
}

Status RocprofV1Csv::take(Row row) {
  if (!header_read_) {
    take_header(row);
    return {};
  }
  if (!fits(row, columns_)) return {};
  const std::uint64_t pid = number(get(row, kProcess), "pid").value_or(0);
  const std::uint64_t gpu = number(get(row, kGpu), "gpu-id").value_or(0);
  const std::uint64_t queue = number(get(row, kQueue), "queue-id").value_or(0);
  auto& [device, lane] = queues_[{pid, gpu, queue}];
  if (!lane) {
    Device key;
    key.process = process(pid);
    key.ordinal = static_cast<std::uint32_t>(gpu);
    key.type = DeviceType::kGpu;
    device = dictionary().device(key);
    lane = dictionary().lane(
        {.type = LaneType::kQueue, .process = key.process, .device = device, .native_id = queue});
    dictionary().update(lane, text(fmt::format("queue {}", queue)));
  }

  Event e{};
  e.kind = Kind::kKernel;
  e.name = text(without_descriptor(get(row, kKernelName)));
  e.lane = lane;
  set_times(e, get(row, kBegin), get(row, kEnd));
  // rocprof writes no correlation: the row itself ties the packet to the kernel that it started.
  e.correlation = make_correlation(process(pid), ++rows_);
  e.kernel.ordinal = static_cast<std::uint32_t>(number(get(row, kIndex), "Index").value_or(0) + 1);
  // Products over the axes.
  LaunchAttributes launch;
  common::set_grid(e.kernel, launch,
                   {{small(get(row, kGrid), "grd"), 1, 1}, {small(get(row, kGroup), "wgr"), 1, 1}});
  launch.registers_per_thread =
      small(get(row, columns_.has(kVgprs) ? kVgprs : kArchVgprs), "vgpr") +
      small(get(row, kAccumVgprs), "accum_vgpr");
  launch.static_shared_bytes = small(get(row, kLds), "lds");
  launch.local_bytes_per_thread = small(get(row, kScratch), "scr");
  e.kernel.attributes = attributes(launch);

  // When the packet was put into the queue: the only moment of the host that the table has.
  Event launched{};
  launched.kind = Kind::kApi;
  launched.detail = static_cast<std::uint16_t>(ApiDomain::kDriver);
  launched.flags = kInstant;
  launched.name = text("dispatch");
  const std::uint64_t tid = number(get(row, kThread), "tid").value_or(0);
  launched.lane = dictionary().lane({.process = process(pid), .native_id = tid});
  launched.correlation = e.correlation;
  if (!get(row, kDispatch).empty() && get(row, kDispatch) != "0") {
    set_times(launched, get(row, kDispatch), get(row, kDispatch));
    PASTA_TRY(add(launched));
  } else {
    e.correlation = 0;
  }
  PASTA_TRY(add(e));
  return take_counters(row, e, device);
}

Status RocprofV1Csv::take_counters(Row row, const Event& kernel, DeviceId device) {
  for (const Counter& counter : counters_) {
    Event e{};
    e.kind = Kind::kCounter;
    e.name = counter.name;
    e.lane = kernel.lane;
    e.flags = kernel.flags;
    e.start_ns = e.end_ns = kernel.end_ns;
    e.counter.device = device;
    const std::string_view value = row[counter.place];
    if (base::parse_double(value, e.counter.value)) {
      PASTA_TRY(add(e));
    } else {
      note(Reason::kUnreadableNumber, [&] {
        return fmt::format("{} is \"{}\"", dictionary().text(counter.name), value.substr(0, 40));
      });
    }
  }
  return {};
}

}  // namespace

bool sniff(std::span<const std::byte> head) {
  const auto rows = base::csv_head(head, 1);
  if (rows.empty()) return false;
  const auto has = [&](Column column) {
    return std::any_of(rows[0].begin(), rows[0].end(),
                       [&](std::string_view name) { return is(name, column); });
  };
  return has(kKernelName) && has(kGpu) && has(kGrid) && has(kGroup);
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  std::string path = input.path;
  std::vector<Input> inputs;
  inputs.push_back(std::move(input));
  return std::make_unique<RocprofV1Csv>(std::move(path), std::move(inputs));
}

}  // namespace pasta::adapters::rocprof_v1_csv
