#include "adapters/rocprofv3_csv/places.h"

#include <fmt/format.h>

#include "base/decimal.h"

namespace pasta::adapters::rocprofv3_csv {

Places::Places(Dictionary& dictionary, StringId source, std::uint64_t process_id)
    : dictionary_(dictionary), source_(source), default_id_(process_id) {}

ProcessId Places::process(std::string_view guid, std::uint64_t process_id) {
  const auto known = processes_.find(std::pair(std::string(guid), process_id));
  if (known != processes_.end()) return known->second;
  Process key;
  key.native_id = process_id;
  key.source = source_;
  // Processes of two hosts may have one number.
  if (!used_ids_.insert(process_id).second) key.native_text = dictionary_.string(guid);
  const ProcessId id = dictionary_.process(key);
  processes_.emplace(std::pair(std::string(guid), process_id), id);
  by_guid_.emplace(guid, id);
  return id;
}

ProcessId Places::process(std::string_view guid) {
  if (guid.empty()) {
    if (!default_process_ && default_id_ != 0) default_process_ = process(guid, default_id_);
    if (!default_process_) {
      Process key;
      key.native_text = dictionary_.string("(no pid)");
      key.source = source_;
      default_process_ = dictionary_.process(key);
    }
    return default_process_;
  }
  if (const auto known = by_guid_.find(guid); known != by_guid_.end()) return known->second;
  Process key;
  key.native_text = dictionary_.string(guid);
  key.source = source_;
  return by_guid_.emplace(guid, dictionary_.process(key)).first->second;
}

void Places::add_agent(std::string spelling, Agent agent) {
  if (!agent.gpu) hosts_.insert(spelling);
  agents_.insert_or_assign(std::move(spelling), std::move(agent));
}

DeviceId Places::gpu(std::string_view spelling) { return device(spelling, DeviceType::kGpu); }

DeviceId Places::memory_of(std::string_view spelling) {
  if (spelling.empty() || spelling.starts_with("CPU") || hosts_.contains(spelling)) return {};
  const bool gpu = spelling.starts_with("GPU") || agents_.contains(spelling);
  return device(spelling, gpu ? DeviceType::kGpu : DeviceType::kUnknown);
}

DeviceId Places::device(std::string_view spelling, DeviceType type) {
  if (const auto known = devices_.find(spelling); known != devices_.end()) return known->second;
  Device key;
  key.process = process({});
  key.type = type;
  std::uint64_t ordinal = 0;
  base::parse_unsigned(spelling.substr(spelling.find_last_not_of("0123456789") + 1), ordinal);
  key.ordinal = static_cast<std::uint32_t>(ordinal);
  const DeviceId id = dictionary_.device(key);
  if (const auto known = agents_.find(spelling); known != agents_.end()) {
    const Agent& agent = known->second;
    key.name = dictionary_.string(agent.name);
    key.multiprocessors = agent.multiprocessors;
    key.warp_size = agent.warp_size;
    key.max_threads_per_multiprocessor = agent.max_threads;
    dictionary_.update(id, key);
  }
  return devices_.emplace(spelling, id).first->second;
}

LaneId Places::thread(ProcessId process, std::uint64_t thread_id) {
  LaneId& lane = threads_[{process.value, thread_id}];
  if (!lane) lane = dictionary_.lane({.process = process, .native_id = thread_id});
  return lane;
}

LaneId Places::queue(ProcessId process, DeviceId device, std::string_view queue,
                     std::string_view stream, std::string_view otherwise) {
  LastQueue& last = last_queue_;
  if (last.lane && last.process == process && last.device == device && last.queue == queue &&
      last.stream == stream) {
    return last.lane;
  }
  LaneId& lane = queues_[{process.value, device.value, std::string(queue), std::string(stream)}];
  if (!lane) {
    std::uint64_t queue_id = 0;
    std::uint64_t stream_id = 0;
    const bool has_queue = base::parse_unsigned(queue, queue_id);
    const bool has_stream = base::parse_unsigned(stream, stream_id);
    Lane key;
    key.type = LaneType::kQueue;
    key.process = process;
    key.device = device;
    std::string name;
    if (has_stream) {
      key.native_id = stream_id;
      key.context = queue_id;
      name = fmt::format("stream {}", stream_id);
      if (has_queue) name += fmt::format(", queue {}", queue_id);
    } else if (has_queue) {
      key.native_id = queue_id;
      name = fmt::format("queue {}", queue_id);
    } else {
      name = otherwise;
      key.native_text = dictionary_.string(name);
    }
    lane = dictionary_.lane(key);
    dictionary_.update(lane, dictionary_.string(name));
  }
  last = {process, device, std::string(queue), std::string(stream), lane};
  return lane;
}

}  // namespace pasta::adapters::rocprofv3_csv
