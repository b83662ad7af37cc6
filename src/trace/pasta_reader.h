// Takes a .pasta file apart into checked chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pasta/adapter.h"
#include "pasta/result.h"
#include "trace/format.h"

namespace pasta::trace {

enum class ChunkState : std::uint8_t {
  kWhole,
  kCorrupt,     // its header is sound, its payload is not: the next chunk can be read
  kUnreadable,  // its header is not sound: nothing more can be read
  kTruncated,   // the file ends inside it, or before the chunk that should be last
  kEnd,         // the file has ended where it should
};

struct Chunk {
  ChunkState state = ChunkState::kEnd;
  ChunkHeader header;        // of kWhole and kCorrupt
  std::uint64_t offset = 0;  // of the chunk in the file
  // Of kWhole: decompressed, aligned for every record; valid, and the caller's to change, until
  // the next call.
  std::span<std::byte> payload;
};

class PastaReader {
 public:
  explicit PastaReader(std::unique_ptr<ByteStream> stream);
  ~PastaReader();

  // Before next(). False when the file ends inside its header. kBadInput for what is no .pasta
  // file or has a damaged header, kUnsupported for a newer major version; the messages do not name
  // the file.
  Result<bool> read_header();
  [[nodiscard]] const FileHeader& header() const { return header_; }
  // Fails only with what the stream says. No more memory is taken than bytes have come, whatever
  // lengths the file declares.
  Result<Chunk> next();
  // Whether there is anything after the chunk that should be last.
  Result<bool> has_trailing_data();
  [[nodiscard]] std::string_view damage() const { return stream_->damage(); }

 private:
  // Reads up to `bytes` into the front of `stored_`; returns how many there were.
  Result<std::size_t> read_payload(std::size_t bytes);
  bool decompress(std::span<const std::byte> stored, std::size_t plain_bytes);

  std::unique_ptr<ByteStream> stream_;
  FileHeader header_;
  std::uint64_t offset_ = 0;
  bool ended_ = false;
  std::vector<std::byte> stored_, plain_;
  struct Decompressor;
  std::unique_ptr<Decompressor> decompressor_;
};

}  // namespace pasta::trace
