#include "trace/table_import.h"

namespace pasta::trace {

ProcessId ProcessImport::import(Process process) {
  std::uint32_t known = dictionary_.process_count();
  ProcessId id = dictionary_.process(process);
  if (id.value < known && !own_.contains(id)) {
    std::string source(dictionary_.text(process.source));
    if (!source.empty()) source += ' ';
    process.source = dictionary_.string(source + trace_name_);
    // The same trace twice in one session is still two sources.
    for (int copy = 2;; ++copy) {
      known = dictionary_.process_count();
      id = dictionary_.process(process);
      if (id.value >= known || own_.contains(id)) break;
      process.source = dictionary_.string(source + trace_name_ + " " + std::to_string(copy));
    }
  }
  own_.insert(id);
  const Process now = dictionary_.process(id);
  if (now.name != process.name || now.host != process.host || now.rank != process.rank ||
      now.world_size != process.world_size) {
    dictionary_.update(id, process);
  }
  return id;
}

DeviceId import_device(Dictionary& dictionary, const Device& device) {
  const DeviceId id = dictionary.device(device);
  const Device now = dictionary.device(id);
  if (now.name != device.name || now.multiprocessors != device.multiprocessors ||
      now.compute_major != device.compute_major || now.compute_minor != device.compute_minor ||
      now.max_threads_per_multiprocessor != device.max_threads_per_multiprocessor ||
      now.warp_size != device.warp_size || now.memory_bytes != device.memory_bytes) {
    dictionary.update(id, device);
  }
  return id;
}

LaneId import_lane(Dictionary& dictionary, const Lane& lane) {
  const LaneId id = dictionary.lane(lane);
  if (dictionary.lane(id).name != lane.name) dictionary.update(id, lane.name);
  return id;
}

}  // namespace pasta::trace
