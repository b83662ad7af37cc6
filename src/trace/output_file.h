// The file a trace is written to: nobody ever sees it half written under its name.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "pasta/result.h"

namespace pasta::trace {

struct OutputOptions {
  bool overwrite = false;
  bool patchable = false;  // rewrite_front() will be called
  // Where it is true by then, the temporary file stays without close(). It outlives the file.
  const bool* keeps_partial = nullptr;
};

// Writes beside the target, as "TARGET.tmp-XXXXXX", and renames in close(); without close() the
// temporary file is removed, unless it is to stay. "-" is standard output; there, and where the
// target is a device or a pipe, a patchable file is kept in the system's temporary folder until
// close().
class OutputFile {
 public:
  // kUsage when the target exists and `overwrite` is not set, or is a folder; else kIo.
  static Result<OutputFile> open(std::string path, OutputOptions options);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  // Replaces the first bytes of the file, which have been written before.
  Status rewrite_front(std::span<const std::byte> bytes);
  Status close();

 private:
  OutputFile() = default;
  Status io_error(std::string_view what) const;
  Status write_to(int fd, std::span<const std::byte> bytes) const;
  Status copy_out();

  std::string path_;       // as the user gave it
  std::string target_;     // what `temporary_` becomes
  std::string temporary_;  // empty: `fd_` is the target, or a nameless file copied to `copy_to_`
  int fd_ = -1;
  int copy_to_ = -1;
  bool overwrite_ = false;
  const bool* keeps_partial_ = nullptr;
};

}  // namespace pasta::trace
