#include "adapters/kineto_json/places.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/decimal.h"

namespace pasta::adapters::kineto_json {
namespace {

// The autograd profiler's own export: its device row has this name, and tid is the device.
constexpr std::string_view kLegacyDeviceRow = "CUDA functions";

// 7 for "stream 7" and "stream 7 ".
std::optional<std::uint64_t> number_after_last_blank(std::string_view text) {
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::uint64_t number = 0;
  if (!base::parse_unsigned(text.substr(text.find_last_of(' ') + 1), number)) return std::nullopt;
  return number;
}

std::string row_key(std::string_view pid, std::string_view tid) {
  std::string key(pid);
  key += '\n';
  key += tid;
  return key;
}

}  // namespace

StringId NameCache::get(Dictionary& dictionary, std::string_view text) {
  if (text.empty()) return {};
  std::uint64_t first = 0;
  std::uint64_t middle = 0;
  std::uint64_t last = 0;
  const std::size_t n = std::min(text.size(), sizeof first);
  std::memcpy(&first, text.data(), n);
  std::memcpy(&last, text.data() + text.size() - n, n);
  if (text.size() > 2 * sizeof middle) {
    std::memcpy(&middle, text.data() + text.size() / 2, sizeof middle);
  }
  const std::uint64_t mixed = (first ^ last * 3 ^ middle * 5 ^ text.size()) * 0x9E3779B97F4A7C15u;
  Entry& entry = entries_[mixed >> (64 - kBits)];
  if (entry.text != text) {
    entry.id = dictionary.string(text);
    entry.text = dictionary.text(entry.id);
  }
  return entry.id;
}

Places::Places(Dictionary& dictionary, std::string_view path)
    : dictionary_(dictionary),
      source_(dictionary.string(path)),
      file_process_(dictionary.process({.source = source_})) {}

Places::Token Places::token(std::string_view text) {
  Token token;
  token.is_number = whole_number(text, token.number);
  if (!token.is_number) token.text = text;
  return token;
}

std::uint64_t Places::key_of(const Token& token) {
  constexpr std::uint64_t kText = std::uint64_t{1} << 63;
  return token.is_number ? token.number : kText + string(token.text).value;
}

ProcessId Places::process(const Token& pid) {
  Process key;
  key.source = source_;
  if (pid.is_number) {
    key.native_id = pid.number;
  } else {
    key.native_text = string(pid.text.empty() ? std::string_view("(no pid)") : pid.text);
  }
  const ProcessId id = dictionary_.process(key);
  if (std::find(processes_.begin(), processes_.end(), id) == processes_.end()) {
    processes_.push_back(id);
  }
  return id;
}

DeviceId Places::device(std::uint64_t ordinal) {
  Device key;
  key.process = file_process_;
  key.ordinal = static_cast<std::uint32_t>(ordinal);
  key.type = DeviceType::kGpu;
  return dictionary_.device(key);
}

template <class Make>
LaneId Places::recent(const LaneKey& key, Make&& make) {
  for (std::size_t i = 0; i < lanes_used_; ++i) {
    if (lanes_[i].key != key) continue;
    const LaneId lane = lanes_[i].lane;
    if (i != 0) std::swap(lanes_[i], lanes_[i - 1]);
    return lane;
  }
  const LaneId lane = make();
  lanes_used_ = std::min(lanes_used_ + 1, lanes_.size());
  lanes_[lanes_used_ - 1] = {key, lane};
  return lane;
}

LaneId Places::thread_lane(const Record& record) { return thread_lane(record.pid, record.tid); }

LaneId Places::thread_lane(std::string_view pid_text, std::string_view tid_text) {
  const Token pid = token(pid_text);
  const Token tid = token(tid_text);
  return recent({.pid = key_of(pid), .tid = key_of(tid)}, [&] {
    Lane lane;
    lane.process = process(pid);
    if (tid.is_number) {
      lane.native_id = tid.number;
    } else {
      lane.native_text = string(tid.text);
    }
    return dictionary_.lane(lane);
  });
}

LaneId Places::queue_lane(const Record& record) {
  const Token pid = token(record.pid);
  const Token tid = token(record.tid);
  const bool legacy = pid.text == kLegacyDeviceRow;
  // args say it plainly; the row's pid and tid say the same in files that lack them.
  std::uint64_t ordinal = 0;
  std::uint64_t stream = 0;
  if (!whole_number(record.arg(Arg::kDevice), ordinal)) {
    ordinal = legacy ? tid.number : pid.number;
  }
  if (!whole_number(record.arg(Arg::kStream), stream) && !legacy) {
    stream = tid.is_number ? tid.number : number_after_last_blank(tid.text).value_or(0);
  }
  std::uint64_t context = 0;
  whole_number(record.arg(Arg::kContext), context);
  const LaneKey key = {.queue = true, .tid = stream, .device = ordinal, .context = context};
  return recent(key, [&] {
    Lane lane;
    lane.type = LaneType::kQueue;
    lane.process = legacy ? process(pid) : file_process_;
    lane.device = device(ordinal);
    lane.context = context;
    lane.native_id = stream;
    const LaneId id = dictionary_.lane(lane);
    device_rows_.emplace(row_key(record.pid, record.tid), id);
    return id;
  });
}

LaneId Places::async_lane(const Record& record) {
  Lane lane;
  lane.process = process(token(record.pid));
  std::string name = "async ";
  name += record.category;
  lane.native_text = string(name);
  return dictionary_.lane(lane);
}

LaneId Places::row_lane(const Record& record) {
  const auto it = device_rows_.find(row_key(record.pid, record.tid));
  return it != device_rows_.end() ? it->second : thread_lane(record);
}

void Places::name_process(const Record& record, std::string_view name) {
  row_names_.push_back({true, std::string(record.pid), {}, std::string(name)});
}

void Places::name_row(const Record& record, std::string_view name) {
  row_names_.push_back(
      {false, std::string(record.pid), std::string(record.tid), std::string(name)});
}

void Places::apply_names(bool any_events) {
  for (const RowName& row : row_names_) {
    std::string_view name = row.name;
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!row.of_process) {
      const auto it = device_rows_.find(row_key(row.pid, row.tid));
      const LaneId lane = it != device_rows_.end() ? it->second : thread_lane(row.pid, row.tid);
      dictionary_.update(lane, string(name));
      continue;
    }
    const Token pid = token(row.pid);
    const bool has_events = std::any_of(processes_.begin(), processes_.end(), [&](ProcessId id) {
      const Process p = dictionary_.process(id);
      return pid.is_number ? !p.native_text && p.native_id == pid.number
                           : dictionary_.text(p.native_text) == pid.text;
    });
    if (any_events && !has_events) continue;
    const ProcessId id = process(pid);
    Process facts = dictionary_.process(id);
    facts.name = string(name);
    dictionary_.update(id, facts);
  }
}

void Places::set_rank(std::int32_t rank, std::int32_t world_size) {
  const auto set = [&](ProcessId id) {
    Process facts = dictionary_.process(id);
    facts.rank = rank;
    facts.world_size = world_size;
    dictionary_.update(id, facts);
  };
  set(file_process_);
  for (const ProcessId id : processes_) set(id);
}

}  // namespace pasta::adapters::kineto_json
