#include "base/zip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/inflate_stream.h"

namespace pasta::base {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kEnd64Locator = 0x07064b50;
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kLocatorBytes = 20;
constexpr std::size_t kMaxComment = 0xffff;
constexpr std::uint16_t kZip64Extra = 1;
// A directory of more is no directory of one file.
constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{16} << 20;

// Little-endian numbers of `bytes`; those that do not lie within it are 0.
std::uint64_t number(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  if (at > bytes.size() || bytes.size() - at < size) return 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  }
  return value;
}
std::uint16_t u16(std::span<const std::byte> b, std::size_t at) {
  return static_cast<std::uint16_t>(number(b, at, 2));
}
std::uint32_t u32(std::span<const std::byte> b, std::size_t at) {
  return static_cast<std::uint32_t>(number(b, at, 4));
}
std::uint64_t u64(std::span<const std::byte> b, std::size_t at) { return number(b, at, 8); }

struct Member {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t checksum = 0;
  std::uint64_t packed = 0;
  std::uint64_t size = 0;
  std::uint64_t header = 0;  // offset of its local header
};

// Compares what a member gives with what the directory says of it.
class CheckedStream final : public ByteStream {
 public:
  CheckedStream(std::unique_ptr<ByteStream> stream, std::uint32_t checksum, std::uint64_t size)
      : stream_(std::move(stream)), checksum_(checksum), size_(size) {}
  Result<std::size_t> read(std::span<std::byte> to) override {
    auto got = stream_->read(to);
    if (!got) return got;
    seen_ += *got;
    running_ = static_cast<std::uint32_t>(
        crc32_z(running_, reinterpret_cast<const Bytef*>(to.data()), *got));
    if (*got < to.size()) {
      damage_ = stream_->damage();
      if (damage_.empty() && seen_ != size_) damage_ = "zip member has another size than it says";
      if (damage_.empty() && running_ != checksum_) damage_ = "zip member has a wrong checksum";
    }
    return got;
  }
  [[nodiscard]] std::string_view damage() const override { return damage_; }

 private:
  std::unique_ptr<ByteStream> stream_;
  std::uint32_t checksum_;
  std::uint64_t size_;
  std::uint32_t running_ = 0;
  std::uint64_t seen_ = 0;
  std::string damage_;
};

tl::unexpected<Error> bad(const RandomAccess& file, std::string_view what) {
  return fail(ErrorCode::kBadInput, fmt::format("zip file {} {}", file.path, what));
}

// Bytes that must be there.
Result<std::vector<std::byte>> bytes_at(const RandomAccess& file, std::uint64_t offset,
                                        std::uint64_t size) {
  if (offset > file.size || file.size - offset < size) return bad(file, "is cut or corrupt");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  auto got = file.read_at(offset, bytes);
  if (!got) return tl::unexpected<Error>(std::move(got).error());
  if (*got < bytes.size()) return bad(file, "is cut or corrupt");
  return bytes;
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

Result<Directory> find_directory(const RandomAccess& file) {
  const std::uint64_t tail_size = std::min<std::uint64_t>(file.size, kEndBytes + kMaxComment);
  const std::uint64_t tail_offset = file.size - tail_size;
  auto tail = bytes_at(file, tail_offset, tail_size);
  if (!tail) return tl::unexpected<Error>(std::move(tail).error());
  std::optional<std::size_t> end;
  for (std::size_t at = tail->size() < kEndBytes ? 0 : tail->size() - kEndBytes + 1; at-- > 0;) {
    if (u32(*tail, at) == kEnd) {
      end = at;
      break;
    }
  }
  if (!end) return bad(file, "is cut: its directory, which comes last, is missing");
  Directory found{u32(*tail, *end + 16), u32(*tail, *end + 12)};
  const std::uint64_t end_offset = tail_offset + *end;
  if (end_offset >= kLocatorBytes) {
    auto locator = bytes_at(file, end_offset - kLocatorBytes, kLocatorBytes);
    if (!locator) return tl::unexpected<Error>(std::move(locator).error());
    if (u32(*locator, 0) == kEnd64Locator) {
      auto end64 = bytes_at(file, u64(*locator, 8), kEnd64Bytes);
      if (!end64) return tl::unexpected<Error>(std::move(end64).error());
      if (u32(*end64, 0) != kEnd64) return bad(file, "is corrupt");
      found = {u64(*end64, 48), u64(*end64, 40)};
    }
  }
  if (found.size > kMaxDirectoryBytes) return bad(file, "holds very many files; give it one");
  return found;
}

// Sizes that did not fit into 32 bits are in an extra field, in this order.
void read_zip64(std::span<const std::byte> extra, Member& member) {
  constexpr std::uint64_t kElsewhere = std::numeric_limits<std::uint32_t>::max();
  while (extra.size() >= 4) {
    const std::size_t size = std::min<std::size_t>(u16(extra, 2), extra.size() - 4);
    if (u16(extra, 0) == kZip64Extra) {
      const auto field = extra.subspan(4, size);
      std::size_t at = 0;
      for (std::uint64_t* value : {&member.size, &member.packed, &member.header}) {
        if (*value != kElsewhere) continue;
        *value = u64(field, at);
        at += 8;
      }
      return;
    }
    extra = extra.subspan(4 + size);
  }
}

Result<std::vector<Member>> read_directory(const RandomAccess& file) {
  auto directory = find_directory(file);
  if (!directory) return tl::unexpected<Error>(std::move(directory).error());
  auto bytes = bytes_at(file, directory->offset, directory->size);
  if (!bytes) return tl::unexpected<Error>(std::move(bytes).error());
  std::vector<Member> members;
  std::span<const std::byte> rest = *bytes;
  while (rest.size() >= kEntryBytes && u32(rest, 0) == kEntry) {
    const std::size_t name_size = u16(rest, 28);
    const std::size_t extra_size = u16(rest, 30);
    const std::size_t size = kEntryBytes + name_size + extra_size + u16(rest, 32);
    if (size > rest.size()) return bad(file, "is corrupt");
    const auto name = rest.subspan(kEntryBytes, name_size);
    Member member{.name = {reinterpret_cast<const char*>(name.data()), name.size()},
                  .flags = u16(rest, 8),
                  .method = u16(rest, 10),
                  .checksum = u32(rest, 16),
                  .packed = u32(rest, 20),
                  .size = u32(rest, 24),
                  .header = u32(rest, 42)};
    read_zip64(rest.subspan(kEntryBytes + name_size, extra_size), member);
    if (!member.name.ends_with('/') && !member.name.starts_with("__MACOSX/")) {
      members.push_back(std::move(member));
    }
    rest = rest.subspan(size);
  }
  return members;
}

std::string listed(const std::vector<Member>& members) {
  constexpr std::size_t kShown = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(members.size(), kShown); ++i) {
    names += (i == 0 ? "" : ", ") + members[i].name;
  }
  if (members.size() > kShown) names += fmt::format(" and {} more", members.size() - kShown);
  return names;
}

}  // namespace

Result<std::unique_ptr<ByteStream>> open_zip(RandomAccess file) {
  constexpr std::uint16_t kEncrypted = 1;
  constexpr std::uint16_t kStored = 0;
  constexpr std::uint16_t kDeflated = 8;
  auto members = read_directory(file);
  if (!members) return tl::unexpected<Error>(std::move(members).error());
  if (members->empty()) return bad(file, "holds no file");
  if (members->size() > 1) {
    return bad(file, fmt::format("holds {} files ({}): unpack it and give the one to read",
                                 members->size(), listed(*members)));
  }
  const Member& member = members->front();
  if ((member.flags & kEncrypted) != 0) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("zip file {} is encrypted: unpack it first", file.path));
  }
  if (member.method != kStored && member.method != kDeflated) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("zip file {} is compressed by method {}: unpack it first", file.path,
                            member.method));
  }
  auto header = bytes_at(file, member.header, kLocalHeaderBytes);
  if (!header) return tl::unexpected<Error>(std::move(header).error());
  if (u32(*header, 0) != kLocalHeader) return bad(file, "is corrupt");
  const std::uint64_t data =
      member.header + kLocalHeaderBytes + u16(*header, 26) + u16(*header, 28);
  auto stream = part_stream(std::move(file), data, member.packed);
  if (member.method == kDeflated) {
    stream = std::make_unique<InflateStream>(std::move(stream), DeflateForm::kRaw);
  }
  return std::make_unique<CheckedStream>(std::move(stream), member.checksum, member.size);
}

}  // namespace pasta::base
