// What a .pasta file is made of, byte by byte. docs/format.md is the same for people.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace pasta::trace {

static_assert(std::endian::native == std::endian::little,
              "the structures below are written and read as they lie in memory");

inline constexpr std::array<std::uint8_t, 8> kMagic = {0x89, 'P', 'A', 'S', 'T', 'A', '\r', '\n'};
inline constexpr std::uint16_t kFormatMajor = 1;
inline constexpr std::uint16_t kFormatMinor = 0;
inline constexpr std::uint16_t kFormatMinorOfSeveral = 1;  // of a file that keeps sources apart

using Uuid = std::array<std::uint8_t, 16>;
std::string uuid_text(const Uuid& uuid);

enum FileFlag : std::uint32_t {
  kFinished = 1,       // the writer came to its end
  kAbsoluteClock = 2,  // times are since 1970
};

// The first 64 bytes. Written again whenever what it says has changed, so that a reader knows the
// start of the trace before the first event also when the writer died.
struct FileHeader {
  std::array<std::uint8_t, 8> magic = kMagic;
  std::uint16_t major = kFormatMajor;
  std::uint16_t minor = kFormatMinor;
  std::uint32_t flags = 0;
  Uuid uuid{};
  std::int64_t first_ns = 0;  // earliest start of a timed event; kNoTime: none
  std::int32_t rank = -1;
  std::int32_t world_size = 0;
  std::uint64_t events = 0;    // so far; all when kFinished
  std::uint64_t checksum = 0;  // of the bytes before it; in every version at this place
};
static_assert(sizeof(FileHeader) == 64 && offsetof(FileHeader, checksum) == 56);
std::uint64_t header_checksum(const FileHeader& header);

constexpr std::uint32_t four_letters(const char (&text)[5]) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) << 8 * i;
  }
  return value;
}

enum class ChunkType : std::uint32_t {
  kEvents = four_letters("EVNT"),
  kStrings = four_letters("STRS"),
  kProcesses = four_letters("PROC"),
  kDevices = four_letters("DEVS"),
  kLanes = four_letters("LANE"),
  kFrames = four_letters("FRAM"),
  kCollectives = four_letters("COLL"),
  kAttributes = four_letters("ATTR"),
  kFacts = four_letters("FACT"),
  kBlobs = four_letters("BLOB"),
  kWatermark = four_letters("WMRK"),
  kSources = four_letters("SRCS"),
  kRuns = four_letters("RUNS"),
  kProblems = four_letters("PROB"),
  kEnd = four_letters("END."),
};
inline constexpr std::uint16_t kChunkVersion = 1;  // of every type so far

enum ChunkFlag : std::uint16_t {
  kZstd = 1,       // the payload is one zstd frame
  kSkippable = 2,  // a reader that does not know the type may pass over it
};

// Stands before each payload, which is followed by zeros up to a multiple of 8.
struct ChunkHeader {
  ChunkType type{};
  std::uint16_t version = kChunkVersion;
  std::uint16_t flags = 0;
  std::uint64_t stored_bytes = 0;  // of the payload in the file, without the zeros after it
  std::uint64_t plain_bytes = 0;   // of the payload when decompressed
  std::uint32_t records = 0;
  // Two checksums, so that the length can be believed, and the chunk passed over, when only its
  // payload is damaged.
  std::uint32_t check = 0;     // of the 28 bytes before it
  std::uint64_t checksum = 0;  // of payload and zeros, seeded with that of the 32 bytes before it
};
static_assert(sizeof(ChunkHeader) == 40);
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{256} << 20;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }
std::uint32_t chunk_check(const ChunkHeader& header);
// `payload` with the zeros after it.
std::uint64_t chunk_checksum(const ChunkHeader& header, std::span<const std::byte> payload);
// Fills in both checksums.
void seal(ChunkHeader& header, std::span<const std::byte> payload);
// "EVNT", or "?" for letters that cannot be shown.
std::string chunk_name(ChunkType type);

// Records of the tables. Fields mean what those of pasta/dictionary.h do.
struct ProcessRecord {
  std::uint64_t native_id;
  std::uint32_t id, native_text, source, name, host;
  std::int32_t rank, world_size;
  std::uint32_t reserved;
};
struct DeviceRecord {
  std::uint64_t memory_bytes;
  std::uint32_t id, process, ordinal, uuid, type, name;
  std::uint32_t multiprocessors, compute_major, compute_minor;
  std::uint32_t max_threads_per_multiprocessor, warp_size, reserved;
};
struct LaneRecord {
  std::uint64_t context, native_id;
  std::uint32_t id, type, process, device, native_text, name;
};
struct FrameRecord {
  std::uint32_t id, parent, name, domain;
};
struct CollectiveRecord {
  std::uint64_t in_elements, out_elements;
  std::uint32_t id, name, element_type, group, ranks, group_size;
};
struct AttributesRecord {
  std::uint32_t id, block[3], cluster[3];
  std::uint32_t registers_per_thread, static_shared_bytes, dynamic_shared_bytes;
  std::uint32_t local_bytes_per_thread;
  std::int32_t priority;
  std::uint32_t collective, reserved;
};
static_assert(sizeof(ProcessRecord) == 40 && sizeof(DeviceRecord) == 56);
static_assert(sizeof(LaneRecord) == 40 && sizeof(FrameRecord) == 16);
static_assert(sizeof(CollectiveRecord) == 40 && sizeof(AttributesRecord) == 56);

// Records with text: each part is padded to a multiple of 8.
struct StringRecord {  // then `bytes` of text
  std::uint32_t id, bytes;
};
struct FactRecord {  // then key, then value, padded together
  std::uint32_t key_bytes, value_bytes;
};
struct BlobRecord {  // then `bytes`
  std::uint32_t id, bytes;
};
struct SourceRecord {  // then path, format, label, padded together
  std::int64_t first_ns;
  std::int32_t rank, world_size;
  std::uint32_t absolute_clock, path_bytes, format_bytes, label_bytes;
};
struct ProblemRecord {  // then `first_bytes` of text
  std::uint64_t count;
  std::uint32_t source, reason, first_bytes, reserved;
};
static_assert(sizeof(SourceRecord) == 32 && sizeof(ProblemRecord) == 24);

inline constexpr std::size_t kMaxSources = std::size_t{1} << 14;  // kept apart in one file

// Of the events of the next chunk of events, the next so many are of this source.
struct RunRecord {
  std::uint32_t source, events;
};
struct WatermarkRecord {
  std::int64_t end_ns;
};
struct EndRecord {
  std::uint64_t events;  // in the whole file
};

}  // namespace pasta::trace
