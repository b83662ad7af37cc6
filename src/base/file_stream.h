// Bytes of files and of memory as streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/result.h"

namespace pasta::base {

// Bytes that can be read in any order.
struct RandomAccess {
  // Less than to.size() only at the end.
  std::function<Result<std::size_t>(std::uint64_t offset, std::span<std::byte> to)> read_at;
  std::uint64_t size = 0;
  std::string path;  // for messages
};

// An open file. Errors name its path.
class File {
 public:
  // Errors: kNotFound, kIo, kBadInput (a folder, an empty path). "-" is standard input.
  // `progress` may be none.
  static Result<std::shared_ptr<File>> open(std::string_view path, ReadProgress* progress);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // From the file's own place on; less than to.size() only at the end.
  Result<std::size_t> read(std::span<std::byte> to);
  // Not for pipes and terminals.
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> to) const;
  // Nothing when it is a pipe or a terminal.
  [[nodiscard]] std::optional<std::uint64_t> size() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  File(int descriptor, std::string path, ReadProgress* progress)
      : descriptor_(descriptor), path_(std::move(path)), progress_(progress) {}
  template <class Call>
  Result<std::size_t> fill(std::span<std::byte> to, Call&& call) const;

  int descriptor_;
  std::string path_;
  ReadProgress* progress_;
};

// From the file's own place on.
std::unique_ptr<ByteStream> file_stream(std::shared_ptr<File> file);
// `size` bytes from `offset`; fewer where the source ends before.
std::unique_ptr<ByteStream> part_stream(RandomAccess source, std::uint64_t offset,
                                        std::uint64_t size);
// `head`, then the rest.
std::unique_ptr<ByteStream> joined_stream(std::vector<std::byte> head,
                                          std::unique_ptr<ByteStream> rest);

}  // namespace pasta::base
