#include "adapters/nsys_sqlite/row_taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "adapters/common/operator_text.h"
#include "base/json_writer.h"

namespace pasta::adapters::nsys_sqlite {

using base::sqlite::Database;
using base::sqlite::Row;
using base::sqlite::Type;
using std::string_view;

namespace {

// --- columns, each list with the places in it

enum Call { kCallStart, kCallEnd, kCallTid, kCallName, kCallCorrelation, kCallClass, kCallReturn };
constexpr string_view kCall[] = {"start",         "end",        "globalTid",  "nameId",
                                 "correlationId", "eventClass", "returnValue"};

enum OnThread { kThreadStart, kThreadEnd, kThreadTid, kThreadName, kThreadText };
constexpr string_view kOnThread[] = {"start", "end", "globalTid", "nameId", "textId"};

enum Nvtx {
  kNvtxStart,
  kNvtxEnd,
  kNvtxType,
  kNvtxTid,
  kNvtxText,
  kNvtxTextId,
  kNvtxDomain,
  kNvtxCategory,
  kNvtxUint64,
  kNvtxInt64,
  kNvtxDouble,
  kNvtxUint32,
  kNvtxInt32,
  kNvtxFloat,
  kNvtxJsonId,
  kNvtxJson,
  kNvtxBinary
};
constexpr string_view kNvtx[] = {
    "start",      "end",        "eventType",   "globalTid",  "text",        "textId",
    "domainId",   "category",   "uint64Value", "int64Value", "doubleValue", "uint32Value",
    "int32Value", "floatValue", "jsonTextId",  "jsonText",   "binaryData"};

// What all work of a device has.
enum Work { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kPid, kFirstOwn };

enum Kernel {
  kDemangled = kFirstOwn,
  kShort,
  kMangled,
  kGridX,
  kGridY,
  kGridZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kRegisters,
  kStaticShared,
  kDynamicShared,
  kLocal,
  kClusterX,
  kClusterY,
  kClusterZ,
  kGraphNode
};
constexpr string_view kKernel[] = {"start",
                                   "end",
                                   "deviceId",
                                   "contextId",
                                   "streamId",
                                   "correlationId",
                                   "globalPid",
                                   "demangledName",
                                   "shortName",
                                   "mangledName",
                                   "gridX",
                                   "gridY",
                                   "gridZ",
                                   "blockX",
                                   "blockY",
                                   "blockZ",
                                   "registersPerThread",
                                   "staticSharedMemory",
                                   "dynamicSharedMemory",
                                   "localMemoryPerThread",
                                   "clusterX",
                                   "clusterY",
                                   "clusterZ",
                                   "graphNodeId"};

enum Copy { kCopyKind = kFirstOwn, kCopyBytes, kSourceKind, kTargetKind, kCause, kAddress };
constexpr string_view kCopy[] = {
    "start",    "end",   "deviceId", "contextId", "streamId",       "correlationId", "globalPid",
    "copyKind", "bytes", "srcKind",  "dstKind",   "migrationCause", "virtualAddress"};

enum Fill { kFillBytes = kFirstOwn, kFillValue, kFillKind };
constexpr string_view kFill[] = {"start",         "end",       "deviceId", "contextId", "streamId",
                                 "correlationId", "globalPid", "bytes",    "value",     "memKind"};

enum Graph { kGraphId = kFirstOwn };
constexpr string_view kGraph[] = {"start",    "end",           "deviceId",  "contextId",
                                  "streamId", "correlationId", "globalPid", "graphId"};

enum Wait { kSyncType = kFirstOwn, kEventId };
constexpr string_view kWait[] = {"start",         "end",       "deviceId", "contextId", "streamId",
                                 "correlationId", "globalPid", "syncType", "eventId"};

enum Usage {
  kUsageAt,
  kUsagePid,
  kUsageDevice,
  kUsageAddress,
  kUsageBytes,
  kUsageKind,
  kUsageOperation,
  kUsageCorrelation,
  kUsagePool,
  kUsageImportedPool,
  kUsagePoolSize,
  kUsagePoolUsed
};
constexpr string_view kUsage[] = {"start",
                                  "globalPid",
                                  "deviceId",
                                  "address",
                                  "bytes",
                                  "memKind",
                                  "memoryOperationType",
                                  "correlationId",
                                  "localMemoryPoolAddress",
                                  "importedMemoryPoolAddress",
                                  "localMemoryPoolSize",
                                  "localMemoryPoolUtilizedSize"};

enum CpuFault { kCpuFaultAt, kCpuFaultPid, kCpuFaultAddress, kCpuFaultFunction };
constexpr string_view kCpuFault[] = {"start", "globalPid", "address", "CpuInstruction"};

enum GpuFault {
  kGpuFaultStart,
  kGpuFaultEnd,
  kGpuFaultPid,
  kGpuFaultDevice,
  kGpuFaultAddress,
  kGpuFaultAccess
};
constexpr string_view kGpuFault[] = {"start",    "end",     "globalPid",
                                     "deviceId", "address", "faultAccessType"};

constexpr TableReader on_thread(string_view table, ApiDomain domain, int name) {
  return {
      table, kOnThread, &RowTaker::take_on_thread, Kind::kApi, static_cast<std::uint16_t>(domain),
      name};
}
constexpr TableReader on_thread(string_view table, ScopeDomain domain, int name) {
  return {
      table, kOnThread, &RowTaker::take_on_thread, Kind::kScope, static_cast<std::uint16_t>(domain),
      name};
}

constexpr TableReader kReaders[] = {
    {"CUPTI_ACTIVITY_KIND_RUNTIME", kCall, &RowTaker::take_call},
    {"CUPTI_ACTIVITY_KIND_DRIVER", kCall, &RowTaker::take_call},
    {"NVTX_EVENTS", kNvtx, &RowTaker::take_nvtx},
    on_thread("CUDNN_EVENTS", ScopeDomain::kOperator, kThreadName),
    on_thread("CUBLAS_EVENTS", ScopeDomain::kOperator, kThreadName),
    on_thread("OSRT_API", ApiDomain::kOs, kThreadName),
    on_thread("MPI_P2P_EVENTS", ApiDomain::kCommunication, kThreadText),
    on_thread("MPI_COLLECTIVES_EVENTS", ApiDomain::kCommunication, kThreadText),
    on_thread("MPI_START_WAIT_EVENTS", ApiDomain::kCommunication, kThreadText),
    on_thread("MPI_OTHER_EVENTS", ApiDomain::kCommunication, kThreadText),
    on_thread("PROFILER_OVERHEAD", ScopeDomain::kRuntime, kThreadName),
    on_thread("CUPTI_ACTIVITY_KIND_OVERHEAD", ScopeDomain::kRuntime, kThreadName),
    {"CUPTI_ACTIVITY_KIND_KERNEL", kKernel, &RowTaker::take_kernel},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", kCopy, &RowTaker::take_copy},
    {"CUPTI_ACTIVITY_KIND_MEMSET", kFill, &RowTaker::take_fill},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", kGraph, &RowTaker::take_graph},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", kWait, &RowTaker::take_sync},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS", kUsage, &RowTaker::take_memory},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS", kCpuFault, &RowTaker::take_cpu_fault},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS", kGpuFault, &RowTaker::take_gpu_fault},
};

// 0 for what is not there, or is no count that 32 bits hold.
std::uint32_t small(const Row& row, int column) {
  const Row::Cell& cell = row.cell(column);
  return cell.integer > 0 && cell.integer <= 0xffff'ffff ? static_cast<std::uint32_t>(cell.integer)
                                                         : 0;
}

}  // namespace

std::span<const TableReader> table_readers() { return kReaders; }

template <class Detail>
Status RowTaker::note(Reason reason, Detail&& detail) {
  const auto place = [&] { return fmt::format("{}, row {}: {}", reader_->table, row_, detail()); };
  problems_.add(reason, place);
  if (strict_ && reason_info(reason).severity > Severity::kNote) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}: {}", path_, place(), reason_info(reason).help));
  }
  return {};
}

Status RowTaker::take(const TableReader& reader, const Row& row) {
  if (&reader != reader_) {
    if (reader_ != nullptr) rows_[reader_->table] = row_;
    reader_ = &reader;
  }
  row_ = row.rows();
  return (this->*reader.take)(row);
}

std::uint64_t RowTaker::rows_of(string_view table) const {
  const auto it = rows_.find(table);
  return it == rows_.end() ? 0 : it->second;
}

Status RowTaker::finish() {
  if (reader_ != nullptr) rows_[reader_->table] = row_;
  for (Event& event : open_) {
    event.end_ns = std::max(event.start_ns, last_end_ns_);
    problems_.add(Reason::kBeginWithoutEnd, [&] {
      return fmt::format("\"{}\" began at {} ns", dictionary_.text(event.name), event.start_ns);
    });
    PASTA_TRY(assembler_.add(event));
  }
  open_.clear();
  if (binary_payloads_ != 0) {
    problems_.add(Reason::kNotKept, binary_payloads_,
                  "binary payloads of NVTX ranges (binaryData): their layout is not documented");
  }
  return {};
}

Status RowTaker::add(Event& event) {
  if (!event.untimed()) last_end_ns_ = std::max(last_end_ns_, event.end_ns);
  return assembler_.add(event);
}

// --- columns

std::optional<std::int64_t> RowTaker::unusual_number(const Row& row, int column) {
  const auto value = row.integer(column);
  if (!value) {
    problems_.add(Reason::kUnreadableNumber, [&] {
      return fmt::format("{}, row {}: column {}", reader_->table, row_, column);
    });
  }
  return value;
}

std::uint64_t RowTaker::size(const Row& row, int column) {
  const auto value = number(row, column);
  return value && *value >= 0 ? static_cast<std::uint64_t>(*value) : kUnknownBytes;
}

Status RowTaker::set_times(Event& event, const Row& row, int start, int end) {
  const auto from = number(row, start);
  const auto to = number(row, end);
  const bool work = kDeviceWork.has(event.kind);
  // CUPTI lost the times of device work that it says began and ended at 0.
  if (from && to && !(work && *from == 0 && *to == 0) && *from != kNoTime) {
    event.start_ns = *from;
    event.end_ns = *to;
    if (*to >= *from) return {};
    PASTA_TRY(note(Reason::kNegativeDuration, [&] { return fmt::format("{} to {}", *from, *to); }));
  } else {
    PASTA_TRY(note(Reason::kUntimed, [] { return "without usable times"; }));
  }
  event.start_ns = event.end_ns = kNoTime;
  event.flags |= kUntimed;
  return {};
}

Status RowTaker::set_moment(Event& event, const Row& row, int at) {
  PASTA_TRY(set_times(event, row, at, at));
  event.flags |= kInstant;
  return {};
}

Status RowTaker::add_range(Event& event, const Row& row, int start, int end) {
  if (row.null(end)) {
    if (const auto from = number(row, start); from && *from != kNoTime) {
      event.start_ns = event.end_ns = *from;
      event.flags |= kUnfinished;
      last_end_ns_ = std::max(last_end_ns_, *from);
      open_.push_back(event);
      return {};
    }
  }
  PASTA_TRY(set_times(event, row, start, end));
  return add(event);
}

Status RowTaker::correlation(Event& event, ProcessId process, const Row& row, int column) {
  const auto id = number(row, column);
  if (!id || *id <= 0) return {};
  if (static_cast<std::uint64_t>(*id) > kMaxVendorCorrelation || process.value > 0xffff) {
    return note(Reason::kCorrelationRange, [&] { return fmt::format("correlation {}", *id); });
  }
  event.correlation = make_correlation(process, static_cast<std::uint64_t>(*id));
  return {};
}

template <class Make>
StringId RowTaker::part_name(std::uint64_t key, Make&& make) {
  const auto [it, fresh] = parts_.try_emplace(key);
  if (fresh) it->second = dictionary_.string(make());
  return it->second;
}

// --- the host

StringId RowTaker::call_name(const Row& row, int column) {
  const Row::Cell& cell = row.cell(column);
  if (cell.type != Type::kInteger) {
    const auto own = strings_.text(row, column);
    return own ? dictionary_.string(without_version(*own)) : StringId{};
  }
  return calls_.get(cell.integer, [&] {
    const auto text = strings_.text(cell.integer);
    return text ? dictionary_.string(without_version(*text)) : StringId{};
  });
}

Status RowTaker::take_call(const Row& row) {
  Event event{};
  event.kind = Kind::kApi;
  const auto tid = number(row, kCallTid);
  const ProcessId process = places_.launching_process(tid);
  event.lane = places_.thread(tid);
  event.name = call_name(row, kCallName);
  event.detail =
      static_cast<std::uint16_t>(api_domain(row.integer(kCallClass), dictionary_.text(event.name)));
  event.api.status = static_cast<std::int32_t>(number(row, kCallReturn).value_or(0));
  PASTA_TRY(correlation(event, process, row, kCallCorrelation));
  return add_range(event, row, kCallStart, kCallEnd);
}

Status RowTaker::take_on_thread(const Row& row) {
  Event event{};
  event.kind = reader_->kind;
  event.detail = reader_->detail;
  event.lane = places_.thread(number(row, kThreadTid));
  event.name = strings_.name(row, reader_->name);
  return add_range(event, row, kThreadStart, kThreadEnd);
}

// --- NVTX

Status RowTaker::read_nvtx_names(const Database& database) {
  constexpr string_view kTable = "NVTX_EVENTS";
  if (!database.has(kTable, "eventType")) return {};
  auto rows = database.select(kTable, kNvtx, "WHERE eventType IN (33, 64, 75)");
  if (!rows) return {};  // the same error comes again where the rows are read
  Result<bool> more = rows->step();
  for (; more && *more; more = rows->step()) {
    const auto text = rows->null(kNvtxText) ? strings_.text(*rows, kNvtxTextId)
                                            : std::optional(rows->text(kNvtxText));
    const auto process = rows->integer(kNvtxTid).value_or(0);
    const bool category = nvtx_type(rows->integer(kNvtxType).value_or(0)) == NvtxType::kCategory;
    const DomainKey key = {
        GlobalId{static_cast<std::uint64_t>(process)}.of_process(),
        static_cast<std::uint64_t>(rows->integer(kNvtxDomain).value_or(0)),
        category ? static_cast<std::uint64_t>(rows->integer(kNvtxCategory).value_or(0)) + 1 : 0};
    if (text && !text->empty()) nvtx_names_.emplace(key, *text);
  }
  return {};
}

RowTaker::Label RowTaker::make_label(string_view text) {
  const common::OperatorText read = common::read_operator(text);
  Label out;
  if (!read.name.empty()) out.name = dictionary_.string(read.name);
  out.sequence = read.sequence;
  if (read.is_operator) out.domain = ScopeDomain::kOperator;
  if (read.is_module) out.domain = ScopeDomain::kModule;
  if (!read.sizes.empty()) {
    std::string sizes(read.sizes);
    std::erase(sizes, ' ');
    out.sizes = dictionary_.string(sizes);
  }
  if (!read.hlo.empty()) out.hlo = dictionary_.string(read.hlo);
  return out;
}

RowTaker::Label RowTaker::label(const Row& row) {
  if (row.type(kNvtxText) == Type::kText) return make_label(row.text(kNvtxText));
  const auto id = number(row, kNvtxTextId);
  if (!id) return {};
  return labels_.get(*id, [&] {
    const auto text = strings_.text(*id);
    return text ? make_label(*text) : Label{};
  });
}

// What a range says besides its name, as compact JSON.
StringId RowTaker::arguments(const Row& row, const Label& label) {
  scratch_.clear();
  const auto key = [this](string_view name) {
    scratch_ += scratch_.empty() ? "{\"" : ",\"";
    scratch_ += name;
    scratch_ += "\":";
  };
  if (label.sizes) {
    key("Input Dims");
    scratch_ += dictionary_.text(label.sizes);
  }
  if (label.hlo) {
    key("hlo_op");
    base::append_json_string(scratch_, dictionary_.text(label.hlo));
  }
  if (!nvtx_names_.empty()) {
    const auto global = static_cast<std::uint64_t>(row.integer(kNvtxTid).value_or(0));
    const auto domain = static_cast<std::uint64_t>(row.integer(kNvtxDomain).value_or(0));
    DomainKey known = {GlobalId{global}.of_process(), domain, 0};
    if (const auto it = nvtx_names_.find(known); it != nvtx_names_.end()) {
      key("domain");
      base::append_json_string(scratch_, it->second);
    }
    if (const auto category = row.integer(kNvtxCategory)) {
      known[2] = static_cast<std::uint64_t>(*category) + 1;
      if (const auto it = nvtx_names_.find(known); it != nvtx_names_.end()) {
        key("category");
        base::append_json_string(scratch_, it->second);
      }
    }
  }
  for (const int column : {kNvtxUint64, kNvtxInt64, kNvtxUint32, kNvtxInt32}) {
    if (const Row::Cell& value = row.cell(column); value.type == Type::kInteger) {
      key("payload");
      // Unsigned 64 bits are stored as signed ones.
      scratch_ += column == kNvtxUint64
                      ? fmt::format("{}", static_cast<std::uint64_t>(value.integer))
                      : fmt::format("{}", value.integer);
      return dictionary_.string(scratch_ += '}');
    }
  }
  for (const int column : {kNvtxDouble, kNvtxFloat}) {
    if (const auto value = row.real(column)) {
      key("payload");
      scratch_ += fmt::format("{}", *value);
      return dictionary_.string(scratch_ += '}');
    }
  }
  const auto json = row.null(kNvtxJson) && !row.null(kNvtxJsonId)
                        ? strings_.text(row, kNvtxJsonId)
                        : std::optional(row.text(kNvtxJson));
  if (json && !json->empty()) {
    key("payload");
    base::append_json_string(scratch_, *json);
  } else if (!row.null(kNvtxBinary)) {
    ++binary_payloads_;
  }
  return scratch_.empty() ? StringId{} : dictionary_.string(scratch_ += '}');
}

Status RowTaker::take_nvtx(const Row& row) {
  NvtxType type = NvtxType::kPushPop;
  if (row.has(kNvtxType)) type = nvtx_type(number(row, kNvtxType).value_or(0));
  if (type == NvtxType::kCategory || type == NvtxType::kDomain || type == NvtxType::kThread) {
    return {};
  }
  if (type == NvtxType::kOther) {
    return note(Reason::kNotAnEvent,
                [&] { return fmt::format("eventType {}", row.integer(kNvtxType).value_or(0)); });
  }
  const auto tid = number(row, kNvtxTid);
  const Label what = label(row);
  Event event{};
  event.kind = Kind::kScope;
  event.name = what.name;
  event.detail = static_cast<std::uint16_t>(what.domain);
  event.range.sequence = what.sequence;
  event.range.arguments = arguments(row, what);
  if (type == NvtxType::kMark) {
    event.lane = places_.thread(tid);
    PASTA_TRY(set_moment(event, row, kNvtxStart));
    return add(event);
  }
  if (type == NvtxType::kStartEnd) {
    // Of the process: another thread may end it, and it need not nest.
    event.lane = places_.unbound(tid, "NVTX start-end ranges");
    event.flags |= kAnnotation;
  } else {
    event.lane = places_.thread(tid);
  }
  return add_range(event, row, kNvtxStart, kNvtxEnd);
}

// --- the device

Status RowTaker::take_kernel(const Row& row) {
  Event event{};
  event.kind = Kind::kKernel;
  const auto pid = number(row, kPid);
  event.lane = places_.queue(pid, number(row, kDevice).value_or(0),
                             number(row, kContext).value_or(0), number(row, kStream).value_or(0));
  PASTA_TRY(set_times(event, row, kStart, kEnd));
  PASTA_TRY(correlation(event, places_.process(pid), row, kCorrelation));
  for (const int column : {kDemangled, kShort, kMangled}) {
    event.name = strings_.name(row, column);
    if (event.name) break;
  }
  LaunchAttributes a;
  for (int i = 0; i < 3; ++i) {
    event.kernel.grid[i] = small(row, kGridX + i);
    a.block[i] = small(row, kBlockX + i);
    a.cluster[i] = small(row, kClusterX + i);
  }
  a.registers_per_thread = small(row, kRegisters);
  a.static_shared_bytes = small(row, kStaticShared);
  a.dynamic_shared_bytes = small(row, kDynamicShared);
  a.local_bytes_per_thread = small(row, kLocal);
  a.priority = places_.priority(event.lane);
  event.kernel.attributes = attributes_.id(dictionary_, a);
  if (const auto node = number(row, kGraphNode); node && *node != 0) {
    // The graph's number stands in the upper half.
    const auto value = static_cast<std::uint64_t>(*node);
    const auto lower = static_cast<std::uint32_t>(value);
    event.kernel.graph_node = lower != 0 ? lower : static_cast<std::uint32_t>(value >> 32);
  }
  return add(event);
}

Status RowTaker::take_copy(const Row& row) {
  Event event{};
  event.kind = Kind::kCopy;
  const auto pid = number(row, kPid);
  const std::int64_t ordinal = number(row, kDevice).value_or(0);
  const std::int64_t kind = number(row, kCopyKind).value_or(0);
  const CopyKind copy = copy_kind(kind);
  event.detail = static_cast<std::uint16_t>(copy.direction);
  event.copy.bytes = size(row, kCopyBytes);
  PASTA_TRY(set_times(event, row, kStart, kEnd));
  if (copy.direction == CopyDirection::kMigration) {
    // Nobody launched it, and it is in no stream.
    event.lane = places_.device_row(pid, ordinal, "unified memory");
    const auto address = static_cast<std::uint64_t>(number(row, kAddress).value_or(0));
    if (!copy.to_host) event.copy.dst = address;
    if (copy.word != "HtoD") event.copy.src = address;
    const std::int64_t number_of_cause = number(row, kCause).value_or(0);
    const string_view cause = migration_cause(number_of_cause);
    const std::uint64_t key = static_cast<std::uint64_t>(kind) << 16 |
                              static_cast<std::uint64_t>(cause.empty() ? 0 : number_of_cause);
    event.name = part_name(key, [&] {
      return cause.empty() ? fmt::format("Unified memory {}", copy.word)
                           : fmt::format("Unified memory {} ({})", copy.word, cause);
    });
    return add(event);
  }
  event.lane = places_.queue(pid, ordinal, number(row, kContext).value_or(0),
                             number(row, kStream).value_or(0));
  PASTA_TRY(correlation(event, places_.process(pid), row, kCorrelation));
  const std::int64_t source = number(row, kSourceKind).value_or(-1);
  const std::int64_t target = number(row, kTargetKind).value_or(-1);
  const string_view from = memory_kind(source);
  const string_view to = memory_kind(target);
  const bool known = !from.empty() && !to.empty();
  std::uint64_t key = std::uint64_t{1} << 32;
  if (!copy.word.empty()) key |= static_cast<std::uint64_t>(kind) << 16;
  if (known)
    key |= static_cast<std::uint64_t>(source + 1) << 8 | static_cast<std::uint64_t>(target);
  event.name = part_name(key, [&] {
    std::string name = "Memcpy";
    if (!copy.word.empty()) name += fmt::format(" {}", copy.word);
    if (known) name += fmt::format(" ({} -> {})", from, to);
    return name;
  });
  return add(event);
}

Status RowTaker::take_fill(const Row& row) {
  Event event{};
  event.kind = Kind::kFill;
  const auto pid = number(row, kPid);
  event.lane = places_.queue(pid, number(row, kDevice).value_or(0),
                             number(row, kContext).value_or(0), number(row, kStream).value_or(0));
  PASTA_TRY(set_times(event, row, kStart, kEnd));
  PASTA_TRY(correlation(event, places_.process(pid), row, kCorrelation));
  event.fill.bytes = size(row, kFillBytes);
  event.fill.pattern = static_cast<std::uint32_t>(number(row, kFillValue).value_or(0));
  const std::int64_t kind = number(row, kFillKind).value_or(-1);
  const string_view memory = memory_kind(kind);
  std::uint64_t key = std::uint64_t{2} << 32;
  if (!memory.empty()) key |= static_cast<std::uint64_t>(kind + 1);
  event.name = part_name(key, [&] {
    return memory.empty() ? std::string("Memset") : fmt::format("Memset ({})", memory);
  });
  return add(event);
}

Status RowTaker::take_graph(const Row& row) {
  Event event{};
  event.kind = Kind::kKernel;
  const auto pid = number(row, kPid);
  event.lane = places_.queue(pid, number(row, kDevice).value_or(0),
                             number(row, kContext).value_or(0), number(row, kStream).value_or(0));
  PASTA_TRY(set_times(event, row, kStart, kEnd));
  PASTA_TRY(correlation(event, places_.process(pid), row, kCorrelation));
  const auto graph = number(row, kGraphId).value_or(0);
  event.name = dictionary_.string(fmt::format("CUDA graph {}", graph));
  return add(event);
}

Status RowTaker::take_sync(const Row& row) {
  const SyncType sync = sync_type(number(row, kSyncType).value_or(0));
  Event event{};
  event.kind = Kind::kSync;
  event.detail = static_cast<std::uint16_t>(sync.target);
  event.name = part_name(std::uint64_t{3} << 32 | static_cast<std::uint64_t>(sync.target),
                         [&] { return sync.name; });
  const auto pid = number(row, kPid);
  event.lane =
      places_.waiting_queue(pid, number(row, kDevice).value_or(0),
                            number(row, kContext).value_or(0), number(row, kStream).value_or(0));
  PASTA_TRY(set_times(event, row, kStart, kEnd));
  PASTA_TRY(correlation(event, places_.process(pid), row, kCorrelation));
  if (sync.target == SyncTarget::kStream) event.sync.on = event.lane;
  // 4294967295 is how CUPTI says none.
  const auto object = number(row, kEventId);
  if (object && *object > 0 && *object != 0xffff'ffff) {
    event.sync.object = static_cast<std::uint64_t>(*object);
  }
  return add(event);
}

// --- memory

Status RowTaker::take_memory(const Row& row) {
  const auto operation = number(row, kUsageOperation);
  if (!operation || *operation < 0 || *operation > 1) {
    return note(Reason::kRecordSkipped, [] { return "neither an allocation nor a deallocation"; });
  }
  const auto bytes = number(row, kUsageBytes);
  if (!bytes || *bytes < 0) {
    return note(Reason::kRecordSkipped, [] { return "without a size"; });
  }
  const auto pid = number(row, kUsagePid);
  const std::int64_t ordinal = number(row, kUsageDevice).value_or(0);
  const string_view kind = memory_kind(number(row, kUsageKind).value_or(-1));
  const bool host = kind == "Pageable" || kind == "Pinned";
  Event event{};
  event.kind = *operation == 0 ? Kind::kAlloc : Kind::kFree;
  event.lane = places_.device_row(pid, ordinal, "memory");
  PASTA_TRY(set_moment(event, row, kUsageAt));
  PASTA_TRY(correlation(event, places_.process(pid), row, kUsageCorrelation));
  StringId pool{};
  for (const int column : {kUsagePool, kUsageImportedPool}) {
    if (const auto at = row.integer(column); at && *at != 0) {
      pool = dictionary_.string(fmt::format("pool {:#x}", static_cast<std::uint64_t>(*at)));
    }
  }
  if (!pool && !kind.empty() && kind != "Device") pool = dictionary_.string(kind);
  event.memory = {.bytes = static_cast<std::uint64_t>(*bytes),
                  .address = static_cast<std::uint64_t>(number(row, kUsageAddress).value_or(0)),
                  .device = host ? DeviceId{} : places_.device(pid, ordinal),
                  .pool = pool};
  PASTA_TRY(add(event));
  // What the pool held after it.
  for (const auto& [column, what] :
       {std::pair(kUsagePoolSize, "size"), std::pair(kUsagePoolUsed, "used")}) {
    const auto value = number(row, column);
    if (!value || !pool || event.untimed()) continue;
    Event counter{};
    counter.kind = Kind::kCounter;
    counter.lane = event.lane;
    counter.start_ns = counter.end_ns = event.start_ns;
    counter.name = dictionary_.string(fmt::format("{} {}", dictionary_.text(pool), what));
    counter.counter = {.value = static_cast<double>(*value),
                       .unit = dictionary_.string("bytes"),
                       .device = event.memory.device,
                       .reserved = 0};
    PASTA_TRY(add(counter));
  }
  return {};
}

Status RowTaker::take_cpu_fault(const Row& row) {
  Event event{};
  event.kind = Kind::kFault;
  event.lane = places_.unbound(number(row, kCpuFaultPid), "CPU page faults");
  PASTA_TRY(set_moment(event, row, kCpuFaultAt));
  const auto function = strings_.text(row, kCpuFaultFunction);
  event.name = dictionary_.string(function && !function->empty()
                                      ? fmt::format("CPU page fault in {}", *function)
                                      : std::string("CPU page fault"));
  event.memory.bytes = kUnknownBytes;
  event.memory.address = static_cast<std::uint64_t>(number(row, kCpuFaultAddress).value_or(0));
  return add(event);
}

Status RowTaker::take_gpu_fault(const Row& row) {
  Event event{};
  event.kind = Kind::kFault;
  const auto pid = number(row, kGpuFaultPid);
  const std::int64_t ordinal = number(row, kGpuFaultDevice).value_or(0);
  event.lane = places_.device_row(pid, ordinal, "unified memory");
  PASTA_TRY(set_times(event, row, kGpuFaultStart, kGpuFaultEnd));
  const string_view access = fault_access(number(row, kGpuFaultAccess).value_or(0));
  event.name = dictionary_.string(access.empty() ? std::string("GPU page fault")
                                                 : fmt::format("GPU page fault ({})", access));
  event.memory.bytes = kUnknownBytes;
  event.memory.address = static_cast<std::uint64_t>(number(row, kGpuFaultAddress).value_or(0));
  event.memory.device = places_.device(pid, ordinal);
  return add(event);
}

}  // namespace pasta::adapters::nsys_sqlite
