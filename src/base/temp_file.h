// Scratch space on disk that vanishes with the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "pasta/result.h"

namespace pasta::base {

// A file without a name. append() from one thread at a time; read_at() from any number of threads,
// of what was appended before.
class TempFile {
 public:
  // In `folder`; when that is empty in $TMPDIR, else in /tmp. Errors: kIo, naming the folder.
  static Result<TempFile> create(const std::filesystem::path& folder = {});
  TempFile(TempFile&& other) noexcept;
  TempFile& operator=(TempFile&& other) noexcept;
  ~TempFile();

  // Errors: kIo ("no space left on device"); then what was written of `bytes` does not count.
  Status append(std::span<const std::byte> bytes);
  // Fills `to` from `offset` on. Errors: kIo, also where less than that was appended.
  Status read_at(std::uint64_t offset, std::span<std::byte> to) const;
  // All that was appended, to be read in place until munmap(), also after the file's end; none
  // where that cannot be.
  [[nodiscard]] const std::uint8_t* map() const;
  // Bytes appended.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  // Gives the space back; size() is 0 then.
  Status clear();

 private:
  TempFile(int descriptor, std::string folder)
      : descriptor_(descriptor), folder_(std::move(folder)) {}

  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::string folder_;  // for messages
};

}  // namespace pasta::base
