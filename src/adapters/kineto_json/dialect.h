// Traces in the same form whose records do not say what they are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "adapters/kineto_json/record.h"

namespace pasta::adapters::kineto_json {

// Records of rocprof, RPD, TensorFlow's timelines and the XLA profiler have no category that tells
// a kernel from a call; the name of their process ("GPU0", "/device:GPU:0/stream:7 Compute") or
// thread does. This learns the names, which these traces have in front, and rewrites records as
// Kineto would have written them. For any other trace it does nothing.
class Dialect {
 public:
  enum class Verdict : std::uint8_t {
    kTake,
    kUndecided,  // device work that is a copy where `key()` turns out to be one of copies
    kNoDevice,   // device work of one of several devices; counts as of the first
    kListedTwice,
  };

  // The first record of the trace is {}, as AMD's exporters begin.
  void begins_empty() { amd_ = true; }
  void name_process(std::string_view pid, std::string_view name);
  void name_thread(std::string_view pid, std::string_view tid, std::string_view name);

  // Whether translate() has anything to do.
  [[nodiscard]] bool active() const { return amd_ || !roles_.empty(); }
  // The texts of `record` are valid until the next call.
  Verdict translate(Record& record);

  // What kUndecided work is looked up by; of the record that was translated last.
  [[nodiscard]] const std::string& key() const { return key_; }
  // After the last record.
  [[nodiscard]] bool is_copy(const std::string& key) const { return copies_.contains(key); }

 private:
  enum class Part : std::uint8_t {
    kAmdDevice,    // work of one GPU, or copies of any
    kAmdBarriers,  // waiting on a queue
    kRuntimeCalls,
    kDriverCalls,
    kMarks,
    kStream,      // TensorFlow: device work of one stream
    kAllStreams,  // TensorFlow: the work of all streams again
    kCopyList,    // TensorFlow: the copies among it again
    kOperators,   // TensorFlow: operators of the host
    kXlaDevice,   // XLA: a device, whose threads are streams and lines of annotations
    kXlaHost,     // XLA: threads of the host, on which lie frames of Python and calls of CUDA
  };
  // What the records of a process, or of a thread, are; the numbers as text, empty when unknown.
  struct Role {
    Part part;
    std::string device, stream;
  };
  // A row of AMD's, for the arrows from and to it. rocprof cuts their times to microseconds, while
  // its rows are exact; RPD's leave 2 us before the end of a call, which may be before its start.
  struct Row {
    std::string time;
    std::string pid;
    std::uint64_t end_us;
  };

  static bool find_amd_role(std::string_view name, Role& role);
  static bool find_tensorflow_role(std::string_view name, Role& role);
  const Role* role_of(const Record& record) const;
  Verdict translate_amd(Record& record);
  Verdict translate_amd_work(Record& record, const Role& role);
  void translate_amd_arrow(Record& record);
  void keep_row(const Record& record, std::string_view pid);
  Verdict translate_tensorflow(Record& record, const Role& role);
  void translate_xla(Record& record, const Role& role);
  void translate_xla_host(Record& record);
  void exact_times(Record& record);

  bool amd_ = false;
  std::unordered_map<std::string, Role> roles_;  // by pid, or by pid and tid
  std::string only_gpu_;                         // number of the GPU, when one is named
  int gpus_ = 0;
  std::unordered_set<std::string> numbered_;  // devices of which there are kStream
  std::unordered_set<std::string> copies_;
  std::unordered_map<std::string, std::map<std::uint64_t, Row>> rows_;  // by pid, tid; start in us
  std::string key_, time_, duration_, pid_, grid_, id_, bytes_, name_;
};

}  // namespace pasta::adapters::kineto_json
