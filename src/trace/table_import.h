// Brings processes, devices and lanes of a stored trace into a session's dictionary, with all that
// is known of them.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "pasta/dictionary.h"

namespace pasta::trace {

// Two traces may each hold a process 1: containers all do. What is equal by chance must not become
// one process, so a process that somebody else has brought in before gets `trace_name` added to
// its source.
class ProcessImport {
 public:
  ProcessImport(Dictionary& dictionary, std::string trace_name)
      : dictionary_(dictionary), trace_name_(std::move(trace_name)) {}
  // Ids inside of `process` are the session's, as is the one returned.
  ProcessId import(Process process);

 private:
  Dictionary& dictionary_;
  std::string trace_name_;
  std::set<ProcessId> own_;
};

DeviceId import_device(Dictionary& dictionary, const Device& device);
LaneId import_lane(Dictionary& dictionary, const Lane& lane);

}  // namespace pasta::trace
