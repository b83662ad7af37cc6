// Keeps the processes of one stored trace apart from those of all others in a session.
#pragma once

#include <set>
#include <string>

#include "pasta/dictionary.h"

namespace pasta::trace {

// Two traces may each hold a process 1: containers all do. What is equal by chance must not become
// one process, so a process that somebody else has brought in before gets `trace_name` added to
// its source.
class ProcessImport {
 public:
  ProcessImport(Dictionary& dictionary, std::string trace_name)
      : dictionary_(dictionary), trace_name_(std::move(trace_name)) {}
  // The session's id of `process`, whose ids are the session's; fills in what it knows.
  ProcessId import(Process process);

 private:
  Dictionary& dictionary_;
  std::string trace_name_;
  std::set<ProcessId> own_;
};

}  // namespace pasta::trace
