// The folder that a watched run writes into, as the watching program makes it.
#pragma once

#include <cstdint>
#include <string>

#include "pasta/result.h"

namespace pasta::cli {

// Made by create(), and there until remove().
class RunFolder {
 public:
  // Beside the trace that it is to become: "OUTPUT.run", or the next free name. Errors: kIo.
  static Result<RunFolder> create(const std::string& output, std::uint64_t limit_bytes,
                                  std::int32_t rank, std::int32_t world_size);
  [[nodiscard]] const std::string& path() const { return path_; }

  void begins(std::int32_t program);
  // With the status that waitpid() gave.
  void ends(std::int32_t wait_status);
  // Takes it away with all that is in it.
  void remove();

 private:
  RunFolder() = default;
  std::string path_;  // absolute
  void* page_ = nullptr;
};

}  // namespace pasta::cli
