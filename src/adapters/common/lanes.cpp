#include "adapters/common/lanes.h"

#include <fmt/format.h>

namespace pasta::adapters::common {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15u ^ value >> 29;
}

}  // namespace

std::size_t Lanes::Hash::operator()(const ThreadKey& key) const {
  return mix(mix(1, key.process.value), key.tid);
}

std::size_t Lanes::Hash::operator()(const QueueKey& key) const {
  return mix(mix(mix(mix(2, key.process.value), key.device.value), key.stream.value_or(~0u)),
             key.context.value_or(~0u));
}

std::string Lanes::queue_name(const QueueKey& key) const {
  std::string name;
  if (naming_ == Naming::kByStream) return name;
  if (key.stream) {
    name = naming_ == Naming::kByAddress ? fmt::format("stream {:#x}", *key.stream)
                                         : fmt::format("stream {}", *key.stream);
  }
  if (key.context) name += fmt::format("{}queue {}", name.empty() ? "" : ", ", *key.context);
  return name;
}

LaneId Lanes::thread(ProcessId process, std::uint64_t tid) {
  const auto [it, fresh] = threads_.try_emplace({process, tid});
  if (fresh) it->second = dictionary_.lane({.process = process, .native_id = tid});
  return it->second;
}

LaneId Lanes::queue(const QueueKey& key) {
  const auto [it, fresh] = queues_.try_emplace(key);
  if (fresh) {
    it->second = dictionary_.lane({.type = LaneType::kQueue,
                                   .process = key.process,
                                   .device = key.device,
                                   .context = key.context.value_or(0),
                                   .native_id = key.stream.value_or(0)});
    // Stream 0 and an unknown one are the same lane, whose name says what is known of it.
    const bool named = static_cast<bool>(dictionary_.lane(it->second).name);
    if (const std::string name = queue_name(key); !name.empty() && (!named || key.stream)) {
      dictionary_.update(it->second, dictionary_.string(name));
    }
  }
  return it->second;
}

LaneId Lanes::named(ProcessId process, std::string_view name, DeviceId device) {
  return dictionary_.lane({.type = device ? LaneType::kQueue : LaneType::kThread,
                           .process = process,
                           .device = device,
                           .native_text = dictionary_.string(name)});
}

}  // namespace pasta::adapters::common
