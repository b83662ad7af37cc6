#include "adapters/rpd/rpd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/common/amd.h"
#include "adapters/common/database_adapter.h"
#include "adapters/common/lanes.h"
#include "adapters/common/select.h"
#include "adapters/common/string_table.h"
#include "adapters/rpd/vocabulary.h"
#include "base/decimal.h"

namespace pasta::adapters::rpd {
namespace {

using base::sqlite::Database;
using base::sqlite::Statement;
using common::Lanes;
using common::Select;
using common::StringTable;

// In what kernels' grids are counted. The tracer writes down what it was given.
enum class GridUnit : std::uint8_t {
  kByCall,     // in blocks, but in work-items for the calls that take those
  kWorkItems,  // as rocprofiler-sdk has them
  kUnknown,
};

class Rpd final : public common::DatabaseAdapter {
 public:
  explicit Rpd(Database database) : DatabaseAdapter(kInfo, std::move(database)) {}

 private:
  // Columns of an operation of a device and of the call that started it.
  struct OpColumns {
    int id, gpu, queue, sequence, start, end, description, type;
    int api, pid, api_name, arguments;
    int kernel_stream, copy_stream;
  };
  struct CopyColumns {
    int size, width, height, kind, source, destination;
  };
  struct OpPlace {
    ProcessId process{};
    DeviceId device{};
    LaneId lane{};
  };

  Status prepare() override;
  Status complete(SourceInfo& info) override;
  Status read_facts();
  Status find_names();
  void read_calls(std::string_view table);
  void read_ops();
  void read_counters();
  void read_monitors();

  OpColumns op_columns(Select& select);
  OpPlace place_op(const OpColumns& columns, std::string_view type);
  void fill_copy(Event& event, const CopyColumns& columns);
  // A column of addresses written as text.
  std::optional<std::uint64_t> address(int column);

  // Several hosts' files may have been merged; then pids and GPU numbers bear the host's.
  std::int64_t host_of(std::int64_t id, std::int64_t stride) {
    return stride > 0 ? id / stride : 0;
  }
  ProcessId host_process(std::int64_t host);
  ProcessId process(std::optional<std::int64_t> pid);
  DeviceId device(std::int64_t gpu);
  StringId text(std::string_view text) { return dictionary().string(text); }
  [[nodiscard]] std::string unique_strings() const {
    return database().has("rocpd_ustring") ? "rocpd_ustring" : "rocpd_string";
  }
  // "IN (3, 17)": the numbers of these strings, of which merged files have several of each.
  static std::string one_of(const std::vector<std::int64_t>& ids) {
    return fmt::format("IN ({})", fmt::join(ids, ", "));
  }

  std::optional<StringTable> strings_;
  std::optional<Lanes> hip_lanes_;
  std::optional<Lanes> cuda_lanes_;
  StringId source_{};
  std::int64_t schema_ = 0, pid_stride_ = 0, gpu_stride_ = 0;
  GridUnit grid_unit_ = GridUnit::kUnknown;
  std::vector<std::int64_t> markers_, graph_launches_;  // numbers of strings
  std::unordered_map<std::int64_t, ProcessId> processes_, hosts_;
  std::unordered_map<std::int64_t, DeviceId> devices_;
  std::optional<std::int64_t> last_op_;
};

Status Rpd::prepare() {
  strings_.emplace(database(), dictionary(), "rocpd_string", "id", "string");
  hip_lanes_.emplace(dictionary(), Lanes::Naming::kByAddress);
  cuda_lanes_.emplace(dictionary(), Lanes::Naming::kByStream);
  source_ = text(database().path());
  PASTA_TRY(read_facts());
  PASTA_TRY(find_names());
  read_calls("rocpd_api");
  read_calls("rocpd_hsaApi");
  read_monitors();
  read_ops();
  read_counters();
  return leave_out("rocpd_stackframe", "native stacks of calls are not read");
}

Status Rpd::complete(SourceInfo&) {
  if (!strings_->damage().empty()) problems().add(Reason::kRecordSkipped, 1, strings_->damage());
  return {};
}

Status Rpd::read_facts() {
  Select select(database(), "rocpd_metadata", "M");
  const int tag = select.column("M", "tag"), value = select.column("M", "value");
  return read_now("rocpd_metadata", select.sql(), [&]() -> Status {
    std::int64_t* const known = text_of(tag) == "schema_version" ? &schema_
                                : text_of(tag) == "pid_stride"   ? &pid_stride_
                                : text_of(tag) == "gpu_stride"   ? &gpu_stride_
                                                                 : nullptr;
    if (known != nullptr) *known = integer(value, text_of(tag)).value_or(0);
    if (known == &schema_) dictionary().fact("rpd schema version", text_of(value));
    return {};
  });
}

Status Rpd::find_names() {
  bool by_call = schema_ < 3, by_work_items = false;
  Select select(database(), "rocpd_string", "S");
  const int id = select.column("S", "id"), string = select.column("S", "string");
  PASTA_TRY(read_now(
      "rocpd_string",
      select.sql("WHERE S.string IN ('UserMarker', 'hipGraphLaunch', 'hcc_activity_callback', "
                 "'ConcurrentKernel', 'Kernel') OR S.string LIKE 'RocprofDataSource::%' "
                 "OR S.string LIKE 'MEMORY\\_COPY\\_%' ESCAPE '\\'"),
      [&]() -> Status {
        const std::string_view name = text_of(string);
        const std::int64_t number = integer(id, "id").value_or(0);
        if (name == kUserMarker) {
          markers_.push_back(number);
        } else if (name == "hipGraphLaunch") {
          graph_launches_.push_back(number);
        } else if (name == "hcc_activity_callback" || is_cuda_op(name)) {
          by_call = true;
        } else {
          by_work_items = true;
        }
        return {};
      }));
  // A merged file may hold both; then nothing tells them apart.
  grid_unit_ = by_work_items ? by_call && schema_ >= 3 ? GridUnit::kUnknown : GridUnit::kWorkItems
               : by_call     ? GridUnit::kByCall
                             : GridUnit::kUnknown;
  return {};
}

// --- who and where

ProcessId Rpd::host_process(std::int64_t host) {
  ProcessId& id = hosts_[host];
  if (!id) {
    Process key{.source = source_};
    if (host != 0) key.native_text = text(fmt::format("host {}", host));
    id = dictionary().process(key);
  }
  return id;
}

ProcessId Rpd::process(std::optional<std::int64_t> pid) {
  if (!pid) return host_process(0);
  ProcessId& id = processes_[*pid];
  if (!id) {
    const std::int64_t host = host_of(*pid, pid_stride_);
    Process key;
    key.native_id = static_cast<std::uint64_t>(pid_stride_ > 0 ? *pid % pid_stride_ : *pid);
    key.source = host == 0 ? source_ : text(fmt::format("{} host {}", database().path(), host));
    id = dictionary().process(key);
    if (host != 0) {
      Process facts = dictionary().process(id);
      facts.host = text(fmt::format("host {}", host));
      dictionary().update(id, facts);
    }
  }
  return id;
}

DeviceId Rpd::device(std::int64_t gpu) {
  DeviceId& id = devices_[gpu];
  if (!id) {
    const std::int64_t ordinal = gpu_stride_ > 0 ? gpu % gpu_stride_ : gpu;
    id = dictionary().device({.process = host_process(host_of(gpu, gpu_stride_)),
                              .ordinal = static_cast<std::uint32_t>(ordinal),
                              .type = DeviceType::kGpu});
  }
  return id;
}

std::optional<std::uint64_t> Rpd::address(int column) {
  std::uint64_t value = 0;
  const std::string_view written = text_of(column);
  if (written.empty() || !base::parse_unsigned(written, value)) return std::nullopt;
  return value;
}

// --- calls

void Rpd::read_calls(std::string_view table) {
  const bool hsa = table == "rocpd_hsaApi";
  Select select(database(), table, "A");
  const bool operators = !hsa && select.join("ext_autogradapi", "X", {{"A", "id", "api_ptr_id"}});
  const int id = select.column("A", "id"), pid = select.column("A", "pid"),
            tid = select.column("A", "tid"), start = select.column("A", "start"),
            end = select.column("A", "end"), name = select.column("A", "apiName_id"),
            domain = select.column("A", "domain_id"),
            operator_name = select.column("X", "autogradName_id"),
            sequence = select.column("X", "seq");
  // Arguments are as many as calls; only what markers say is looked up.
  const int said =
      select.expression(markers_.empty() || !select.has("A", "args_id")
                            ? "NULL"
                            : fmt::format("CASE WHEN A.apiName_id {} THEN (SELECT U.string FROM {} "
                                          "AS U WHERE U.id = A.args_id) END",
                                          one_of(markers_), unique_strings()));
  read(table, select, [=, this]() {
    const StringId called = strings_->get(integer(name, "apiName_id").value_or(0));
    std::string_view in_domain;
    if (const auto number = integer(domain, "domain_id")) {
      in_domain = dictionary().text(strings_->get(*number));
    }
    const ApiKind what = api_kind(hsa ? "hsa" : in_domain, dictionary().text(called));
    const ProcessId of = process(integer(pid, "pid"));
    Event event{};
    event.kind = what.kind;
    event.detail = what.detail;
    event.name = called;
    event.lane =
        hip_lanes_->thread(of, static_cast<std::uint64_t>(integer(tid, "tid").value_or(0)));
    if (event.kind == Kind::kApi) {
      // Numbers of calls into HSA are their own; no operation names them.
      if (!hsa) event.correlation = correlation(of, integer(id, "id"));
    } else if (dictionary().text(called) == kUserMarker) {
      if (!text_of(said).empty()) event.name = text(text_of(said));
      if (operators && !is_null(operator_name)) {
        event.detail = static_cast<std::uint16_t>(ScopeDomain::kOperator);
        event.name = strings_->get(integer(operator_name, "autogradName_id").value_or(0));
        const auto number = plain_integer(sequence);  // "" where PyTorch did not say it
        if (number && *number >= 0) event.range.sequence = static_cast<std::uint64_t>(*number) + 1;
      } else if (const auto op = as_operator(text_of(said))) {
        event.detail = static_cast<std::uint16_t>(ScopeDomain::kOperator);
        event.name = text(op->name);
        event.range.sequence = op->sequence;
      }
    }
    set_times(event, start, end);
    if (event.kind == Kind::kScope && event.start_ns == event.end_ns && !event.untimed()) {
      event.flags |= kInstant;
    }
    return add(event);
  });
}

// --- operations of devices

Rpd::OpColumns Rpd::op_columns(Select& select) {
  const bool linked = select.join("rocpd_api_ops", "L", {{"O", "id", "op_id"}}) &&
                      select.join("rocpd_api", "A", {{"L", "api_id", "id"}});
  if (linked) {
    select.join("rocpd_kernelapi", "K", {{"L", "api_id", "api_ptr_id"}});
    select.join("rocpd_copyapi", "C", {{"L", "api_id", "api_ptr_id"}});
  }
  const bool graphs = !graph_launches_.empty() && select.has("A", "args_id");
  return {.id = select.column("O", "id"),
          .gpu = select.column("O", "gpuId"),
          .queue = select.column("O", "queueId"),
          .sequence = select.column("O", "sequenceId"),
          .start = select.column("O", "start"),
          .end = select.column("O", "end"),
          .description = select.column("O", "description_id"),
          .type = select.column("O", "opType_id"),
          .api = select.column("L", "api_id"),
          .pid = select.column("A", "pid"),
          .api_name = select.column("A", "apiName_id"),
          .arguments = select.expression(
              graphs ? fmt::format("CASE WHEN A.apiName_id {} THEN (SELECT U.string FROM {} AS U "
                                   "WHERE U.id = A.args_id) END",
                                   one_of(graph_launches_), unique_strings())
                     : "NULL"),
          .kernel_stream = select.column("K", "stream"),
          .copy_stream = select.column("C", "stream")};
}

Rpd::OpPlace Rpd::place_op(const OpColumns& columns, std::string_view type) {
  OpPlace place;
  place.process = process(integer(columns.pid, "pid"));
  place.device = device(integer(columns.gpu, "gpuId").value_or(0));
  const auto number = [&](int column, std::string_view what) -> std::optional<std::uint64_t> {
    const auto value = integer(column, what);
    if (!value) return std::nullopt;
    return static_cast<std::uint64_t>(*value);
  };
  const auto queue = number(columns.queue, "queueId");
  if (is_cuda_op(type)) {
    place.lane = cuda_lanes_->queue({.process = place.process,
                                     .device = place.device,
                                     .stream = number(columns.sequence, "sequenceId"),
                                     .context = queue});
    return place;
  }
  auto stream = address(columns.kernel_stream);
  if (!stream) stream = address(columns.copy_stream);
  if (!stream) stream = stream_argument(text_of(columns.arguments));
  place.lane = hip_lanes_->queue(
      {.process = place.process, .device = place.device, .stream = stream, .context = queue});
  return place;
}

void Rpd::fill_copy(Event& event, const CopyColumns& columns) {
  const auto& [size, width, height, kind, source, destination] = columns;
  const auto bytes = integer(size, "size");
  const auto across = integer(width, "width"), down = integer(height, "height");
  std::int64_t area = 0;
  if (bytes) {
    event.copy.bytes = static_cast<std::uint64_t>(*bytes);
  } else if (across && down && !__builtin_mul_overflow(*across, *down, &area)) {
    event.copy.bytes = static_cast<std::uint64_t>(area);
  } else {
    event.copy.bytes = kUnknownBytes;
  }
  event.copy.dst = address(destination).value_or(0);
  event.copy.src = address(source).value_or(0);
  CopyDirection direction = common::copy_direction(dictionary().text(event.name));
  if (direction == CopyDirection::kUnknown) {
    // As hipMemcpyKind and cudaMemcpyKind count; 4 leaves it to the runtime.
    constexpr std::array kKinds = {CopyDirection::kHostToHost, CopyDirection::kHostToDevice,
                                   CopyDirection::kDeviceToHost, CopyDirection::kDeviceToDevice};
    const auto number = integer(kind, "kind");
    if (number && *number >= 0 && *number < 4) {
      direction = kKinds[static_cast<std::size_t>(*number)];
    }
  }
  event.detail = static_cast<std::uint16_t>(direction);
}

void Rpd::read_ops() {
  Select select(database(), "rocpd_op", "O");
  const OpColumns op = op_columns(select);
  // Before the tracer wrote launches beside their calls, they stood beside the operations.
  const bool beside_op = select.join("rocpd_kernelop", "KO", {{"O", "id", "op_ptr_id"}});
  const std::string_view launch = beside_op && !select.has("K", "gridX") ? "KO" : "K";
  const std::string_view copy =
      select.join("rocpd_copyop", "CO", {{"O", "id", "op_ptr_id"}}) && !select.has("C", "size")
          ? "CO"
          : "C";
  const int kernel_name = select.column(launch, "kernelName_id");
  std::array<int, 3> grid{}, group{};
  for (std::size_t i = 0; i < 3; ++i) {
    grid[i] = select.column(launch, fmt::format("grid{}", "XYZ"[i]));
    group[i] = select.column(launch, fmt::format("workgroup{}", "XYZ"[i]));
  }
  const int group_bytes = select.column(launch, "groupSegmentSize"),
            private_bytes = select.column(launch, "privateSegmentSize");
  const CopyColumns copies = {.size = select.column(copy, "size"),
                              .width = select.column(copy, "width"),
                              .height = select.column(copy, "height"),
                              .kind = select.column(copy, "kind"),
                              .source = select.column(copy, "src"),
                              .destination = select.column(copy, "dst")};
  read("rocpd_op", select, [=, this]() {
    // An operation that several calls claim comes once for each; the first keeps it.
    const auto id = integer(op.id, "id");
    if (id && id == last_op_) return Status{};
    last_op_ = id;
    const StringId type = strings_->get(integer(op.type, "opType_id").value_or(0));
    const StringId description =
        strings_->get(integer(op.description, "description_id").value_or(0));
    const std::string_view type_text = dictionary().text(type);
    const OpPlace place = place_op(op, type_text);
    Event event{};
    event.kind = op_kind(type_text);
    event.name = dictionary().text(description).empty() ? type : description;
    event.lane = place.lane;
    event.correlation = correlation(place.process, integer(op.api, "api_id"));
    if (event.kind == Kind::kCopy) {
      fill_copy(event, copies);
    } else if (event.kind == Kind::kFill) {
      event.fill.bytes = kUnknownBytes;
    } else if (event.kind == Kind::kKernel && !is_null(grid[0])) {
      // A call that starts several kernels describes one of them.
      const StringId launched = strings_->get(integer(kernel_name, "kernelName_id").value_or(0));
      if (description == launched || dictionary().text(description).empty()) {
        LaunchAttributes attributes;
        const std::string_view call =
            dictionary().text(strings_->get(integer(op.api_name, "apiName_id").value_or(0)));
        const bool work_items = grid_unit_ == GridUnit::kWorkItems ||
                                call == "hipExtModuleLaunchKernel" ||
                                call == "hipHccModuleLaunchKernel";
        common::WorkItems items;
        for (std::size_t i = 0; i < 3; ++i) {
          items.group[i] = small(group[i], "workgroup");
          items.grid[i] = small(grid[i], "grid");
          if (!work_items) event.kernel.grid[i] = items.grid[i];
        }
        const auto blocks = std::to_array(event.kernel.grid);
        common::set_grid(event.kernel, attributes, items);
        if (!work_items) std::ranges::copy(blocks, event.kernel.grid);
        if (grid_unit_ == GridUnit::kUnknown) std::ranges::fill(event.kernel.grid, 0u);
        attributes.dynamic_shared_bytes = small(group_bytes, "groupSegmentSize");
        attributes.local_bytes_per_thread = small(private_bytes, "privateSegmentSize");
        event.kernel.attributes = attributes_id(attributes);
      }
    }
    set_times(event, op.start, op.end);
    return add(event);
  });
}

// Values that were counted during an operation, known when it has ended.
void Rpd::read_counters() {
  if (!database().has("rocpd_counter")) return;
  Select select(database(), "rocpd_counter", "N");
  if (!select.join("rocpd_op", "O", {{"N", "op_id", "id"}})) return;
  const OpColumns op = op_columns(select);
  const int name = select.column("N", "name_id"), value = select.column("N", "value");
  read("rocpd_counter", select, [=, this]() {
    const StringId type = strings_->get(integer(op.type, "opType_id").value_or(0));
    const OpPlace place = place_op(op, dictionary().text(type));
    Event event{};
    event.kind = Kind::kCounter;
    event.name = strings_->get(integer(name, "name_id").value_or(0));
    event.lane = place.lane;
    event.correlation = correlation(place.process, integer(op.api, "api_id"));
    const auto counted = real(value, "value");
    if (!counted) return Status{};
    event.counter.value = *counted;
    event.counter.device = place.device;
    set_instant(event, op.end);
    return add(event);
  });
}

// A value holds from `start` on, until the next one.
void Rpd::read_monitors() {
  Select select(database(), "rocpd_monitor", "M");
  const int type = select.column("M", "monitorType"), gpu = select.column("M", "deviceId"),
            start = select.column("M", "start"), value = select.column("M", "value");
  // In order, so that reports list the devices so.
  read("rocpd_monitor", select.sql(gpu < 0 ? "" : "ORDER BY M.deviceId"), [=, this]() {
    Event event{};
    event.kind = Kind::kCounter;
    event.name = text(text_of(type));
    const std::int64_t number = integer(gpu, "deviceId").value_or(0);
    event.lane = hip_lanes_->named(host_process(host_of(number, gpu_stride_)), "monitor");
    event.counter.device = device(number);
    event.counter.unit = text(monitor_unit(text_of(type)));
    const auto measured = real(value, "value");
    if (!measured) return Status{};
    event.counter.value = *measured;
    set_instant(event, start);
    return add(event);
  });
}

}  // namespace

bool recognise(const Database& database) {
  return database.has("rocpd_op", "opType_id") || database.has("rocpd_api", "apiName_id");
}

Result<std::unique_ptr<Adapter>> open(Database database) {
  return std::make_unique<Rpd>(std::move(database));
}

}  // namespace pasta::adapters::rpd
