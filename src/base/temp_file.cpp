#include "base/temp_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

namespace pasta::base {
namespace {

tl::unexpected<Error> io_error(std::string_view what, std::string_view folder, int code) {
  return fail(ErrorCode::kIo, fmt::format("{} a temporary file in {}: {}", what, folder,
                                          std::generic_category().message(code)));
}

}  // namespace

Result<TempFile> TempFile::create(const std::filesystem::path& folder) {
  std::string where = folder.string();
  if (where.empty()) {
    const char* const from_environment = std::getenv("TMPDIR");
    where = from_environment != nullptr && *from_environment != '\0' ? from_environment : "/tmp";
  }
  int descriptor = ::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // Not every file system makes files without a name: unlink one.
    std::string name = where + "/pasta-XXXXXX";
    descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor >= 0) ::unlink(name.c_str());
  }
  if (descriptor < 0) return io_error("cannot make", where, errno);
  return TempFile(descriptor, std::move(where));
}

TempFile::TempFile(TempFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)),
      folder_(std::move(other.folder_)) {}

TempFile& TempFile::operator=(TempFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(folder_, other.folder_);
  return *this;
}

TempFile::~TempFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status TempFile::append(std::span<const std::byte> bytes) {
  std::uint64_t end = size_;
  while (!bytes.empty()) {
    const ssize_t wrote =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(end));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return io_error("cannot write", folder_, errno);
    }
    end += static_cast<std::uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  size_ = end;
  return {};
}

Status TempFile::read_at(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return io_error("cannot read", folder_, errno);
    }
    if (got == 0) {
      return fail(ErrorCode::kIo, fmt::format("a temporary file in {} ends early", folder_));
    }
    offset += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

const std::uint8_t* TempFile::map() const {
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<const std::uint8_t*>(mapped);
}

Status TempFile::clear() {
  size_ = 0;
  if (::ftruncate(descriptor_, 0) != 0) return io_error("cannot shorten", folder_, errno);
  return {};
}

}  // namespace pasta::base
