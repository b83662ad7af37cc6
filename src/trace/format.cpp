#include "trace/format.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace pasta::trace {

std::string uuid_text(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::uint64_t header_checksum(const FileHeader& header) {
  return XXH3_64bits(&header, offsetof(FileHeader, checksum));
}

std::uint32_t chunk_check(const ChunkHeader& header) {
  return static_cast<std::uint32_t>(XXH3_64bits(&header, offsetof(ChunkHeader, check)));
}

std::uint64_t chunk_checksum(const ChunkHeader& header, std::span<const std::byte> payload) {
  const std::uint64_t seed = XXH3_64bits(&header, offsetof(ChunkHeader, checksum));
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

void seal(ChunkHeader& header, std::span<const std::byte> payload) {
  header.check = chunk_check(header);
  header.checksum = chunk_checksum(header, payload);
}

std::string chunk_name(ChunkType type) {
  std::string name;
  for (unsigned i = 0; i < 4; ++i) {
    name += static_cast<char>(static_cast<std::uint32_t>(type) >> 8 * i & 0xff);
  }
  const bool shown =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
  return shown ? name : "?";
}

}  // namespace pasta::trace
