#include "adapters/kineto_json/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/decimal.h"

namespace pasta::adapters::kineto_json {
namespace {

using std::string_view;

std::string row_key(string_view pid, string_view tid) { return fmt::format("{}\n{}", pid, tid); }

// The number that `text` ends in, or begins with; empty when there is none.
string_view last_digits(string_view text) {
  return text.substr(std::min(text.size(), text.find_last_not_of("0123456789") + 1));
}
string_view first_digits(string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

bool contains_any(string_view text, std::initializer_list<string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](string_view word) { return text.find(word) != text.npos; });
}

// Of AMD's runtime: what a queue did, by the name of the operation.
string_view work_category(string_view operation) {
  if (contains_any(operation, {"arrier", "Marker"}) && !operation.starts_with("UserMarker")) {
    return "cuda_sync";
  }
  if (operation.starts_with("UserMarker")) return "gpu_user_annotation";
  if (operation.starts_with("Fill")) return "gpu_memset";
  if (operation.starts_with("Copy") || operation.starts_with("async-copy")) return "gpu_memcpy";
  return "kernel";
}

string_view& arg(Record& record, Arg arg) { return record.args[static_cast<std::size_t>(arg)]; }

}  // namespace

// --- names

bool Dialect::find_amd_role(string_view name, Role& role) {
  struct Pattern {
    string_view name;
    bool numbered;
    Part part;
  };
  static constexpr auto kPatterns = std::to_array<Pattern>({
      {"GPU", true, Part::kAmdDevice},
      {"GPU Barriers", true, Part::kAmdBarriers},
      {"COPY", false, Part::kAmdDevice},
      {"CPU HIP API", false, Part::kRuntimeCalls},
      {"CPU HSA API", false, Part::kDriverCalls},
      {"Markers and Ranges", false, Part::kMarks},
  });
  const string_view number = last_digits(name);
  const string_view before = name.substr(0, name.size() - number.size());
  for (const Pattern& pattern : kPatterns) {
    if (pattern.name != before || pattern.numbered == number.empty()) continue;
    role = {pattern.part, std::string(number), {}};
    return true;
  }
  return false;
}

// "/device:GPU:0/stream:7 Compute", "/device:GPU:0/memcpy Compute",
// "/job:localhost/replica:0/task:0/device:GPU:0 Compute"; from XLA "/device:GPU:0", "/host:CPU".
bool Dialect::find_tensorflow_role(string_view name, Role& role) {
  if (!name.starts_with('/')) return false;
  constexpr string_view kRows = " Compute";
  const bool timeline = name.ends_with(kRows);
  if (timeline) name.remove_suffix(kRows.size());
  const std::size_t gpu = std::max(name.rfind("GPU:") + 1, name.rfind("gpu:") + 1);
  role = {Part::kOperators, std::string(gpu == 0 ? "0" : first_digits(name.substr(gpu + 3))), {}};
  constexpr string_view kStream = "/stream:";
  if (!timeline) {
    role.part = name == "/host:CPU" ? Part::kXlaHost : Part::kXlaDevice;
    if (role.part == Part::kXlaHost) return true;
    return gpu != 0 && name.starts_with("/device:");
  }
  if (const std::size_t at = name.find(kStream); at != name.npos) {
    role.stream = name.substr(at + kStream.size());
    role.part = role.stream == "all" ? Part::kAllStreams : Part::kStream;
  } else if (name.ends_with("/memcpy")) {
    role.part = Part::kCopyList;
  }
  return true;
}

void Dialect::name_process(string_view pid, string_view name) {
  Role role;
  if (!(amd_ && find_amd_role(name, role)) && !find_tensorflow_role(name, role)) return;
  if (role.part == Part::kStream) numbered_.insert(role.device);
  if (role.part == Part::kAmdDevice && !role.device.empty()) {
    only_gpu_ = ++gpus_ == 1 ? role.device : std::string();
  }
  roles_[std::string(pid)] = std::move(role);
}

// "Stream #14(MemcpyD2H)" of an XLA device; its other threads are lines of annotations.
void Dialect::name_thread(string_view pid, string_view tid, string_view name) {
  const auto process = roles_.find(std::string(pid));
  if (process == roles_.end() || process->second.part != Part::kXlaDevice) return;
  const std::size_t number = name.find('#');
  if (number == name.npos || !contains_any(name.substr(0, number), {"tream "})) return;
  roles_[row_key(pid, tid)] = {Part::kXlaDevice, process->second.device,
                               std::string(first_digits(name.substr(number + 1)))};
}

const Dialect::Role* Dialect::role_of(const Record& record) const {
  auto it = roles_.find(row_key(record.pid, record.tid));
  if (it == roles_.end()) it = roles_.find(std::string(record.pid));
  return it == roles_.end() ? nullptr : &it->second;
}

// --- records

Dialect::Verdict Dialect::translate(Record& record) {
  if (amd_) return translate_amd(record);
  const Role* role = record.phase == "X" ? role_of(record) : nullptr;
  if (role == nullptr) return Verdict::kTake;
  if (role->part == Part::kXlaHost) {
    translate_xla_host(record);
  } else if (role->part == Part::kXlaDevice) {
    translate_xla(record, *role);
  } else {
    return translate_tensorflow(record, *role);
  }
  return Verdict::kTake;
}

Dialect::Verdict Dialect::translate_amd(Record& record) {
  if (record.phase == "s" || record.phase == "t" || record.phase == "f") {
    translate_amd_arrow(record);
    return Verdict::kTake;
  }
  if ((record.phase != "X" && record.phase != "i") || !record.category.empty()) {
    return Verdict::kTake;
  }
  Verdict verdict = Verdict::kTake;
  const Role* role = role_of(record);
  const bool exact = record.has(Arg::kBeginNs);
  if (exact) exact_times(record);
  if (role != nullptr && (role->part == Part::kAmdDevice || role->part == Part::kAmdBarriers)) {
    verdict = translate_amd_work(record, *role);
  } else {
    const std::string_view name = record.name;
    const bool runtime = role == nullptr ? name.starts_with("hip") || name.starts_with("__hip")
                                         : role->part == Part::kRuntimeCalls;
    const bool driver =
        role == nullptr ? name.starts_with("hsa_") : role->part == Part::kDriverCalls;
    record.category = runtime ? "cuda_runtime" : driver ? "cuda_driver" : "user_annotation";
  }
  // rocprof's processes are sections of its picture; the arguments have the real ones.
  const bool on_host = record.category != "kernel" && !record.category.starts_with("gpu_") &&
                       record.category != "cuda_sync";
  pid_ = on_host && record.has(Arg::kNativePid) ? record.arg(Arg::kNativePid) : record.pid;
  if (exact || record.category.starts_with("cuda_")) keep_row(record, pid_);
  record.pid = pid_;
  if (on_host && record.has(Arg::kNativeTid)) record.tid = record.arg(Arg::kNativeTid);
  return verdict;
}

Dialect::Verdict Dialect::translate_amd_work(Record& record, const Role& role) {
  const string_view operation =
      record.has(Arg::kCopyKind) ? record.arg(Arg::kCopyKind) : record.name;
  record.category = role.part == Part::kAmdBarriers ? "cuda_sync" : work_category(operation);
  // The picture of a whole graph launch, above its kernels.
  if (!record.has(Arg::kBeginNs) && !record.has(Arg::kCopyKind) &&
      record.name.starts_with("Graph ")) {
    record.category = "gpu_user_annotation";
  }
  Verdict verdict = Verdict::kTake;
  if (!record.has(Arg::kDevice)) {
    const std::string& device = role.device.empty() ? only_gpu_ : role.device;
    if (device.empty()) verdict = Verdict::kNoDevice;
    arg(record, Arg::kDevice) = device.empty() ? string_view("0") : device;
  }
  if (!record.has(Arg::kStream)) arg(record, Arg::kStream) = record.tid;
  // Work-items and work-items of a group, as products of their three dimensions.
  std::uint64_t items = 0;
  std::uint64_t group = 0;
  if (whole_number(record.arg(Arg::kWorkItems), items) &&
      whole_number(record.arg(Arg::kWorkGroup), group) && group != 0) {
    grid_ = fmt::format("{}", items / group + (items % group != 0 ? 1 : 0));
    record.grid = {grid_, "1", "1"};
    record.block = {record.arg(Arg::kWorkGroup), "1", "1"};
  }
  return verdict;
}

void Dialect::translate_amd_arrow(Record& record) {
  // rocprof also draws arrows from work to the call that waits for it.
  const Role* role = role_of(record);
  const bool on_device =
      role != nullptr && (role->part == Part::kAmdDevice || role->part == Part::kAmdBarriers);
  if ((record.phase == "s") == on_device) return;
  std::uint64_t id = 0;
  if (!whole_number(record.id, id)) return;
  id_ = fmt::format("{}", id + 1);  // counted from 0 there, which is no number of an arrow here
  record.id = id_;
  record.category = "ac2g";
  const auto lane = rows_.find(row_key(record.pid, record.tid));
  const bool rocprof = record.name == "dep";
  if (rocprof && record.phase == "t") record.phase = "f";
  std::uint64_t at_us = 0;
  if (lane == rows_.end() || !whole_number(record.time, at_us)) return;
  // From RPD, the call that ends 2 us later (its duration is cut too); else the last that began.
  constexpr int kRowsBack = 8;
  auto row = lane->second.upper_bound(at_us + (rocprof ? 0 : 2));
  const auto last = lane->second.upper_bound(at_us);
  for (int i = 0; !rocprof && i < kRowsBack && row != lane->second.begin(); ++i) {
    --row;
    if (row->second.end_us == at_us + 2 || row->second.end_us == at_us + 1) {
      record.time = row->second.time;
      return;
    }
  }
  if (last == lane->second.begin()) return;
  const Row& found = std::prev(last)->second;
  if (!rocprof && found.end_us < at_us) return;
  record.time = found.time;
  record.pid = found.pid;
}

void Dialect::keep_row(const Record& record, string_view pid) {
  std::int64_t start = 0;
  std::int64_t duration = 0;
  base::parse_decimal(record.time, 0, start);
  base::parse_decimal(record.duration, 0, duration);
  if (start < 0 || duration < 0) return;
  const auto start_us = static_cast<std::uint64_t>(start);
  rows_[row_key(record.pid, record.tid)][start_us] = {
      std::string(record.time), std::string(pid), start_us + static_cast<std::uint64_t>(duration)};
}

// Microseconds with three decimals out of "BeginNs" and "EndNs".
void Dialect::exact_times(Record& record) {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (!base::parse_unsigned(record.arg(Arg::kBeginNs), begin) ||
      !base::parse_unsigned(record.arg(Arg::kEndNs), end)) {
    return;
  }
  const auto microseconds = [](std::uint64_t ns) {
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  };
  time_ = microseconds(begin);
  duration_ =
      end < begin ? fmt::format("-{}", microseconds(begin - end)) : microseconds(end - begin);
  record.time = time_;
  record.duration = duration_;
}

Dialect::Verdict Dialect::translate_tensorflow(Record& record, const Role& role) {
  if (role.part == Part::kOperators) {
    record.category = "cpu_op";
    return Verdict::kTake;
  }
  key_ = fmt::format("{} {} {} {}", role.device, record.time, record.duration,
                     record.arg(Arg::kMetadataName));
  const bool copy = role.part == Part::kCopyList || record.name.starts_with("MEMCPY");
  if (role.part == Part::kCopyList) copies_.insert(key_);
  if (role.part != Part::kStream && numbered_.contains(role.device)) return Verdict::kListedTwice;
  record.category = copy                                ? "gpu_memcpy"
                    : record.name.starts_with("MEMSET") ? "gpu_memset"
                                                        : "kernel";
  if (record.has(Arg::kKernelName)) record.name = record.arg(Arg::kKernelName);
  arg(record, Arg::kDevice) = role.device;
  arg(record, Arg::kStream) = role.stream;
  return record.category == "kernel" ? Verdict::kUndecided : Verdict::kTake;
}

void Dialect::translate_xla(Record& record, const Role& role) {
  arg(record, Arg::kDevice) = role.device;
  if (role.stream.empty()) {
    record.category = "gpu_user_annotation";
    arg(record, Arg::kStream) = record.tid;
    return;
  }
  arg(record, Arg::kStream) = role.stream;
  record.category = record.name.starts_with("Memcpy")   ? "gpu_memcpy"
                    : record.name.starts_with("Memset") ? "gpu_memset"
                                                        : "kernel";
  // "kind_src:host kind_dst:device size:128 dest:0 async:1"
  constexpr string_view kSize = "size:";
  const string_view details = record.arg(Arg::kCopyDetails);
  if (const std::size_t at = details.find(kSize); at != details.npos) {
    arg(record, Arg::kBytes) = first_digits(details.substr(at + kSize.size()));
  }
}

// "$train.py:23 step" is a frame of Python. What has a correlation is a call, as "cuGraphLaunch
// (CudaGraph:2)"; that of a kernel is called as the kernel is.
void Dialect::translate_xla_host(Record& record) {
  if (record.name.starts_with('$')) {
    record.category = "python_function";
    record.name.remove_prefix(1);
    const std::size_t colon = record.name.rfind(':', record.name.find(' '));
    if (colon == record.name.npos) return;
    const string_view line = first_digits(record.name.substr(colon + 1));
    const string_view rest = record.name.substr(colon + 1 + line.size());
    if (line.empty() || !rest.starts_with(' ')) return;
    name_ = fmt::format("{}({}): {}", record.name.substr(0, colon), line, rest.substr(1));
    record.name = name_;
  } else if (record.has(Arg::kCorrelation)) {
    const bool of_runtime = record.name.starts_with("cuda") || record.name.starts_with("hip");
    record.category = of_runtime ? "cuda_runtime" : "cuda_driver";
    record.name = record.name.substr(0, record.name.find(" (CudaGraph:"));
  }
}

}  // namespace pasta::adapters::kineto_json
