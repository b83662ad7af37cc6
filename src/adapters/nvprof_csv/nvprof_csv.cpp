#include "adapters/nvprof_csv/nvprof_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "adapters/common/csv_adapter.h"
#include "adapters/nvprof_csv/units.h"
#include "base/decimal.h"

namespace pasta::adapters::nvprof_csv {
namespace {

constexpr std::string_view kOwnLine = "==";  // "==4711== Profiling result:"
constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

enum Column : std::uint8_t {
  kStart,
  kDuration,
  kGridX,
  kGridY,
  kGridZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kRegisters,
  kStaticShared,
  kDynamicShared,
  kSize,
  kDevice,
  kContext,
  kStream,
  kUnified,
  kAddress,
  kName,
  kCorrelation,
  kColumnCount,
};
constexpr std::array<std::string_view, kColumnCount> kColumnNames = {
    "Start",          "Duration",        "Grid X",
    "Grid Y",         "Grid Z",          "Block X",
    "Block Y",        "Block Z",         "Registers Per Thread",
    "Static SMem",    "Dynamic SMem",    "Size",
    "Device",         "Context",         "Stream",
    "Unified Memory", "Virtual Address", "Name",
    "Correlation_ID"};

enum class Table : std::uint8_t { kNone, kTrace, kSummary, kMetrics };

Table table_of(std::span<const std::string> header) {
  const auto has = [&](std::string_view name) {
    return std::find(header.begin(), header.end(), name) != header.end();
  };
  if (has("Start") && has("Duration") && has("Name")) return Table::kTrace;
  if (has("Time(%)") && has("Calls") && has("Name")) return Table::kSummary;
  if (has("Kernel") && has("Invocations")) return Table::kMetrics;
  return Table::kNone;
}

// "HtoD", "AtoH": H is the host, all else is on a device.
CopyDirection direction_of(std::string_view name) {
  const std::size_t at = name.find("to");
  if (at == name.npos || at == 0 || at + 2 >= name.size()) return CopyDirection::kUnknown;
  const char from = name[at - 1];
  const char to = name[at + 2];
  if (from == 'P' && to == 'P') return CopyDirection::kPeerToPeer;
  if (from == 'H') return to == 'H' ? CopyDirection::kHostToHost : CopyDirection::kHostToDevice;
  return to == 'H' ? CopyDirection::kDeviceToHost : CopyDirection::kDeviceToDevice;
}

ApiDomain domain_of(std::string_view name) {
  if (name.starts_with("cuda")) return ApiDomain::kRuntime;
  if (name.starts_with("cu")) return ApiDomain::kDriver;
  return ApiDomain::kUnknown;
}

class NvprofCsv final : public common::CsvAdapter {
 public:
  NvprofCsv(std::string path, std::vector<Input> inputs)
      : CsvAdapter(kInfo, std::move(path), std::move(inputs), kOwnLine), columns_(kColumnNames) {}

 private:
  enum class Expect : std::uint8_t { kHeader, kUnits, kRows, kOtherTable };
  struct Unit {
    int time_places = -1;  // -1: not a time
    std::uint64_t bytes = 0;
  };
  struct Place {
    DeviceId device{};
    LaneId lane{};
  };

  Status open_file(std::size_t /*index*/) override { return {}; }
  Status take(Row row) override;
  void take_comment(std::string_view line) override;
  Status complete(SourceInfo& info) override;

  void take_header(Row row);
  void take_units(Row row);
  void look_at_steps(Row row);
  Status take_kernel(Row row, Event& event);
  Status take_unified(Row row, Event& event);
  Status take_call(Event& event);
  // The name without the correlation that old versions put behind it ("gemm [107]").
  std::string_view name_of(Row row, std::uint64_t& correlation_id) const;
  void set_times(Event& event, Row row);
  std::uint64_t size(Row row, Column column, std::string_view what);  // kUnknownBytes: not given
  std::uint32_t shared(Row row, Column column, std::string_view what);
  const Place& place(Row row);
  ProcessId process();
  LaneId host_lane();

  [[nodiscard]] std::string_view get(Row row, Column column) const {
    return columns_.get(row, column);
  }

  common::CsvColumns columns_;
  std::array<Unit, kColumnCount> units_{};
  Expect expect_ = Expect::kHeader;
  bool steps_known_ = false;
  std::string steps_;  // columns whose values are rounded by more than a ns or a byte
  std::uint64_t pid_ = 0;
  std::string command_;
  bool any_calls_ = false;
  ProcessId process_{};
  LaneId host_lane_{};
  std::map<std::tuple<std::string, std::string, std::string>, Place> places_;
};

// --- nvprof's own lines

void NvprofCsv::take_comment(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('='), line.size()));
  std::uint64_t pid = 0;
  std::from_chars(line.data(), line.data() + line.size(), pid);
  const std::size_t text_at = line.find("== ");
  if (text_at != line.npos) line.remove_prefix(text_at + 3);
  if (line.ends_with("result:")) expect_ = Expect::kHeader;
  constexpr std::string_view kCommand = "command: ";
  if (line.starts_with("NVPROF is profiling process")) {
    pid_ = pid;
    if (const std::size_t at = line.find(kCommand); at != line.npos) {
      command_ = line.substr(at + kCommand.size());
    }
  }
  constexpr std::string_view kWarning = "Warning: ";
  if (line.starts_with(kWarning)) {
    line.remove_prefix(kWarning.size());
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
    if (error == std::errc{} && line.find("dropped") != line.npos) {
      problems().add(Reason::kDroppedByCollector, count, line);
    } else {
      problems().add(Reason::kCollectorWarning, 1, line);
    }
  }
}

Status NvprofCsv::complete(SourceInfo& /*info*/) {
  if (!command_.empty()) dictionary().fact("command", command_);
  if (!any_calls_) not_recorded("calls (nvprof --print-api-trace)");
  if (places_.empty()) not_recorded("work of devices (nvprof --print-gpu-trace)");
  return {};
}

ProcessId NvprofCsv::process() {
  if (!process_) {
    Process key;
    key.native_id = pid_;
    if (pid_ == 0) key.native_text = dictionary().string("(no pid)");
    key.source = dictionary().string(path());
    process_ = dictionary().process(key);
    key.name = dictionary().string(command_);
    dictionary().update(process_, key);
  }
  return process_;
}

LaneId NvprofCsv::host_lane() {
  if (!host_lane_) {
    host_lane_ = dictionary().lane({.process = process(), .native_text = text("(no thread)")});
  }
  return host_lane_;
}

// --- rows

Status NvprofCsv::take(Row row) {
  switch (expect_) {
    case Expect::kHeader:
      take_header(row);
      return {};
    case Expect::kUnits:
      take_units(row);
      return {};
    case Expect::kOtherTable:
      return {};
    case Expect::kRows:
      break;
  }
  if (!fits(row, columns_)) return {};
  if (!steps_known_) look_at_steps(row);

  Event e{};
  std::uint64_t id = 0;
  const std::string_view name = name_of(row, id);
  e.name = text(name);
  set_times(e, row);
  e.correlation = columns_.has(kCorrelation) ? correlation(process(), get(row, kCorrelation))
                                             : make_correlation(process(), id);
  if (!steps_.empty()) note(Reason::kRounded, [&] { return steps_; });
  if (name.starts_with("[Unified Memory")) return take_unified(row, e);
  if (get(row, kDevice).empty()) return take_call(e);
  return take_kernel(row, e);
}

void NvprofCsv::take_header(Row row) {
  const std::vector<std::string> header(row.begin(), row.end());
  if (table_of(header) != Table::kTrace) {  // a summary behind the trace
    expect_ = Expect::kOtherTable;
    return;
  }
  columns_.set_header(row);
  units_ = {};
  steps_known_ = false;
  steps_.clear();
  expect_ = Expect::kUnits;
}

void NvprofCsv::take_units(Row row) {
  expect_ = Expect::kRows;
  if (!fits(row, columns_)) return;
  for (std::size_t i = 0; i < kColumnCount; ++i) {
    const std::string_view unit = columns_.get(row, i);
    if (!time_places(unit, units_[i].time_places)) unit_bytes(unit, units_[i].bytes);
  }
}

// nvprof writes the same number of decimals in each row.
void NvprofCsv::look_at_steps(Row row) {
  for (const Column column : {kStart, kDuration}) {
    const int coarse = units_[column].time_places - decimals(get(row, column));
    if (get(row, column).empty() || coarse <= 0) continue;
    std::int64_t step = 1;
    for (int i = 0; i < coarse; ++i) step *= 10;
    steps_ += fmt::format("{}{} in steps of {} ns", steps_.empty() ? "" : ", ",
                          kColumnNames[column], step);
  }
  const std::uint64_t unit = units_[kSize].bytes;
  constexpr std::uint64_t kSixDecimals = 1'000'000;
  if (unit > kSixDecimals) {
    steps_ += fmt::format("{}Size in steps of {:.2f} B", steps_.empty() ? "" : ", ",
                          static_cast<double>(unit) / kSixDecimals);
  }
  steps_known_ = !get(row, kDuration).empty();
  if (!steps_known_) steps_.clear();
}

std::string_view NvprofCsv::name_of(Row row, std::uint64_t& correlation_id) const {
  const std::string_view name = get(row, kName);
  if (columns_.has(kCorrelation) || !name.ends_with(']') || name.starts_with('[')) return name;
  const std::size_t at = name.rfind(" [");
  if (at == name.npos ||
      !base::parse_unsigned(name.substr(at + 2, name.size() - at - 3), correlation_id)) {
    return name;
  }
  return name.substr(0, at);
}

void NvprofCsv::set_times(Event& event, Row row) {
  const std::string_view start = get(row, kStart);
  const std::string_view duration = get(row, kDuration);
  const auto untimed = [&](Reason reason) {
    event.start_ns = event.end_ns = kNoTime;
    event.flags |= kUntimed;
    note(reason, [&] {
      return fmt::format("\"{}\" at \"{}\" for \"{}\"", dictionary().text(event.name),
                         start.substr(0, 40), duration.substr(0, 40));
    });
  };
  if (start.empty()) return untimed(Reason::kUntimed);
  std::int64_t length = 0;
  auto status = base::parse_decimal(start, units_[kStart].time_places, event.start_ns);
  if (units_[kStart].time_places < 0) status = base::DecimalStatus::kInvalid;  // no unit
  if (duration.empty()) {
    event.flags |= kInstant;
  } else {
    if (units_[kDuration].time_places < 0) status = base::DecimalStatus::kInvalid;
    status = std::max(status, base::parse_decimal(duration, units_[kDuration].time_places, length));
  }
  if (status == base::DecimalStatus::kInvalid) return untimed(Reason::kUnreadableNumber);
  if (length < 0) return untimed(Reason::kNegativeDuration);
  if (status == base::DecimalStatus::kOutOfRange ||
      __builtin_add_overflow(event.start_ns, length, &event.end_ns)) {
    return untimed(Reason::kTimeOutOfRange);
  }
  if (status == base::DecimalStatus::kCut) {
    note(Reason::kSubNanosecond, [&] {
      return fmt::format("\"{}\" at {} for {}", dictionary().text(event.name), start, duration);
    });
  }
}

std::uint64_t NvprofCsv::size(Row row, Column column, std::string_view what) {
  const std::string_view given = get(row, column);
  std::uint64_t bytes = 0;
  if (given.empty()) return kUnknownBytes;
  if (units_[column].bytes != 0 && parse_size(given, units_[column].bytes, bytes)) return bytes;
  note(Reason::kUnreadableNumber,
       [&] { return fmt::format("{} is \"{}\"", what, given.substr(0, 40)); });
  return kUnknownBytes;
}

std::uint32_t NvprofCsv::shared(Row row, Column column, std::string_view what) {
  const std::uint64_t bytes = size(row, column, what);
  return bytes <= 0xFFFFFFFF ? static_cast<std::uint32_t>(bytes) : 0;
}

const NvprofCsv::Place& NvprofCsv::place(Row row) {
  const std::string_view device = get(row, kDevice);
  const std::string_view context = get(row, kContext);
  const std::string_view stream = get(row, kStream);
  Place& found = places_[{std::string(device), std::string(context), std::string(stream)}];
  if (found.lane) return found;
  // "TITAN Xp (0)"
  std::uint64_t ordinal = 0;
  std::string_view name = device;
  const std::size_t at = device.rfind(" (");
  if (at != device.npos && device.ends_with(')') &&
      base::parse_unsigned(device.substr(at + 2, device.size() - at - 3), ordinal)) {
    name = device.substr(0, at);
  }
  Device key;
  key.process = process();
  key.ordinal = static_cast<std::uint32_t>(ordinal);
  key.type = DeviceType::kGpu;
  found.device = dictionary().device(key);
  key.name = text(name);
  dictionary().update(found.device, key);
  Lane lane;
  lane.type = LaneType::kQueue;
  lane.process = process();
  lane.device = found.device;
  lane.context = number(context, "Context").value_or(0);
  if (stream.empty()) {
    lane.native_text = text("unified memory");
  } else {
    lane.native_id = number(stream, "Stream").value_or(0);
  }
  found.lane = dictionary().lane(lane);
  return found;
}

Status NvprofCsv::take_kernel(Row row, Event& e) {
  e.lane = place(row).lane;
  const std::string_view name = dictionary().text(e.name);
  if (name.starts_with("[CUDA memcpy")) {
    e.kind = Kind::kCopy;
    e.detail = static_cast<std::uint16_t>(direction_of(name));
    e.copy.bytes = size(row, kSize, "Size");
    return add(e);
  }
  if (name.starts_with("[CUDA memset")) {
    e.kind = Kind::kFill;
    e.fill.bytes = size(row, kSize, "Size");
    return add(e);
  }
  e.kind = Kind::kKernel;
  constexpr Column kGrids[] = {kGridX, kGridY, kGridZ};
  constexpr Column kBlocks[] = {kBlockX, kBlockY, kBlockZ};
  LaunchAttributes launch;
  for (std::size_t i = 0; i < 3; ++i) {
    e.kernel.grid[i] = small(get(row, kGrids[i]), kColumnNames[kGrids[i]]);
    launch.block[i] = small(get(row, kBlocks[i]), kColumnNames[kBlocks[i]]);
  }
  launch.registers_per_thread = small(get(row, kRegisters), "Registers Per Thread");
  launch.static_shared_bytes = shared(row, kStaticShared, "Static SMem");
  launch.dynamic_shared_bytes = shared(row, kDynamicShared, "Dynamic SMem");
  e.kernel.attributes = attributes(launch);
  return add(e);
}

Status NvprofCsv::take_unified(Row row, Event& e) {
  const std::string_view name = dictionary().text(e.name);
  const std::string_view given = get(row, kUnified);
  const bool on_device = !get(row, kDevice).empty();
  const std::uint64_t address = number(get(row, kAddress), "Virtual Address").value_or(0);
  e.lane = on_device ? place(row).lane : host_lane();
  if (on_device && name.find("Memcpy") != name.npos) {
    e.kind = Kind::kCopy;
    e.detail = static_cast<std::uint16_t>(CopyDirection::kMigration);
    const bool to_host = direction_of(name) == CopyDirection::kDeviceToHost;
    e.copy = {.bytes = size(row, kUnified, "Unified Memory"),
              .src = to_host ? address : 0,
              .dst = to_host ? 0 : address};
    return add(e);
  }
  if (name.find("page fault") == name.npos) {
    note(Reason::kNotAnEvent, [&] { return fmt::format("\"{}\"", name); });
    return {};
  }
  e.kind = Kind::kFault;
  e.memory.bytes = kUnknownBytes;
  e.memory.address = address;
  if (!on_device) return add(e);  // one fault; `given` is where the program was
  e.memory.device = place(row).device;
  PASTA_TRY(add(e));
  // A row stands for a group of faults: their number is a value of its own.
  const auto faults = number(given, "Unified Memory");
  if (!faults) return {};
  e.kind = Kind::kCounter;
  e.name = text("GPU page faults");
  e.start_ns = e.end_ns;
  const DeviceId device = e.memory.device;
  e.counter = {};
  e.counter.value = static_cast<double>(*faults);
  e.counter.unit = text("faults");
  e.counter.device = device;
  return add(e);
}

Status NvprofCsv::take_call(Event& e) {
  any_calls_ = true;
  const std::string_view name = dictionary().text(e.name);
  e.lane = host_lane();
  if (name.starts_with('[')) {  // "[Range start] step", "[Marker] here"
    e.kind = Kind::kScope;
    e.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    e.correlation = 0;
    return add(e);
  }
  e.kind = Kind::kApi;
  e.detail = static_cast<std::uint16_t>(domain_of(name));
  return add(e);
}

// --- opening

Table table_of(std::span<const std::byte> head) {
  const auto rows = base::csv_head(head, 1, kOwnLine);
  return rows.empty() ? Table::kNone : table_of(rows[0]);
}

}  // namespace

bool sniff(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \r\n"), text.size()));
  if (text.starts_with(kOwnLine)) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.find("NVPROF is profiling") != line.npos) return true;
    if (line.find("rofiling result") != line.npos) return true;
  }
  return table_of(head) != Table::kNone;
}

bool confirm(ByteStream& stream) {
  std::vector<std::byte> head(kHeadBytes);
  const auto got = stream.read(head);
  return !got || table_of(std::span(head).first(*got)) == Table::kTrace;
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::kUnsupported, fmt::format("{}: {}", input.path, what));
  };
  switch (table_of(input.head)) {
    case Table::kSummary:
      return refuse(
          "nvprof's summary, which holds no timeline: run nvprof with --csv --print-gpu-trace "
          "--print-api-trace");
    case Table::kMetrics:
      return refuse(
          "nvprof's counters of kernels, which hold no timeline: run nvprof with --csv "
          "--print-gpu-trace --print-api-trace");
    case Table::kNone:
      return refuse(
          "nvprof's output without a trace as CSV: run nvprof with --csv --print-gpu-trace "
          "--print-api-trace");
    case Table::kTrace:
      break;
  }
  std::string path = input.path;
  std::vector<Input> inputs;
  inputs.push_back(std::move(input));
  return std::make_unique<NvprofCsv>(std::move(path), std::move(inputs));
}

}  // namespace pasta::adapters::nvprof_csv
