// The processes, devices and lanes that the rows of a run name.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "pasta/dictionary.h"

namespace pasta::adapters::rocprofv3_csv {

// What agent_info says of an agent.
struct Agent {
  bool gpu = false;
  std::string name;
  std::uint32_t multiprocessors = 0;
  std::uint32_t warp_size = 0;
  std::uint32_t max_threads = 0;  // of a multiprocessor
};

class Places {
 public:
  // Rows that name no process are of `process_id`; 0 = unknown.
  Places(Dictionary& dictionary, StringId source, std::uint64_t process_id);

  // `guid` tells the processes of a table apart that was made of several databases.
  ProcessId process(std::string_view guid, std::uint64_t process_id);
  ProcessId process(std::string_view guid);  // of a row that names none

  // `spelling`: "Agent 4", "GPU 0".
  void add_agent(std::string spelling, Agent agent);
  // The device of an agent that runs kernels or has memory of its own.
  DeviceId gpu(std::string_view spelling);
  // None for an agent that is a processor of the host.
  DeviceId memory_of(std::string_view spelling);
  void is_host(std::string_view spelling) { hosts_.emplace(spelling); }

  LaneId thread(ProcessId process, std::uint64_t thread_id);
  // Several streams may share a queue of the hardware; both are kept. "" where a table has none.
  LaneId queue(ProcessId process, DeviceId device, std::string_view queue, std::string_view stream,
               std::string_view otherwise);

 private:
  DeviceId device(std::string_view spelling, DeviceType type);

  Dictionary& dictionary_;
  StringId source_;
  ProcessId default_process_{};
  std::uint64_t default_id_;
  std::map<std::pair<std::string, std::uint64_t>, ProcessId, std::less<>> processes_;
  std::map<std::string, ProcessId, std::less<>> by_guid_;
  std::set<std::uint64_t> used_ids_;
  std::map<std::string, Agent, std::less<>> agents_;
  std::set<std::string, std::less<>> hosts_;
  std::map<std::string, DeviceId, std::less<>> devices_;

  // Rows of one lane mostly follow one another.
  struct LastQueue {
    ProcessId process{};
    DeviceId device{};
    std::string queue, stream;
    LaneId lane{};
  };
  LastQueue last_queue_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string, std::string>, LaneId> queues_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, LaneId> threads_;
};

}  // namespace pasta::adapters::rocprofv3_csv
