#include "trace/pasta_reader.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace pasta::trace {
namespace {
// How far a buffer grows ahead of the bytes that fill it.
constexpr std::size_t kStepBytes = std::size_t{1} << 20;
}  // namespace

struct PastaReader::Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDCtx(context); }
};

PastaReader::PastaReader(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}
PastaReader::~PastaReader() = default;

Result<bool> PastaReader::read_header() {
  const auto bytes = std::as_writable_bytes(std::span(&header_, 1));
  auto got = stream_->read(bytes);
  if (!got) return tl::unexpected(std::move(got).error());
  offset_ = *got;
  const std::size_t magic_bytes = std::min(*got, kMagic.size());
  if (std::memcmp(bytes.data(), kMagic.data(), magic_bytes) != 0) {
    return fail(ErrorCode::kBadInput, "is no .pasta file: it does not begin as one");
  }
  if (*got < sizeof header_) {
    header_ = {};
    return false;
  }
  if (header_.checksum != header_checksum(header_)) {
    return fail(ErrorCode::kBadInput,
                "byte 0: the header is damaged (its checksum is wrong), so nothing in this file "
                "can be trusted; record or export it again");
  }
  if (header_.major > kFormatMajor) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("written by a newer pastaprof, format {}.x; this one reads up to {}.x",
                            header_.major, kFormatMajor));
  }
  return true;
}

Result<std::size_t> PastaReader::read_payload(std::size_t bytes) {
  std::size_t filled = 0;
  while (filled < bytes) {
    const std::size_t room = std::min(bytes, std::max(stored_.size(), filled + kStepBytes));
    if (stored_.size() < room) stored_.resize(room);
    auto got = stream_->read(std::span(stored_).subspan(filled, room - filled));
    if (!got) return got;
    filled += *got;
    if (filled < room) break;
  }
  offset_ += filled;
  return filled;
}

bool PastaReader::decompress(std::span<const std::byte> stored, std::size_t plain_bytes) {
  if (!decompressor_) decompressor_ = std::make_unique<Decompressor>();
  ZSTD_DCtx* const context = decompressor_->context;
  ZSTD_DCtx_reset(context, ZSTD_reset_session_only);
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  std::size_t filled = 0;
  for (;;) {
    // One byte more than there should be, so that too much is noticed.
    const std::size_t room =
        std::min(plain_bytes + 1, std::max(plain_.size(), filled + kStepBytes));
    if (plain_.size() < room) plain_.resize(room);
    ZSTD_outBuffer out{plain_.data(), room, filled};
    const std::size_t left = ZSTD_decompressStream(context, &out, &in);
    if (ZSTD_isError(left) != 0) return false;
    const bool progress = out.pos > filled;
    filled = out.pos;
    if (left == 0) return in.pos == in.size && filled == plain_bytes;
    if (filled > plain_bytes || (!progress && in.pos == in.size)) return false;
  }
}

Result<Chunk> PastaReader::next() {
  Chunk chunk;
  chunk.offset = offset_;
  if (ended_) return chunk;
  auto got = stream_->read(std::as_writable_bytes(std::span(&chunk.header, 1)));
  if (!got) return tl::unexpected(std::move(got).error());
  offset_ += *got;
  if (*got < sizeof chunk.header) {
    chunk.state = ChunkState::kTruncated;
    return chunk;
  }
  const ChunkHeader& header = chunk.header;
  if (header.check != chunk_check(header) || header.stored_bytes > kMaxChunkBytes ||
      header.plain_bytes > kMaxChunkBytes) {
    chunk.state = ChunkState::kUnreadable;
    return chunk;
  }
  const std::size_t bytes = padded(header.stored_bytes);
  auto filled = read_payload(bytes);
  if (!filled) return tl::unexpected(std::move(filled).error());
  if (*filled < bytes) {
    chunk.state = ChunkState::kTruncated;
    return chunk;
  }
  chunk.state = ChunkState::kCorrupt;
  if (header.checksum != chunk_checksum(header, std::span(stored_).first(bytes))) return chunk;
  if ((header.flags & kZstd) != 0) {
    if (!decompress(std::span(stored_).first(header.stored_bytes), header.plain_bytes)) {
      return chunk;
    }
    chunk.payload = std::span(plain_).first(header.plain_bytes);
  } else {
    if (header.plain_bytes != header.stored_bytes) return chunk;
    chunk.payload = std::span(stored_).first(header.stored_bytes);
  }
  chunk.state = ChunkState::kWhole;
  ended_ = header.type == ChunkType::kEnd;
  return chunk;
}

Result<bool> PastaReader::has_trailing_data() {
  std::byte extra{};
  auto got = stream_->read(std::span(&extra, 1));
  if (!got) return tl::unexpected(std::move(got).error());
  return *got != 0;
}

}  // namespace pasta::trace
