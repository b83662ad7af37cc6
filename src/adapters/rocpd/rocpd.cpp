#include "adapters/rocpd/rocpd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "adapters/common/amd.h"
#include "adapters/common/database_adapter.h"
#include "adapters/common/lanes.h"
#include "adapters/common/select.h"
#include "adapters/common/string_table.h"
#include "adapters/rocpd/categories.h"
#include "adapters/rocpd/entities.h"
#include "adapters/rocpd/schema.h"

namespace pasta::adapters::rocpd {
namespace {

using base::sqlite::Database;
using base::sqlite::Statement;
using common::Lanes;
using common::QueueKey;
using common::Select;
using common::StringTable;

// The tables of one suffix, and what their rows refer to.
struct Group {
  std::string suffix;
  std::string source;  // tells its processes from those of other groups and files
  StringTable strings;
  StringTable categories;
  Guids guids;
  ByKey<ProcessId> processes;
  ByKey<std::uint64_t> threads;  // their ids in the operating system
  ByKey<StringId> hosts;         // by node
  ByKey<Agent> agents;
  ByKey<Symbol> symbols;
  ByKey<Track> tracks;
  ByKey<Counter> counters;
  // What is allocated, by process and address: the record of a free tells the address only.
  struct Allocation {
    std::uint64_t bytes = 0;
    DeviceId device{};
  };
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Allocation>> live;
  ProcessId first_process{};

  [[nodiscard]] std::string table(std::string_view name) const {
    return fmt::format("rocpd_{}{}", name, suffix);
  }
};

// Columns by which a row says where it belongs. Newer databases say it once for many rows, in
// table rocpd_track.
struct PlaceColumns {
  int guid, pid, tid, agent, queue, stream, track;
};
struct Place {
  std::uint32_t guid = 0;
  ProcessId process{};
  std::optional<std::int64_t> tid, agent, queue, stream;
};
struct TimeColumns {
  int start, end;
};

std::optional<std::uint64_t> bits(std::optional<std::int64_t> value) {
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

class Rocpd final : public common::DatabaseAdapter {
 public:
  explicit Rocpd(Database database) : DatabaseAdapter(kInfo, std::move(database)) {}

 private:
  Status prepare() override;
  Status complete(SourceInfo& info) override;

  Status read_facts(Group& group);
  Status read_nodes(Group& group);
  Status read_processes(Group& group);
  Status read_threads(Group& group);
  Status read_agents(Group& group);
  Status read_symbols(Group& group);
  Status read_tracks(Group& group);
  Status read_counters(Group& group);

  void read_regions(Group& group);
  void read_kernels(Group& group);
  void read_copies(Group& group);
  void read_allocations(Group& group);
  void read_samples(Group& group);
  void read_kernel_counters(Group& group);

  // False when the row has no value.
  bool fill_counter(Group& group, const Place& at, Event& event, int counter, int value);

  static PlaceColumns place_columns(Select& select, std::string_view alias);
  static TimeColumns time_columns(Select& select, const Group& group, std::string_view alias);
  static void join_event(Select& select, const Group& group, std::string_view alias);
  Place place(Group& group, const PlaceColumns& columns);
  ProcessId process(Group& group, std::uint32_t guid, std::optional<std::int64_t> id);
  LaneId thread_lane(Group& group, const Place& place);
  LaneId queue_lane(const Place& place, DeviceId device);
  // Of an agent that the database does not describe, a GPU of that number.
  Agent agent(Group& group, const Place& place, std::optional<std::int64_t> id);
  Agent known_agent(const Group& group, std::uint32_t guid, std::optional<std::int64_t> id);
  Category category(Group& group, std::optional<std::int64_t> id);
  StringId symbol_name(Symbol& symbol);
  StringId text(std::string_view text) { return dictionary().string(text); }
  std::uint64_t unsigned_or(int column, std::string_view what, std::uint64_t fallback) {
    return bits(integer(column, what)).value_or(fallback);
  }

  std::vector<std::unique_ptr<Group>> groups_;
  std::optional<Lanes> lanes_;
  std::unordered_map<std::uint32_t, Category> category_of_name_;  // by string
};

Status Rocpd::prepare() {
  lanes_.emplace(dictionary(), Lanes::Naming::kByQueue);
  const std::vector<std::string> found = suffixes(database());
  for (const std::string& suffix : found) {
    const auto strings = [&](std::string_view name, std::string_view column) {
      return StringTable(database(), dictionary(), fmt::format("rocpd_{}{}", name, suffix), "id",
                         column);
    };
    auto& group = *groups_.emplace_back(
        new Group{.suffix = suffix,
                  .source = found.size() == 1 ? database().path()
                                              : fmt::format("{} {}", database().path(), suffix),
                  .strings = strings("string", "string"),
                  .categories = strings("info_category", "name"),
                  .guids = {},
                  .processes = {},
                  .threads = {},
                  .hosts = {},
                  .agents = {},
                  .symbols = {},
                  .tracks = {},
                  .counters = {},
                  .live = {}});
    for (const auto step :
         {&Rocpd::read_facts, &Rocpd::read_nodes, &Rocpd::read_processes, &Rocpd::read_threads,
          &Rocpd::read_agents, &Rocpd::read_symbols, &Rocpd::read_tracks, &Rocpd::read_counters}) {
      PASTA_TRY((this->*step)(group));
    }
    read_regions(group);
    read_kernels(group);
    read_copies(group);
    read_allocations(group);
    read_samples(group);
    read_kernel_counters(group);
  }
  return {};
}

Status Rocpd::complete(SourceInfo& info) {
  for (const auto& group : groups_) {
    for (const StringTable* strings : {&group->strings, &group->categories}) {
      if (!strings->damage().empty()) problems().add(Reason::kRecordSkipped, 1, strings->damage());
    }
  }
  // One process is one rank; of several there is none that the whole file could bear.
  std::vector<ProcessId> processes;
  for (const auto& group : groups_) {
    for (const auto& [key, id] : group->processes) processes.push_back(id);
  }
  if (processes.size() != 1) return {};
  const Process facts = dictionary().process(processes.front());
  info.rank = facts.rank;
  info.world_size = facts.world_size;
  return {};
}

// --- small tables

Status Rocpd::read_facts(Group& group) {
  const std::string table = group.table("metadata");
  Select select(database(), table, "M");
  const int tag = select.column("M", "tag"), value = select.column("M", "value");
  return read_now(table, select.sql(), [&, tag, value]() -> Status {
    if (text_of(tag) == "schema_version") {
      dictionary().fact("rocpd schema version", text_of(value));
    }
    return {};
  });
}

Status Rocpd::read_nodes(Group& group) {
  const std::string table = group.table("info_node");
  Select select(database(), table, "N");
  const int guid = select.column("N", "guid"), id = select.column("N", "id"),
            host = select.column("N", "hostname");
  return read_now(table, select.sql(), [&, guid, id, host]() -> Status {
    if (const auto node = integer(id, "id")) {
      group.hosts[{group.guids.number(text_of(guid)), *node}] = text(text_of(host));
    }
    return {};
  });
}

Status Rocpd::read_processes(Group& group) {
  // Launchers tell a process its rank in its environment, which the database keeps.
  static constexpr std::array<std::array<std::string_view, 2>, 4> kLaunchers = {{
      {"RANK", "WORLD_SIZE"},  // torchrun
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
  }};
  const std::string table = group.table("info_process");
  Select select(database(), table, "P");
  const int guid = select.column("P", "guid"), id = select.column("P", "id"),
            pid = select.column("P", "pid"), node = select.column("P", "nid"),
            name = select.column("P", "name"), command = select.column("P", "command");
  const bool has_environment = select.has("P", "environment");
  std::array<std::array<int, 2>, kLaunchers.size()> ranks{};  // columns of rank and size
  for (std::size_t i = 0; has_environment && i < kLaunchers.size(); ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      ranks[i][j] =
          select.expression(fmt::format("CASE WHEN json_valid(P.environment) THEN "
                                        "json_extract(P.environment, '$.{}') END",
                                        kLaunchers[i][j]));
    }
  }
  return read_now(table, select.sql(), [&]() -> Status {
    const auto key = integer(id, "id");
    const auto native = integer(pid, "pid");
    if (!key && !native) return {};
    const std::uint32_t of = group.guids.number(text_of(guid));
    Process facts;
    facts.native_id = static_cast<std::uint64_t>(native.value_or(key.value_or(0)));
    facts.source =
        text(group.guids.all().size() < 2 ? group.source
                                          : fmt::format("{} {}", group.source, text_of(guid)));
    std::string_view called = text_of(name);
    if (called.empty()) called = text_of(command).substr(0, text_of(command).find(' '));
    facts.name = text(called);
    if (const auto host = group.hosts.find({of, integer(node, "nid").value_or(0)});
        host != group.hosts.end()) {
      facts.host = host->second;
    }
    for (std::size_t i = 0; has_environment && i < kLaunchers.size(); ++i) {
      const auto rank = plain_integer(ranks[i][0]);
      const auto size = plain_integer(ranks[i][1]);
      if (!rank || *rank < 0 || *rank > 0x7fffffff) continue;
      // A job of one task, or a rank without its job, is none.
      if (!size || *size < 2 || *size > 0x7fffffff || *rank >= *size) continue;
      facts.rank = static_cast<std::int32_t>(*rank);
      facts.world_size = static_cast<std::int32_t>(*size);
      break;
    }
    const ProcessId process = dictionary().process(facts);
    dictionary().update(process, facts);
    group.processes[{of, key ? *key : *native}] = process;
    if (!group.first_process) group.first_process = process;
    return {};
  });
}

Status Rocpd::read_threads(Group& group) {
  const std::string table = group.table("info_thread");
  Select select(database(), table, "T");
  const int guid = select.column("T", "guid"), id = select.column("T", "id"),
            pid = select.column("T", "pid"), tid = select.column("T", "tid"),
            name = select.column("T", "name");
  return read_now(table, select.sql(), [&, guid, id, pid, tid, name]() {
    const auto key = integer(id, "id");
    const auto native = integer(tid, "tid");
    if (!key || !native) return Status{};
    const std::uint32_t of = group.guids.number(text_of(guid));
    group.threads[{of, *key}] = static_cast<std::uint64_t>(*native);
    if (!text_of(name).empty()) {
      const LaneId lane = lanes_->thread(process(group, of, integer(pid, "pid")),
                                         static_cast<std::uint64_t>(*native));
      dictionary().update(lane, text(text_of(name)));
    }
    return Status{};
  });
}

Status Rocpd::read_agents(Group& group) {
  const std::string table = group.table("info_agent");
  Select select(database(), table, "A");
  const int guid = select.column("A", "guid"), id = select.column("A", "id"),
            pid = select.column("A", "pid"), type = select.column("A", "type"),
            ordinal = select.column("A", "type_index"), name = select.column("A", "name"),
            product = select.column("A", "product_name");
  const bool described = select.has("A", "extdata");
  const auto detail = [&](std::string_view path) {
    return select.expression(described ? fmt::format("CASE WHEN json_valid(A.extdata) THEN "
                                                     "json_extract(A.extdata, '$.{}') END",
                                                     path)
                                       : "NULL");
  };
  const int compute_units = detail("cu_count"), wave = detail("wave_front_size"),
            waves = detail("max_waves_per_cu"), target = detail("gfx_target_version");
  // Banks of memory; CPUs have one for each, GPUs one.
  const int memory = select.expression(
      described ? "CASE WHEN json_valid(A.extdata) THEN (SELECT sum(json_extract(value, "
                  "'$.size_in_bytes')) FROM json_each(A.extdata, '$.mem_banks')) END"
                : "NULL");
  // The 64 bits that AMD's other tools print, the lowest byte first.
  std::array<int, 8> uuid{};
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    uuid[i] = detail(fmt::format("uuid.bytes.value{}", i));
  }
  return read_now(table, select.sql(), [&, uuid]() -> Status {
    const auto key = integer(id, "id");
    if (!key) return {};
    const std::uint32_t of = group.guids.number(text_of(guid));
    Device facts;
    Agent agent;
    agent.gpu = text_of(type) == "GPU";
    facts.type = agent.gpu                ? DeviceType::kGpu
                 : text_of(type) == "CPU" ? DeviceType::kCpu
                                          : DeviceType::kUnknown;
    facts.ordinal =
        is_null(ordinal) ? static_cast<std::uint32_t>(*key) : small(ordinal, "type_index");
    std::uint64_t unique = 0;
    for (std::size_t i = 0; i < uuid.size(); ++i) {
      unique |= static_cast<std::uint64_t>(plain_integer(uuid[i]).value_or(0) & 0xff) << 8 * i;
    }
    if (unique != 0) {
      facts.uuid = text(fmt::format("GPU-{:016x}", unique));
    } else {
      facts.process = process(group, of, integer(pid, "pid"));
    }
    facts.name = text(text_of(product).empty() ? text_of(name) : text_of(product));
    facts.multiprocessors = small(compute_units, "cu_count");
    facts.warp_size = small(wave, "wave_front_size");
    facts.max_threads_per_multiprocessor = small(waves, "max_waves_per_cu") * facts.warp_size;
    const std::uint32_t version = small(target, "gfx_target_version");  // 90402 is gfx942
    facts.compute_major = version / 10000;
    facts.compute_minor = version / 100 % 100;
    facts.memory_bytes = unsigned_or(memory, "mem_banks", 0);
    agent.device = dictionary().device(facts);
    dictionary().update(agent.device, facts);
    group.agents[{of, *key}] = agent;
    return {};
  });
}

Status Rocpd::read_symbols(Group& group) {
  const std::string table = group.table("info_kernel_symbol");
  Select select(database(), table, "S");
  const int guid = select.column("S", "guid"), id = select.column("S", "id"),
            display = select.column("S", "display_name"),
            mangled = select.column("S", "kernel_name"),
            registers = select.column("S", "arch_vgpr_count"),
            more_registers = select.column("S", "accum_vgpr_count"),
            group_bytes = select.column("S", "group_segment_size");
  return read_now(table, select.sql(), [&]() -> Status {
    const auto key = integer(id, "id");
    if (!key) return {};
    Symbol symbol;
    symbol.text =
        text_of(display).empty() ? common::without_kd(text_of(mangled)) : text_of(display);
    symbol.registers =
        small(registers, "arch_vgpr_count") + small(more_registers, "accum_vgpr_count");
    symbol.group_bytes = small(group_bytes, "group_segment_size");
    group.symbols[{group.guids.number(text_of(guid)), *key}] = std::move(symbol);
    return {};
  });
}

Status Rocpd::read_tracks(Group& group) {
  const std::string table = group.table("track");
  Select select(database(), table, "T");
  const int guid = select.column("T", "guid"), id = select.column("T", "id"),
            pid = select.column("T", "pid"), tid = select.column("T", "tid"),
            agent = select.column("T", "agent_id"), queue = select.column("T", "queue_id"),
            stream = select.column("T", "stream_id"), name = select.column("T", "name_id");
  return read_now(table, select.sql(), [&]() -> Status {
    if (const auto key = integer(id, "id")) {
      group.tracks[{group.guids.number(text_of(guid)), *key}] = {
          .pid = integer(pid, "pid"),
          .tid = integer(tid, "tid"),
          .agent = integer(agent, "agent_id"),
          .queue = integer(queue, "queue_id"),
          .stream = integer(stream, "stream_id"),
          .name = integer(name, "name_id")};
    }
    return {};
  });
}

Status Rocpd::read_counters(Group& group) {
  const std::string table = group.table("info_pmc");
  if (!database().has(group.table("pmc_event"))) return {};
  Select select(database(), table, "C");
  const int guid = select.column("C", "guid"), id = select.column("C", "id"),
            name = select.column("C", "name"), units = select.column("C", "units"),
            agent = select.column("C", "agent_id");
  return read_now(table, select.sql(), [&]() -> Status {
    if (const auto key = integer(id, "id")) {
      group.counters[{group.guids.number(text_of(guid)), *key}] = {
          .name = text(text_of(name)),
          .unit = text(text_of(units)),
          .agent = integer(agent, "agent_id")};
    }
    return {};
  });
}

// --- who and where

PlaceColumns Rocpd::place_columns(Select& select, std::string_view alias) {
  return {.guid = select.column(alias, "guid"),
          .pid = select.column(alias, "pid"),
          .tid = select.column(alias, "tid"),
          .agent = select.column(alias, "agent_id"),
          .queue = select.column(alias, "queue_id"),
          .stream = select.column(alias, "stream_id"),
          .track = select.column(alias, "track_id")};
}

// Newer databases keep times in a table of their own.
TimeColumns Rocpd::time_columns(Select& select, const Group& group, std::string_view alias) {
  const auto column = [&](std::string_view plain, std::string_view id, std::string_view joined) {
    if (!select.has(alias, plain) &&
        select.join(group.table("timestamp"), joined, {{alias, id, "id"}})) {
      return select.column(joined, "value");
    }
    return select.column(alias, plain);
  };
  return {.start = column("start", "start_id", "TS"), .end = column("end", "end_id", "TE")};
}

void Rocpd::join_event(Select& select, const Group& group, std::string_view alias) {
  select.join(group.table("event"), "E", {{alias, "event_id", "id"}}, {{alias, "guid", "guid"}});
}

ProcessId Rocpd::process(Group& group, std::uint32_t guid, std::optional<std::int64_t> id) {
  if (!id && group.first_process) return group.first_process;
  const auto [it, fresh] = group.processes.try_emplace({guid, id.value_or(0)});
  if (fresh) {
    it->second = dictionary().process(
        {.native_id = static_cast<std::uint64_t>(id.value_or(0)), .source = text(group.source)});
    if (!group.first_process) group.first_process = it->second;
  }
  return it->second;
}

Place Rocpd::place(Group& group, const PlaceColumns& columns) {
  Place place;
  place.guid = group.guids.number(text_of(columns.guid));
  auto pid = integer(columns.pid, "pid");
  place.tid = integer(columns.tid, "tid");
  place.agent = integer(columns.agent, "agent_id");
  place.queue = integer(columns.queue, "queue_id");
  place.stream = integer(columns.stream, "stream_id");
  if (const auto id = integer(columns.track, "track_id")) {
    if (const auto it = group.tracks.find({place.guid, *id}); it != group.tracks.end()) {
      const Track& track = it->second;
      if (!pid) pid = track.pid;
      if (!place.tid) place.tid = track.tid;
      if (!place.agent) place.agent = track.agent;
      if (!place.queue) place.queue = track.queue;
      if (!place.stream) place.stream = track.stream;
    }
  }
  place.process = process(group, place.guid, pid);
  return place;
}

LaneId Rocpd::thread_lane(Group& group, const Place& place) {
  if (!place.tid) return lanes_->named(place.process, "(no thread)");
  const auto it = group.threads.find({place.guid, *place.tid});
  return lanes_->thread(place.process, it != group.threads.end()
                                           ? it->second
                                           : static_cast<std::uint64_t>(*place.tid));
}

LaneId Rocpd::queue_lane(const Place& place, DeviceId device) {
  if (!place.stream && !place.queue) return lanes_->named(place.process, "(no stream)", device);
  return lanes_->queue({.process = place.process,
                        .device = device,
                        .stream = bits(place.stream),
                        .context = bits(place.queue)});
}

Agent Rocpd::known_agent(const Group& group, std::uint32_t guid, std::optional<std::int64_t> id) {
  if (!id) return {};
  const auto it = group.agents.find({guid, *id});
  return it != group.agents.end() ? it->second : Agent{};
}

Agent Rocpd::agent(Group& group, const Place& place, std::optional<std::int64_t> id) {
  if (!id) note(Reason::kMissingField, [] { return "no agent: counted as that of number 0"; });
  Agent& agent = group.agents[{place.guid, id.value_or(0)}];
  if (!agent.device) {
    agent.gpu = true;
    agent.device = dictionary().device({.process = place.process,
                                        .ordinal = static_cast<std::uint32_t>(id.value_or(0)),
                                        .type = DeviceType::kGpu});
  }
  return agent;
}

Category Rocpd::category(Group& group, std::optional<std::int64_t> id) {
  if (!id) return {};
  StringId name = group.categories.get(*id);
  if (!name) name = group.strings.get(*id);
  if (!name) return {};
  const auto [it, fresh] = category_of_name_.try_emplace(name.value);
  if (fresh) it->second = category_of(dictionary().text(name));
  return it->second;
}

StringId Rocpd::symbol_name(Symbol& symbol) {
  if (!symbol.name) symbol.name = text(symbol.text);
  return symbol.name;
}

// --- what happened

// What a mark says lies in JSON beside its event; only marks are looked at, since nearly all rows
// are calls.
std::string mark_text(const Select& select, std::string_view alias) {
  if (!select.has(alias, "extdata")) return "NULL";
  return fmt::format(
      "CASE WHEN length({0}.extdata) > 2 AND json_valid({0}.extdata) THEN "
      "json_extract({0}.extdata, '$.message') END",
      alias);
}

void Rocpd::read_regions(Group& group) {
  const std::string table = group.table("region");
  Select select(database(), table, "R");
  join_event(select, group, "R");
  const TimeColumns times = time_columns(select, group, "R");
  const PlaceColumns where = place_columns(select, "R");
  const int name = select.column("R", "name_id"), category_id = select.column("E", "category_id"),
            stack = select.column("E", "stack_id"),
            message = select.expression(mark_text(select, "E"));
  read(table, select, [=, this, &group]() {
    const Place at = place(group, where);
    const Category what = category(group, integer(category_id, "category_id"));
    Event event{};
    event.kind = what.kind;
    event.detail = what.detail;
    event.name = group.strings.get(integer(name, "name_id").value_or(0));
    const std::string_view said = text_of(message);
    if (what.mark && !said.empty()) {
      const std::string_view call = dictionary().text(event.name);
      event.name = text(said);
      // Such a range may end on another thread, and need not nest.
      if (call == "roctxProcessRangeA" || call == "roctxRangeStartA") event.flags |= kAnnotation;
    } else if (what.mark) {
      // A call of the marking library that marks nothing, such as roctxNameOsThread.
      event.kind = Kind::kApi;
      event.detail = static_cast<std::uint16_t>(ApiDomain::kRuntime);
    }
    event.lane = thread_lane(group, at);
    if (event.kind == Kind::kApi) {
      event.correlation = correlation(at.process, integer(stack, "stack_id"));
    }
    set_times(event, times.start, times.end);
    return add(event);
  });
}

void Rocpd::read_kernels(Group& group) {
  const std::string table = group.table("kernel_dispatch");
  Select select(database(), table, "K");
  join_event(select, group, "K");
  const TimeColumns times = time_columns(select, group, "K");
  const PlaceColumns where = place_columns(select, "K");
  const int kernel = select.column("K", "kernel_id"), dispatch = select.column("K", "dispatch_id"),
            private_bytes = select.column("K", "private_segment_size"),
            group_bytes = select.column("K", "group_segment_size"),
            stack = select.column("E", "stack_id");
  std::array<int, 3> grid{}, work_group{};
  for (std::size_t i = 0; i < 3; ++i) {
    grid[i] = select.column("K", fmt::format("grid_size_{}", "xyz"[i]));
    work_group[i] = select.column("K", fmt::format("workgroup_size_{}", "xyz"[i]));
  }
  read(table, select, [=, this, &group]() {
    const Place at = place(group, where);
    Event event{};
    event.kind = Kind::kKernel;
    const std::int64_t id = integer(kernel, "kernel_id").value_or(0);
    const auto known = group.symbols.find({at.guid, id});
    LaunchAttributes attributes;
    std::uint32_t static_bytes = 0;
    if (known != group.symbols.end()) {
      event.name = symbol_name(known->second);
      attributes.registers_per_thread = known->second.registers;
      static_bytes = known->second.group_bytes;
    } else {
      event.name = text(fmt::format("kernel {}", id));
    }
    event.lane = queue_lane(at, agent(group, at, at.agent).device);
    event.correlation = correlation(at.process, integer(stack, "stack_id"));
    common::WorkItems items;
    for (std::size_t i = 0; i < 3; ++i) {
      items.grid[i] = small(grid[i], "grid_size");
      items.group[i] = small(work_group[i], "workgroup_size");
    }
    common::set_grid(event.kernel, attributes, items);
    attributes.static_shared_bytes = static_bytes;
    const std::uint32_t shared = small(group_bytes, "group_segment_size");
    if (shared > static_bytes) attributes.dynamic_shared_bytes = shared - static_bytes;
    attributes.local_bytes_per_thread = small(private_bytes, "private_segment_size");
    if (attributes != LaunchAttributes{}) {
      event.kernel.attributes = attributes_id(attributes);
    }
    event.kernel.ordinal = small(dispatch, "dispatch_id");
    set_times(event, times.start, times.end);
    return add(event);
  });
}

void Rocpd::read_copies(Group& group) {
  const std::string table = group.table("memory_copy");
  Select select(database(), table, "M");
  join_event(select, group, "M");
  const TimeColumns times = time_columns(select, group, "M");
  const PlaceColumns where = place_columns(select, "M");
  const int name = select.column("M", "name_id"), size = select.column("M", "size"),
            to = select.column("M", "dst_agent_id"), from = select.column("M", "src_agent_id"),
            to_address = select.column("M", "dst_address"),
            from_address = select.column("M", "src_address"),
            stack = select.column("E", "stack_id");
  read(table, select, [=, this, &group]() {
    const Place at = place(group, where);
    const auto target_id = integer(to, "dst_agent_id"), source_id = integer(from, "src_agent_id");
    const Agent target = known_agent(group, at.guid, target_id);
    const Agent source = known_agent(group, at.guid, source_id);
    Event event{};
    event.kind = Kind::kCopy;
    event.name = group.strings.get(integer(name, "name_id").value_or(0));
    CopyDirection direction = common::copy_direction(dictionary().text(event.name));
    if (direction == CopyDirection::kUnknown && source.device && target.device) {
      direction = source.gpu
                      ? target.gpu ? CopyDirection::kDeviceToDevice : CopyDirection::kDeviceToHost
                  : target.gpu ? CopyDirection::kHostToDevice
                               : CopyDirection::kHostToHost;
    }
    if (direction == CopyDirection::kDeviceToDevice && source.device && target.device &&
        source.device != target.device) {
      direction = CopyDirection::kPeerToPeer;
    }
    event.detail = static_cast<std::uint16_t>(direction);
    DeviceId device = target.gpu || !source.gpu ? target.device : source.device;
    if (!device) {
      const bool leaves = direction == CopyDirection::kDeviceToHost;
      device = agent(group, at, leaves && source_id ? source_id : target_id).device;
    }
    event.lane = queue_lane(at, device);
    event.correlation = correlation(at.process, integer(stack, "stack_id"));
    event.copy = {.bytes = unsigned_or(size, "size", kUnknownBytes),
                  .src = unsigned_or(from_address, "src_address", 0),
                  .dst = unsigned_or(to_address, "dst_address", 0)};
    set_times(event, times.start, times.end);
    return add(event);
  });
}

void Rocpd::read_allocations(Group& group) {
  const std::string table = group.table("memory_allocate");
  Select select(database(), table, "M");
  const TimeColumns times = time_columns(select, group, "M");
  const PlaceColumns where = place_columns(select, "M");
  const int type = select.column("M", "type"), level = select.column("M", "level"),
            address = select.column("M", "address"), size = select.column("M", "size");
  // In order, so that a free finds what it frees.
  const std::string order =
      times.start < 0 ? std::string() : fmt::format("ORDER BY {}", times.start + 1);
  read(table, select.sql(order), [=, this, &group]() {
    const Place at = place(group, where);
    const bool frees = text_of(type) == "FREE";
    Event event{};
    event.name = text(fmt::format("{} {}", text_of(level), text_of(type)));
    event.lane = thread_lane(group, at);
    if (text_of(level) == "SCRATCH") {
      // What a kernel needs beside its registers; the runtime's own, and without an address.
      event.kind = Kind::kScope;
      event.detail = static_cast<std::uint16_t>(ScopeDomain::kRuntime);
      set_times(event, times.start, times.end);
      return add(event);
    }
    event.kind = frees ? Kind::kFree : Kind::kAlloc;
    event.memory.address = unsigned_or(address, "address", 0);
    event.memory.bytes = unsigned_or(size, "size", 0);
    if (!frees && is_null(size)) note(Reason::kMissingField, [] { return "size"; });
    const Agent owner = known_agent(group, at.guid, at.agent);
    if (owner.gpu) event.memory.device = owner.device;
    auto& live = group.live[at.process.value];
    if (!frees) {
      live[event.memory.address] = {event.memory.bytes, event.memory.device};
    } else if (const auto known = live.find(event.memory.address); known != live.end()) {
      event.memory.bytes = known->second.bytes;
      event.memory.device = known->second.device;
      live.erase(known);
    }
    set_times(event, times.start, times.end);
    return add(event);
  });
}

// Moments, and counters that were sampled.
void Rocpd::read_samples(Group& group) {
  const std::string table = group.table("sample");
  Select select(database(), table, "S");
  join_event(select, group, "S");
  select.join(group.table("pmc_event"), "P", {{"S", "event_id", "event_id"}},
              {{"S", "guid", "guid"}});
  const PlaceColumns where = place_columns(select, "S");
  int at_column = select.column("S", "timestamp");
  if (!select.has("S", "timestamp") &&
      select.join(group.table("timestamp"), "TS", {{"S", "timestamp_id", "id"}})) {
    at_column = select.column("TS", "value");
  }
  const int name = select.column("S", "name_id"), track = where.track,
            category_id = select.column("E", "category_id"),
            message = select.expression(mark_text(select, "E")),
            counter = select.column("P", "pmc_id"), value = select.column("P", "value");
  read(table, select, [=, this, &group]() {
    const Place at = place(group, where);
    Event event{};
    event.lane = thread_lane(group, at);
    auto name_id = integer(name, "name_id");
    if (const auto id = integer(track, "track_id"); !name_id && id) {
      const auto it = group.tracks.find({at.guid, *id});
      if (it != group.tracks.end()) name_id = it->second.name;
    }
    if (name_id) event.name = group.strings.get(*name_id);
    if (!is_null(counter)) {
      if (!fill_counter(group, at, event, counter, value)) return Status{};
    } else {
      const Category what = category(group, integer(category_id, "category_id"));
      event.kind = Kind::kScope;
      event.detail =
          static_cast<std::uint16_t>(what.mark ? ScopeDomain::kAnnotation : ScopeDomain::kUnknown);
      if (!text_of(message).empty()) event.name = text(text_of(message));
    }
    set_instant(event, at_column);
    return add(event);
  });
}

bool Rocpd::fill_counter(Group& group, const Place& at, Event& event, int counter, int value) {
  event.kind = Kind::kCounter;
  const std::int64_t id = integer(counter, "pmc_id").value_or(0);
  Agent owner;
  if (const auto it = group.counters.find({at.guid, id}); it != group.counters.end()) {
    event.name = it->second.name;
    event.counter.unit = it->second.unit;
    owner = known_agent(group, at.guid, it->second.agent);
  } else if (!event.name) {
    event.name = text(fmt::format("counter {}", id));
  }
  if (owner.gpu) event.counter.device = owner.device;
  const auto counted = real(value, "value");
  event.counter.value = counted.value_or(0);
  return counted.has_value();
}

// What was counted during a kernel is known when it has ended.
void Rocpd::read_kernel_counters(Group& group) {
  const std::string table = group.table("pmc_event");
  if (!database().has(group.table("kernel_dispatch"), "event_id")) return;
  Select select(database(), table, "P");
  if (!select.join(group.table("kernel_dispatch"), "K", {{"P", "event_id", "event_id"}},
                   {{"P", "guid", "guid"}})) {
    return;
  }
  join_event(select, group, "P");
  const TimeColumns times = time_columns(select, group, "K");
  const PlaceColumns where = place_columns(select, "K");
  const int counter = select.column("P", "pmc_id"), value = select.column("P", "value"),
            stack = select.column("E", "stack_id");
  read(table, select.sql("WHERE K.event_id IS NOT NULL"), [=, this, &group]() {
    const Place at = place(group, where);
    Event event{};
    const DeviceId device = agent(group, at, at.agent).device;
    event.lane = queue_lane(at, device);
    event.correlation = correlation(at.process, integer(stack, "stack_id"));
    if (!fill_counter(group, at, event, counter, value)) return Status{};
    event.counter.device = device;
    set_instant(event, times.end);
    return add(event);
  });
}

}  // namespace

Result<std::unique_ptr<Adapter>> open(Database database) {
  return std::make_unique<Rocpd>(std::move(database));
}

}  // namespace pasta::adapters::rocpd
