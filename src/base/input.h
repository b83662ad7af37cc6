// Opens files and standard input, decompressing as their content says.
#pragma once

#include <string_view>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/result.h"

namespace pasta::base {

// An opened input: `input.head` points into `head`.
struct OpenedInput {
  std::vector<std::byte> head;
  std::unique_ptr<ByteStream> stream;
};

// gzip (also of several members, also with trailing zeros) and zip (of exactly one file; more are
// refused by name) are told by content and decompressed on a thread of their own, so that reading
// and decompressing overlap. Errors: kNotFound, kIo, kBadInput (an empty path, a folder, a zip of
// several files); each names the path. What is read of the file is added to `progress`.
Result<OpenedInput> open_input(std::string_view path, ReadProgress* progress = nullptr);

// For tests and for embedding: a stream over bytes in memory, which must outlive it.
std::unique_ptr<ByteStream> memory_stream(std::span<const std::byte> bytes);
// Decompresses `bytes` of gzip while it is read.
std::unique_ptr<ByteStream> gzip_stream(std::unique_ptr<ByteStream> compressed);

}  // namespace pasta::base
