// The folder that a watched run writes into, as the watching program makes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "pasta/result.h"
#include "trace/spool.h"

namespace pasta::cli {

// Made by create(), and there until remove().
class RunFolder {
 public:
  struct Options {
    std::uint64_t limit_bytes = 0;
    std::int32_t rank = -1;
    std::int32_t world_size = 0;
    bool paused = false;
    std::string capture, include, exclude, keep;  // as in trace::spool::RunPage
    std::uint64_t segment_bytes = 0;
    trace::spool::CaptureBy capture_by{};
    std::int64_t first_iteration = 0, last_iteration = 0;
    std::uint32_t cuda = 0;
    bool torch = false;
    bool call_places = false;
    bool hides = false;
    trace::spool::PythonMode python = trace::spool::PythonMode::kOff;
  };
  // Beside the trace that it is to become: "OUTPUT.run", or the next free name. Errors: kIo; kUsage
  // for a text that is too long.
  static Result<RunFolder> create(const std::string& output, const Options& options);
  [[nodiscard]] const std::string& path() const { return path_; }

  void begins(std::int32_t program);
  // Whether nothing is to be collected from now on.
  void pause(bool paused);
  // What ended so long ago is not to be kept.
  void keep_last(std::chrono::nanoseconds time);
  // With the status that waitpid() gave.
  void ends(std::int32_t wait_status);
  // Whether something of what was collected is no longer in it.
  [[nodiscard]] bool has_given() const;
  // Takes it away with all that is in it.
  void remove();

 private:
  RunFolder() = default;
  std::string path_;  // absolute
  void* page_ = nullptr;
};

}  // namespace pasta::cli
