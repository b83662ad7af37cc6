// The threads and queues that rows name by numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pasta/dictionary.h"

namespace pasta::adapters::common {

// Where device work ran. The context is CUDA's, or AMD's queue of the hardware: there, a program
// uses streams, and several of them may share a queue; both are kept.
struct QueueKey {
  ProcessId process{};
  DeviceId device{};
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> context;
  bool operator==(const QueueKey&) const = default;
};

// Lanes of the dictionary, found again without its locks.
class Lanes {
 public:
  enum class Naming : std::uint8_t {
    kByStream,   // "stream 7", as everywhere
    kByQueue,    // "stream 7, queue 2"; each where it is known
    kByAddress,  // "stream 0x7f21c0, queue 2": the stream is an address in the program
  };
  Lanes(Dictionary& dictionary, Naming naming) : dictionary_(dictionary), naming_(naming) {}

  LaneId thread(ProcessId process, std::uint64_t tid);
  LaneId queue(const QueueKey& key);
  // What belongs to no thread or, of a device, to no stream, by a name of its own.
  LaneId named(ProcessId process, std::string_view name, DeviceId device = {});

 private:
  struct ThreadKey {
    ProcessId process{};
    std::uint64_t tid = 0;
    bool operator==(const ThreadKey&) const = default;
  };
  struct Hash {
    std::size_t operator()(const ThreadKey& key) const;
    std::size_t operator()(const QueueKey& key) const;
  };
  [[nodiscard]] std::string queue_name(const QueueKey& key) const;

  Dictionary& dictionary_;
  Naming naming_;
  std::unordered_map<ThreadKey, LaneId, Hash> threads_;
  std::unordered_map<QueueKey, LaneId, Hash> queues_;
};

}  // namespace pasta::adapters::common
