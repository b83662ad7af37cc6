#include "adapters/rocprof_v1/rocprof_v1.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/common/amd.h"
#include "adapters/common/database_adapter.h"
#include "adapters/common/lanes.h"
#include "adapters/common/select.h"
#include "adapters/rocprof_v1/arguments.h"

namespace pasta::adapters::rocprof_v1 {
namespace {

using base::sqlite::Database;
using base::sqlite::Statement;
using common::Lanes;
using common::Select;

// Columns of table KERN that are no counters.
constexpr std::array<std::string_view, 28> kKernelColumns = {
    "Index", "KernelName", "gpu-id",     "queue-id",  "queue-index", "pid",        "tid",
    "grd",   "wgr",        "lds",        "scr",       "arch_vgpr",   "accum_vgpr", "vgpr",
    "sgpr",  "wave_size",  "fbar",       "sig",       "obj",         "DispatchNs", "BeginNs",
    "EndNs", "CompleteNs", "DurationNs", "__section", "__lane",      "Data",       "args"};

// Names come in quotes, and kernels' with what the linker or the compiler calls a copy of one.
std::string_view plain_name(std::string_view name) {
  if (name.size() >= 2 && name.starts_with('"') && name.ends_with('"')) {
    name = name.substr(1, name.size() - 2);
  }
  constexpr std::string_view kClone = " [clone .kd]";
  if (name.ends_with(kClone)) name.remove_suffix(kClone.size());
  return common::without_kd(name);
}

class RocprofV1 final : public common::DatabaseAdapter {
 public:
  explicit RocprofV1(Database database) : DatabaseAdapter(kInfo, std::move(database)) {}

 private:
  Status prepare() override;
  Status complete(SourceInfo&) override { return {}; }

  void read_calls(std::string_view table, ApiDomain domain);
  void read_marks();
  void read_operations(std::string_view table);
  void read_kernels();

  ProcessId process(int pid);
  DeviceId device(std::uint64_t number);
  StringId name(std::string_view text) { return dictionary().string(plain_name(text)); }
  std::optional<std::uint64_t> number(int column, std::string_view what) {
    const auto value = integer(column, what);
    if (!value || *value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  }

  std::optional<Lanes> lanes_;
  ProcessId file_process_{};
  std::unordered_map<std::int64_t, ProcessId> processes_;
  std::unordered_map<std::uint64_t, DeviceId> devices_;
};

Status RocprofV1::prepare() {
  lanes_.emplace(dictionary(), Lanes::Naming::kByQueue);
  file_process_ = dictionary().process({.source = dictionary().string(database().path())});
  read_calls("HIP", ApiDomain::kRuntime);
  read_calls("HSA", ApiDomain::kDriver);
  read_marks();
  read_operations("OPS");
  read_operations("COPY");
  // Both tables hold every kernel, OPS with the call that launched it.
  bool traced = false;
  if (database().has("OPS")) {
    PASTA_TRY(read_now("OPS", "SELECT 1 FROM OPS LIMIT 1", [&]() -> Status {
      traced = true;
      return {};
    }));
  }
  if (traced) return leave_out("KERN", "the kernels of table OPS again");
  read_kernels();
  return {};
}

ProcessId RocprofV1::process(int pid) {
  const auto native = integer(pid, "pid");
  if (!native) return file_process_;
  ProcessId& id = processes_[*native];
  if (!id) {
    id = dictionary().process({.native_id = static_cast<std::uint64_t>(*native),
                               .source = dictionary().string(database().path())});
  }
  return id;
}

DeviceId RocprofV1::device(std::uint64_t number) {
  DeviceId& id = devices_[number];
  if (!id) {
    id = dictionary().device({.process = file_process_,
                              .ordinal = static_cast<std::uint32_t>(number),
                              .type = DeviceType::kGpu});
  }
  return id;
}

void RocprofV1::read_calls(std::string_view table, ApiDomain domain) {
  Select select(database(), table, "A");
  const int start = select.column("A", "BeginNs"), end = select.column("A", "EndNs"),
            pid = select.column("A", "pid"), tid = select.column("A", "tid"),
            called = select.column("A", "Name"), index = select.column("A", "Index");
  // Calls into HSA are numbered apart from HIP's, whose numbers the operations bear.
  const bool linked = domain == ApiDomain::kRuntime || !database().has("HIP");
  read(table, select, [=, this]() {
    Event event{};
    event.kind = Kind::kApi;
    event.detail = static_cast<std::uint16_t>(domain);
    event.name = name(text_of(called));
    const ProcessId of = process(pid);
    event.lane = lanes_->thread(of, number(tid, "tid").value_or(0));
    if (linked) event.correlation = correlation(of, integer(index, "Index"));
    set_times(event, start, end);
    return add(event);
  });
}

void RocprofV1::read_marks() {
  Select select(database(), "rocTX", "A");
  const int start = select.column("A", "BeginNs"), end = select.column("A", "EndNs"),
            pid = select.column("A", "pid"), tid = select.column("A", "tid"),
            said = select.column("A", "Name"), lane = select.column("A", "__lane");
  read("rocTX", select, [=, this]() {
    Event event{};
    event.kind = Kind::kScope;
    event.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
    event.name = dictionary().string(text_of(said));
    const auto thread = number(tid, "tid");
    event.lane = lanes_->thread(process(pid), thread.value_or(0));
    set_times(event, start, end);
    // A range of the process, that may end on another thread, is drawn on lane 0.
    if (integer(lane, "__lane") == 0 && thread != 0) event.flags |= kAnnotation;
    // The profiler draws a moment one nanosecond long.
    if (event.end_ns > event.start_ns && event.end_ns - 1 == event.start_ns) {
      event.end_ns = event.start_ns;
      event.flags |= kInstant;
    }
    return add(event);
  });
}

// What HIP had done: kernels in OPS, copies and fills in COPY. COPY also holds what HSA copied.
void RocprofV1::read_operations(std::string_view table) {
  if (!database().has(table)) return;
  Select select(database(), table, "O");
  select.join("HIP", "H", {{"O", "Index", "Index"}, {"O", "pid", "pid"}});
  const int start = select.column("O", "BeginNs"), end = select.column("O", "EndNs"),
            pid = select.column("O", "pid"), index = select.column("O", "Index"),
            what = select.column("O", "Name"), gpu = select.column("O", "dev-id"),
            queue = select.column("O", "queue-id"), stream = select.column("O", "stream-id"),
            arguments = select.column("H", "args"), id = select.expression("O.rowid");
  const bool kernels = table == "OPS";
  read(table, select, [=, this, last = std::optional<std::int64_t>()]() mutable {
    // A call that is in HIP twice would have its operation twice.
    const auto row_id = plain_integer(id);
    if (row_id && row_id == last) return Status{};
    last = row_id;
    Event event{};
    event.name = name(text_of(what));
    const std::string_view text = dictionary().text(event.name);
    const ProcessId of = process(pid);
    const auto on = number(gpu, "dev-id");
    // HSA's copies do not say which device they are of.
    event.lane = lanes_->queue({.process = of,
                                .device = on ? device(*on) : DeviceId{},
                                .stream = number(stream, "stream-id"),
                                .context = number(queue, "queue-id")});
    if (on) event.correlation = correlation(of, integer(index, "Index"));
    if (text == "<barrier packet>") {
      event.kind = Kind::kSync;
    } else if (kernels) {
      event.kind = Kind::kKernel;
    } else if (text.find("Fill") != text.npos) {
      event.kind = Kind::kFill;
      event.fill.bytes = argument(text_of(arguments), "sizeBytes").value_or(kUnknownBytes);
    } else {
      event.kind = Kind::kCopy;
      event.detail = static_cast<std::uint16_t>(common::copy_direction(text));
      event.copy = {.bytes = argument(text_of(arguments), "sizeBytes").value_or(kUnknownBytes),
                    .src = argument(text_of(arguments), "src").value_or(0),
                    .dst = argument(text_of(arguments), "dst").value_or(0)};
    }
    set_times(event, start, end);
    return add(event);
  });
}

// Kernels as the profiler itself saw them, with their counters; which call launched them it does
// not say.
void RocprofV1::read_kernels() {
  Select select(database(), "KERN", "K");
  const int start = select.column("K", "BeginNs"), end = select.column("K", "EndNs"),
            pid = select.column("K", "pid"), called = select.column("K", "KernelName"),
            gpu = select.column("K", "gpu-id"), queue = select.column("K", "queue-id"),
            items = select.column("K", "grd"), group = select.column("K", "wgr"),
            shared = select.column("K", "lds"), scratch = select.column("K", "scr"),
            registers = select.column("K", select.has("K", "arch_vgpr") ? "arch_vgpr" : "vgpr"),
            more_registers = select.column("K", "accum_vgpr"), index = select.column("K", "Index");
  struct Counter {
    int column;
    StringId name;
  };
  std::vector<Counter> counters;
  if (const auto* table = database().table("KERN")) {
    for (const std::string& column : table->columns) {
      if (std::ranges::find(kKernelColumns, column) != kKernelColumns.end()) continue;
      counters.push_back({select.column("K", column), dictionary().string(column)});
    }
  }
  read("KERN", select, [=, this]() -> Status {
    Event event{};
    event.kind = Kind::kKernel;
    event.name = name(text_of(called));
    const DeviceId on = device(number(gpu, "gpu-id").value_or(0));
    event.lane = lanes_->queue({.process = process(pid),
                                .device = on,
                                .stream = std::nullopt,
                                .context = number(queue, "queue-id")});
    // Work-items in all and in a group, of whatever shape.
    LaunchAttributes attributes;
    common::WorkItems sizes;
    sizes.grid[0] = small(items, "grd");
    sizes.group[0] = small(group, "wgr");
    sizes.grid[1] = sizes.grid[2] = sizes.group[1] = sizes.group[2] = sizes.group[0] != 0 ? 1 : 0;
    common::set_grid(event.kernel, attributes, sizes);
    attributes.registers_per_thread =
        small(registers, "vgpr") + small(more_registers, "accum_vgpr");
    attributes.dynamic_shared_bytes = small(shared, "lds");
    attributes.local_bytes_per_thread = small(scratch, "scr");
    if (attributes != LaunchAttributes{}) {
      event.kernel.attributes = attributes_id(attributes);
    }
    if (const auto at = number(index, "Index"); at && *at < 0xffffffff) {
      event.kernel.ordinal = static_cast<std::uint32_t>(*at) + 1;
    }
    set_times(event, start, end);
    PASTA_TRY(add(event));
    for (const Counter& counter : counters) {
      if (is_null(counter.column)) continue;
      const auto value = real(counter.column, "a counter");
      if (!value) continue;
      Event sample{};
      sample.kind = Kind::kCounter;
      sample.name = counter.name;
      sample.lane = event.lane;
      sample.counter.value = *value;
      sample.counter.device = on;
      sample.start_ns = sample.end_ns = event.end_ns;
      sample.flags = static_cast<std::uint8_t>(kInstant | (event.flags & kUntimed));
      PASTA_TRY(add(sample));
    }
    return {};
  });
}

}  // namespace

bool recognise(const Database& database) {
  return database.has("KERN", "KernelName") || database.has("OPS", "BeginNs") ||
         database.has("HIP", "BeginNs") || database.has("HSA", "BeginNs") ||
         database.has("COPY", "BeginNs") || database.has("rocTX", "BeginNs");
}

Result<std::unique_ptr<Adapter>> open(Database database) {
  return std::make_unique<RocprofV1>(std::move(database));
}

}  // namespace pasta::adapters::rocprof_v1
