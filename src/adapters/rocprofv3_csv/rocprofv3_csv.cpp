#include "adapters/rocprofv3_csv/rocprofv3_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <unordered_map>
#include <utility>

#include "adapters/common/amd.h"
#include "adapters/common/csv_adapter.h"
#include "adapters/rocprofv3_csv/places.h"
#include "adapters/rocprofv3_csv/tables.h"
#include "base/decimal.h"
#include "stats/id_set.h"

namespace pasta::adapters::rocprofv3_csv {
namespace {

constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

ApiDomain domain_of(std::string_view name) {
  if (name.starts_with("HIP")) return ApiDomain::kRuntime;
  if (name.starts_with("HSA")) return ApiDomain::kDriver;
  if (name.starts_with("RCCL")) return ApiDomain::kCommunication;
  return ApiDomain::kUnknown;
}

class Rocprofv3Csv final : public common::CsvAdapter {
 public:
  Rocprofv3Csv(std::string path, std::vector<Input> inputs, std::vector<Table> tables,
               std::uint64_t process_id)
      : CsvAdapter(kInfo, std::move(path), std::move(inputs)),
        tables_(std::move(tables)),
        process_id_(process_id),
        columns_(kColumnNames) {}

 private:
  void prepare() override {
    places_ = std::make_unique<Places>(dictionary(), dictionary().string(path()), process_id_);
  }
  Status open_file(std::size_t index) override {
    table_ = tables_[index];
    header_read_ = false;
    return {};
  }
  Status close_file() override {
    if (table_ == Table::kAgents) name_agents();
    return {};
  }
  Status take(Row row) override;
  Status complete(SourceInfo& info) override;

  Status take_kernel(Row row);
  Status take_call(Row row);
  Status take_marker(Row row, Event& event);
  Status take_copy(Row row);
  Status take_allocation(Row row);
  Status take_scratch(Row row);
  Status take_counter(Row row);
  Status take_sample(Row row);
  void take_agent(Row row);
  void name_agents();

  [[nodiscard]] std::string_view get(Row row, Column column) const {
    return columns_.get(row, column);
  }
  ProcessId process(Row row) {
    const auto id = number(get(row, kProcess), "Process_Id");
    const std::string_view guid = get(row, kGuid);
    return id ? places_->process(guid, *id) : places_->process(guid);
  }
  LaneId thread(Row row) {
    return places_->thread(process(row), number(get(row, kThread), "Thread_Id").value_or(0));
  }
  Event event(Row row, Kind kind, std::string_view name, LaneId lane) {
    Event e{};
    e.kind = kind;
    e.name = text(name);
    e.lane = lane;
    set_times(e, get(row, kStart), get(row, kEnd));
    return e;
  }
  Event kernel(Row row);

  struct NumberedAgent {
    std::uint64_t node = 0;
    std::uint64_t logical_node = 0;
    Agent agent;
  };
  struct Allocation {
    std::uint64_t bytes = 0;
    DeviceId device{};
  };

  std::vector<Table> tables_;
  std::uint64_t process_id_;
  common::CsvColumns columns_;
  std::unique_ptr<Places> places_;
  Table table_ = Table::kNone;
  bool header_read_ = false;
  std::vector<NumberedAgent> agents_;
  stats::IdSet dispatches_;  // whose kernel is there
  std::unordered_map<std::uint64_t, Allocation> live_;
};

Status Rocprofv3Csv::take(Row row) {
  if (!header_read_) {
    columns_.set_header(row);
    header_read_ = true;
    return {};
  }
  if (!fits(row, columns_)) return {};
  switch (table_) {
    case Table::kKernels:
      return take_kernel(row);
    case Table::kCalls:
      return take_call(row);
    case Table::kCopies:
      return take_copy(row);
    case Table::kAllocations:
      return take_allocation(row);
    case Table::kScratch:
      return take_scratch(row);
    case Table::kCounters:
      return take_counter(row);
    case Table::kSamples:
      return take_sample(row);
    case Table::kAgents:
      take_agent(row);
      return {};
    case Table::kTotals:  // sums of what the other tables of the run say
    case Table::kNone:
      return {};
  }
  return {};
}

Event Rocprofv3Csv::kernel(Row row) {
  const ProcessId of = process(row);
  const LaneId lane = places_->queue(of, places_->gpu(get(row, kAgent)), get(row, kQueue),
                                     get(row, kStream), "kernels");
  Event e = event(row, Kind::kKernel, get(row, kKernelName), lane);
  e.correlation = correlation(of, get(row, kCorrelation));
  e.kernel.ordinal = small(get(row, kDispatch), "Dispatch_Id");

  LaunchAttributes launch;
  common::WorkItems items;
  constexpr Column kGrids[] = {kGridX, kGridY, kGridZ};
  constexpr Column kGroups[] = {kGroupX, kGroupY, kGroupZ};
  for (std::size_t i = 0; i < 3; ++i) {
    items.grid[i] = small(get(row, kGrids[i]), "Grid_Size");
    items.group[i] = small(get(row, kGroups[i]), "Workgroup_Size");
  }
  if (!columns_.has(kGridX)) {  // counter tables have the products over the axes only
    items = {{small(get(row, kGrid), "Grid_Size"), 1, 1},
             {small(get(row, kGroup), "Workgroup_Size"), 1, 1}};
  }
  common::set_grid(e.kernel, launch, items);
  launch.registers_per_thread =
      small(get(row, kVgprs), "VGPR_Count") + small(get(row, kAccumVgprs), "Accum_VGPR_Count");
  launch.static_shared_bytes =
      small(get(row, columns_.has(kLds) ? kLds : kGroupSegment), "LDS_Block_Size");
  launch.local_bytes_per_thread =
      small(get(row, columns_.has(kScratchSize) ? kScratchSize : kPrivateSegment), "Scratch_Size");
  e.kernel.attributes = attributes(launch);
  return e;
}

Status Rocprofv3Csv::take_kernel(Row row) {
  const Event e = kernel(row);
  if (e.kernel.ordinal != 0) dispatches_.insert(make_correlation(process(row), e.kernel.ordinal));
  return add(e);
}

Status Rocprofv3Csv::take_counter(Row row) {
  Event e = kernel(row);
  // A row a counter, and in a run with kernel_trace the dispatch stands there, too.
  const std::uint64_t dispatch = e.kernel.ordinal;
  if (dispatch == 0 || dispatches_.insert(make_correlation(process(row), dispatch))) {
    PASTA_TRY(add(e));
  }
  e.kind = Kind::kCounter;
  e.name = text(get(row, kCounterName));
  e.start_ns = e.end_ns;
  e.correlation = 0;
  const std::string_view value = get(row, kCounterValue);
  e.counter = {};
  e.counter.device = places_->gpu(get(row, kAgent));
  if (!base::parse_double(value, e.counter.value)) {
    note(Reason::kRecordSkipped,
         [&] { return fmt::format("Counter_Value is \"{}\"", value.substr(0, 40)); });
    return {};
  }
  return add(e);
}

Status Rocprofv3Csv::take_call(Row row) {
  Event e = event(row, Kind::kApi, get(row, kFunction), thread(row));
  const std::string_view domain = get(row, kDomain);
  if (domain.starts_with("MARKER_CORE")) return take_marker(row, e);
  e.detail = static_cast<std::uint16_t>(domain_of(domain));
  e.correlation = correlation(process(row), get(row, kCorrelation));
  return add(e);
}

Status Rocprofv3Csv::take_marker(Row row, Event& e) {
  e.kind = Kind::kScope;
  e.detail = static_cast<std::uint16_t>(ScopeDomain::kAnnotation);
  if (!e.untimed() && e.start_ns == e.end_ns) e.flags |= kInstant;
  // Of a range of the whole process, which may end on another thread and need not nest.
  if (get(row, kThread) == "0") e.flags |= kAnnotation;
  return add(e);
}

Status Rocprofv3Csv::take_copy(Row row) {
  const std::string_view source = get(row, kSourceAgent);
  const std::string_view destination = get(row, kDestinationAgent);
  CopyDirection direction = common::copy_direction(get(row, kDirection));
  const bool from_host = direction == CopyDirection::kHostToDevice;
  const bool to_host = direction == CopyDirection::kDeviceToHost;
  if (from_host || direction == CopyDirection::kHostToHost) places_->is_host(source);
  if (to_host || direction == CopyDirection::kHostToHost) places_->is_host(destination);
  if (direction == CopyDirection::kDeviceToDevice && source != destination) {
    direction = CopyDirection::kPeerToPeer;
  }
  const ProcessId of = process(row);
  const LaneId lane = places_->queue(of, places_->gpu(from_host ? destination : source),
                                     get(row, kQueue), get(row, kStream), "copies");
  Event e = event(row, Kind::kCopy, get(row, kDirection), lane);
  e.detail = static_cast<std::uint16_t>(direction);
  e.correlation = correlation(of, get(row, kCorrelation));
  e.copy.bytes = kUnknownBytes;
  return add(e);
}

Status Rocprofv3Csv::take_allocation(Row row) {
  const std::string_view operation = get(row, kOperation);
  Event e = event(row, Kind::kAlloc, operation, thread(row));
  const std::uint64_t address = number(get(row, kAddress), "Address").value_or(0);
  e.memory.address = address;
  if (operation.ends_with("FREE")) {  // tells the address only
    e.kind = Kind::kFree;
    const auto allocated = live_.find(address);
    if (allocated == live_.end()) {
      note(Reason::kRecordSkipped,
           [&] { return fmt::format("freed {:#x}, of which no size is known", address); });
      return {};
    }
    e.memory.bytes = allocated->second.bytes;
    e.memory.device = allocated->second.device;
    live_.erase(allocated);
    return add(e);
  }
  const auto bytes = number(get(row, kAllocationSize), "Allocation_Size");
  if (!bytes) {
    note(Reason::kRecordSkipped, [] { return "an allocation without a size"; });
    return {};
  }
  e.memory.bytes = *bytes;
  e.memory.device = places_->memory_of(get(row, kAgent));
  live_[address] = {*bytes, e.memory.device};
  return add(e);
}

// What the host waits for until a kernel has its scratch memory; how much is not told.
Status Rocprofv3Csv::take_scratch(Row row) {
  Event e = event(row, Kind::kScope, get(row, kOperation), thread(row));
  e.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
  return add(e);
}

Status Rocprofv3Csv::take_sample(Row row) {
  Event e{};
  e.kind = Kind::kCounter;
  e.name = text(get(row, kInstruction));
  e.lane = places_->queue(process(row), {}, {}, {}, "samples");
  e.flags = kInstant;
  set_times(e, get(row, kSampleTime), get(row, kSampleTime));
  e.counter.value = 1;
  e.counter.unit = text("samples");
  return add(e);
}

void Rocprofv3Csv::take_agent(Row row) {
  NumberedAgent one;
  one.node = number(get(row, kNode), "Node_Id").value_or(0);
  one.logical_node = number(get(row, kLogicalNode), "Logical_Node_Id").value_or(one.node);
  one.agent.gpu = get(row, kAgentType) == "GPU";
  one.agent.name = get(row, get(row, kProductName).empty() ? kAgentName : kProductName);
  one.agent.multiprocessors = small(get(row, kComputeUnits), "Cu_Count");
  one.agent.warp_size = small(get(row, kWaveSize), "Wave_Front_Size");
  one.agent.max_threads = small(get(row, kMaxWaves), "Max_Waves_Per_Cu") * one.agent.warp_size;
  agents_.push_back(std::move(one));
}

// rocprofv3 numbers agents in one of three ways, which the tables tell apart by the word in front;
// "Agent" is the number among those that the program may use, or among all.
void Rocprofv3Csv::name_agents() {
  std::sort(agents_.begin(), agents_.end(),
            [](const auto& a, const auto& b) { return a.logical_node < b.logical_node; });
  int gpus = 0;
  int cpus = 0;
  for (const NumberedAgent& one : agents_) {
    places_->add_agent(
        one.agent.gpu ? fmt::format("GPU {}", gpus++) : fmt::format("CPU {}", cpus++), one.agent);
    places_->add_agent(fmt::format("Agent {}", one.logical_node), one.agent);
  }
}

Status Rocprofv3Csv::complete(SourceInfo& /*info*/) {
  std::string missing;
  const auto need = [&](std::initializer_list<Table> tables, std::string_view what) {
    const bool there = std::any_of(tables_.begin(), tables_.end(), [&](Table table) {
      return std::find(tables.begin(), tables.end(), table) != tables.end();
    });
    if (!there) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", what);
  };
  need({Table::kKernels, Table::kCounters}, "kernels (*_kernel_trace.csv)");
  need({Table::kCopies}, "copies (*_memory_copy_trace.csv)");
  need({Table::kCalls}, "calls (*_hip_api_trace.csv)");
  not_recorded(missing);
  return {};
}

// --- opening

struct Head {
  Table table = Table::kNone;
  std::uint64_t process_id = 0;
};

Head head_of(std::span<const std::byte> head) {
  const auto rows = base::csv_head(head, 2);
  Head found;
  if (rows.empty()) return found;
  found.table = table_of(rows[0]);
  if (rows.size() > 1) {
    const auto at = std::find_if(rows[0].begin(), rows[0].end(), [](std::string_view name) {
      return common::same_letters(name, kColumnNames[kProcess]);
    });
    const auto column = static_cast<std::size_t>(at - rows[0].begin());
    if (column < rows[1].size()) base::parse_unsigned(rows[1][column], found.process_id);
  }
  return found;
}

// Tables that hold no event, alone.
Status refuse(const std::string& path, Table table) {
  if (table == Table::kTotals) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: totals by name (a stats table of rocprof or rocprofv3), which hold "
                    "no timeline: give the trace of the same run, such as "
                    "*_kernel_trace.csv or results.csv",
                    path));
  }
  return fail(ErrorCode::kUnsupported,
              fmt::format("{}: rocprofv3's list of the machine's agents, which holds no timeline: "
                          "give it together with the tables of the same run, such as "
                          "*_kernel_trace.csv (a results.json says the same itself)",
                          path));
}

bool has_events(Table table) { return table != Table::kTotals && table != Table::kAgents; }

}  // namespace

bool sniff(std::span<const std::byte> head) { return head_of(head).table != Table::kNone; }

bool confirm(ByteStream& stream) {
  std::vector<std::byte> head(kHeadBytes);
  const auto got = stream.read(head);
  return !got || head_of(std::span(head).first(*got)).table != Table::kTotals;
}

std::string run_of(std::string_view path, std::span<const std::byte> /*head*/) {
  return std::string(run_name(path));
}

Result<std::unique_ptr<Adapter>> open(Input input) {
  std::vector<Input> inputs;
  inputs.push_back(std::move(input));
  return open_run(std::move(inputs));
}

Result<std::unique_ptr<Adapter>> open_run(std::vector<Input> inputs) {
  struct Part {
    Head head;
    Input input;
  };
  const std::string first = inputs.front().path;
  const std::string_view run = run_name(first);
  std::uint64_t process_id = 0;
  if (run.find_first_not_of("0123456789") == run.npos) base::parse_unsigned(run, process_id);
  std::vector<Part> parts;
  for (Input& input : inputs) {
    Part part{head_of(input.head), std::move(input)};
    if (part.head.process_id != 0) process_id = part.head.process_id;
    parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.head.table < b.head.table; });
  const bool any = std::any_of(parts.begin(), parts.end(),
                               [](const Part& p) { return has_events(p.head.table); });
  if (!any) return tl::unexpected(refuse(first, parts.front().head.table).error());

  std::string path = first;
  if (parts.size() > 1) {
    path = (std::filesystem::path(first).parent_path() / fmt::format("{}_*.csv", run)).string();
  }
  std::vector<Table> tables;
  inputs.clear();
  for (Part& part : parts) {
    tables.push_back(part.head.table);
    inputs.push_back(std::move(part.input));
  }
  return std::make_unique<Rocprofv3Csv>(std::move(path), std::move(inputs), std::move(tables),
                                        process_id);
}

}  // namespace pasta::adapters::rocprofv3_csv
