#include "base/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/file_stream.h"
#include "base/inflate_stream.h"
#include "base/read_ahead.h"
#include "base/temp_file.h"
#include "base/zip_file.h"

namespace pasta::base {
namespace {

constexpr std::size_t kHeadBytes = std::size_t{64} << 10;

class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<std::size_t> read(std::span<std::byte> to) override {
    const std::size_t size = std::min(to.size(), bytes_.size());
    std::copy_n(bytes_.begin(), size, to.begin());
    bytes_ = bytes_.subspan(size);
    return size;
  }
  [[nodiscard]] std::string_view damage() const override { return {}; }

 private:
  std::span<const std::byte> bytes_;
};

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// The first bytes of a stream.
Result<std::vector<std::byte>> read_head(ByteStream& stream) {
  std::vector<std::byte> head(kHeadBytes);
  auto got = stream.read(head);
  if (!got) return tl::unexpected<Error>(std::move(got).error());
  head.resize(*got);
  return head;
}

// A zip file's directory comes last, so one that comes through a pipe is put aside first.
Result<RandomAccess> put_aside(ByteStream& stream, std::string path) {
  auto made = TempFile::create();
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  auto file = std::make_shared<TempFile>(std::move(*made));
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (bool more = true; more;) {
    auto got = stream.read(block);
    if (!got) return tl::unexpected<Error>(std::move(got).error());
    more = *got == block.size();
    PASTA_TRY(file->append(std::span(block).first(*got)));
  }
  const auto read_at = [file](std::uint64_t offset,
                              std::span<std::byte> to) -> Result<std::size_t> {
    const std::uint64_t left = file->size() - std::min(offset, file->size());
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), left)));
    PASTA_TRY(file->read_at(offset, to));
    return to.size();
  };
  return RandomAccess{read_at, file->size(), std::move(path)};
}

Result<std::unique_ptr<ByteStream>> unzipped(const std::shared_ptr<File>& file,
                                             ByteStream& stream) {
  if (const auto size = file->size()) {
    const auto read_at = [file](std::uint64_t offset, std::span<std::byte> to) {
      return file->read_at(offset, to);
    };
    return open_zip({read_at, *size, file->path()});
  }
  auto aside = put_aside(stream, file->path());
  if (!aside) return tl::unexpected<Error>(std::move(aside).error());
  return open_zip(std::move(*aside));
}

}  // namespace

Result<OpenedInput> open_input(std::string_view path, ReadProgress* progress) {
  auto file = File::open(path, progress);
  if (!file) return tl::unexpected<Error>(std::move(file).error());
  auto stream = file_stream(*file);
  auto head = read_head(*stream);
  if (!head) return tl::unexpected<Error>(std::move(head).error());
  const bool gzip = starts_with(*head, "\x1f\x8b");
  const bool zip = starts_with(*head, "PK\x03\x04") || starts_with(*head, "PK\x05\x06");
  if (starts_with(*head, "\x28\xb5\x2f\xfd")) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} is compressed by zstd: decompress it first (zstd -d)", path));
  }
  stream = joined_stream(*head, std::move(stream));
  if (gzip) {
    stream = gzip_stream(std::move(stream));
  } else if (zip) {
    auto inner = unzipped(*file, *stream);
    if (!inner) return tl::unexpected<Error>(std::move(inner).error());
    stream = std::make_unique<ReadAhead>(std::move(*inner));
  }
  if (gzip || zip) {
    head = read_head(*stream);
    if (!head) return tl::unexpected<Error>(std::move(head).error());
    stream = joined_stream(*head, std::move(stream));
  }
  return OpenedInput{std::move(*head), std::move(stream)};
}

std::unique_ptr<ByteStream> memory_stream(std::span<const std::byte> bytes) {
  return std::make_unique<MemoryStream>(bytes);
}

std::unique_ptr<ByteStream> gzip_stream(std::unique_ptr<ByteStream> compressed) {
  return std::make_unique<ReadAhead>(
      std::make_unique<InflateStream>(std::move(compressed), DeflateForm::kGzip));
}

}  // namespace pasta::base
